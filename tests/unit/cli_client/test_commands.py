"""The commands of pyoco-client, on a gateway that answers what the test says."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyoco_runtime.cli.client import batch, logs
from pyoco_runtime.cli.client.commands import COMMANDS, command
from pyoco_runtime.cli.client.metrics import samples
from pyoco_runtime.cli.client.reference_page import page
from pyoco_runtime.client import Heartbeat, RunChanged
from pyoco_runtime.errors import UserError
from tests.unit.cli_client.support import asked, parsed, refused, run, session

ACCEPTED = {"run_id": "r1", "status": "PENDING"}
Captured = pytest.CaptureFixture[str]

PUBLISHED: dict[str, dict[str, Any]] = {
    "submit": {"flow_name": "main", "params": None, "params_file": None, "param": [], "tag": None, "tags": None},
    "get r": {"run_id": "r", "records": False},
    "tasks r": {"run_id": "r"},
    "list": {"status": None, "flow": None, "tag": None, "full": False, "limit": None, "output": "json"},
    "list-vnext": {"updated_after": None, "cursor": None, "workflow_yaml_sha256": None, "output": "json"},
    "watch r": {
        "records": False,
        "since": None,
        "timeout_sec": None,
        "max_events": 0,
        "until_terminal": False,
        "output": "json",
    },
    "cancel --run-id r": {"wait": False, "timeout_sec": 30},
    "workers": {"scope": "active", "state": None, "include_hidden": False, "limit": None, "output": "json"},
    "wheel-history": {"limit": 100, "wheel_name": None, "action": None},
    "wheel-upload --wheel-file w": {
        "replace": True,
        "tags": None,
        "preflight": "strict",
        "allow_no_entry_points": False,
        "allow_missing_usage_doc": False,
    },
    "wheel-delete --name w": {"name": "w"},
    "submit-yaml --workflow-file f --flow-name n --tag t": {"workflow_file": "f", "flow_name": "n", "tag": "t"},
}
"""Arguments and defaults of pyoco-client 0.5.1."""


@pytest.mark.parametrize("line", PUBLISHED)
def test_the_published_arguments_have_their_published_defaults(line: str) -> None:
    """A script for pyoco-client 0.5.1 means the same to ours."""
    found = vars(parsed(*line.split()))
    assert {name: found[name] for name in PUBLISHED[line]} == PUBLISHED[line]


def test_the_environment_stands_in_for_server_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """PYOCO_SERVER and PYOCO_API_KEY are defaults; an option wins."""
    monkeypatch.setenv("PYOCO_SERVER", "http://other:1")
    monkeypatch.setenv("PYOCO_API_KEY", "k")
    assert (parsed("list").server, parsed("list").api_key) == ("http://other:1", "k")
    assert parsed("--server", "http://mine", "list").server == "http://mine"


def test_a_wrong_command_line_gets_an_example_of_its_command(capsys: Captured) -> None:
    """Exit 1, not argparse's 2, and what would be right."""
    with pytest.raises(SystemExit) as end:
        parsed("cancel")
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert "[pyoco-client][ERR-PYOCO-0018]" in said
    assert "pyoco-client cancel --run-id" in said


def test_a_server_after_the_command_is_explained(capsys: Captured) -> None:
    """The most likely slip."""
    with pytest.raises(SystemExit):
        parsed("list", "--server", "http://x")
    assert "stand before the command" in capsys.readouterr().err


def test_every_command_has_its_parts() -> None:
    """The table names modules that exist, and examples that their parsers take."""
    for name, entry in COMMANDS.items():
        assert callable(command(name).run)
        assert parsed(*entry.example.replace("<run_id>", "r1").split()).command == name


# -- submit ------------------------------------------------------------------------------------------------------------


