"""The page about the HTTP API: beyond what every story proves, the answers are those that the page promises."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.page_shell import Shell
from tests.docs.pages import ROOT, blocks, steps
from tests.integration.test_wheels import wheel_of

PAGE = ROOT / "docs/how-to/use-the-http-api.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    """Every command is answered well, and the answers are those that the page promises."""
    (tmp_path / "flow.yaml").write_text(next(text for _, text in blocks(PAGE, "yaml")))
    wheel = wheel_of("demo", "1.0")
    (tmp_path / "demo-1.0-py3-none-any.whl").write_bytes(wheel)
    wanted = steps(PAGE)
    said = list(zip((step.command for step in wanted), Shell(tmp_path).run(wanted), strict=True))

    def answers(beginning: str) -> list[str]:
        return [text for command, text in said if command.startswith(beginning)]

    def first(beginning: str) -> Any:
        return json.loads(answers(beginning)[0])

    batch = first("curl -s $api/runs/batch")
    assert (batch["accepted"], len(batch["results"])) == (2, 2)
    one, two = map(json.loads, answers("curl -s $api/runs -H 'Idempotency-Key"))
    assert one == two
    assert '"status":"COMPLETED"' in answers('curl -sN "$api/runs/$run_id/watch')[0]
    assert "event: ready" in answers('curl -sN "$api/runs/watch')[0]
    assert len(first('curl -s "$api/runs?cursor')["items"]) == 2
    assert first("curl -s $api/runs/$slow/cancel")["status"] == "CANCELLING"
    assert [each["worker_id"] for each in first('curl -s "$api/workers')] == ["w1"]
    assert "pyoco_runs_total" in answers("curl -s $api/metrics")[0]
    assert first("curl -s -X POST $api/dlq")["status"] == "PENDING"
    assert (tmp_path / "copy.whl").read_bytes() == wheel
    assert first("curl -s -X DELETE $api/wheels") == {"name": "demo-1.0-py3-none-any.whl", "deleted": True}
