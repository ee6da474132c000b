"""The published `pyoco-client`, every command: it prints and exits with our gateway as with its own."""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.compat.comparison import UUID, still, uncovered
from tests.compat.house import GREETING, House, ended, settle, submit, url_of
from tests.compat.peer import run_peer
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of

WHEEL = wheel_name("pyoco_program", "1.0")
UNKNOWN = "00000000-0000-4000-8000-000000000000"

# Each is run with both gateways; {run} has ended, {waiting} waits for ever.
COMMANDS = [
    "submit --flow-name hello --tag nobody",
    'submit --flow-name hello --tag nobody --tags a,b --params-file params.yaml --params {{"x":1}} --param y=2',
    "submit --flow-name hello --tag a.b",
    "submit --params nonsense",
    "submit --param nonsense",
    "submit-yaml --workflow-file flow.yaml --flow-name main --tag nobody",
    "submit-yaml --workflow-file bad.yaml --flow-name main --tag nobody",
    "submit-yaml --workflow-file missing.yaml --flow-name main --tag nobody",
    "get {run}",
    "get {run} --records",
    f"get {UNKNOWN}",
    "tasks {run}",
    "list --tag ours --flow hello --status COMPLETED --limit 1",
    "list --tag ours --flow hello --full --limit 1",
    "list --tag ours --flow hello --limit 1 --output table",
    "list --tag nowhere --output table",
    "list --limit 1000",
    "list-vnext --tag ours --flow hello --limit 1 --updated-after 1",
    "list-vnext --tag ours --flow hello --limit 1 --updated-after 1 --output table",
    "list-vnext --cursor nonsense",
    "watch {run} --until-terminal",
    "watch {run} --max-events 1 --records --since 1",
    "watch {run} --until-terminal --output status --timeout-sec 5",
    f"watch {UNKNOWN}",
    "cancel --run-id {run} --wait",
    "cancel --run-id {waiting} --wait --timeout-sec 1",
    f"cancel --run-id {UNKNOWN}",
    "workers --scope all --include-hidden",
    "workers --state RUNNING --limit 5",
    "workers --output table",
    "workers --output plugins",
    "wheels",
    f"wheel-upload --wheel-file {WHEEL} --preflight off --tags nobody --no-replace",
    f"wheel-upload --wheel-file {WHEEL} --preflight off --replace",
    f"wheel-upload --wheel-file {WHEEL}",
    f"wheel-history --limit 1 --wheel-name {WHEEL} --action upload",
    f"wheel-delete --name {WHEEL}",
    f"wheel-delete --name {WHEEL}",
    "nonsense",
]


@pytest.fixture(scope="module")
def outcomes(house: House, tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """What every command printed and exited with, at our gateway and at theirs."""
    place = tmp_path_factory.mktemp("program")
    (place / "flow.yaml").write_text(GREETING)
    (place / "bad.yaml").write_text("nonsense: 1\n")
    (place / "params.yaml").write_text("x: 0\nz: 3\n")
    (place / WHEEL).write_bytes(wheel_of("pyoco_program", "1.0"))
    run_id, waiting = submit(house.ours, "hello", "ours", name="Ada"), submit(house.ours, "hello", "nobody")
    ended(house.ours, run_id)
    settle(house)
    wheels = [command for command in COMMANDS if command.startswith("wheel")]
    found: dict[tuple[int, int], Any] = {}
    for side, gate in enumerate(house.both):
        url = url_of(gate)

        def one(number: int, side: int = side, url: str = url) -> None:
            words = [word.format(run=run_id, waiting=waiting) for word in COMMANDS[number].split(" ")]
            found[number, side] = outcome(url, words, place)

        free = [n for n, command in enumerate(COMMANDS) if command not in wheels]
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(one, free))
        for number in sorted(set(range(len(COMMANDS))) - set(free)):  # these build on each other
            one(number)
    return [[found[number, side] for side in (0, 1)] for number in range(len(COMMANDS))]


def answered(url: str, words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    """The command's end, once it was not the peer's gateway that stumbled over a worker writing its record."""
    while True:
        done = run_peer("pyoco-client", "--server", url, *words, cwd=place)
        if "NoKeysError" not in done.stderr:
            return done


def outcome(url: str, words: list[str], place: Path) -> dict[str, Any]:
    """Exit code, stdout as data where it is data, and the first line of stderr."""
    done = answered(url, words, place)
    said = done.stderr.partition("\n")[0]
    lines = [printed(line) for line in done.stdout.splitlines()]
    if words[0] == "workers" and "--output" in words:
        lines.sort()  # by their last sign of life, which moves
    return {"code": done.returncode, "printed": lines, "said": said}


def printed(line: str) -> Any:
    """A line of stdout without what is new in every run."""
    try:
        return still(json.loads(line))
    except ValueError:
        text = re.sub(r"\d{10}\.\d+", "<time>", UUID.sub("<run>", line))
        return re.sub(r" +", " ", re.sub(r"next_cursor: \S+", "next_cursor: ...", text))


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[command[:50] for command in COMMANDS])
def test_a_command_ends_alike(outcomes: list[list[Any]], number: int) -> None:
    """The same exit code and the same words, and all that it prints from its own gateway it prints from ours."""
    ours, theirs = outcomes[number]
    assert list(uncovered(ours, theirs)) == []


def test_the_commands_do_what_they_say(outcomes: list[list[Any]]) -> None:
    """That both fail alike would not be enough."""
    by_command = {command: pair[0] for command, pair in zip(COMMANDS, outcomes, strict=True)}
    bad = {command for command, found in by_command.items() if found["code"] != 0}
    words = ("a.b", "nonsense", "bad.yaml", "missing.yaml", UNKNOWN, "1000", "{waiting}")
    expected = {command for command in COMMANDS if any(word in command for word in words)}
    twice = {f"wheel-upload --wheel-file {WHEEL} --preflight off --replace", f"wheel-upload --wheel-file {WHEEL}"}
    assert bad == expected | twice | {f"wheel-delete --name {WHEEL}"}  # the second of them
    assert by_command["watch {run} --until-terminal --output status --timeout-sec 5"]["printed"] == [
        "<time>\tsnapshot\tCOMPLETED\t<run>"
    ]


def test_metrics_and_help(house: House, tmp_path: Path) -> None:
    """Text, and exit 0."""
    for gate in house.both:
        done = answered(url_of(gate), ["metrics"], tmp_path)
        assert (done.returncode, "pyoco_runs_total{" in done.stdout) == (0, True), done.stderr