def test_params_are_merged_and_the_later_wins(tmp_path: Path, capsys: Captured) -> None:
    """--params, then --params-file, then --param; values are JSON where they can be."""
    file = tmp_path / "params.yaml"
    file.write_text("b: file\nc: file\n")
    here = session(submit_run=ACCEPTED)
    line = ["submit", "--params", '{"a": 1, "b": 1}', "--params-file", str(file)]
    assert run(here, *line, "--param", "c=[2]", "--param", "d= text", "--param", "e=", "--tags", "x, y,") == 0
    name, args, named = asked(here)[0]
    assert (name, args) == ("submit_run", ("main",))
    assert named == {
        "params": {"a": 1, "b": "file", "c": [2], "d": "text", "e": ""},
        "tag": None,
        "tags": ["x", "y"],
    }
    assert json.loads(capsys.readouterr().out) == ACCEPTED


@pytest.mark.parametrize("wrong", [["--params", "[1]"], ["--params", "{"], ["--param", "x"], ["--param", "=1"]])
def test_wrong_params_are_refused_with_an_example(wrong: list[str]) -> None:
    """Nothing is sent."""
    here = session(submit_run=ACCEPTED)
    with pytest.raises(UserError, match=r"x"):
        run(here, "submit", *wrong)
    assert asked(here) == []


@pytest.mark.parametrize("content", ["[1]", "{: ["])
def test_a_params_file_must_hold_an_object(tmp_path: Path, content: str) -> None:
    """The message names the file."""
    file = tmp_path / "params.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"params\.json"):
        run(session(submit_run=ACCEPTED), "submit", "--params-file", str(file))


def test_a_file_that_is_not_there_is_named() -> None:
    """In the user's words."""
    with pytest.raises(UserError, match=r"no-such\.json cannot be read: No such file"):
        run(session(submit_run=ACCEPTED), "submit", "--params-file", "no-such.json")


def test_a_warning_is_told_beside_the_answer(capsys: Captured) -> None:
    """The answer goes to stdout as it is; the warning is for the person."""
    warning = "no live worker runs the flow 'helo'; did you mean 'hello'?"
    assert run(session(submit_run={**ACCEPTED, "warnings": [warning]}), "submit", "--flow-name", "helo") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["run_id"] == "r1"
    assert said.err == f"warning: {warning}\n"


# -- batch -------------------------------------------------------------------------------------------------------------


def jsonl(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_wrong_line_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    """All lines are checked before the first is sent."""
    file = jsonl(
        tmp_path / "runs.jsonl", '{"flow_name": "a"}', "", "{", '{"flow_name": ""}', '{"flow_name": "b", "tag": "x.y"}'
    )
    here = session(submit_batch={})
    with pytest.raises(UserError) as error:
        run(here, "batch", file)
    assert [number for number in (1, 3, 4, 5) if f"line {number}:" in str(error.value)] == [3, 4, 5]
    assert asked(here) == []


def test_a_batch_goes_in_pieces_and_prints_the_ids(tmp_path: Path, capsys: Captured) -> None:
    """As many requests as it takes, in order; --from-line leaves out those before."""
    lines = [json.dumps({"flow_name": f"f{number}"}) for number in range(1, batch.CHUNK + 3)]

    def answer(items: list[dict[str, Any]]) -> dict[str, Any]:
        return {"results": [{"run_id": item["flow_name"], "status": "PENDING"} for item in items]}

    here = session(submit_batch=answer)
    assert run(here, "batch", jsonl(tmp_path / "runs.jsonl", *lines), "--from-line", "2") == 0
    assert [len(args[0]) for _, args, _ in asked(here)] == [batch.CHUNK, 1]
    said = capsys.readouterr()
    assert said.out.split() == [f"f{number}" for number in range(2, batch.CHUNK + 3)]
    assert f"{batch.CHUNK + 1} accepted, 0 refused" in said.err


def test_a_refused_line_is_named(tmp_path: Path, capsys: Captured) -> None:
    """Exit 1, though others were accepted."""
    file = jsonl(tmp_path / "runs.jsonl", '{"flow_name": "a"}', "", '{"flow_name": "b"}')
    here = session(submit_batch={"results": [ACCEPTED, {"detail": "nats unavailable", "err_id": "ERR-PYOCO-0003"}]})
    assert run(here, "batch", file, "--output", "json") == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["refused"] == 1
    assert "line 3 was refused: nats unavailable" in said.err


def test_a_batch_that_breaks_off_says_where_to_go_on(tmp_path: Path, capsys: Captured) -> None:
    """What was answered is told, and the next line."""
    lines = ['{"flow_name": "a"}'] * (batch.CHUNK + 1)
    calls: Iterator[Any] = iter([{"results": [ACCEPTED] * batch.CHUNK}])

    def answer(items: Any) -> Any:
        for found in calls:
            return found
        raise refused(503, "nats unavailable", 3)

    with pytest.raises(Exception, match="nats unavailable"):
        run(session(submit_batch=answer), "batch", jsonl(tmp_path / "runs.jsonl", *lines))
    assert f"--from-line {batch.CHUNK + 1}" in capsys.readouterr().err


def test_an_empty_batch_is_refused(tmp_path: Path) -> None:
    """With an example of a line."""
    with pytest.raises(UserError, match="flow_name"):
        run(session(), "batch", jsonl(tmp_path / "runs.jsonl", ""))


# -- lists -------------------------------------------------------------------------------------------------------------

RUN = {"run_id": "r1", "status": "FAILED", "flow_name": "a\nb", "tag": "t", "updated_at": 12.5}


def test_a_table_in_a_pipe_is_the_published_one(capsys: Captured) -> None:
    """Raw values in full, two spaces between columns, and each row on one line."""
    assert run(session(list_runs=[RUN]), "list", "--output", "table") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["run_id", "status", "flow_name", "tag", "updated_at"],
        ["r1", "FAILED", "a", "b", "t", "12.5"],
    ]


