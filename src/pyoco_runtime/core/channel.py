"""Typed, bounded channels between actors. They belong to the tree and outlive the actors at both ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, Protocol, TypeVar

import anyio

from pyoco_runtime.errors import ChannelClosed

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


class Sender(Protocol[T_contra]):
    """The end that an actor writes to; it has no way to close the channel."""

    async def send(self, message: T_contra) -> None:
        """Hand over a message; a full channel makes the sender wait. Raises ChannelClosed."""

    def try_send(self, message: T_contra) -> bool:
        """Hand over a message at once, or return False because the channel is full. Raises ChannelClosed."""


class Receiver(Protocol[T_co]):
    """The end that an actor reads from; it has no way to close the channel."""

    async def receive(self) -> T_co:
        """Wait for the next message. Raises ChannelClosed once the channel is closed and empty."""

    def __aiter__(self) -> AsyncIterator[T_co]:
        """Yield messages until the channel is closed and empty."""


class Channel(Generic[T]):
    """A bounded queue of T. A receive that is cancelled loses nothing; a send that is cancelled may have arrived."""

    __slots__ = ("_receiver", "_sender", "capacity", "name")

    def __init__(self, name: str, *, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"channel {name!r}: capacity must be at least 1, not {capacity}")
        self.name = name
        self.capacity = capacity
        self._sender, self._receiver = anyio.create_memory_object_stream[T](capacity)

    async def send(self, message: T) -> None:
        try:
            await self._sender.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise ChannelClosed(self.name) from None

    def try_send(self, message: T) -> bool:
        try:
            self._sender.send_nowait(message)
        except anyio.WouldBlock:
            return False
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise ChannelClosed(self.name) from None
        return True

    async def receive(self) -> T:
        try:
            return await self._receiver.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise ChannelClosed(self.name) from None

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self._receiver.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise StopAsyncIteration from None

    @property
    def depth(self) -> int:
        """How many messages wait to be received."""
        return self._receiver.statistics().current_buffer_used

    def close(self) -> None:
        """For the tree alone: nothing more goes in; a reader that waits gets ChannelClosed."""
        self._sender.close()
        self._receiver.close()
