"""The wheel syncer: keeps a worker's overlay at the wheels that are meant for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import anyio

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable, WheelGone, WheelSyncFailed
from pyoco_runtime.model.wheels import (
    Local,
    Outcome,
    Plan,
    describe,
    plan_sync,
    status_after,
    status_failed,
    status_idle,
)
from pyoco_runtime.model.worker import WheelSync
from pyoco_runtime.ports import Clock, Link, WheelStore, WheelWatch
from pyoco_runtime.wheel_gate import WheelGate

_log = logging.getLogger(__name__)

QUIET_SEC = 0.3  # a burst of uploads is one generation, and one replacement of the runners
REOPEN_SEC = 1.0  # only when the link says up and the watch is lost all the same
MAX_DOUBLINGS = 5  # of the pause between attempts at a wheel that stays bad: 10 s become about five minutes


class Overlay(Protocol):
    """Where the wheels go; see WheelOverlay."""

    async def inspect(self) -> Local:
        """Claim the directory and see what is there. Raises WheelSyncFailed."""

    def incoming(self, name: str) -> Path:
        """Where the download of that wheel goes."""

    async def install(self, plan: Plan, local: Local, downloads: Mapping[str, Path]) -> Outcome:
        """Carry out the plan with what was downloaded of it. Raises WheelSyncFailed."""

    def take_change(self) -> bool:
        """Whether children that start now see other wheels than when this was last asked."""

    def release(self) -> None:
        """Let another process have the directory."""


class WheelSyncer:
    """Sync when the link comes up and whenever the store changes; after a failure also after a pause.

    away --link up--> watching --sync--> waiting --changed, or the pause after a failure--> sync
    any --link changed, watch lost--> away

    A sync may happen while runs are executed, and touches none of them: it builds a new generation beside the one in
    use, and `on_change` has the children replaced between runs. So a run sees the wheels of its beginning to its end.
    """

    def __init__(
        self,
        store: WheelStore,
        overlay: Overlay,
        link: Link,
        tags: Collection[str],
        *,
        gate: WheelGate,
        interval_sec: float,
        on_change: Callable[[], None],
        report: Callable[[WheelSync], None],
        clock: Clock,
    ) -> None:
        self._store = store
        self._overlay = overlay
        self._link = link
        self._tags = tags
        self._gate = gate
        self._interval_sec = interval_sec
        self._on_change = on_change
        self._report = report
        self._clock = clock
        self._status = status_idle({})
        self._started_at = 0.0
        self._failures = 0
        self._link_changed = False
        self._waiting: anyio.CancelScope | None = None

    async def run(self, context: Context) -> None:
        """Work until asked to stop. It is ready at once: the tree starts while NATS is away, and the gate waits."""
        context.ready()
        unlisten = self._link.on_change(self._wake)
        try:
            with context.until_stopping():
                if not self._gate.is_open:  # else this is not the first life, and there is a better status
                    self._report(self._status)
                self._tell()  # the last life may have ended between a sync and its notice
                while True:
                    await self._link.wait_up()
                    await self._follow()
        finally:
            unlisten()
            self._overlay.release()

    async def _follow(self) -> None:
        """Stay in sync until the link changes or the store cannot be reached."""
        self._link_changed = False
        self._started_at = self._clock()
        try:
            async with self._store.watching() as watch:  # before the list is read, so that no change is missed
                while not self._link_changed:
                    await self._attempt()
                    if not await self._is_due(watch):
                        return
        except NatsUnavailable as error:
            self._failed(error)
            with self._until_the_link_changes():
                await anyio.sleep(self._pause_sec)

    async def _is_due(self, watch: WheelWatch) -> bool:
        """Wait until there is reason to sync again; False if another watch is needed for that."""
        with self._until_the_link_changes():
            try:
                with anyio.move_on_after(self._pause_sec):
                    await watch.changed()
                    self._failures = 0  # the change may be the cure
                    await anyio.sleep(QUIET_SEC)
                return True
            except NatsUnavailable:
                await anyio.sleep(REOPEN_SEC)
        return False

    @property
    def _pause_sec(self) -> float:
        """Ever longer while it fails, so that a bad wheel does not keep every worker busy; endless when all is well."""
        if self._failures == 0:
            return float("inf")
        return self._interval_sec * (1 << min(self._failures - 1, MAX_DOUBLINGS))

    # -- one sync

    async def _attempt(self) -> None:
        self._started_at = self._clock()
        try:
            plan, outcome = await self._sync()
        except WheelSyncFailed as error:
            self._failed(error)
            return
        finally:
            self._tell()
        self._status = status_after(self._status, plan, outcome, started_at=self._started_at, now=self._clock())
        self._conclude(describe(outcome.problems))

    async def _sync(self) -> tuple[Plan, Outcome]:
        local = await self._overlay.inspect()
        plan = plan_sync(await self._store.list(), self._tags, local)
        if not plan.to_install and not plan.to_remove:
            return plan, Outcome(local.manifest)
        downloads, problems = await self._download(plan)
        outcome = await self._overlay.install(plan, local, downloads)
        return plan, Outcome(outcome.manifest, outcome.updated, outcome.removed, {**problems, **outcome.problems})

    async def _download(self, plan: Plan) -> tuple[dict[str, Path], dict[str, str]]:
        downloads, problems = {}, {}
        for choice in plan.to_install:
            to = self._overlay.incoming(choice.name)
            try:
                await self._store.download(choice.name, to)
            except WheelGone:
                problems[choice.name] = "it was removed from the store while it was downloaded"
            except WheelSyncFailed as error:  # what came is not what was uploaded
                problems[choice.name] = str(error)
            except OSError as error:
                problems[choice.name] = f"it cannot be written to disk: {error}"
            else:
                downloads[choice.name] = to
        return downloads, problems

    # -- what others learn of it

    def _failed(self, error: NatsUnavailable | WheelSyncFailed) -> None:
        self._status = status_failed(self._status, str(error), started_at=self._started_at)
        self._conclude(str(error), is_link_down=isinstance(error, NatsUnavailable) and not self._link.is_up)

    def _conclude(self, problem: str, *, is_link_down: bool = False) -> None:
        self._report(self._status)
        if not is_link_down:  # else nobody can pull either, and the first run shall still have its wheels
            self._gate.open()
        if not problem:
            self._failures = 0
            return
        self._failures += 1
        _log.error("wheel sync failed: %s; trying again within %g s", problem, self._pause_sec, extra=_FAILED)

    def _tell(self) -> None:
        if self._overlay.take_change():
            self._on_change()

    # -- the link

    def _wake(self) -> None:
        self._link_changed = True
        if self._waiting is not None:
            self._waiting.cancel()

    @contextmanager
    def _until_the_link_changes(self) -> Iterator[None]:
        with anyio.CancelScope() as self._waiting:
            if self._link_changed:
                self._waiting.cancel()
            try:
                yield
            finally:
                self._waiting = None


_FAILED = {"err_id": "ERR-PYOCO-0024", "msg_id": "MSG-PYOCO-0024"}
