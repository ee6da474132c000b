"""The other side of the console: asks every process on this NATS for its tree."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import nats.errors
from nats.aio.client import Client
from nats.aio.subscription import Subscription

from pyoco_runtime.errors import NatsUnavailable, NoSuchActor
from pyoco_runtime.jetstream.console import CHANGED, TREE, restart_subject
from pyoco_runtime.jetstream.tap import forget, untap
from pyoco_runtime.jetstream.translate import describe, translating
from pyoco_runtime.model.house import ProcessReport, answer_from, report_from

CONNECT_SEC = 3.0
FIRST_SEC = 0.8  # for the first answer: a busy machine takes its time; where nobody is, NATS says so at once
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,256}")


class House:
    """All processes of ours on one NATS."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.changed = anyio.Event()
        """Set whenever a process says that its tree has changed; renew it after a look."""

    async def reports(self, *, expected: int = 0, quiet_sec: float = 0.3) -> list[ProcessReport]:
        """The trees of all processes that answer: waits until nobody new has answered for `quiet_sec` after the first.

        `expected` answers end the wait early. Raises NatsUnavailable.
        """
        found: dict[str, ProcessReport] = {}
        inbox = self._client.new_inbox()
        with translating():
            answers = await self._client.subscribe(inbox)
            try:
                await self._client.publish(TREE, reply=inbox)
                while not expected or len(found) < expected:
                    report = await _next_report(answers, quiet_sec if found else FIRST_SEC)
                    if report is None:
                        break
                    found[report.process] = report
            finally:
                # whoever asks may go away meanwhile, as a browser does
                forget(self._client, answers)
                with anyio.CancelScope(shield=True):  # nothing here waits for an answer
                    await untap(self._client, answers)
        return sorted(found.values(), key=lambda r: r.process)

    async def restart(self, process: str, actor: str) -> str:
        """Have one process restart one actor; returns the actor's path. Raises NoSuchActor, NatsUnavailable."""
        subject = subject_to_restart(process)
        try:
            with translating():
                message = await self._client.request(subject, actor.encode(), timeout=5)
        except NatsUnavailable as error:
            if isinstance(error.__cause__, nats.errors.NoRespondersError):
                raise not_here(process) from error
            raise
        return restarted_path(message.data)

    async def watch(self) -> None:
        """From now on set `changed` on every change. Raises NatsUnavailable."""

        async def on_change(message: object) -> None:
            self.changed.set()

        with translating():
            await self._client.subscribe(CHANGED, cb=on_change)


def subject_to_restart(process: str) -> str:
    """Where that process takes requests to restart an actor. Raises NoSuchActor."""
    if not _TOKEN.fullmatch(process):
        raise NoSuchActor(f"{process!r} cannot be the name of a process")
    return restart_subject(process)


def restarted_path(answer: bytes) -> str:
    """The path in the answer to such a request. Raises NoSuchActor."""
    read = answer_from(answer)
    if read.path is None:
        raise NoSuchActor(read.problem or "refused without a reason")
    return read.path


def not_here(process: str) -> NoSuchActor:
    """What is raised when nobody takes the request."""
    return NoSuchActor(f"process {process!r} is not on this NATS")


async def _next_report(answers: Subscription, quiet_sec: float) -> ProcessReport | None:
    try:
        message = await answers.next_msg(timeout=quiet_sec)
    except nats.errors.TimeoutError:
        return None
    return report_from(message.data) if message.data else None  # an empty one says that there are no responders


@asynccontextmanager
async def house(urls: tuple[str, ...]) -> AsyncIterator[House]:
    """Connect to NATS as a guest that only looks. Raises NatsUnavailable with the reason."""
    client = Client()
    reasons: list[str] = []

    async def on_error(error: Exception) -> None:
        reasons.append(describe(error))

    try:
        with translating(), anyio.fail_after(CONNECT_SEC):
            await client.connect(
                servers=list(urls),
                name=f"pyoco-house-{uuid4().hex[:8]}",
                connect_timeout=2,
                allow_reconnect=False,
                error_cb=on_error,
            )
    except NatsUnavailable as error:
        raise NatsUnavailable(reasons[-1] if reasons else str(error)) from error
    try:
        yield House(client)
    finally:
        with anyio.move_on_after(1, shield=True):
            await client.close()
