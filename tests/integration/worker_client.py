"""The other side of a worker's tests: submits runs as a gateway does, watches them, and holds the worker's process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import nats
import nats.errors
import nats.js.errors
from anyio.from_thread import BlockingPortal, start_blocking_portal
from nats.aio.client import Client
from nats.js.api import KeyValueConfig, ObjectMeta
from nats.js.kv import KeyValue

from pyoco_runtime.jetstream.resources import WORK_STREAM, make_missing
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.transition import cancelling
from pyoco_runtime.model.wire import job_to, letter_from, snapshot_from, snapshot_to, worker_from
from pyoco_runtime.model.worker import WorkerRecord
from tests.integration.programs import BIN, environment, run
from tests.names import NAMES

T = TypeVar("T")

PATIENCE_SEC = 90.0  # for anything that must happen; two cores are shared by many
SILENCE_SEC = 1.0  # after so long without news a watch is opened anew: nats-py's are deaf after a server restart
MAX_BYTES = 262144
HISTORY = 64
"""Revisions that are kept of a run: more than any run here has, so that a test sees all of them."""

PROGRAM = (str(BIN / "pyoco-runtime"),)
FLOWS = Path(__file__).with_name("flows_for_tests.py")
_AWAY = (nats.errors.Error, TimeoutError, OSError)


class WorkerClient:
    """What a gateway does and an observer sees, with nats-py alone; it outlives restarts of the server."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client
        self._js = client.jetstream(timeout=5)

    # -- what a gateway does -------------------------------------------------------------------------------------------

    def submit(self, flow_name: str, *, tag: str = "default", workflow_yaml: str | None = None, **params: Any) -> str:
        """Store a PENDING snapshot, then its job; returns the run's id. Keeps trying while the server is away."""
        job = Job(
            run_id=str(uuid.uuid4()),
            flow_name=flow_name,
            tag=tag,
            tags=(tag,),
            submitted_at=time.time(),
            params=params,
            workflow_yaml=workflow_yaml,
        )
        self._call(self._create, job)
        self._call(self._publish, tag, job_to(job), {"Nats-Msg-Id": job.run_id})
        return job.run_id

    def publish(self, tag: str, data: bytes) -> None:
        """Put anything on the queue."""
        self._call(self._publish, tag, data, None)

    def create(self, flow_name: str, *, tag: str = "default") -> str:
        """Store a PENDING snapshot and no job; returns the run's id."""
        run_id = str(uuid.uuid4())
        self._call(self._create, Job(run_id=run_id, flow_name=flow_name, tag=tag, submitted_at=time.time()))
        return run_id

    def cancel(self, run_id: str) -> None:
        """CANCELLING and the time of the request, by compare-and-set, unless it is terminal."""
        self._call(self._cancel, run_id)

    def hide(self, worker_id: str) -> None:
        """Set `hidden` in a worker's record, as a person does through the gateway."""
        self._call(self._hide, worker_id)

    def upload_wheel(self, name: str, data: bytes, tags: str = "") -> None:
        """Put a wheel into the object store, with the headers of the contract."""
        self._call(self._upload, name, data, tags)

    # -- what an observer sees -----------------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunSnapshot:
        """The snapshot of a run."""
        return self.wait_run(run_id, lambda _: True)

    def wait_run(self, run_id: str, is_it: Callable[[RunSnapshot], bool]) -> RunSnapshot:
        """Wait until the snapshot of a run is as it should be."""
        return self._wait(NAMES.runs_bucket, run_id, snapshot_from, is_it, PATIENCE_SEC)

    def wait_running(self, run_id: str) -> RunSnapshot:
        """Wait until a task of the run is executed."""
        return self.wait_run(run_id, lambda found: "RUNNING" in found.tasks.values())

    def wait_terminal(self, run_id: str) -> RunSnapshot:
        """Wait until the run has ended."""
        return self.wait_run(run_id, lambda found: found.status.is_terminal)

    def wait_all_terminal(
        self, run_ids: Collection[str], at_least: int | None = None, patience_sec: float = PATIENCE_SEC
    ) -> dict[str, RunSnapshot]:
        """Wait until all of these runs, or so many of them, have ended; returns them."""
        wanted = len(run_ids) if at_least is None else at_least
        return self._call(self._wait_all, frozenset(run_ids), wanted, patience_sec)

    def wait_count(self, ended: int) -> None:
        """Wait until so many runs, whichever, have ended."""
        self._call(self._wait_all, None, ended, PATIENCE_SEC)

    def wait_worker(
        self, worker_id: str, is_it: Callable[[WorkerRecord], bool], patience_sec: float = PATIENCE_SEC
    ) -> WorkerRecord:
        """Wait until the record of a worker is as it should be."""
        return self._wait(NAMES.workers_bucket, worker_id, worker_from, is_it, patience_sec)

    def worker_record(self, worker_id: str) -> WorkerRecord:
        """The record of a worker."""
        return self.wait_worker(worker_id, lambda _: True)

    def dead_letters(self, run_id: str | None = None) -> list[DeadLetter]:
        """All dead letters, or those of one run."""
        stored = self._call(self._stored, NAMES.dlq_stream, f"{NAMES.dlq_subject_prefix}.>")
        letters = [letter_from(data) for _, data in stored]
        return [letter for letter in letters if run_id in (None, letter.run_id)]

    def wait_letters(self, count: int, run_id: str | None = None) -> list[DeadLetter]:
        """Wait until there are so many; they are stored a moment after the end of a run."""
        return _until(lambda: self.dead_letters(run_id), lambda found: len(found) >= count)

    def job_count(self) -> int:
        """The number of jobs on the queue, out or waiting."""
        return self._call(self._count)

    def queue(self) -> str:
        """What the server knows about the queue, for a failed test."""
        return self._call(self._queue)

    def wait_no_jobs(self) -> None:
        """Wait until the queue is empty; a job is acked a moment after the end of its run."""
        _until(self.job_count, lambda count: count == 0)

    def revisions(self) -> dict[str, list[RunSnapshot]]:
        """Every revision of every run, in order."""
        found: dict[str, list[RunSnapshot]] = {}
        for subject, data in self._call(self._stored, f"KV_{NAMES.runs_bucket}", f"$KV.{NAMES.runs_bucket}.>"):
            found.setdefault(subject.rpartition(".")[2], []).append(snapshot_from(data))
        return found

    # -- how ---------------------------------------------------------------------------------------------------------

    def _call(self, what: Callable[..., Awaitable[T]], *args: Any) -> T:
        found: T = self._portal.call(what, *args)
        return found

    def _wait(
        self, bucket: str, key: str, read: Callable[[bytes], T], is_it: Callable[[T], bool], patience_sec: float
    ) -> T:
        found: T = self._call(self._watch_one, bucket, key, read, is_it, patience_sec)
        return found

    async def _create(self, job: Job) -> None:
        snapshot = RunSnapshot(
            run_id=job.run_id,
            flow_name=job.flow_name,
            status=RunStatus.PENDING,
            tag=job.tag,
            tags=job.tags,
            params=job.params,
            updated_at=job.submitted_at,
        )

        async def create() -> None:
            try:
                await (await self._kv()).create(job.run_id, snapshot_to(snapshot, MAX_BYTES)[0])
            except nats.js.errors.KeyWrongLastSequenceError:
                return  # an earlier try, whose answer was lost

        await _persist(create)

    async def _publish(self, tag: str, data: bytes, headers: dict[str, str] | None) -> None:
        async def publish() -> None:
            await self._js.publish(f"{NAMES.work_subject_prefix}.{tag}", data, headers=headers, stream=WORK_STREAM)

        await _persist(publish)

    async def _cancel(self, run_id: str) -> None:
        async def cancel() -> None:
            kv = await self._kv()
            entry = await kv.get(run_id)
            assert entry.value is not None
            snapshot = snapshot_from(entry.value)
            wanted = cancelling(snapshot, time.time(), None)
            if wanted != snapshot:
                await kv.update(run_id, snapshot_to(wanted, MAX_BYTES)[0], last=entry.revision)

        await _persist(cancel)  # also when somebody else has written in between

    async def _hide(self, worker_id: str) -> None:
        async def hide() -> None:
            kv = await self._js.key_value(NAMES.workers_bucket)
            entry = await kv.get(worker_id)
            assert entry.value is not None
            hidden = {**json.loads(entry.value), "hidden": True}
            await kv.update(worker_id, json.dumps(hidden).encode(), last=entry.revision)

        await _persist(hide)

    async def _upload(self, name: str, data: bytes, tags: str) -> None:
        headers = {"sha256": hashlib.sha256(data).hexdigest(), "x-pyoco-wheel-tags": tags}
        await (await self._js.object_store(NAMES.wheels_bucket)).put(
            name, data, meta=ObjectMeta(name=name, headers=headers)
        )

    async def _kv(self) -> KeyValue:
        return await self._js.key_value(NAMES.runs_bucket)

    async def _watch_one(
        self, bucket: str, key: str, read: Callable[[bytes], T], is_it: Callable[[T], bool], patience_sec: float
    ) -> T:
        seen: list[T] = []

        def hear(entry: KeyValue.Entry) -> bool:
            if entry.value:
                seen[:] = [read(entry.value)]
            return bool(seen) and is_it(seen[0])

        await self._watch(bucket, key, hear, lambda: f"{bucket}/{key} stays {seen}", patience_sec)
        return seen[0]

    async def _wait_all(
        self, run_ids: frozenset[str] | None, at_least: int, patience_sec: float
    ) -> dict[str, RunSnapshot]:
        ended: dict[str, RunSnapshot] = {}
        open_ones: dict[str, RunSnapshot] = {}

        def hear(entry: KeyValue.Entry) -> bool:
            if entry.value and (run_ids is None or entry.key in run_ids):
                snapshot = snapshot_from(entry.value)
                (ended if snapshot.status.is_terminal else open_ones)[snapshot.run_id] = snapshot
            return len(ended) >= at_least

        def problem() -> str:
            rest = [open_ones.get(run_id, run_id) for run_id in (run_ids or open_ones.keys()) - ended.keys()]
            return f"{len(ended)} of {at_least} have ended; not: {rest[:5]}"

        await self._watch(NAMES.runs_bucket, ">", hear, problem, patience_sec)
        return ended

    async def _watch(
        self,
        bucket: str,
        keys: str,
        hear: Callable[[KeyValue.Entry], bool],
        problem: Callable[[], str],
        patience_sec: float,
    ) -> None:
        """Pass every value on until `hear` has heard enough; opens the watch anew when it is silent."""
        deadline = time.monotonic() + patience_sec
        while time.monotonic() < deadline:
            try:
                kv = await self._js.key_value(bucket)
                watcher = await kv.watch(keys, include_history=False)
                try:
                    while True:
                        entry = await watcher.updates(timeout=SILENCE_SEC)  # type: ignore[no-untyped-call]
                        if entry is not None and hear(entry):
                            return
                        if time.monotonic() > deadline:
                            break
                finally:
                    await watcher.stop()  # type: ignore[no-untyped-call]
            except _AWAY:
                await _pause()
        raise AssertionError(problem())

    async def _stored(self, stream: str, subject: str) -> list[tuple[str, bytes]]:
        consumer = await self._js.subscribe(subject, stream=stream, ordered_consumer=True)
        info = await consumer.consumer_info()
        total = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
        found: list[tuple[str, bytes]] = []
        try:
            while len(found) < total:
                message = await consumer.next_msg(timeout=10)
                found.append((message.subject, message.data))
        finally:
            await consumer.unsubscribe()
        return found

    async def _queue(self) -> str:
        info = await self._js.stream_info(WORK_STREAM, subjects_filter=">")
        consumers = [
            f"{each.name}: {each.num_pending} waiting, {each.num_ack_pending} out, {each.num_redelivered} again"
            for each in await self._js.consumers_info(WORK_STREAM)
        ]
        return f"{info.state.messages} jobs, {info.state.subjects}; {'; '.join(consumers)}"

    async def _count(self) -> int:
        return (await self._js.stream_info(WORK_STREAM)).state.messages


