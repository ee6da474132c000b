"""What can be done with wheels over HTTP: list, upload, read, delete, and see who did it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from attrs import field, frozen

from pyoco_runtime.errors import (
    NatsUnavailable,
    RevisionConflict,
    WheelConflict,
    WheelGone,
    WheelNotFound,
    WheelTooLarge,
)
from pyoco_runtime.model.wheel_event import Caller, HistoryQuery, WheelAction, WheelEvent
from pyoco_runtime.model.wheels import WheelInfo, WheelName, check_newer, checked_name, is_wheel_file, tags_from
from pyoco_runtime.ports import Clock, WheelHistory, WheelLabel, WheelReading, WheelRegistry, WheelUpload

_log = logging.getLogger(__name__)

COMMIT_TRIES = 20  # each is lost only to somebody who has changed the shelf meanwhile
APPEND_PAUSES_SEC = (0.1, 0.5)  # between the tries to write an event; the client waits for them


@frozen(kw_only=True)
class UploadOrder:
    """What a request says beside the file itself."""

    tags: str = ""
    """With commas between them."""
    replace: bool = True
    """Only told in the history: a version that is there is refused in any case."""
    content_type: str = "application/octet-stream"
    caller: Caller = field(factory=Caller)


class WheelShop:
    """The use cases. Wheels belong to no tenant; the history tells whose key was used.

    `max_bytes` is the largest wheel that is accepted; 0 is any.
    """

    def __init__(self, registry: WheelRegistry, history: WheelHistory, clock: Clock, *, max_bytes: int) -> None:
        self._registry = registry
        self._history = history
        self._clock = clock
        self.max_bytes = max_bytes

    async def list(self) -> tuple[WheelInfo, ...]:
        """All, by name. Raises NatsUnavailable."""
        return tuple(info for info in (await self._registry.look()).wheels if is_wheel_file(info.name))

    async def open(self, name: str) -> WheelReading:
        """Find one in order to read it. Raises WheelNotFound, NatsUnavailable."""
        try:
            return await self._registry.open(_existing(name))
        except WheelGone:
            raise _not_found(name) from None

    @asynccontextmanager
    async def receiving(self, file_name: str) -> AsyncIterator[Receiving]:
        """Take a new wheel; it is in the store after `finish`, and nothing of it is if the block ends without.

        Raises InvalidWheel, WheelConflict, NatsUnavailable.
        """
        file_name = file_name.strip()
        name = checked_name(file_name)
        check_newer(name, (await self._registry.look()).wheels)  # before a client sends it all for nothing
        async with self._registry.uploading() as upload:
            yield Receiving(self, upload, file_name, name)
        await self._sweep()

    async def commit(self, upload: WheelUpload, name: WheelName, label: WheelLabel) -> WheelInfo:
        """Put an upload on the shelf if its version is newer. Raises WheelConflict, NatsUnavailable."""
        is_told = False
        for _ in range(COMMIT_TRIES):
            shelf = await self._registry.look()
            mine = next((info for info in shelf.wheels if info.nuid == upload.nuid), None)
            if mine is not None:
                return mine  # the answer was lost, not the write
            check_newer(name, shelf.wheels)
            try:
                return await upload.commit(label, shelf.revision)
            except RevisionConflict:
                continue
            except NatsUnavailable:
                if is_told:
                    raise
                is_told = True
        raise WheelConflict(
            f"the wheels in the store changed {COMMIT_TRIES} times while {label.name} was added; try again"
        )

    async def delete(self, name: str, caller: Caller) -> WheelInfo:
        """Take one out of the store. Raises WheelNotFound, NatsUnavailable."""
        try:
            info = await self._registry.delete(_existing(name))
        except WheelGone:
            raise _not_found(name) from None
        await self.remember(WheelAction.DELETE, info, caller, replace=None)
        return info

    async def history(self, query: HistoryQuery) -> tuple[WheelEvent, ...]:
        """The newest events first. Raises NatsUnavailable."""
        return tuple(await self._history.recent(query))

    async def remember(self, action: WheelAction, info: WheelInfo, caller: Caller, *, replace: bool | None) -> None:
        """Write down what was done; it is done, so a failure is logged and nothing more."""
        event = WheelEvent(
            event_id=uuid.uuid4().hex,
            occurred_at=self._clock(),
            action=action,
            wheel_name=info.name,
            tags=info.tags,
            size_bytes=info.size_bytes,
            sha256_hex=info.sha256_hex,
            replace=replace,
            actor=caller.actor,
            source=caller.source,
        )
        for pause_sec in (*APPEND_PAUSES_SEC, None):
            try:
                await self._history.append(event)
            except NatsUnavailable as error:
                if pause_sec is None:
                    _log_missing(event, error)
                    return
                await anyio.sleep(pause_sec)
            else:
                return

    async def _sweep(self) -> None:
        try:
            if swept := await self._registry.sweep():
                _log.info("threw away what %d broken uploads had left", swept)
        except NatsUnavailable as error:
            _log.debug("not swept: %s", error)


class Receiving:
    """A wheel while it comes in."""

    def __init__(self, shop: WheelShop, upload: WheelUpload, file_name: str, name: WheelName) -> None:
        self._shop = shop
        self._upload = upload
        self._file_name = file_name
        self._name = name
        self._size = 0

    async def write(self, data: bytes) -> None:
        """Take some more of it. Raises WheelTooLarge, NatsUnavailable."""
        self._size += len(data)
        if 0 < self._shop.max_bytes < self._size:
            raise too_large(self._shop.max_bytes)
        await self._upload.write(data)

    async def finish(self, order: UploadOrder) -> WheelInfo:
        """Put it into the store. Raises InvalidWheel, WheelConflict, NatsUnavailable (it may be there all the same)."""
        label = WheelLabel(name=self._file_name, tags=tags_from(order.tags), content_type=order.content_type)
        info = await self._shop.commit(self._upload, self._name, label)
        await self._shop.remember(WheelAction.UPLOAD, info, order.caller, replace=order.replace)
        return info


def too_large(max_bytes: int) -> WheelTooLarge:
    """The refusal of a wheel with more bytes than that."""
    return WheelTooLarge(f"wheel too large: at most {max_bytes} bytes are accepted (PYOCO_WHEEL_MAX_BYTES)")


def _log_missing(event: WheelEvent, error: NatsUnavailable) -> None:
    extra = {"err_id": error.err_id, "msg_id": error.msg_id, "reason": str(error)}
    _log.error("the history lacks the %s of wheel %s: %s", event.action, event.wheel_name, error, extra=extra)


def _existing(name: str) -> str:
    if not is_wheel_file(name):
        raise _not_found(name)
    return name


def _not_found(name: str) -> WheelNotFound:
    return WheelNotFound(f"wheel not found: {name[:200]!r}; GET /wheels lists those that there are")
