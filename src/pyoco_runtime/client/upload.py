"""A file on its way to the gateway, as a form with one file."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import anyio
from attrs import field, frozen

Progress = Callable[[int, int], None]

CHUNK = 64 * 1024  # a step of the progress, and what is in memory at a time


@frozen(kw_only=True)
class Upload:
    """A form with its fields and one file, which is in memory or on disk and is read while it is sent."""

    name: str
    filename: str
    media: str
    data: bytes | Path
    fields: Mapping[str, str]
    on_progress: Progress | None = None
    boundary: str = field(factory=lambda: secrets.token_hex(16))

    @property
    def headers(self) -> dict[str, str]:
        """What the request says about its body. Raises OSError if the file cannot be looked at."""
        size = len(self._head()) + self.size + len(self._tail())
        return {"content-type": f"multipart/form-data; boundary={self.boundary}", "content-length": str(size)}

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return len(self.data) if isinstance(self.data, bytes) else self.data.stat().st_size

    def chunks(self) -> Iterator[bytes]:
        """The body, piece by piece; a second call begins anew."""
        yield self._head()
        sent, total = 0, self.size
        for chunk in self._pieces():
            yield chunk
            sent += len(chunk)
            self._tell(sent, total)
        yield self._tail()

    async def achunks(self) -> AsyncIterator[bytes]:
        """The same, without a wait for the disk in the event loop."""
        if isinstance(self.data, bytes):
            for chunk in self.chunks():
                yield chunk
            return
        yield self._head()
        sent, total = 0, self.size
        async with await anyio.open_file(self.data, "rb") as file:
            while chunk := await file.read(CHUNK):
                yield chunk
                sent += len(chunk)
                self._tell(sent, total)
        yield self._tail()

    def _pieces(self) -> Iterator[bytes]:
        if isinstance(self.data, bytes):
            yield from (self.data[begin : begin + CHUNK] for begin in range(0, len(self.data), CHUNK))
            return
        with self.data.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def _tell(self, sent: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress(sent, total)

    def _head(self) -> bytes:
        parts = [self._part(name) + f"\r\n\r\n{value}\r\n" for name, value in self.fields.items()]
        file = f'{self._part(self.name)}; filename="{_quoted(self.filename)}"\r\nContent-Type: {self.media}\r\n\r\n'
        return "".join([*parts, file]).encode()

    def _part(self, name: str) -> str:
        return f'--{self.boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'

    def _tail(self) -> bytes:
        return f"\r\n--{self.boundary}--\r\n".encode()


def _quoted(text: str) -> str:
    """As browsers write it: a name that ends the header is no longer one."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