def test_an_empty_table_says_so(capsys: Captured) -> None:
    """As published."""
    run(session(list_runs=[]), "list", "--output", "table")
    assert capsys.readouterr().out == "(no items)\n"


def test_a_page_names_the_next_one(capsys: Captured) -> None:
    """As published."""
    run(session(list_runs_vnext={"items": [RUN], "next_cursor": "abc"}), "list-vnext", "--output", "table")
    assert capsys.readouterr().out.endswith("next_cursor: abc\n")


def test_workers_show_plugins_and_flows(capsys: Captured) -> None:
    """Three plugins are named, the rest are counted; the published columns come first."""
    installed = [{"package_name": f"p{n}", "package_version": "1", "wheel_name": f"p{n}.whl"} for n in range(5)]
    worker = {
        "worker_id": "w",
        "state": "IDLE",
        "tags": ["a", "b"],
        "flows": ["hello"],
        "wheel_sync": {"installed_wheels": installed},
    }
    run(session(get_workers=[worker]), "workers", "--output", "table")
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["worker_id", "state", "tags", "plugins", "plugin_preview"]
    assert "p0@1, p1@1, p2@1, +2" in row
    assert "hello" in row
    run(session(get_workers=[worker, {"worker_id": "v", "state": "IDLE"}]), "workers", "--output", "plugins")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:6] == ["worker_id", "state", "tags", "package", "version", "wheel_name"]
    assert len(lines) == 7


def test_tasks_are_shown_in_their_order(capsys: Captured) -> None:
    """With what their records know."""
    found = {"tasks": {"b": "SUCCEEDED", "a": "PENDING"}, "task_records": {"b": {"duration_ms": 5.0}}}
    run(session(get_tasks=found), "tasks", "r", "--output", "table")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["task", "b", "a"]


def test_metrics_become_data() -> None:
    """Labels with quotes and new lines, and none."""
    text = '# HELP x y\nx{a="b",c="d\\"e\\n"} 1.0\ny 2\n'
    assert list(samples(text)) == [
        {"name": "x", "labels": {"a": "b", "c": 'd"e\n'}, "value": 1.0},
        {"name": "y", "labels": {}, "value": 2.0},
    ]


# -- watch and logs ----------------------------------------------------------------------------------------------------


def events(*statuses: str) -> Any:
    def stream(*args: Any, **named: Any) -> Iterator[dict[str, Any]]:
        for status in statuses:
            yield {"event": "snapshot", "data": {"run_id": "r", "snapshot": {"status": status}, "ts": 1.5}}

    return stream


