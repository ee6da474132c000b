"""The other side of a gateway's tests: holds its process, asks it over HTTP, and listens to its streams."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
from attrs import frozen

from pyoco_runtime.jetstream.key_store import NatsKeyStore
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.model.api_key import new_key
from tests.integration.programs import environment
from tests.integration.worker_client import PATIENCE_SEC, PROGRAM, Worker
from tests.names import NAMES

T = TypeVar("T")

PEER = Path(__file__).parents[2] / ".venv-peers" / "bin" / "pyoco-client"
TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class Gateway:
    """A gateway's process and a client of it, which any thread may use."""

    def __init__(self, process: Worker) -> None:
        self.process = process
        self.url = str(process.wait_said("is listening on")["message"].rpartition(" ")[2])
        self.http = client_of(self.url)

    @property
    def name(self) -> str:
        """What its process is called."""
        return self.process.name

    def until_ready(self) -> None:
        """Wait until /ready says yes and lists are no longer behind."""
        until(lambda: self.http.get("/ready"), lambda answer: answer.status_code == 200)
        until(self.behind, lambda behind: behind is None)

    def behind(self) -> str | None:
        """What a list says about its age."""
        found: str | None = self.http.get("/runs", params={"limit": 1}).headers.get("x-pyoco-behind")
        return found

    def submit(self, flow_name: str, *, tag: str = "default", key: str | None = None, **params: Any) -> str:
        """POST /runs; returns the run's id."""
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"flow_name": flow_name, "params": params, "tag": tag}
        return str(good(self.http.post("/runs", json=body, headers=headers))["run_id"])

    def submit_many(self, count: int, tag: str) -> list[str]:
        """POST /runs/batch, a thousand at a time; returns the runs' ids."""
        found: list[str] = []
        for begin in range(0, count, 1000):
            runs = [{"flow_name": "hello", "tag": tag} for _ in range(min(1000, count - begin))]
            found += [each["run_id"] for each in good(self.http.post("/runs/batch", json={"runs": runs}))["results"]]
        return found

    def get(self, run_id: str) -> dict[str, Any]:
        """GET /runs/{id}."""
        found: dict[str, Any] = good(self.http.get(f"/runs/{run_id}"))
        return found

    def pages(self, **filters: str | int) -> Iterator[list[dict[str, Any]]]:
        """GET /runs page by page."""
        query: dict[str, Any] = {"limit": 200, "updated_after": 0, **filters}
        while True:
            page = good(self.http.get("/runs", params=query))
            yield page["items"]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    def listed(self, **filters: str | int) -> dict[str, str]:
        """The status of every run on all pages; no run is on two."""
        items = [item for page in self.pages(**filters) for item in page]
        found = {item["run_id"]: item["status"] for item in items}
        assert len(found) == len(items)
        return found

    def restart(self, actor: str, process: str | None = None) -> None:
        """POST /actors/{process}/{actor}/restart, and wait for its new life."""
        before = self.lives(actor, process)
        good(self.http.post(f"/actors/{process or self.name}/{actor}/restart"))
        until(lambda: self.lives(actor, process), lambda lives: lives > before)

    def lives(self, actor: str, process: str | None = None) -> int:
        """How often an actor was restarted; -1 while it does not run."""
        for report in good(self.http.get("/actors")):
            if report["process"] == (process or self.name):
                for found in _walk(report["tree"]):
                    if found["name"] == actor:
                        return int(found["restarts"]) if found["state"] == "running" else -1
        return -1

    def close(self) -> None:
        """Leave nothing behind."""
        self.http.close()
        self.process.close()


@contextmanager
def gateway(cwd: Path, nats_url: str, *, name: str = "g1", **env: str) -> Iterator[Gateway]:
    """Run a gateway on a free port, ready if NATS is there; it is killed at the end of the block if it still runs."""
    command = [*PROGRAM, "--role", "gateway", "--nats-url", nats_url, "--port", "0"]
    process = Worker(command, cwd, environment(PYOCO_PROCESS_NAME=name, **env), name, nats_url)
    try:
        started = Gateway(process)
    except BaseException:
        process.close()
        raise
    try:
        if "PYOCO_HTTP_AUTH_MODE" not in env:
            started.until_ready()
        yield started
    finally:
        started.close()


def client_of(url: str, **headers: str) -> httpx.Client:
    """A client without a proxy, with room for many threads."""
    limits = httpx.Limits(max_connections=500, max_keepalive_connections=100)
    return httpx.Client(base_url=url, timeout=30, trust_env=False, limits=limits, headers=headers)


def good(answer: httpx.Response) -> Any:
    """The body of a 200."""
    assert answer.status_code == 200, (
        f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
    )
    return answer.json()


def until(look: Callable[[], T], is_it: Callable[[T], bool]) -> T:
    """Ask again and again: for what nobody tells."""
    deadline = time.monotonic() + PATIENCE_SEC
    while not is_it(found := look()):
        assert time.monotonic() < deadline, f"it stays {found}"
        time.sleep(0.01)
    return found


