"""Takes runs in: the snapshot first, then the job, and no answer before both are stored."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence

import anyio
from attrs import frozen

from pyoco_runtime.errors import (
    BodyTooLarge,
    KeyReused,
    NatsUnavailable,
    NotSent,
    PyocoError,
    RevisionConflict,
    RunExists,
)
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.submission import (
    Submission,
    fingerprint,
    fingerprint_of_batch,
    ids_of_batch,
    job_for,
    pending,
)
from pyoco_runtime.ports import Clock, Promise, PromiseStore, RunStore, WorkQueue

_log = logging.getLogger(__name__)

COPY_SEC = 100.0  # the server recognises a copy for two minutes
UNDO_SEC = 1.0  # for taking back a snapshot whose job could not be published
UNDO_ALL_SEC = 3.0  # the same for those of a batch together


@frozen
class Accepted:
    """A run that is on its way."""

    run_id: str
    is_new: bool = True
    """False if the same request was answered before, under its idempotency key."""


def _new_id() -> str:
    return str(uuid.uuid4())


class Submitter:
    """Stores the snapshot, then publishes the job under the run's id, so that no retry can double it.

    | what fails | what is left | who mends it |
    |---|---|---|
    | the snapshot cannot be written | perhaps a snapshot, no job | taken back here, else the reconciler ends it |
    | the job cannot be published | a snapshot, perhaps a job | the snapshot is taken back: a worker that gets the job
    finds none and puts it among the dead letters; if that fails too, the reconciler |
    | the process dies in between | a snapshot without a job | the reconciler |
    | the answer is lost | a run | the client: with an Idempotency-Key it gets the same run again |
    """

    def __init__(
        self,
        runs: RunStore,
        queue: WorkQueue,
        promises: PromiseStore,
        clock: Clock,
        new_id: Callable[[], str] = _new_id,
    ) -> None:
        self._runs = runs
        self._queue = queue
        self._promises = promises
        self._clock = clock
        self._new_id = new_id
        self.last_revision = 0
        """Of the last snapshot that was written here; whoever lists runs wants to see it."""

    async def submit(self, wanted: Submission, caller: Principal | None, key: str | None = None) -> Accepted:
        """Have it run; with a key, only once within a day. Raises NatsUnavailable, KeyReused, BodyTooLarge."""
        if key is None:
            run_id = self._new_id()
            await self._store(wanted, run_id, caller)
            return Accepted(run_id)
        return await self._once(wanted, caller, key)

    async def submit_all(
        self, wanted: Sequence[Submission], caller: Principal | None, key: str | None = None
    ) -> list[Accepted | PyocoError]:
        """Each by itself; what fails is taken back and told in its place. With a key, each only once within a day:
        what was accepted before is so again, what was not is tried again. Raises NatsUnavailable, KeyReused."""
        if key is None:
            return await self._store_all(wanted, self._pending(wanted, [self._new_id() for _ in wanted], caller))
        mine = Promise(self._new_id(), fingerprint_of_batch(wanted), self._clock())
        whole_key = _whole(key, caller)
        found = await self._promised(key, whole_key, mine)
        snapshots = self._pending(wanted, ids_of_batch(found.run_id, len(wanted)), caller)
        results = await self._finish_all(wanted, snapshots, await self._store_all(wanted, snapshots), found)
        if found == mine and all(isinstance(each, NatsUnavailable) for each in results):
            await self._take_promise_back(whole_key, mine)
        return results

    def _pending(
        self, wanted: Sequence[Submission], run_ids: Sequence[str], caller: Principal | None
    ) -> list[RunSnapshot]:
        now = self._clock()
        return [pending(each, run_id, caller, now) for each, run_id in zip(wanted, run_ids, strict=True)]

    async def _store_all(
        self, wanted: Sequence[Submission], snapshots: Sequence[RunSnapshot]
    ) -> list[Accepted | PyocoError]:
        results: list[Accepted | PyocoError] = []
        created = await self._runs.create_all(snapshots)
        stored = {place: found for place, found in enumerate(created) if isinstance(found, int)}
        jobs = [job_for(snapshots[place], revision, wanted[place].workflow_yaml) for place, revision in stored.items()]
        published = dict(zip(stored, await self._published(jobs), strict=True))
        until = anyio.current_time() + UNDO_ALL_SEC
        for place, (snapshot, revision) in enumerate(zip(snapshots, created, strict=True)):
            if isinstance(revision, RunExists):
                results.append(revision)  # somebody else stored it, and may have told of it
            elif isinstance(revision, PyocoError):
                await self._take_back(snapshot, None, until)
                results.append(revision)
            elif isinstance(problem := published[place], PyocoError):
                await self._take_back(snapshot, revision, until)
                results.append(problem)
            else:
                self.last_revision = max(self.last_revision, revision)
                results.append(Accepted(snapshot.run_id))
        return results

    async def _finish_all(
        self,
        wanted: Sequence[Submission],
        snapshots: Sequence[RunSnapshot],
        results: Sequence[Accepted | PyocoError],
        promise: Promise,
    ) -> list[Accepted | PyocoError]:
        """Publish what somebody may have died before publishing, as `_finish` does, but with one wait for all."""
        finished = list(results)
        older = [place for place, each in enumerate(results) if isinstance(each, RunExists)]
        ends: Sequence[int | PyocoError] = [0] * len(older)
        if older and 0 <= self._clock() - promise.created_at < COPY_SEC:
            # without a revision: the worker has to look at what is stored
            jobs = [job_for(snapshots[place], None, wanted[place].workflow_yaml) for place in older]
            ends = await self._published(jobs)
        for place, end in zip(older, ends, strict=True):
            run_id = snapshots[place].run_id
            finished[place] = end if isinstance(end, PyocoError) else Accepted(run_id, is_new=False)
        return finished

    async def _published(self, jobs: Sequence[Job]) -> Sequence[int | PyocoError]:
        try:
            return await self._queue.publish_all(jobs)
        except NatsUnavailable as error:
            return [error] * len(jobs)

    async def _once(self, wanted: Submission, caller: Principal | None, key: str) -> Accepted:
        mine = Promise(self._new_id(), fingerprint(wanted), self._clock())
        whole_key = _whole(key, caller)
        found = await self._promised(key, whole_key, mine)
        is_new = found.run_id == mine.run_id
        try:
            # also for a promise of somebody else: he may have died before he kept it
            await self._store(wanted, found.run_id, caller)
        except RunExists:
            await self._finish(wanted, found)
            return Accepted(found.run_id, is_new=False)
        except NatsUnavailable:
            if is_new:
                await self._take_promise_back(whole_key, mine)
            raise
        return Accepted(found.run_id, is_new=is_new)

    async def _promised(self, key: str, whole_key: str, mine: Promise) -> Promise:
        found = await self._promises.claim(whole_key, mine)
        if found.body_sha256 != mine.body_sha256:
            raise KeyReused(f"{key!r} came with another request before; use a new key for a new request")
        return found

    async def _finish(self, wanted: Submission, promise: Promise) -> None:
        """Publish what somebody may have died before publishing; the server knows the message id if he did not."""
        stored = await self._runs.get(promise.run_id)
        if stored is None or stored.snapshot.status is not RunStatus.PENDING:
            return
        since = stored.snapshot.submitted_at
        if since is not None and 0 <= self._clock() - since < COPY_SEC:
            await self._queue.publish(job_for(stored.snapshot, stored.revision, wanted.workflow_yaml))

    async def _store(self, wanted: Submission, run_id: str, caller: Principal | None) -> None:
        snapshot = pending(wanted, run_id, caller, self._clock())
        try:
            self.last_revision = revision = await self._runs.create(snapshot)
        except NotSent:
            raise  # there is nothing to take back
        except NatsUnavailable:
            await self._take_back(snapshot, None)
            raise
        try:
            await self._queue.publish(job_for(snapshot, revision, wanted.workflow_yaml))
        except (NatsUnavailable, BodyTooLarge):
            await self._take_back(snapshot, revision)
            raise

    async def _take_back(self, snapshot: RunSnapshot, revision: int | None, until: float | None = None) -> None:
        """Remove what nobody was told of. If a worker has claimed it meanwhile, it stays: the run will have its end."""
        deadline = anyio.current_time() + UNDO_SEC if until is None else until
        try:
            with anyio.CancelScope(deadline=deadline, shield=True) as scope:
                await self._remove(snapshot, revision)
            if scope.cancelled_caught:
                _log_orphan(snapshot.run_id, "it takes too long")
        except RevisionConflict:
            _log.info("a run that was refused runs all the same", extra={"run_id": snapshot.run_id})
        except PyocoError as error:
            _log_orphan(snapshot.run_id, str(error))

    async def _remove(self, snapshot: RunSnapshot, revision: int | None) -> None:
        if revision is None:
            found = await self._runs.get(snapshot.run_id)
            if found is None or found.snapshot.submitted_at != snapshot.submitted_at:
                return
            revision = found.revision
        await self._runs.remove(snapshot.run_id, revision)

    async def _take_promise_back(self, key: str, promise: Promise) -> None:
        try:
            with anyio.move_on_after(UNDO_SEC, shield=True):
                await self._promises.release(key, promise)
        except NatsUnavailable as error:
            _log.debug("an idempotency key stays taken: %s; the same request may try again with it", error)


def _whole(key: str, caller: Principal | None) -> str:
    """The key among those of all tenants."""
    return f"{caller.tenant_id if caller else ''}\n{key}"


def _log_orphan(run_id: str, why: str) -> None:
    extra = {"run_id": run_id, "err_id": "ERR-PYOCO-0004", "msg_id": "MSG-PYOCO-0004"}
    _log.warning("the snapshot of a run that was refused cannot be removed: %s", why, extra=extra)