def test_watch_prints_the_published_lines(capsys: Captured) -> None:
    """Time, event, status and id with tabs between them; it ends with the terminal state."""
    here = session(watch_run=events("PENDING", "COMPLETED", "NEVER"))
    assert run(here, "watch", "r", "--until-terminal", "--timeout-sec", "9", "--output", "status") == 0
    assert capsys.readouterr().out == "1.5\tsnapshot\tPENDING\tr\n1.5\tsnapshot\tCOMPLETED\tr\n"
    assert asked(here)[0][2] == {"include_records": False, "since": None, "timeout_sec": 9}


def test_watch_stops_after_so_many_events(capsys: Captured) -> None:
    """--max-events 1."""
    run(session(watch_run=events("PENDING", "RUNNING")), "watch", "r", "--max-events", "1")
    assert json.loads(capsys.readouterr().out)["data"]["snapshot"]["status"] == "PENDING"


def followed(*runs: dict[str, Any]) -> Any:
    def stream(*args: Any, **named: Any) -> Iterator[RunChanged | Heartbeat]:
        yield Heartbeat(1.0)
        for each in runs:
            yield RunChanged({"run_id": "r", "flow_name": "f", **each}, 2.0)  # type: ignore[typeddict-item]

    return stream


def test_who_waits_for_the_end_gets_a_stream_that_connects_again(capsys: Captured) -> None:
    """The events have the published form."""
    run(session(watch=followed({"status": "FAILED"})), "watch", "r", "--until-terminal")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["heartbeat", "snapshot"]
    assert lines[1]["data"]["snapshot"]["status"] == "FAILED"


def test_logs_show_every_task_and_its_error(capsys: Captured) -> None:
    """With the name of the task, unless one is named."""
    found = {"tasks": {"a": "FAILED"}, "task_records": {"a": {"stdout": "x\ny", "error": "no"}}}
    run(session(get_tasks=found), "logs", "r")
    assert capsys.readouterr().out == "a | x\na | y\na | no\n"
    run(session(get_tasks=found), "logs", "r", "--task", "a")
    assert capsys.readouterr().out == "x\ny\nno\n"


def test_logs_of_a_task_that_is_not_there_name_those_that_are() -> None:
    """And the nearest."""
    with pytest.raises(UserError, match=r"did you mean greet\? Its tasks: greet"):
        run(session(get_tasks={"tasks": {"greet": "PENDING"}}), "logs", "r", "--task", "great")


def test_followed_logs_tell_every_line_once(capsys: Captured) -> None:
    """A line without its end waits; of a long output only the end is kept."""
    steps = [("RUNNING", "1\n2"), ("RUNNING", "1\n2\n"), ("RUNNING", "2\n3\n"), ("COMPLETED", "3\n4")]
    states = [{"status": status, "task_records": {"a": {"stdout": text}}} for status, text in steps]
    run(session(watch=followed(*states)), "logs", "r", "--follow")
    assert capsys.readouterr().out == "a | 1\na | 2\na | 3\na | 4\n"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [("", "ab", 0), ("ab", "abc", 2), ("abc", "bcd", 2), ("abc", "xyz", 0), ("ab", "ab", 2)],
)
def test_the_overlap_of_two_outputs(before: str, now: str, expected: int) -> None:
    """What was shown is not shown again."""
    assert logs.overlap(before, now) == expected


def test_a_silent_run_says_so(capsys: Captured) -> None:
    """On stderr: there is no output."""
    run(session(get_tasks={"tasks": {}}), "logs", "r")
    said = capsys.readouterr()
    assert (said.out, "no task has printed" in said.err) == ("", True)


# -- wheels ------------------------------------------------------------------------------------------------------------

GOOD = "Name: demo\nVersion: 1.0\nSummary: s\nProject-URL: Documentation, https://example.org\n\n"


def wheel(path: Path, metadata: str | None = GOOD, entry_points: str | None = "[x]\na = b:c\n") -> str:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in (("METADATA", metadata), ("entry_points.txt", entry_points)):
            if text is not None:
                archive.writestr(f"demo-1.0.dist-info/{name}", text)
    path.write_bytes(content.getvalue())
    return str(path)


