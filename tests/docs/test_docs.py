"""The documentation is whole: its examples run, its links lead somewhere, its lists are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyoco_runtime.model.waiting import WaitCode
from pyoco_runtime.settings import SETTINGS
from tests.docs.pages import BIN, FENCE, LINKED, PAGES, ROOT, blocks, called

LIMIT_SEC = 30.0
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def clean_environ(**more: str) -> dict[str, str]:
    """The environment without settings of ours, and with these."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYOCO_")}
    return {**kept, "PYOCO_LOAD_DOTENV": "0", **more}


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=cwd, env=clean_environ(**environ), capture_output=True, text=True, timeout=LIMIT_SEC, check=False
    )


def check_ran(done: subprocess.CompletedProcess[str], *expected: str) -> None:
    """It ended well and printed these."""
    assert done.returncode == 0, done.stdout + done.stderr
    for text in expected:
        assert text in done.stdout, f"{text!r} is not in:\n{done.stdout}"


# -- examples --------------------------------------------------------------------------------------------------------

_PYTHON = [pytest.param(text, id=f"{called(page)}:{line}") for page in PAGES for line, text in blocks(page, "python")]


@pytest.mark.parametrize("text", _PYTHON)
def test_a_python_example_runs(text: str, tmp_path: Path) -> None:
    """Every Python block of the documentation is a whole program that ends well, without a warning."""
    check_ran(run(sys.executable, "-W", "error", "-c", text, cwd=tmp_path))


EXAMPLES = {
    "supervisor_asyncio.py": ("Restarting", "Stopped"),
    "supervisor_trio.py": ("Restarting", "Stopped"),
    "embed_asyncio.py": ("COMPLETED",),
    "embed_trio.py": ("COMPLETED",),
}
"""What each program says; hello_flow.py is a resolver and no program."""


def test_every_example_is_known() -> None:
    """A new one must be tried here too."""
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*EXAMPLES, "hello_flow.py"}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_program_runs(name: str, tmp_path: Path) -> None:
    """Every program in examples/ does what it says and ends by itself."""
    check_ran(run(sys.executable, "-W", "error", ROOT / "examples" / name, cwd=tmp_path), *EXAMPLES[name])


# -- links and lists -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", LINKED, ids=called)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """A link to a file finds it, and a link to a heading finds that."""
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{called(page)} links to {target}, which is not there"
        if anchor:
            assert anchor in _anchors(file), f"{called(page)} links to {target}, which has no such heading"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=called)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    """A page that sends its reader to a file of the repository means one that exists."""
    for name in re.findall(r"`((?:tests|examples|benchmarks|deploy|docs|tools|src)/[\w./-]+)`", page.read_text()):
        assert (ROOT / name).exists(), f"{called(page)} names {name}, which is not there"


def test_the_index_lists_every_page() -> None:
    """docs/README.md links to all pages of the documentation."""
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text())}
    assert set((ROOT / "docs").rglob("*.md")) - {index} == linked


def test_the_map_shows_every_room() -> None:
    """CONTRIBUTING.md names every file and folder of the package, and every folder of tests, and no others."""
    [map_of] = [text for _, text in blocks(ROOT / "CONTRIBUTING.md", "text") if text.startswith("src/")]
    package, tests = (_entries(ROOT / place) for place in ("src/pyoco_runtime", "tests"))
    there = {name for name in package if name.endswith(("/", ".py", ".toml"))} | {name for name in tests if "/" in name}
    ours = map_of[: map_of.index("\nbenchmarks/")]
    named = set(re.findall(r"(?m)(?<=^  )[\w.]+/?|(?<=, )[\w.]+\.py(?=,|$)", ours)) | set(
        re.findall(r"setting_kinds.py|layout_keys.py", ours)
    )
    assert there == {name for name in named if name.endswith(("/", ".py", ".toml"))}


def _entries(place: Path) -> set[str]:
    found = {f"{path.name}/" if path.is_dir() else path.name for path in place.iterdir()}
    return found - {"__pycache__/", "__init__.py"}


@pytest.mark.parametrize(("tool", "page"), [("wire_formats.py", "wire-formats.md"), ("errors_page.py", "errors.md")])
def test_a_page_that_is_made_from_the_code_is_current(tool: str, page: str, tmp_path: Path) -> None:
    """`python tools/<tool> > docs/reference/<page>` would change nothing."""
    done = run(sys.executable, ROOT / "tools" / tool, cwd=tmp_path)
    check_ran(done)
    assert done.stdout == (ROOT / "docs/reference" / page).read_text(), f"make it anew with python tools/{tool}"


def test_every_reason_to_wait_is_explained() -> None:
    """docs/how-to/diagnose-a-stuck-run.md has a row for each."""
    page = (ROOT / "docs/how-to/diagnose-a-stuck-run.md").read_text()
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", page)) == set(WaitCode)


def test_the_picture_shows_what_the_demo_says() -> None:
    """docs/images/demo.svg, which tools/demo_picture.py makes, has every task of the flow and the next commands."""
    shown = re.sub(r"<[^>]*>", "", (ROOT / "docs/images/demo.svg").read_text()).replace("&#160;", " ")
    flow = (ROOT / "examples/hello/flow.yaml").read_text()
    tasks = re.findall(r"(?m)^  (\w+):\n    callable:", flow)
    assert len(tasks) > 1
    for text in (*tasks, "Submitted examples/hello/flow.yaml as run", "Try next, in another terminal:", "pyoco-client"):
        assert text in shown


def test_the_reference_lists_every_option() -> None:
    """docs/reference/cli.md has a row for each setting with an option, and no others but --check."""
    page = (ROOT / "docs/reference/cli.md").read_text()
    rows = set(re.findall(r"(?m)^\| `(--[a-z-]+)` \| (?:`(\w+)`)?", page))
    assert rows == {(each.option, each.env) for each in SETTINGS if each.has_option} | {("--check", "")}


@pytest.mark.parametrize("program", ["pyoco-runtime", "pyoco-server", "pyoco-worker", "pyoco-server-admin"])
def test_the_usage_in_the_reference_is_the_usage_of_the_program(program: str, tmp_path: Path) -> None:
    """docs/reference/cli.md shows every option of the program, and no other."""
    page = (ROOT / "docs/reference/cli.md").read_text()
    usage = next(text for _, text in blocks(ROOT / "docs/reference/cli.md", "text") if text.startswith(f"{program} "))
    assert f"## `{program}`" in page
    help_texts = [run(BIN / program, *command, "--help", cwd=tmp_path) for command in COMMANDS.get(program, [()])]
    options = {option for done in help_texts for option in re.findall(r"(?m)^  (?:-h, )?(--[a-z-]+)", done.stdout)}
    assert set(re.findall(r"--[a-z-]+", usage)) == options - {"--help"}


COMMANDS = {"pyoco-server-admin": [(), *(("api-key", verb) for verb in ("create", "list", "revoke"))]}
"""Those whose options stand behind a command."""
