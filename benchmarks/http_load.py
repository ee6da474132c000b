"""A small HTTP/1.1 client for measuring: keep-alive connections, one request at a time on each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from attrs import frozen


@frozen
class Answer:
    """What came back."""

    status: int
    body: bytes


class Connection:
    """One keep-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self.reader = reader
        self._writer = writer
        self._head = head

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        """Send a request."""
        line = f"{method} {path} HTTP/1.1\r\n".encode()
        length = f"content-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n".encode()
        self._writer.write(line + self._head + (length if body else b"\r\n") + body)

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Send a request and read its answer, which has a length."""
        self.send(method, path, body)
        head = await self.head()
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        return Answer(int(head[9:12]), await self.reader.readexactly(length))

    async def head(self) -> bytes:
        """The status line and the headers of an answer."""
        return await self.reader.readuntil(b"\r\n\r\n")

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


@asynccontextmanager
async def connection(port: int, key: str | None = None) -> AsyncIterator[Connection]:
    """A connection for a block."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    head = b"host: 127.0.0.1\r\n" + (f"x-api-key: {key}\r\n".encode() if key else b"")
    found = Connection(reader, writer, head)
    try:
        yield found
    finally:
        found.close()


async def per_second(
    port: int, connections: int, seconds: float, request: Callable[[], tuple[str, str, bytes]], key: str | None = None
) -> float:
    """How many such requests are answered in a second, over so many connections."""
    count = 0
    end = time.perf_counter() + seconds

    async def work() -> None:
        nonlocal count
        async with connection(port, key) as client:
            while time.perf_counter() < end:
                answer = await client.ask(*request())
                assert answer.status == 200, answer
                count += 1

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    return count / (time.perf_counter() - began)


async def milliseconds(port: int, path: str, times: int) -> list[float]:
    """How long this takes, one after the other."""
    took = []
    async with connection(port) as client:
        for _ in range(times):
            began = time.perf_counter()
            answer = await client.ask("GET", path)
            assert answer.status == 200, answer
            took.append((time.perf_counter() - began) * 1000)
    return took
