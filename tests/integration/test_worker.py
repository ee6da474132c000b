"""The worker as people start it: the real program on a real nats-server, with real child processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.worker import WheelSync
from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of
from tests.integration.worker_client import WorkerClient, executions, is_alive, worker, worker_client

LONG_SEC = 40.0 if os.environ.get("PYOCO_LONG_TESTS") else 7.0  # `make soak` sets it

GREETING = """
version: 1
flow:
  defaults: {text: "hello, world"}
  graph: upper
tasks:
  upper: {callable: "string:capwords", inputs: {s: "$ctx.params.text"}}
"""
ANSWER = """
version: 1
flow: {graph: answer}
tasks:
  answer: {callable: "pyoco_e2e:answer"}
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server of this test."""
    with nats_server(tmp_path / "store") as server:
        yield server.url


@pytest.fixture
def client(url: str) -> Iterator[WorkerClient]:
    """A gateway and an observer."""
    with worker_client(url) as made:
        yield made


def delivery(snapshot: RunSnapshot) -> int:
    """Which attempt ended it."""
    assert snapshot.attempt is not None
    return snapshot.attempt.delivery


# -- what becomes of a job --------------------------------------------------------------------------------------------


def test_a_run_ends_completed_with_all_that_is_known_about_it(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """Records, logs, worker and attempt are there; what user code prints does not get between the log lines."""
    run_id = client.submit("hello", name="Ada")
    with worker(tmp_path, url) as started:
        found = client.wait_terminal(run_id)
        client.wait_no_jobs()
    assert (found.status, found.error, found.worker_id, delivery(found)) == ("COMPLETED", None, "w1", 1)
    assert found.tasks == {"greet": "SUCCEEDED", "count": "SUCCEEDED"}
    greet, count = found.task_records["greet"], found.task_records["count"]
    assert (greet.output, greet.stdout, greet.stderr) == ("Hello, Ada!", "Hello, Ada!\n", "to whom it may concern\n")
    assert (count.inputs, count.output) == ({"greet": "Hello, Ada!"}, 11)
    assert found.start_time is not None
    assert found.end_time is not None
    assert found.start_time <= found.end_time
    assert client.dead_letters() == []
    assert started.stray == []
    for text in ("Hello, Ada!\n", "to whom it may concern\n", "this is no JSON\n"):
        assert text in started.stderr


def test_a_run_brings_its_own_flow(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """The flow.yaml in the job is executed; the resolver is not asked."""
    run_id = client.submit("from-a-file", workflow_yaml=GREETING, text="good morning")
    with worker(tmp_path, url):
        found = client.wait_terminal(run_id)
    assert (found.status, found.error) == ("COMPLETED", None)
    assert found.task_records["upper"].output == "Good Morning"


def test_only_allowed_modules_can_be_called(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """PYOCO_CALLABLE_ALLOW refuses the rest, and says what."""
    run_id = client.submit("from-a-file", workflow_yaml=GREETING, text="good morning")
    with worker(tmp_path, url, PYOCO_CALLABLE_ALLOW="textwrap,json"):
        found = client.wait_terminal(run_id)
    assert found.status == "FAILED"
    assert found.error is not None
    assert "string" in found.error
    assert found.tasks.get("upper") != "SUCCEEDED"


def test_bad_runs_end_failed_with_a_dead_letter_each(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """A flow that raises, and one that this worker does not have."""
    raised = client.submit("fail")
    unknown = client.submit("nobody-has-this")
    with worker(tmp_path, url):
        found = client.wait_all_terminal([raised, unknown])
        letters = {letter.run_id: letter for letter in client.wait_letters(2)}
        client.wait_no_jobs()
    assert found[raised].status == found[unknown].status == "FAILED"
    assert found[raised].tasks == {"fail": "FAILED"}
    assert "this flow always fails" in str(found[raised].error)
    assert "ValueError" in str(found[raised].task_records["fail"].traceback)
    assert str(found[unknown].error).startswith("flow_not_found: ")
    assert {letter.reason for letter in letters.values()} == {"execution_error", "flow_not_found"}
    for run_id, letter in letters.items():
        assert (letter.error, letter.worker_id, letter.num_delivered) == (letter.error, "w1", 1)
        assert letter.error == found[str(run_id)].error
        assert letter.subject == "pyoco.work.default"


def test_what_is_no_job_leaves_the_queue_as_a_dead_letter(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """Not JSON, fields missing with a known run and with an unknown one, and a job whose run was never accepted."""
    known = client.create("hello")
    client.publish("default", b"\xffnot JSON")
    client.publish("default", json.dumps({"run_id": known, "flow_name": "hello"}).encode())
    client.publish("default", json.dumps({"run_id": "unheard-of"}).encode())
    orphan = {"run_id": "orphan", "flow_name": "hello", "tag": "default", "submitted_at": 1.0}
    client.publish("default", json.dumps(orphan).encode())
    with worker(tmp_path, url):
        found = client.wait_terminal(known)
        letters = client.wait_letters(4)
        client.wait_no_jobs()
        after = client.submit("hello")
        assert client.wait_terminal(after).status == "COMPLETED"
    assert found.status == "FAILED"
    assert str(found.error).startswith("invalid_job: ")
    assert "tag" in str(found.error)
    assert sorted((letter.reason, letter.run_id or "-") for letter in letters) == sorted(
        [
            ("invalid_job", "-"),
            ("invalid_job", known),
            ("invalid_job", "unheard-of"),
            ("orphaned_job", "orphan"),
        ]
    )
    assert all(letter.payload for letter in letters if letter.reason == "invalid_job")
    assert set(client.revisions()) == {known, after}


@pytest.mark.parametrize(("flow", "says"), [("leave", "code 7"), ("kill", "SIGKILL"), ("crash", "SIGSEGV")])
def test_a_run_that_crashes_its_process_fails_alone(
    tmp_path: Path, url: str, client: WorkerClient, flow: str, says: str
) -> None:
    """The error says how it died; the child is replaced, and the next run works."""
    with worker(tmp_path, url, "--concurrency", "1") as started:
        first = client.wait_terminal(client.submit(flow))
        second = client.wait_terminal(client.submit("hello"))
        client.wait_no_jobs()
        assert started.process.poll() is None
    assert (first.status, first.tasks) == ("FAILED", {flow: "FAILED"})
    assert says in str(first.error)
    assert (second.status, delivery(second)) == ("COMPLETED", 1)
    assert [letter.reason for letter in client.dead_letters()] == ["execution_error"]


def test_two_workers_with_different_tags_take_their_own_runs(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """And one with both tags takes either."""
    runs = {tag: [client.submit("hello", tag=tag) for _ in range(5)] for tag in ("a", "b")}
    with (
        worker(tmp_path, url, "--tags", "a", name="on-a"),
        worker(tmp_path, url, "--tags", "b", name="on-b") as on_b,
    ):
        found = client.wait_all_terminal([*runs["a"], *runs["b"]])
        assert {found[run_id].worker_id for run_id in runs["a"]} == {"on-a"}
        assert {found[run_id].worker_id for run_id in runs["b"]} == {"on-b"}
        assert on_b.terminate() == 0
        with worker(tmp_path, url, "--tags", "b,c", name="on-both"):
            more = [client.submit("hello", tag=tag) for tag in ("b", "c")]
            assert {each.worker_id for each in client.wait_all_terminal(more).values()} == {"on-both"}
    assert {each.status for each in client.wait_all_terminal([*more, *found]).values()} == {"COMPLETED"}


# -- cancelling -------------------------------------------------------------------------------------------------------


def test_a_run_that_is_cancelled_while_it_waits_never_starts(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """No worker is there when it is cancelled."""
    notes = tmp_path / "notes"
    run_id = client.submit("short", notes=str(notes))
    client.cancel(run_id)
    assert client.get(run_id).status == "CANCELLING"
    with worker(tmp_path, url):
        found = client.wait_terminal(run_id)
        client.wait_no_jobs()
    assert (found.status, found.error, found.tasks) == ("CANCELLED", None, {})
    assert executions(notes) == {}
    assert client.dead_letters() == []


def test_a_running_run_hears_of_its_cancel(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """It ends by itself: nobody waits for the grace period, and no process is killed."""
    with worker(tmp_path, url, PYOCO_CANCEL_GRACE_PERIOD_SEC="3600") as started:
        run_id = client.submit("gate", release=str(tmp_path / "never"))
        client.wait_running(run_id)
        children = set(started.children())
        began = time.monotonic()
        client.cancel(run_id)
        found = client.wait_terminal(run_id)
        print(f"from the cancel to CANCELLED: {(time.monotonic() - began) * 1000:.0f} ms")
        client.wait_no_jobs()
        assert set(started.children()) == children
    assert found.status == "CANCELLED"
    assert found.cancel_requested_at is not None
    assert started.said("ERR-PYOCO-0021") == []


def test_a_run_that_does_not_listen_is_ended_by_force(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """After the grace period; its process is gone, and the next run has a new one."""
    with worker(tmp_path, url, "--concurrency", "1", PYOCO_CANCEL_GRACE_PERIOD_SEC="0.3") as started:
        run_id = client.submit("deaf")
        client.wait_running(run_id)
        (child,) = started.children()
        client.cancel(run_id)
        found = client.wait_terminal(run_id)
        line = started.wait_said("ERR-PYOCO-0021")
        after = client.wait_terminal(client.submit("hello"))
        client.wait_no_jobs()
    assert (found.status, found.tasks) == ("CANCELLED", {"deaf": "CANCELLED"})
    assert line["run_id"] == run_id
    assert not is_alive(child)
    assert after.status == "COMPLETED"
    assert client.dead_letters() == []


# -- keeping a job, and giving it back --------------------------------------------------------------------------------


def test_a_run_longer_than_the_ack_wait_is_executed_once(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """Two workers are there to take it if it were delivered again."""
    notes = tmp_path / "notes"
    with (
        worker(tmp_path, url, PYOCO_CONSUMER_ACK_WAIT_SEC="2"),
        worker(tmp_path, url, name="w2", PYOCO_CONSUMER_ACK_WAIT_SEC="2"),
    ):
        run_id = client.submit("short", notes=str(notes), seconds=LONG_SEC)
        found = client.wait_terminal(run_id)
        client.wait_no_jobs()
    assert (found.status, delivery(found)) == ("COMPLETED", 1)
    assert executions(notes) == {run_id: [str(found.attempt)]}


def test_sigterm_lets_a_running_run_finish(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """It takes nothing new, exits with 0, says good-bye, and stays hidden if somebody has hidden it."""
    notes, release = tmp_path / "notes", tmp_path / "release"
    with worker(tmp_path, url, "--log-level", "DEBUG") as started:
        run_id = client.submit("gate", release=str(release), notes=str(notes))
        client.wait_running(run_id)
        client.wait_worker("w1", lambda record: record.current_run_id == run_id)
        client.hide("w1")
        started.process.terminate()
        started.wait_said("stopped", actor="/consumer:default")
        late = client.submit("hello")
        release.touch()
        assert started.wait() == 0
    found, record = client.get(run_id), client.worker_record("w1")
    assert (found.status, delivery(found)) == ("COMPLETED", 1)
    assert len(executions(notes)[run_id]) == 1
    assert (record.state, record.hidden, record.current_run_id) == ("STOPPED_GRACEFUL", True, None)
    assert record.stopped_at is not None
    assert client.get(late).status == "PENDING"
    assert client.job_count() == 1


def test_a_run_that_takes_too_long_to_drain_goes_to_another_worker_at_once(
    tmp_path: Path, url: str, client: WorkerClient
) -> None:
    """Not after the ack wait, which is a minute here."""
    (tmp_path / "supervisor.toml").write_text("[actors.run]\nshutdown_sec = 0.5\n")
    notes, release = tmp_path / "notes", tmp_path / "release"
    with worker(tmp_path, url) as first:
        run_ids = [client.submit("gate", release=str(release), notes=str(notes)) for _ in range(2)]
        for run_id in run_ids:
            client.wait_running(run_id)
        with worker(tmp_path, url, name="w2") as second:
            second.wait_said("connected to NATS")
            began = time.monotonic()
            children = first.children()
            assert first.terminate() == 0
            for run_id in run_ids:
                client.wait_run(run_id, lambda found: found.worker_id == "w2" and "RUNNING" in found.tasks.values())
            assert time.monotonic() - began < 50
            assert not any(is_alive(child) for child in children)
            release.touch()
            found = client.wait_all_terminal(run_ids)
            client.wait_no_jobs()
    assert {(each.status, each.worker_id, delivery(each)) for each in found.values()} == {("COMPLETED", "w2", 2)}
    assert {len(attempts) for attempts in executions(notes).values()} == {2}
    assert client.worker_record("w1").state == "STOPPED_GRACEFUL"


def test_sigterm_while_nats_is_away_is_an_orderly_stop_too(tmp_path: Path) -> None:
    """The run cannot be given back, and its process is ended all the same; a later worker executes it anew."""
    (tmp_path / "supervisor.toml").write_text("[actors.run]\nshutdown_sec = 0.5\n")
    release = tmp_path / "release"
    ack_wait = {"PYOCO_CONSUMER_ACK_WAIT_SEC": "2"}
    with nats_server(tmp_path / "store") as server, worker_client(server.url) as client:
        with worker(tmp_path, server.url, **ack_wait) as started:
            run_id = client.submit("gate", release=str(release))
            client.wait_running(run_id)
            children = started.children()
            server.kill()
            started.wait_said("connection to NATS lost")
            assert started.terminate() == 0
        assert [line for line in started.lines if line["level"] in ("ERROR", "CRITICAL")] == []
        assert not any(is_alive(child) for child in children)
        server.start()
        release.touch()
        with worker(tmp_path, server.url, name="w2", **ack_wait):
            found = client.wait_terminal(run_id)
            client.wait_no_jobs()
    assert (found.status, found.worker_id) == ("COMPLETED", "w2")


def test_no_run_is_stuck_when_workers_stop_under_load(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """Three workers come and go while runs stream through; an ack wait of five minutes would show."""
    notes = tmp_path / "notes"
    run_ids: list[str] = []
    for number in range(3):
        with worker(tmp_path, url, name=f"w{number}", PYOCO_CONSUMER_ACK_WAIT_SEC="300") as started:
            run_ids += [client.submit("short", notes=str(notes), seconds=0.005) for _ in range(60)]
            client.wait_all_terminal(run_ids, at_least=len(run_ids) - 50)
            assert started.terminate() == 0
    with worker(tmp_path, url, name="last", PYOCO_CONSUMER_ACK_WAIT_SEC="300"):
        found = client.wait_all_terminal(run_ids)
        client.wait_no_jobs()
    assert {each.status for each in found.values()} == {"COMPLETED"}
    assert {len(attempts) for attempts in executions(notes).values()} == {1}


# -- the worker record -------------------------------------------------------------------------------------------------


def test_a_worker_is_in_the_registry_as_soon_as_it_is_connected(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """Not one heartbeat interval later, which is an hour here."""
    with worker(tmp_path, url, PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC="3600") as started:
        started.wait_said("connected to NATS")
        client.wait_worker("w1", lambda record: record.state == "IDLE", patience_sec=5)


# -- restarting actors ------------------------------------------------------------------------------------------------


def test_every_actor_can_be_restarted_under_a_run(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """The run is neither lost, repeated nor failed; and afterwards all of them still do their work."""
    notes, release = tmp_path / "notes", tmp_path / "release"
    actors = ["ticker", "heartbeat", "cancel-watcher", "dlq-publisher", "runners", "consumer:default", "link"]
    with worker(tmp_path, url, PYOCO_CONSUMER_ACK_WAIT_SEC="3") as started:
        run_id = client.submit("gate", release=str(release), notes=str(notes))
        client.wait_running(run_id)
        for actor in actors:
            done = started.restart(actor)
            assert done.returncode == 0, (actor, done.stderr)
            assert "0 -> 1" in done.stdout, done.stdout
        cancelled = client.submit("gate", release=str(tmp_path / "never"))
        client.wait_running(cancelled)
        client.cancel(cancelled)
        assert client.wait_terminal(cancelled).status == "CANCELLED"
        failed = client.submit("fail")
        assert client.wait_terminal(failed).status == "FAILED"
        client.wait_letters(1, failed)
        assert client.get(run_id).status == "RUNNING"
        release.touch()
        found = client.wait_terminal(run_id)
        client.wait_no_jobs()
        client.wait_worker("w1", lambda record: record.state == "IDLE")
        assert started.terminate() == 0
    assert (found.status, delivery(found)) == ("COMPLETED", 1)
    assert len(executions(notes)[run_id]) == 1
    crashes = [line for line in started.lines if line["level"] in ("ERROR", "CRITICAL")]
    assert crashes == []


def test_a_run_whose_actor_is_restarted_is_executed_again(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """The job is given back; a new attempt begins from the start, and the first one's process is ended."""
    (tmp_path / "supervisor.toml").write_text("[actors.run]\nshutdown_sec = 0.1\n")
    notes, release = tmp_path / "notes", tmp_path / "release"
    with worker(tmp_path, url) as started:
        run_id = client.submit("gate", release=str(release), notes=str(notes))
        client.wait_running(run_id)
        done = started.restart(f"runs/run:{run_id}")
        assert done.returncode == 0, done.stderr
        client.wait_run(run_id, lambda found: delivery(found) == 2 and "RUNNING" in found.tasks.values())
        release.touch()
        found = client.wait_terminal(run_id)
        client.wait_no_jobs()
        after = client.wait_all_terminal([client.submit("hello") for _ in range(4)])
        assert started.terminate() == 0
    assert (found.status, delivery(found)) == ("COMPLETED", 2)
    assert len(executions(notes)[run_id]) == 2
    assert {each.status for each in after.values()} == {"COMPLETED"}