async def _persist(what: Callable[[], Awaitable[None]]) -> None:
    deadline = time.monotonic() + PATIENCE_SEC
    while True:
        try:
            await what()
            return
        except _AWAY:
            if time.monotonic() > deadline:
                raise
            await _pause()


async def _pause() -> None:
    await anyio.sleep(0.05)


def _until(look: Callable[[], T], is_it: Callable[[T], bool]) -> T:
    """Look again and again: for what NATS cannot push."""
    deadline = time.monotonic() + PATIENCE_SEC
    while True:
        try:
            found = look()
            if is_it(found):
                return found
            problem = f"it stays {found}"
        except _AWAY as error:
            problem = repr(error)
        assert time.monotonic() < deadline, problem
        time.sleep(0.02)


@contextmanager
def worker_client(url: str) -> Iterator[WorkerClient]:
    """A client on a server on which all streams and buckets have been made."""

    async def on_error(error: Exception) -> None:
        """Reconnecting is silent."""

    async def connect() -> Client:
        client = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.05, error_cb=on_error)
        js = client.jetstream()
        await js.create_key_value(KeyValueConfig(bucket=NAMES.runs_bucket, history=HISTORY, direct=True))
        await make_missing(js, NAMES)
        return client

    with start_blocking_portal() as portal:
        client = portal.call(connect)
        try:
            yield WorkerClient(portal, client)
        finally:
            portal.call(client.close)


