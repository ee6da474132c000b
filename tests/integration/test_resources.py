"""What the link makes in JetStream, and what it leaves alone."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import nats
from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, RetentionPolicy, StreamConfig

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.programs import program


def ask(url: str, question: Callable[[JetStreamContext], Awaitable[None]]) -> None:
    """Put a question to the server, as a client of its own."""

    async def main() -> None:
        client = await nats.connect(url)
        try:
            await question(client.jetstream())
        finally:
            await client.close()

    anyio.run(main)


def test_missing_resources_are_made_as_the_contract_says_and_existing_ones_are_kept(tmp_path: Path) -> None:
    """Another operator's settings survive a start of ours; the rest of the contract's part 3 is there."""

    async def before(js: JetStreamContext) -> None:
        await js.add_stream(StreamConfig(name="PYOCO_DLQ", subjects=["pyoco.dlq.>"], max_msgs=5))
        await js.create_key_value(KeyValueConfig(bucket="pyoco_workers", ttl=15.0, history=3))

    async def after(js: JetStreamContext) -> None:
        work = (await js.stream_info("PYOCO_WORK")).config
        assert (work.subjects, work.retention) == (["pyoco.work.>"], RetentionPolicy.WORK_QUEUE)
        dlq = (await js.stream_info("PYOCO_DLQ")).config
        assert (dlq.max_msgs, dlq.max_age) == (5, 0)
        workers = (await js.stream_info("KV_pyoco_workers")).config
        assert (workers.max_age, workers.max_msgs_per_subject) == (15.0, 3)
        for bucket in ("pyoco_runs", "pyoco_auth", "pyoco_wheel_history"):
            config = (await js.stream_info(f"KV_{bucket}")).config
            assert config.max_msgs_per_subject == 1
            assert config.allow_direct
        assert (await js.stream_info("KV_pyoco_wheel_history")).config.max_age == 7776000
        await js.object_store("pyoco_wheels")

    with nats_server(tmp_path / "store") as server:
        ask(server.url, before)
        with program(tmp_path, "--role", "gateway", "--nats-url", server.url, PYOCO_PORT="0") as started:
            made = started.until("made what was missing")["message"]
            started.until("connected to NATS")
            assert started.stop(signal.SIGTERM) == 0
        assert "PYOCO_DLQ" not in made
        ask(server.url, after)


def test_what_was_removed_while_nats_was_away_is_made_again(tmp_path: Path) -> None:
    """At every reconnect, not only at the start."""

    async def remove(js: JetStreamContext) -> None:
        await js.delete_stream("PYOCO_WORK")

    with (
        nats_server(tmp_path / "store") as server,
        program(tmp_path, "--role", "gateway", "--nats-url", server.url, PYOCO_PORT="0") as started,
    ):
        started.until("connected to NATS")
        ask(server.url, remove)
        server.kill()
        started.until("connection to NATS lost")
        server.restart()
        assert started.until("made what was missing")["message"].endswith(": PYOCO_WORK")


def test_another_number_of_replicas_is_reported_and_left_alone(tmp_path: Path) -> None:
    """Whoever asks for three where there is one hears of it, and the stream stays as it was made."""

    async def after(js: JetStreamContext) -> None:
        assert (await js.stream_info("PYOCO_WORK")).config.num_replicas == 1

    with nats_server(tmp_path / "store") as server:
        args = ("--role", "gateway", "--nats-url", server.url)
        with program(tmp_path, *args, PYOCO_PORT="0") as first:
            first.until("connected to NATS")
            assert first.stop(signal.SIGTERM) == 0
        with program(tmp_path, *args, PYOCO_PORT="0", PYOCO_NATS_REPLICAS="3") as second:
            said = second.until("PYOCO_NATS_REPLICAS is 3, but")
            second.until("connected to NATS")
            assert second.stop(signal.SIGTERM) == 0
        assert said["level"] == "WARNING"
        assert "PYOCO_WORK has 1, PYOCO_DLQ has 1, KV_pyoco_runs has 1" in said["message"]
        assert "OBJ_pyoco_wheels has 1;" in said["message"]
        assert not any("PYOCO_NATS_REPLICAS" in line["message"] for line in first.lines)
        ask(server.url, after)


def test_replicas_that_a_single_server_cannot_have_are_named(tmp_path: Path) -> None:
    """The process waits and says why; it does not make fewer than it was asked for."""
    with (
        nats_server(tmp_path / "store") as server,
        program(
            tmp_path, "--role", "gateway", "--nats-url", server.url, PYOCO_PORT="0", PYOCO_NATS_REPLICAS="3"
        ) as started,
    ):
        said = started.until("cannot set up streams and buckets yet")
        assert "replicas > 1 not supported in non-clustered mode" in said["message"]
        assert started.stop(signal.SIGTERM) == 0