# -- wheels -----------------------------------------------------------------------------------------------------------


def test_a_new_version_of_a_wheel_is_used_by_the_next_run(tmp_path: Path, url: str, client: WorkerClient) -> None:
    """Version 1 at the start; version 2 while the worker runs, as soon as its record says so."""
    settings = {"PYOCO_WHEEL_SYNC_ENABLED": "1", "PYOCO_WHEEL_SYNC_DIR": str(tmp_path / "wheels")}
    answers = []
    client.upload_wheel(wheel_name("pyoco_e2e", "1.0"), wheel_of("pyoco_e2e", "1.0"), tags="default")
    client.upload_wheel(wheel_name("pyoco_e2e_other", "1.0"), wheel_of("pyoco_e2e_other", "1.0"), tags="another-tag")
    with worker(tmp_path, url, PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC="0.5", **settings):
        for version in ("1.0", "2.0"):
            wanted = wheel_name("pyoco_e2e", version)
            if version != "1.0":
                client.upload_wheel(wanted, wheel_of("pyoco_e2e", version), tags="default")
                client.wait_worker("w1", lambda record, wanted=wanted: wanted in _installed(record.wheel_sync))  # type: ignore[misc]
            found = client.wait_terminal(client.submit("yaml", workflow_yaml=ANSWER))
            assert found.status == "COMPLETED", found.error
            answers.append(found.task_records["answer"].output)
    record = client.worker_record("w1").wheel_sync
    assert answers == ["1.0", "2.0"]
    assert (record.enabled, record.last_result, record.last_error) == (True, "ok", None)
    assert _installed(record) == [wheel_name("pyoco_e2e", "2.0")]


def _installed(sync: WheelSync) -> list[str]:
    return [str(each["wheel_name"]) for each in sync.installed_wheels]