class Worker:
    """A worker's process, whose log is read by a thread of its own."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str], name: str, url: str) -> None:
        self.name = name
        self.cwd = cwd
        self.url = url
        self.lines: list[dict[str, Any]] = []
        self.stray: list[str] = []
        """What came on stdout and is no log line."""
        self._news = threading.Condition()
        self._stderr = (cwd / f"{name}.{uuid.uuid4().hex[:6]}.stderr").open("w+")
        self.process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdout=subprocess.PIPE, stderr=self._stderr, text=True
        )
        self._reader = threading.Thread(target=self._read, name=f"log of {name}", daemon=True)
        self._reader.start()

    @property
    def stderr(self) -> str:
        """All that it, and its children, have written to stderr."""
        return Path(self._stderr.name).read_text()

    def said(self, text: str, actor: str = "") -> list[dict[str, Any]]:
        """The log lines so far, of that actor or of all, that have it in their message or error id."""
        with self._news:
            return self._said(text, actor)

    def wait_said(self, text: str, actor: str = "") -> dict[str, Any]:
        """Wait until there is such a line."""
        with self._news:
            found = self._news.wait_for(lambda: self._said(text, actor), PATIENCE_SEC)
        assert found, f"{self.name} never said {text!r}; {self.account()}"
        return found[0]

    def children(self) -> list[int]:
        """The processes that execute flows."""
        pid = self.process.pid
        try:
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [int(child) for child in found if _executes(child)]
        except FileNotFoundError:
            return []

    def restart(self, actor: str) -> subprocess.CompletedProcess[str]:
        """`pyoco-runtime restart <this process> <actor>`."""
        return run("restart", self.name, actor, "--nats-url", self.url, cwd=self.cwd)

    def terminate(self) -> int:
        """Stop it with SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it with SIGKILL, if it runs."""
        self.process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait for its end; returns the exit code."""
        try:
            code = self.process.wait(PATIENCE_SEC)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end; {self.account()}") from None
        self._reader.join(PATIENCE_SEC)
        return code

    def close(self) -> None:
        """Leave nothing behind."""
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._stderr.close()

    def account(self) -> str:
        """What is known about it, for a failed test."""
        with self._news:
            lines = [f"{line['level']} {line.get('actor')} {line['message']}" for line in self.lines[-20:]]
        return f"exit code {self.process.poll()}; log: {lines}; stderr: {self.stderr[-2000:]}"

    def _said(self, text: str, actor: str) -> list[dict[str, Any]]:
        return [
            line
            for line in self.lines
            if (text in line["message"] or text == line.get("err_id")) and line.get("actor", "").endswith(actor)
        ]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            try:
                line = json.loads(text)
            except ValueError:
                self.stray.append(text)
                continue
            with self._news:
                self.lines.append(line)
                self._news.notify_all()