def test_a_good_wheel_is_sent(tmp_path: Path, capsys: Captured) -> None:
    """With its tags."""
    here = session(upload_wheel_file={"name": "demo"})
    assert run(here, "wheel-upload", "--wheel-file", wheel(tmp_path / "demo.whl"), "--tags", "a,b", "--no-replace") == 0
    assert (asked(here)[0][2]["tags"], asked(here)[0][2]["replace"]) == (["a", "b"], False)
    assert json.loads(capsys.readouterr().out) == {"name": "demo"}


@pytest.mark.parametrize(
    ("metadata", "entry_points", "reason"),
    [
        (None, None, "missing dist-info/METADATA"),
        (GOOD.replace("Version: 1.0\n", ""), "[x]\na = b\n", "Version is missing"),
        ("Name: demo\nVersion: 1\nSummary: s\n\n", "[x]\na = b\n", "usage documentation is missing"),
        (GOOD, None, "entry_points are missing"),
        (GOOD, "no section", "format is invalid"),
    ],
)
def test_a_poor_wheel_is_not_sent(
    tmp_path: Path, metadata: str | None, entry_points: str | None, reason: str, capsys: Captured
) -> None:
    """Strict refuses, warn complains and sends, off does not look."""
    file = wheel(tmp_path / "demo.whl", metadata, entry_points)
    here = session(upload_wheel_file={"name": "demo"})
    with pytest.raises(UserError, match=reason):
        run(here, "wheel-upload", "--wheel-file", file)
    assert asked(here) == []
    assert run(here, "wheel-upload", "--wheel-file", file, "--preflight", "warn") == 0
    assert "[pyoco-client][preflight][warn] " in capsys.readouterr().err
    assert run(here, "wheel-upload", "--wheel-file", file, "--preflight", "off") == 0
    assert capsys.readouterr().err == ""


def test_what_the_user_allows_is_only_a_warning(tmp_path: Path, capsys: Captured) -> None:
    """--allow-no-entry-points."""
    here = session(upload_wheel_file={"name": "demo"})
    file = wheel(tmp_path / "demo.whl", GOOD, None)
    assert run(here, "wheel-upload", "--wheel-file", file, "--allow-no-entry-points") == 0
    assert "entry_points are missing" in capsys.readouterr().err


# -- dead letters, completion, the page --------------------------------------------------------------------------------


def test_dead_letters(capsys: Captured) -> None:
    """List, show, replay and drop."""
    letter = {"seq": 7, "timestamp": 1.0, "reason": "execution_error", "run_id": "r", "error": None, "replayable": True}
    here = session(
        list_dlq={"items": [letter], "next_before": 7},
        get_letter=letter,
        replay_letter={"run_id": "n"},
        drop_letter={"seq": 7, "deleted": True},
    )
    assert run(here, "dlq", "list", "--reason", "execution_error") == 0
    assert "--before 7" in capsys.readouterr().err
    assert run(here, "dlq", "show", "7") == 0
    assert "dlq replay 7" in capsys.readouterr().err
    assert run(here, "dlq", "replay", "7") == run(here, "dlq", "drop", "7") == 0
    assert [name for name, _, _ in asked(here)] == ["list_dlq", "get_letter", "replay_letter", "drop_letter"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command(shell: str, capsys: Captured) -> None:
    """The script is made from the parsers."""
    assert run(session(), "completion", shell) == 0
    script = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in script] == []
    assert "until" in script


def test_top_needs_a_terminal() -> None:
    """And says what to use elsewhere."""
    with pytest.raises(UserError, match="--output json"):
        run(session(), "top")


def test_the_reference_page_is_current() -> None:
    """docs/reference/pyoco-client.md is what the parsers say."""
    file = Path(__file__).parents[3] / "docs" / "reference" / "pyoco-client.md"
    assert file.read_text() == page(), "make it anew: python -m pyoco_runtime.cli.client.reference_page"


def test_every_option_of_the_page_says_what_it_is() -> None:
    """But for those that their names explain."""
    bare = {line for line in page().splitlines() if line.startswith("| `") and line.endswith("|  |")}
    assert bare <= {"| `<run_id>` |  |"}
