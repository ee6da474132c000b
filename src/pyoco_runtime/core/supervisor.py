"""The supervisor: starts its children in order, restarts them by policy, stops them in reverse order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from pyoco_runtime.core.actor import Actor, Context
from pyoco_runtime.core.child import Child
from pyoco_runtime.core.events import Feed
from pyoco_runtime.core.machine import Machine, Report, World
from pyoco_runtime.core.spec import ActorSpec, ChildSpec, SupervisorSpec, check
from pyoco_runtime.core.status import ActorStatus
from pyoco_runtime.errors import NoSuchActor, NotRunning


class Supervisor:
    """Runs the tree under `spec`, once.

    `async with Supervisor(spec) as tree:` starts everything, in order, before the body; leaving the body asks the
    children to stop, in reverse order, and waits for them. A cancelled body stops them now. If the tree gives up, the
    body is cancelled and the error is raised from the block.
    """

    def __init__(self, spec: SupervisorSpec, *, world: World | None = None) -> None:
        check(spec)
        self._machine = Machine(spec, spec.name, world or World(), self._starter)
        self._opened: AbstractAsyncContextManager[None] | None = None

    @property
    def feed(self) -> Feed:
        """Every event of the tree."""
        return self._machine.world.feed

    def stop(self, *, now: bool = False) -> None:
        """Ask everything to stop, in reverse order; `now` cancels instead of asking. Returns at once."""
        self._machine.stop(now=now)

    def start_child(self, spec: ActorSpec) -> None:
        """Start one more child, without waiting until it is ready. Raises NotRunning, DuplicateChild."""
        self._machine.start_child(spec)

    async def restart(self, path: str) -> None:
        """Stop and start the one child with that path; returns when it is up again. Raises NoSuchActor, NotRunning."""
        child = self._recycle(path)
        settled = None
        while settled is not child.settled:  # it may crash again while it comes up
            settled = child.settled
            await settled.wait()

    def request_restart(self, path: str) -> None:
        """Begin what `restart` does, and return at once. Raises NoSuchActor, NotRunning."""
        self._recycle(path)

    def _recycle(self, path: str) -> Child:
        machine, child = self._find(path)
        machine.recycle(child)
        return child

    def status(self) -> ActorStatus:
        """The whole tree at this moment."""
        machine = self._machine
        return ActorStatus(
            machine.path, machine.spec.name, True, machine.phase, machine.since, children=_statuses(machine)
        )

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise NotRunning(f"this supervisor of {self._machine.path} has been used; make a new one")
        self._opened = self._open()
        await self._opened.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._opened is not None
        return await self._opened.__aexit__(kind, error, trace)

    def _starter(self, spec: ChildSpec, report: Report) -> Callable[[], Actor]:
        if isinstance(spec, ActorSpec):
            return spec.start
        return lambda: Branch(Machine(spec, report.child.path, self._machine.world, self._starter, report))

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        error: Exception | None = None
        was_up = False
        try:
            async with hosting(self._machine):
                await self._machine.up.wait()
                was_up = True
                try:
                    yield
                except Exception as raised:  # noqa: BLE001 - kept, and raised again outside of the task group
                    error = raised
                self._machine.stop()
                await self._machine.down.wait()
        finally:
            self._close_channels()
        if error is not None:
            raise error
        if not was_up:
            raise NotRunning(f"{self._machine.path} was stopped before it was up")

    def _close_channels(self) -> None:
        for spec in _actors(self._machine.spec):
            for box in spec.mailboxes:
                box.close()

    def _find(self, path: str) -> tuple[Machine, Child]:
        known = dict(_paths(self._machine))
        try:
            return known[path]
        except KeyError:
            raise NoSuchActor(f"there is no actor {path!r} here; there are: {', '.join(known)}") from None


class Branch:
    """A supervisor as the child of another one."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    async def run(self, context: Context) -> None:
        """Run until asked to stop; raises RestartIntensityExceeded or ChildStuck when it gives up."""
        async with hosting(self.machine):
            with context.until_stopping():
                await self.machine.up.wait()
                context.ready()
                await anyio.sleep_forever()
            self.machine.stop()
            await self.machine.down.wait()


@asynccontextmanager
async def hosting(machine: Machine) -> AsyncIterator[None]:
    """Run the machine's tasks around a body; the body is cancelled when the machine is down.

    The children live in a shielded task of their own: neither a cancel scope of the host nor a native `Task.cancel()`
    by an asyncio host reaches them but through `stop`, in order. A body that is cancelled stops them now, and they
    are waited for. Raises the machine's failure, outside of the group so that it is not wrapped.
    """
    async with anyio.create_task_group() as outer:
        outer.start_soon(_host, machine, outer, name=f"{machine.path} (supervisor)")
        try:
            yield
        finally:
            machine.stop(now=True)
    if machine.failure is not None:
        raise machine.failure


async def _host(machine: Machine, outer: TaskGroup) -> None:
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as tasks:
            machine.start(tasks)
            try:
                await machine.down.wait()
            finally:
                machine.stop(now=True)  # cancelled natively itself: nothing may be restarted any more
    outer.cancel_scope.cancel()


def _statuses(machine: Machine) -> tuple[ActorStatus, ...]:
    return tuple(child.status(_below(child)) for child in machine.children())


def _below(child: Child) -> tuple[ActorStatus, ...]:
    branch = child.life.actor if child.life is not None else None
    return _statuses(branch.machine) if isinstance(branch, Branch) else ()


def _paths(machine: Machine) -> Iterator[tuple[str, tuple[Machine, Child]]]:
    for child in machine.children():
        yield child.path, (machine, child)
        branch = child.life.actor if child.life is not None else None
        if isinstance(branch, Branch):
            yield from _paths(branch.machine)


def _actors(spec: ChildSpec) -> Iterator[ActorSpec]:
    if isinstance(spec, ActorSpec):
        yield spec
        return
    for child in spec.children:
        yield from _actors(child)
