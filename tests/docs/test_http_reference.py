"""Every curl of the reference of the HTTP API is answered well, once its ids are those of things that are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.page_shell import Shell
from tests.docs.pages import ROOT, Step, blocks
from tests.integration.test_wheels import wheel_of

PAGE = ROOT / "docs/reference/http-api.md"
BEFORE = (
    "pyoco-runtime --role all --worker-id worker-1 --flow-resolver examples/hello_flow.py:resolve",
    "PYOCO=http://127.0.0.1:8000; KEY=none",
    "until curl -sf $PYOCO/ready; do sleep 0.1; done",
    "run_id=$(pyoco-client submit --flow-name failing | grep -o '[0-9a-f-]\\{36\\}')",
    "until pyoco-client dlq list | grep failing; do sleep 0.1; done",
    'process=$(curl $PYOCO/actors | grep -o \'"process": *"[^"]*\' | head -1 | cut -d\'"\' -f4)',
)
"""A house with a run, a dead letter and a worker."""


def examples() -> list[str]:
    """The commands of the page, about what there is; streams end after a second."""
    found = [text.strip() for _, text in blocks(PAGE, "sh") if text.startswith("curl ")]
    return [_about_ours(command) for command in found]


def _about_ours(command: str) -> str:
    if command.startswith("curl -OJ"):  # which writes over nothing
        command = f"rm *.whl; {command}; ls *.whl"
    command = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "$run_id", command)
    return (
        command.replace("timeout_sec=30", "timeout_sec=1").replace("/dlq/17", "/dlq/1").replace("/gw-1/", "/$process/")
    )


def test_every_example_is_answered_well(tmp_path: Path) -> None:
    """Each has a status below 400; the shell ends at the first that has not."""
    (tmp_path / "flow.yaml").write_text((ROOT / "examples/hello/flow.yaml").read_text())
    (tmp_path / "demo-1.0-py3-none-any.whl").write_bytes(wheel_of("demo", "1.0"))
    commands = examples()
    assert len(commands) > 20
    said = Shell(tmp_path).run(map(Step, (*BEFORE, *commands)))
    assert all(said[len(BEFORE) :]), [
        command for command, text in zip(commands, said[len(BEFORE) :], strict=True) if not text
    ]
