"""The form of POST /wheels."""

from __future__ import annotations

from contextlib import AsyncExitStack

from werkzeug.sansio.multipart import Data, Field, File

from pyoco_runtime.errors import InvalidWheel
from pyoco_runtime.gateway.multipart_reader import MultipartReader
from pyoco_runtime.model.wheel_event import Caller
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.wheel_shop import Receiving, UploadOrder, WheelShop

FIELD_BYTES = 8192  # of a field that is no file
CONTENT_TYPE_LIMIT = 200  # characters
_TRUE = frozenset({"true", "1", "yes", "on", "t", "y"})
_FALSE = frozenset({"false", "0", "no", "off", "f", "n"})
_FIELDS = frozenset({"replace", "tags"})


class WheelForm:
    """The fields in whatever order they come; the file goes to the shop while it is read."""

    def __init__(self, reader: MultipartReader, shop: WheelShop, caller: Caller) -> None:
        self._reader = reader
        self._shop = shop
        self._caller = caller
        self._fields: dict[str, bytearray] = {}
        self._content_type = ""

    async def receive(self) -> WheelInfo:
        """Take it all in. Raises InvalidRequest, InvalidWheel, WheelTooLarge, WheelConflict, NatsUnavailable,
        RequestTimeout."""
        async with AsyncExitStack() as stack:
            wheel = await self._read(stack)
            if wheel is None:
                raise InvalidWheel("the file is missing: send the wheel in the field `wheel`")
            return await wheel.finish(self._order())

    async def _read(self, stack: AsyncExitStack) -> Receiving | None:
        wheel: Receiving | None = None
        part: Field | File | None = None
        while (event := await self._reader.next()) is not None:
            match event:
                case File(name="wheel"):
                    if wheel is not None:
                        raise InvalidWheel("send one wheel at a time: the field `wheel` is there twice")
                    wheel = await stack.enter_async_context(self._shop.receiving(event.filename))
                    self._content_type = event.headers.get("content-type", "")[:CONTENT_TYPE_LIMIT]
                    part = event
                case Field() | File():
                    part = self._begun(event)
                case Data(data=data) if part is not None and part.name == "wheel" and wheel is not None:
                    await wheel.write(data)
                case Data(data=data) if part is not None:
                    self._add(part.name, data)
        return wheel

    def _begun(self, part: Field | File) -> Field | File:
        if part.name == "wheel":
            raise InvalidWheel("the field `wheel` must be a file, with a file name such as demo-1.0-py3-none-any.whl")
        self._fields[part.name] = bytearray()
        return part

    def _add(self, name: str, data: bytes) -> None:
        if name not in _FIELDS:
            return
        self._fields[name] += data
        if len(self._fields[name]) > FIELD_BYTES:
            raise InvalidWheel(f"{name}: has more than {FIELD_BYTES} bytes")

    def _order(self) -> UploadOrder:
        return UploadOrder(
            tags=self._text("tags"),
            replace=_flag(self._text("replace")),
            content_type=self._content_type or UploadOrder().content_type,
            caller=self._caller,
        )

    def _text(self, name: str) -> str:
        try:
            return self._fields.get(name, bytearray()).decode()
        except UnicodeDecodeError:
            raise InvalidWheel(f"{name}: is not UTF-8") from None


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE or not word:
        return True
    if word in _FALSE:
        return False
    raise InvalidWheel(f"replace: must be true or false, not {text[:100]!r}")
