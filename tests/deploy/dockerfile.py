"""Runs the steps of our Dockerfile in a directory, where there is no container engine; knows the forms that it uses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from attrs import field, frozen

BUILT = ("/build", "/opt/pyoco", "/var/lib/pyoco")
"""The absolute paths of the Dockerfile; each is taken below the stage's own root."""
LIMIT_SEC = 240


@frozen
class Stage:
    """One stage: its root, what it was told, and nothing of another stage but what was copied."""

    root: Path
    environment: dict[str, str] = field(factory=dict)
    told: dict[str, str] = field(factory=dict)

    def inside(self, text: str) -> str:
        """The text with the image's paths below this root."""
        return re.sub("|".join(BUILT), lambda found: f"{self.root}{found[0]}", text)

    @property
    def cwd(self) -> Path:
        return Path(self.inside(self.told.get("WORKDIR", "/build")))


def build(text: str, context: Path, place: Path) -> Stage:
    """Run every step; returns the last stage. The others are removed: an image has nothing of them."""
    stages: dict[str, Stage] = {}
    stage = Stage(place / "none")
    for word, rest in instructions(text):
        if word == "FROM":
            name = rest.partition(" AS ")[2] or "final"
            stage = stages[name] = Stage(place / name)
        elif word == "COPY":
            _copy(stage, rest, stages, context)
        elif word != "ARG":  # which base image: here it is this machine
            _take(stage, word, rest)
    for other in stages.values():
        if other is not stage:
            shutil.rmtree(other.root)
    return stage


def _take(stage: Stage, word: str, rest: str) -> None:
    match word:
        case "WORKDIR":
            stage.told[word] = rest
            stage.cwd.mkdir(parents=True, exist_ok=True)
        case "RUN":
            _run(stage, rest)
        case "ENV":
            stage.environment.update(re.findall(r"(\w+)=(\S+)", rest))
        case "HEALTHCHECK":
            stage.told[word] = rest.partition(" CMD ")[2]
        case "USER" | "EXPOSE" | "ENTRYPOINT":
            stage.told[word] = rest
        case _:
            raise AssertionError(f"the Dockerfile has a step that this test does not know: {word}")


def instructions(text: str) -> list[tuple[str, str]]:
    """The steps, each with its word."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def command(stage: Stage, word: str) -> list[str]:
    """An exec form, as the engine would start it."""
    first, *others = json.loads(stage.told[word])
    program = stage.root / "opt/pyoco/bin" / first
    assert program.exists(), f"{first} is not on the image's PATH"
    return [str(program), *map(stage.inside, others)]


def environment(stage: Stage, **more: str) -> dict[str, str]:
    """What a process of the image sees, and nothing of ours."""
    kept = {"PATH": os.environ["PATH"]}
    return (
        kept
        | {key: stage.inside(value).replace("$PATH", kept["PATH"]) for key, value in stage.environment.items()}
        | more
    )


def _run(stage: Stage, step: str) -> None:
    # the base image's python is the one that runs this test
    base = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", stage.inside(step)], cwd=stage.cwd, env=base, capture_output=True, text=True,
        timeout=LIMIT_SEC, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"RUN {step}\n{done.stdout}{done.stderr}"


def _copy(stage: Stage, step: str, stages: dict[str, Stage], context: Path) -> None:
    words = step.split()
    options = dict(word.removeprefix("--").split("=") for word in words if word.startswith("--"))
    *sources, target = [word for word in words if not word.startswith("--")]
    origin = stages[options["from"]] if "from" in options else None
    for source in sources:
        found = Path(origin.inside(source)) if origin else context / source
        there = Path(stage.inside(target)) if target.startswith("/") else stage.cwd / target
        if found.is_dir():
            shutil.copytree(found, there, symlinks=True, dirs_exist_ok=True)
        else:
            there = there / found.name if target.endswith("/") else there
            shutil.copy(found, there)
    if origin is not None:
        _rename(Path(stage.inside(target)), origin.root, stage.root)


def _rename(place: Path, old: Path, new: Path) -> None:
    """In an image both stages have the same paths; here the first lines of scripts must be told."""
    for script in place.glob("bin/*"):
        if script.is_file() and not script.is_symlink():
            script.write_bytes(script.read_bytes().replace(str(old).encode(), str(new).encode()))
