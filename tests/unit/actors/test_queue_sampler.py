"""The queue sampler on memory ports, in virtual time."""

from __future__ import annotations

import pytest
import trio

from pyoco_runtime.actors.queue_sampler import SAMPLE_SEC, QueueSampler
from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.queue_minutes import QueueMinutes
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel


@pytest.mark.trio
async def test_it_looks_now_and_then_and_leaves_gaps_while_nats_is_away(autojump_clock: object) -> None:
    """A look that fails is no crash; the next one comes in its time."""
    server = MemoryJetStream()
    process, minutes = server.process("gateway"), QueueMinutes()
    await process.work_queue.publish(Job(run_id="r", flow_name="f", tag="t", submitted_at=virtual_clock()))
    made = QueueSampler(process.gauge, minutes, process.link, virtual_clock)
    async with Supervisor(SupervisorSpec("root", (ActorSpec("queue-sampler", lambda: made),))) as tree:
        await trio.sleep(1)
        found = minutes.by_tag(virtual_clock())["t"][-1]
        assert found is not None
        assert (found.waiting, found.in_hand) == (1, 0)
        server.faults.next("gauge.read", Lost.BEFORE)
        await trio.sleep(4 * SAMPLE_SEC)
        process.disconnect()
        await trio.sleep(180)
        process.reconnect()
        await trio.sleep(1)
        hour = minutes.by_tag(virtual_clock())["t"]
        assert hour[-1] is not None
        assert hour[-1].oldest_sec == pytest.approx(242, abs=1)
        assert hour[-3:-1] == (None, None)
        assert tree.status().children[0].restarts == 0


def test_it_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""

    def make() -> QueueSampler:
        process = MemoryJetStream().process("gateway")
        return QueueSampler(process.gauge, QueueMinutes(), process.link, virtual_clock, sample_sec=0.1)

    stress_start_cancel(make)