def _walk(actor: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield actor
    for child in actor["children"]:
        yield from _walk(child)


# -- streams ----------------------------------------------------------------------------------------------------------


@frozen
class Event:
    """A server-sent event and when it came."""

    name: str
    data: Any
    event_id: str | None
    at: float

    @property
    def status(self) -> str | None:
        """Of the snapshot that it brings."""
        found: str | None = self.data.get("snapshot", {}).get("status")
        return found

    @property
    def is_terminal(self) -> bool:
        """It tells of the end of a run."""
        return self.status in TERMINAL


class Stream:
    """An open stream, read by a thread of its own."""

    def __init__(self, http: httpx.Client, path: str, headers: Mapping[str, str]) -> None:
        self.events: list[Event] = []
        self.problem: Exception | None = None
        self.is_over = False
        self._news = threading.Condition()
        self._answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._read, args=(http, path, dict(headers)), daemon=True)
        self._thread.start()

    def wait(self, is_it: Callable[[Event], bool]) -> Event:
        """The first event like this, now or later."""
        with self._news:
            self._news.wait_for(lambda: self.is_over or any(map(is_it, self.events)), PATIENCE_SEC)
            for found in filter(is_it, self.events):
                return found
        raise AssertionError(f"no such event; over: {self.is_over}, {self.problem!r}, {self.events[-5:]}")

    def wait_name(self, name: str) -> Event:
        """The first event of this name."""
        return self.wait(lambda event: event.name == name)

    def wait_over(self) -> list[Event]:
        """Wait until the server has ended it, in order."""
        self._thread.join(PATIENCE_SEC)
        assert self.is_over, f"it goes on: {self.events[-5:]}"
        assert self.problem is None, repr(self.problem)
        return self.events

    def close(self) -> None:
        """Go away."""
        if self._answer is not None and not self.is_over:
            stream: Any = self._answer.extensions["network_stream"]
            stream.get_extra_info("socket").shutdown(2)  # wakes the thread that reads
        self._thread.join(PATIENCE_SEC)

    def _read(self, http: httpx.Client, path: str, headers: dict[str, str]) -> None:
        try:
            with http.stream("GET", path, headers=headers, timeout=PATIENCE_SEC) as answer:
                self._answer = answer
                if answer.status_code != 200:
                    raise AssertionError(f"{path}: {answer.status_code} {answer.read().decode()}")
                fields: dict[str, str] = {}
                for line in answer.iter_lines():
                    if line:
                        name, _, value = line.partition(": ")
                        fields[name] = value
                    elif fields:
                        self._add(fields)
                        fields = {}
        except (httpx.HTTPError, AssertionError) as error:
            self.problem = error
        with self._news:
            self.is_over = True
            self._news.notify_all()

    def _add(self, fields: Mapping[str, str]) -> None:
        event = Event(fields["event"], json.loads(fields["data"]), fields.get("id"), time.time())
        with self._news:
            self.events.append(event)
            self._news.notify_all()


@contextmanager
def watching(http: httpx.Client, path: str, **headers: str) -> Iterator[Stream]:
    """Listen to a stream; its first event has come when the block begins."""
    stream = Stream(http, path, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        stream.wait(lambda event: True)
        yield stream
    finally:
        stream.close()


# -- load -------------------------------------------------------------------------------------------------------------


@contextmanager
def load(per_sec: float, what: Callable[[int], object]) -> Iterator[list[Future[object]]]:
    """Call it so often, in threads, while the block runs; then wait for all calls, of which none may have failed."""
    calls: list[Future[object]] = []
    enough = threading.Event()

    def drive(pool: ThreadPoolExecutor) -> None:
        begin = time.monotonic()
        while not enough.wait(max(0.0, begin + len(calls) / per_sec - time.monotonic())):
            calls.append(pool.submit(what, len(calls)))

    with ThreadPoolExecutor(max_workers=64) as pool:
        driver = threading.Thread(target=drive, args=(pool,))
        driver.start()
        try:
            yield calls
        finally:
            enough.set()
            driver.join()
    for call in calls:
        call.result()


def together(count: int, what: Callable[[int], T]) -> list[T]:
    """Call it so often at the same time."""
    start = threading.Barrier(count)

    def one(number: int) -> T:
        start.wait(PATIENCE_SEC)
        return what(number)

    with ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(one, range(count)))


# -- API keys and the peer --------------------------------------------------------------------------------------------


@frozen
class Holder:
    """A key in plain text, and its id."""

    key_id: str
    plain: str


def make_keys(nats_url: str, *tenants: str, admin: bool = False) -> list[Holder]:
    """Store a new key for each tenant."""
    made = [
        new_key(tenant, now=time.time(), pepper=None, randomness=secrets.token_bytes, admin=admin) for tenant in tenants
    ]

    async def store(keys: NatsKeyStore) -> None:
        for _, record in made:
            await keys.create(record)

    _with_keys(nats_url, store)
    return [Holder(key.key_id, key.plain()) for key, _ in made]


def revoke_key(nats_url: str, key_id: str) -> None:
    """Revoke a key, as the admin's command line does."""

    async def revoke(keys: NatsKeyStore) -> None:
        assert await keys.revoke(key_id, time.time()) is not None

    _with_keys(nats_url, revoke)


def _with_keys(nats_url: str, use: Callable[[NatsKeyStore], Any]) -> None:
    async def main() -> None:
        link = NatsLink(lambda: (nats_url,), "test", NAMES)
        await link.connect()
        try:
            await link.prepare()
            link.declare_up()
            await use(NatsKeyStore(link, NAMES.auth_bucket))
        finally:
            await link.close()

    anyio.run(main)


def peer(url: str, *args: str, cwd: Path, also: Sequence[str] = ()) -> str:
    """What the published client prints."""
    done = subprocess.run(
        [str(PEER), "--server", url, *also, *args],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
    return done.stdout


def new_peer_key(nats_url: str, tenant: str, cwd: Path) -> str:
    """A key that the published admin's command line makes, in plain text."""
    command = [
        str(PEER.with_name("pyoco-server-admin")),
        "--nats-url",
        nats_url,
        "api-key",
        "create",
        "--tenant",
        tenant,
    ]
    done = subprocess.run(
        command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=PATIENCE_SEC, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"pyoco_[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", done.stdout)
    assert found is not None, done.stdout
    return found[0]
