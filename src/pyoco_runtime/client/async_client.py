"""The client for programs with an event loop: asyncio or trio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import httpx

from pyoco_runtime.client.answers import (
    Accepted,
    BatchResult,
    Health,
    Letter,
    LetterDeleted,
    LetterPage,
    Process,
    Ready,
    Replayed,
    Restarted,
    Run,
    RunPage,
    RunTasks,
    Submission,
    WatchEvent,
    Wheel,
    WheelDeleted,
    WheelEvent,
    Worker,
    WorkerHidden,
)
from pyoco_runtime.client.errors import ClientError, WaitTimeout
from pyoco_runtime.client.events import ListEvent, RunChanged, RunEvent, is_terminal
from pyoco_runtime.client.line import LIMITS, check_stream, complete, line
from pyoco_runtime.client.list_watch import ListWatch
from pyoco_runtime.client.persistence import PATIENCE_SEC, Persistence
from pyoco_runtime.client.plain_watch import PlainWatch
from pyoco_runtime.client.request import Request
from pyoco_runtime.client.requests import house, letters, runs, wheels, workers
from pyoco_runtime.client.run_watch import RunWatch
from pyoco_runtime.client.sse import SseParser
from pyoco_runtime.client.trial import Done, Fail, FindOut, Keys, Pause, Trial, honours_keys, refused, unreachable
from pyoco_runtime.client.upload import Progress
from pyoco_runtime.client.watch import Watch

T = TypeVar("T")
E = TypeVar("E")


class AsyncPyocoHttpClient:
    """Asks a gateway, ours or the published one. May be used by many tasks, under asyncio and trio.

    Every method raises GatewayUnreachable when no answer came, and GatewayRefused when the answer is an error; what is
    safe to send again was sent up to `retries` times more before that. An attempt takes `timeout_sec` at most; sending
    a file takes longer if it moves on.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        api_key_header: str = "X-API-Key",
        timeout_sec: float = 10.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Nothing is sent yet. `transport` is for tests. Raises InvalidArgument."""
        self._line = line(base_url, api_key, api_key_header, timeout_sec, retries)
        self._http = httpx.AsyncClient(
            base_url=self._line.address, headers=self._line.headers, limits=LIMITS, transport=transport
        )
        self._keys = Keys.UNKNOWN

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """This client, which is closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.close()

    # -- runs ---------------------------------------------------------------------------------------------------------

    async def submit_run(
        self,
        flow_name: str,
        params: dict[str, Any] | None = None,
        *,
        tag: str | None = None,
        tags: list[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Accepted:
        """Submit a run; with the same key within 24 hours, the same run (the published gateway ignores the key)."""
        return await self._send(runs.submit_run(flow_name, params, tag, tags, idempotency_key))

    async def submit_run_yaml(
        self, workflow_yaml: str, *, flow_name: str, tag: str | None = None, idempotency_key: str | None = None
    ) -> Accepted:
        """Submit a run that brings its own flow.yaml."""
        return await self._send(runs.submit_run_yaml(workflow_yaml, flow_name, tag, idempotency_key))

    async def submit_batch(self, items: Sequence[Submission], *, idempotency_key: str | None = None) -> BatchResult:
        """Submit up to 1,000 runs, each by itself; with the same key, the same runs (not at the published gateway)."""
        return await self._send(runs.submit_batch(items, idempotency_key))

    async def get_run(self, run_id: str) -> Run:
        """The latest state of a run."""
        return await self._send(runs.get_run(run_id))

    async def get_run_with_records(self, run_id: str) -> Run:
        """The latest state of a run with `task_records`."""
        return await self._send(runs.get_run(run_id, "records"))

    async def get_tasks(self, run_id: str) -> RunTasks:
        """The tasks of a run."""
        return await self._send(runs.get_tasks(run_id))

    async def list_runs(
        self,
        *,
        status: str | None = None,
        flow: str | None = None,
        tag: str | None = None,
        full: bool = False,
        limit: int | None = None,
    ) -> list[Run]:
        """The newest runs; summaries, or whole ones with `full`."""
        return (await self._send(runs.list_runs(status, flow, tag, full, limit)))["items"]

    async def list_runs_vnext(
        self,
        *,
        status: str | None = None,
        flow: str | None = None,
        tag: str | None = None,
        full: bool = False,
        limit: int | None = None,
        updated_after: float | None = None,
        cursor: str | None = None,
        workflow_yaml_sha256: str | None = None,
    ) -> RunPage:
        """A page of the list; `cursor=page["next_cursor"]` asks for the next one."""
        return await self._send(
            runs.list_runs(status, flow, tag, full, limit, updated_after, cursor, workflow_yaml_sha256)
        )

    async def cancel_run(
        self, run_id: str, *, wait: bool = False, timeout_sec: float | None = None, reason: str | None = None
    ) -> Run:
        """Cancel a run; with `wait`, until it has ended, 30 s if not said otherwise. Raises WaitTimeout."""
        run = await self._send(runs.cancel_run(run_id, reason))
        if not wait or is_terminal(run):
            return run
        return await self.wait(run_id, max(1.0, 30.0 if timeout_sec is None else timeout_sec))

    async def wait(
        self,
        run_id: str,
        timeout_sec: float | None = None,
        *,
        include_records: bool = False,
        patience_sec: float = PATIENCE_SEC,
    ) -> Run:
        """The run when it has ended, however often the connection breaks meanwhile. Raises WaitTimeout."""
        watch = RunWatch(
            run_id,
            since=None,
            include_records=include_records,
            persistence=Persistence(self._line.backoff, patience_sec),
            ends_at=None if timeout_sec is None else anyio.current_time() + timeout_sec,
        )
        async with aclosing(self._follow(watch)) as events:
            async for event in events:
                if isinstance(event, RunChanged) and event.is_terminal:
                    return event.run
        raise WaitTimeout(f"run {run_id} was watched to its end without one")  # never: the end is always told

    def watch(
        self,
        run_id: str,
        since: float | None = None,
        *,
        include_records: bool = False,
        patience_sec: float = PATIENCE_SEC,
    ) -> AsyncGenerator[RunEvent, None]:
        """Every change of a run, until it has ended; states before `since` are left out, the last one never.

        A connection that breaks is replaced, for `patience_sec` at most.
        """
        persistence = Persistence(self._line.backoff, patience_sec)
        return self._follow(RunWatch(run_id, since=since, include_records=include_records, persistence=persistence))

    def watch_list(
        self,
        *,
        status: str | None = None,
        flow: str | None = None,
        tag: str | None = None,
        updated_after: float | None = None,
        workflow_yaml_sha256: str | None = None,
        patience_sec: float = PATIENCE_SEC,
    ) -> AsyncGenerator[ListEvent, None]:
        """Every change of the list from now on, without end (not at the published gateway)."""

        def ask(last_event_id: str | None) -> Request[None]:
            return runs.watch_list(status, flow, tag, updated_after, workflow_yaml_sha256, last_event_id)

        return self._follow(ListWatch(ask, persistence=Persistence(self._line.backoff, patience_sec)))

    def watch_run(
        self,
        run_id: str,
        *,
        include_records: bool = False,
        since: float | None = None,
        timeout_sec: int | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """The events of one stream as they are, until the gateway ends it."""
        request = runs.watch_run(run_id, include_records, since, timeout_sec)
        return self._follow(PlainWatch(request, Persistence(self._line.backoff, 0.0)))

    # -- workers and wheels -------------------------------------------------------------------------------------------

    async def get_workers(
        self,
        *,
        scope: str | None = None,
        state: str | None = None,
        include_hidden: bool | None = None,
        limit: int | None = None,
    ) -> list[Worker]:
        """The workers, those that were seen last first."""
        return await self._send(workers.get_workers(scope, state, include_hidden, limit))

    async def patch_worker_hidden(self, worker_id: str, *, hidden: bool) -> WorkerHidden:
        """Have lists leave a worker out, or show it again."""
        return await self._send(workers.patch_worker_hidden(worker_id, hidden))

    async def list_wheels(self) -> list[Wheel]:
        """The wheels by name."""
        return await self._send(wheels.list_wheels())

    async def list_wheel_history(
        self, *, limit: int | None = None, wheel_name: str | None = None, action: str | None = None
    ) -> list[WheelEvent]:
        """What was done to wheels, the newest first."""
        return await self._send(wheels.list_wheel_history(limit, wheel_name, action))

    async def upload_wheel(
        self,
        *,
        filename: str,
        data: bytes,
        replace: bool = True,
        tags: list[str] | None = None,
        on_progress: Progress | None = None,
    ) -> Wheel:
        """Put a wheel into the store; `on_progress(sent, total)` is called as its bytes go out."""
        return await self._send(wheels.upload_wheel(filename, data, replace, tags, on_progress))

    async def upload_wheel_file(
        self,
        path: str | Path,
        *,
        replace: bool = True,
        tags: list[str] | None = None,
        on_progress: Progress | None = None,
    ) -> Wheel:
        """The same from a file, which is read while it is sent. Raises OSError if it cannot be read."""
        return await self._send(wheels.upload_wheel(Path(path).name, Path(path), replace, tags, on_progress))

    async def delete_wheel(self, wheel_name: str) -> WheelDeleted:
        """Take a wheel out of the store."""
        return await self._send(wheels.delete_wheel(wheel_name))

    # -- dead letters (not at the published gateway) ------------------------------------------------------------------

    async def list_dlq(
        self,
        *,
        reason: str | None = None,
        flow: str | None = None,
        tag: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> LetterPage:
        """The newest dead letters; `before=page["next_before"]` asks for the next page."""
        return await self._send(letters.list_dlq(reason, flow, tag, run_id, limit, before))

    async def get_letter(self, seq: int) -> Letter:
        """One dead letter."""
        return await self._send(letters.get_letter(seq))

    async def replay_letter(self, seq: int) -> Replayed:
        """Make a new run of a dead letter."""
        return await self._send(letters.replay_letter(seq))

    async def drop_letter(self, seq: int) -> LetterDeleted:
        """Throw a dead letter away."""
        return await self._send(letters.drop_letter(seq))

    # -- the gateway and the processes around it ----------------------------------------------------------------------

    async def health(self) -> Health:
        """That the gateway lives."""
        return await self._send(house.health())

    async def ready(self) -> Ready:
        """Whether the gateway can serve, and what is missing (not at the published gateway)."""
        return await self._send(house.ready())

    async def get_metrics(self) -> str:
        """The figures, in Prometheus' text format."""
        return await self._send(house.get_metrics())

    async def openapi(self) -> dict[str, Any]:
        """What this gateway can do, as an OpenAPI document."""
        return await self._send(house.openapi())

    async def actors(self) -> list[Process]:
        """The supervision trees of all processes (not at the published gateway)."""
        return await self._send(house.actors())

    async def restart_actor(self, process: str, actor: str) -> Restarted:
        """Restart one actor, by its name or its path."""
        return await self._send(house.restart_actor(process, actor))

    # -- how it is done -----------------------------------------------------------------------------------------------

    async def _send(self, request: Request[T]) -> T:
        trial = Trial(request, self._line.backoff, self._keys)
        while True:
            step = await self._attempt(request, trial)
            match step:
                case Done():
                    return step.value
                case Fail():
                    raise step.error
                case Pause():
                    await anyio.sleep(step.sec)

    async def _attempt(self, request: Request[T], trial: Trial[T]) -> Done[T] | Pause | Fail:
        try:
            response = await self._once(request)
        except httpx.RequestError as error:
            step = trial.failed(error, self._line.name)
        else:
            step = trial.answered(response)
        if isinstance(step, FindOut):
            return trial.found_out(await self._find_out())
        return step

    async def _find_out(self) -> Keys:
        try:
            self._keys = honours_keys(await self.openapi())
        except ClientError:
            return Keys.UNKNOWN  # its error is not the one that the caller asked for
        return self._keys

    async def _once(self, request: Request[T]) -> httpx.Response:
        """One attempt. Raises httpx.RequestError."""
        built = self._build(request)
        whole_sec = self._line.whole_sec(request)
        try:
            with anyio.fail_after(whole_sec):
                response = await self._http.send(built, stream=True)
                async with aclosing(response):
                    return complete(response, await response.aread())
        except TimeoutError:
            raise httpx.ReadTimeout(f"it took more than {whole_sec:g} s", request=built) from None

    def _build(self, request: Request[T]) -> httpx.Request:
        return self._http.build_request(
            request.method,
            request.path,
            params=request.query,
            headers=self._line.headers_of(request),
            content=request.content if request.upload is None else request.upload.achunks(),
            timeout=self._line.timeout(request),
        )

    async def _follow(self, watch: Watch[E]) -> AsyncGenerator[E, None]:
        while True:
            problem: ClientError | None = None
            parser = SseParser()
            request = watch.open(anyio.current_time())
            try:
                async with aclosing(self._stream(request, watch, parser)) as events:
                    async for told in events:
                        yield told
            except ClientError as error:
                problem = error
            except httpx.RequestError as error:
                problem = unreachable(error, self._line.name)
            if watch.is_over:
                return
            resume = watch.ended(problem, parser.retry_ms, anyio.current_time())
            if resume is None:
                return
            if resume.told is not None:
                yield resume.told
            await anyio.sleep(resume.sec)

    async def _stream(self, request: Request[None], watch: Watch[E], parser: SseParser) -> AsyncGenerator[E, None]:
        response = await self._http.send(self._build(request), stream=True)
        chunks = response.aiter_bytes()
        try:
            if response.status_code != 200:
                await response.aread()
                raise refused(response)
            check_stream(response)
            watch.opened(anyio.current_time())
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    told = watch.take(event, anyio.current_time())
                    if told is not None:
                        yield told
                    if watch.is_over:
                        return
        finally:
            await response.aclose()
            await _exhaust(chunks)


async def _exhaust(chunks: AsyncIterator[bytes]) -> None:
    """Bring the generators of a closed response to their end: trio complains of those that are dropped halfway."""
    try:
        async for _ in chunks:
            pass
    except (httpx.HTTPError, httpx.StreamError):
        pass
