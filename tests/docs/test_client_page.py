"""Every example of the reference of pyoco-client is a command that works."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.docs.page_shell import Shell
from tests.docs.pages import ROOT, Step, blocks

PAGE = ROOT / "docs/reference/pyoco-client.md"
HOUSE = "pyoco-runtime --role all --flow-resolver examples/hello_flow.py:resolve"
RUN = "run_id=$(pyoco-client submit --flow-name hello | grep -o '[0-9a-f-]\\{36\\}')"
WHEEL = "demo-1.0-py3-none-any.whl"
METADATA = (
    "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: demo\nProject-URL: Documentation, https://example.org\n"
)


def examples() -> list[str]:
    """The commands, with a run that is there; the first block is the usage."""
    found = [text.strip() for _, text in blocks(PAGE, "text")][1:]
    return [each.replace("<run_id>", "$run_id") for each in found]


def as_step(command: str) -> Step:
    """How it is tried: `top` goes on until Ctrl-C, and shows its screen in a terminal only."""
    if command.startswith("pyoco-client top"):
        return Step(f"timeout --signal INT 3 {command} --output json", fails=True)
    return Step(command)


def write_files(place: Path) -> None:
    """The files that the examples name."""
    (place / "flow.yaml").write_text((ROOT / "examples/hello/flow.yaml").read_text())
    (place / "runs.jsonl").write_text('{"flow_name": "hello"}\n{"flow_name": "hello", "params": {"name": "Ada"}}\n')
    (place / "dist").mkdir()
    with zipfile.ZipFile(place / "dist" / WHEEL, "w") as wheel:
        wheel.writestr("demo.py", "")
        wheel.writestr("demo-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("demo-1.0.dist-info/entry_points.txt", "[demo]\ndemo = demo\n")


def test_every_example_works(tmp_path: Path) -> None:
    """All of them, in the order of the page, beside a gateway and a worker."""
    write_files(tmp_path)
    wanted = [as_step(command) for command in examples()]
    said = Shell(tmp_path).run([Step(HOUSE), Step(RUN), *wanted])[2:]
    answers = {step.command.split()[1]: text for step, text in zip(wanted, said, strict=True)}
    assert len(answers) == len(examples())
    assert "COMPLETED" in answers["watch"]
    assert "Hello, world!" in answers["logs"]
    assert WHEEL in answers["wheel-upload"]
    assert '"deleted": true' in answers["wheel-delete"]