@contextmanager
def worker(
    cwd: Path, url: str, *args: str, name: str = "w1", program: Sequence[str] = PROGRAM, **env: str
) -> Iterator[Worker]:
    """Run a worker with the flows for tests; it is killed at the end of the block if it still runs."""
    command = [*program, "--role", "worker", "--nats-url", url, "--worker-id", name]
    command += ["--flow-resolver", f"{FLOWS}:resolve", "--concurrency", "2", *args]
    settings = {"PYOCO_WORKER_PROBE_PORT": "0", "PYOCO_PROCESS_NAME": name, "PYOCO_CONSUMER_ACK_WAIT_SEC": "60", **env}
    started = Worker(command, cwd, environment(**settings), name, url)
    try:
        yield started
    finally:
        started.close()


def executions(notes: Path) -> dict[str, list[str]]:
    """From the file in which flows leave their traces: the attempts that were executed, of each run."""
    found: dict[str, list[str]] = {}
    for line in notes.read_text().splitlines() if notes.exists() else ():
        run_id, attempt = line.split()
        found.setdefault(run_id, []).append(attempt)
    return found


def is_alive(pid: int) -> bool:
    """Whether there is such a process, other than as a zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def _executes(pid: str) -> bool:
    """Not so a scout, which finds out what there is to run, and ends; nor what has ended."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
    return bool(command) and not command.endswith(b"\0scout\0")
