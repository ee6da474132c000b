"""The use cases of wheels, on the store in memory and in virtual time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pyoco_runtime.errors import (
    InvalidWheel,
    NatsUnavailable,
    PyocoError,
    WheelConflict,
    WheelNotFound,
    WheelTooLarge,
)
from pyoco_runtime.model.wheel_event import Actor, Caller, HistoryQuery, WheelAction
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.memory_process import MemoryProcess
from pyoco_runtime.testing.virtual_time import run_virtual
from pyoco_runtime.wheel_shop import UploadOrder, WheelShop

MAX_BYTES = 1_000_000


class Place:
    """A server, and shops in as many gateways as a test likes."""

    def __init__(self) -> None:
        self.server = MemoryJetStream()
        self.process: MemoryProcess = self.server.process("first")
        self.shop = self.open_shop(self.process)

    def open_shop(self, process: MemoryProcess | None = None) -> WheelShop:
        made = process or self.server.process("another")
        return WheelShop(made.wheels, made.wheel_history, self.server.clock, max_bytes=MAX_BYTES)

    @property
    def names(self) -> list[str]:
        return [info.name for info in self.server.shelf.look().wheels]


async def upload(shop: WheelShop, name: str, data: bytes = b"bytes", order: UploadOrder | None = None) -> WheelInfo:
    async with shop.receiving(name) as receiving:
        await receiving.write(data)
        return await receiving.finish(order or UploadOrder())


def play(test: Callable[[Place], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Place())

    run_virtual(main, backend="trio")


def wheel(version: str, package: str = "demo", platform: str = "any") -> str:
    return f"{package}-{version}-py3-none-{platform}.whl"


def test_an_upload_is_listed_and_remembered() -> None:
    """With tags, digest, and who it was."""

    async def test(place: Place) -> None:
        order = UploadOrder(tags=" a, b,a,", replace=False, caller=Caller(Actor(tenant_id="t", api_key_id="k")))
        info = await upload(place.shop, wheel("1"), order=order)
        assert (info.tags, await place.shop.list()) == (("a", "b"), (info,))
        (event,) = await place.shop.history(HistoryQuery())
        assert (event.action, event.wheel_name, event.replace) == (WheelAction.UPLOAD, info.name, False)
        assert (event.actor.tenant_id, event.sha256_hex, event.tags) == ("t", info.sha256_hex, ("a", "b"))
        assert event.occurred_at == place.server.clock()

    play(test)


@pytest.mark.parametrize(
    ("stored", "offered", "short"),
    [
        ("1.10", "1.10", "wheel version already exists; bump version"),
        ("1.10", "1.9", "wheel version must be greater than existing latest version"),
        ("1.0", "1.0.0", "wheel version already exists; bump version"),
        ("2.0", "2.0rc1", "wheel version must be greater"),
    ],
)
def test_only_newer_versions_are_taken(stored: str, offered: str, short: str) -> None:
    """As Python compares versions; the refusal names the newest, and nothing of it stays."""

    async def test(place: Place) -> None:
        place.server.shelf.upload(wheel(stored), b"old")
        with pytest.raises(WheelConflict, match=f"^{short}.*is {stored}, this one is") as raised:
            await upload(place.shop, wheel(offered))
        assert raised.value.err_id == "ERR-PYOCO-0022"
        assert (place.names, place.server.shelf.orphans()) == ([wheel(stored)], set())

    play(test)


def test_another_build_or_spelling_of_a_version_is_the_same_version() -> None:
    """As the peer has it; another package is another matter."""

    async def test(place: Place) -> None:
        await upload(place.shop, wheel("1", "My_Demo"))
        for name in (wheel("1", "my_demo"), wheel("1", "my.demo"), wheel("1", "My_Demo", "win32")):
            with pytest.raises(WheelConflict):
                await upload(place.shop, name)
        await upload(place.shop, wheel("1", "other"))
        await upload(place.shop, wheel("2", "my_demo", "win32"))

    play(test)


def test_after_a_deletion_counts_what_is_left() -> None:
    """A version may come back when no newer one is there."""

    async def test(place: Place) -> None:
        await upload(place.shop, wheel("1"))
        await upload(place.shop, wheel("2"))
        await anyio.sleep(1)
        await place.shop.delete(wheel("2"), Caller())
        await anyio.sleep(1)
        await upload(place.shop, wheel("1.5"))
        await upload(place.shop, wheel("2"))
        assert [event.action for event in await place.shop.history(HistoryQuery(3))] == ["upload", "upload", "delete"]

    play(test)


def test_of_two_at_once_one_wins() -> None:
    """Both passed the first look; the one that commits second is refused, and its bytes are gone."""

    async def test(place: Place) -> None:
        other = place.open_shop()
        async with place.shop.receiving(wheel("1")) as first:
            await first.write(b"first")
            with pytest.raises(WheelConflict, match="the newest demo in the store is 1"):  # noqa: PT012 (one block)
                async with other.receiving(wheel("1", platform="win32")) as second:
                    await second.write(b"second")
                    await first.finish(UploadOrder())
                    await second.finish(UploadOrder())
        assert (place.names, place.server.shelf.orphans()) == ([wheel("1")], set())

    play(test)


def test_uploads_of_other_packages_do_not_refuse_each_other() -> None:
    """They only make each other look again."""

    async def test(place: Place) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(upload, place.open_shop(), wheel("1", f"demo{number}"))
        assert len(place.names) == 8

    play(test)


@pytest.mark.parametrize("lost", list(Lost))
def test_a_hiccup_while_committing_is_survived(lost: Lost) -> None:
    """Whether the request or its answer was lost: the wheel is there once."""

    async def test(place: Place) -> None:
        place.server.faults.next("wheels.commit", lost)
        info = await upload(place.shop, wheel("1"))
        assert place.server.shelf.look().wheels == (info,)
        assert len(await place.shop.history(HistoryQuery())) == 1

    play(test)


def test_what_a_lost_connection_leaves_is_swept() -> None:
    """By the next upload, once nobody can be at it any more."""

    async def test(place: Place) -> None:
        with pytest.raises(NatsUnavailable):  # noqa: PT012 (one block)
            async with place.shop.receiving(wheel("1")) as receiving:
                await receiving.write(bytes(200_000))
                place.process.disconnect()
                await receiving.finish(UploadOrder())
        place.process.reconnect()
        assert len(place.server.shelf.orphans()) == 1
        await upload(place.shop, wheel("1"))
        assert len(place.server.shelf.orphans()) == 1
        await anyio.sleep(1000)
        await upload(place.shop, wheel("2"))
        assert place.server.shelf.orphans() == set()

    play(test)


def test_an_event_is_written_again_after_a_hiccup() -> None:
    """And once only."""

    async def test(place: Place) -> None:
        place.server.faults.next("wheel_history.append", Lost.AFTER, Lost.BEFORE)
        await upload(place.shop, wheel("1"))
        assert len(await place.shop.history(HistoryQuery())) == 1

    play(test)


def test_an_upload_whose_event_cannot_be_written_is_done(caplog: pytest.LogCaptureFixture) -> None:
    """The history is best effort; the log tells."""

    async def test(place: Place) -> None:
        place.server.faults.next("wheel_history.append", *[Lost.BEFORE] * 3)
        await upload(place.shop, wheel("1"))
        assert place.names == [wheel("1")]

    with caplog.at_level(logging.ERROR):
        play(test)
    assert "the history lacks the upload of wheel demo-1-py3-none-any.whl" in caplog.text


def test_a_wheel_that_is_too_large_is_refused_while_it_comes() -> None:
    """At the first byte over the limit, and nothing of it stays."""

    async def test(place: Place) -> None:
        await upload(place.shop, wheel("1"), bytes(MAX_BYTES))
        with pytest.raises(WheelTooLarge, match=r"^wheel too large: at most 1000000 "):  # noqa: PT012 (one block)
            async with place.shop.receiving(wheel("2")) as receiving:
                for _ in range(11):
                    await receiving.write(bytes(100_000))
        assert (place.names, place.server.shelf.orphans()) == ([wheel("1")], set())

    play(test)


@pytest.mark.parametrize(
    ("name", "tags", "error"),
    [
        ("demo.whl", "", "invalid wheel filename"),
        ("demo-1.tar.gz", "", "invalid wheel name"),
        ("../demo-1-py3-none-any.whl", "", "invalid wheel name"),
        ("-r-1-py3-none-any.whl", "", "invalid wheel name"),
        ("", "", "invalid wheel name"),
        (wheel("1"), "a b", "invalid wheel tags"),
        (wheel("1"), "a.b", "invalid wheel tags"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, tags: str, error: str) -> None:
    """In the words of the peer, with what would be right."""

    async def test(place: Place) -> None:
        with pytest.raises(InvalidWheel, match=f"^{error}"):
            await upload(place.shop, name, bytes(200_000), UploadOrder(tags=tags))
        assert (place.names, place.server.shelf.chunks) == ([], {})

    play(test)


def test_a_wheel_that_is_not_there_is_not_found() -> None:
    """To read or to delete; also a name that can be none, and a path."""

    async def test(place: Place) -> None:
        calls: list[Awaitable[object]] = []
        for name in (wheel("1"), "../x.whl", "history", ""):
            calls += [place.shop.open(name), place.shop.delete(name, Caller())]
        for call in calls:
            with pytest.raises(PyocoError, match=r"^wheel not found") as raised:
                await call
            assert isinstance(raised.value, WheelNotFound)
        assert await place.shop.history(HistoryQuery()) == ()

    play(test)
