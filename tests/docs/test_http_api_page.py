"""The page about the HTTP API, from top to bottom: its commands build on each other, so one shell runs them all."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_docs import (
    BIN,
    HTTP_API,
    LIMIT_SEC,
    ROOT,
    House,
    blocks,
    clean_environ,
    commands,
    end,
    read_until,
    start,
)
from tests.integration.test_wheels import wheel_of

pytestmark = pytest.mark.xdist_group("docs")

USUAL = "http://127.0.0.1:8000"
MARK = "\x1e"  # the separator of records, which no answer has
STRICT = 'set -e -o pipefail; curl() { command curl --fail-with-body "$@"; }\n'
"""A command that fails, or an answer that is an error, ends it."""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """What the page says to start, on free ports."""
    command: list[str | Path] = [BIN / "pyoco-runtime", "--role", "all", "--port", "0", "--worker-id", "w1"]
    command += ["--flow-resolver", f"{ROOT}/examples/hello_flow.py:resolve"]
    process = start(*command, cwd=tmp_path, log=tmp_path / "log", PYOCO_NATS_CLIENT_PORT="0")
    try:
        said = read_until(process, "Ctrl-C stops it")
        http, nats = (re.search(rf"{name} +(\S+)", said) for name in ("http", "nats"))
        assert http is not None
        assert nats is not None
        found = House(tmp_path, http[1], nats[1])
        found.until_ready()
        yield found
    finally:
        code = end(process, signal.SIGTERM) if process.poll() is None else process.returncode
    assert code == 0, (tmp_path / "log").read_text()


def run_page(house: House) -> dict[str, list[str]]:
    """What each command printed, as often as the page has it."""
    script = STRICT + "".join(
        f"printf '{MARK}'\n{command.replace(USUAL, house.http_url)}\n" for command in commands(HTTP_API)
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=house.place,
        env=clean_environ(),
        capture_output=True,
        text=True,
        timeout=LIMIT_SEC,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    said: dict[str, list[str]] = {}
    for command, text in zip(commands(HTTP_API), done.stdout.split(MARK)[1:], strict=True):
        said.setdefault(command, []).append(text)
    return said


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_the_page_does_what_it_says(house: House) -> None:
    """Every command is answered well, and the answers are those that the page promises."""
    (house.place / "flow.yaml").write_text(next(text for _, text in blocks(HTTP_API, "yaml")))
    wheel = wheel_of("demo", "1.0")
    (house.place / "demo-1.0-py3-none-any.whl").write_bytes(wheel)
    said = run_page(house)

    def answer(beginning: str) -> list[str]:
        return next(texts for command, texts in said.items() if command.startswith(beginning))

    def first(beginning: str) -> Any:
        return json.loads(answer(beginning)[0])

    batch = first("curl -s $api/runs/batch")
    assert (batch["accepted"], len(batch["results"])) == (2, 2)
    one, two = map(json.loads, answer("curl -s $api/runs -H 'Idempotency-Key"))
    assert one == two
    assert '"status":"COMPLETED"' in answer('curl -sN "$api/runs/$run_id/watch')[0]
    assert "event: ready" in answer('curl -sN "$api/runs/watch')[0]
    assert len(first('curl -s "$api/runs?cursor')["items"]) == 2
    assert first("curl -s $api/runs/$slow/cancel")["status"] == "CANCELLING"
    assert [each["worker_id"] for each in first('curl -s "$api/workers')] == ["w1"]
    assert "pyoco_runs_total" in answer("curl -s $api/metrics")[0]
    assert first("curl -s -X POST $api/dlq")["status"] == "PENDING"
    assert (house.place / "copy.whl").read_bytes() == wheel
    assert first("curl -s -X DELETE $api/wheels") == {"name": "demo-1.0-py3-none-any.whl", "deleted": True}
