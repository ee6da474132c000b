"""The parts of a worker, wired: what its actors share, and how each of them is made."""

from __future__ import annotations

import itertools
import logging
import math
import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import frozen

from pyoco_runtime.actors.cancel_watcher import CancelWatcher
from pyoco_runtime.actors.consumer import Consumer
from pyoco_runtime.actors.dlq_publisher import DlqPublisher
from pyoco_runtime.actors.heartbeat import Heartbeat, Identity, OfferNews, WheelNews
from pyoco_runtime.actors.run import Run, Workshop
from pyoco_runtime.actors.runners import Runners
from pyoco_runtime.actors.ticker import Ticker
from pyoco_runtime.actors.wheel_syncer import WheelSyncer
from pyoco_runtime.core import Actor, ActorSpec, Children, Context, Restart
from pyoco_runtime.engine.process_runner import ProcessRunner
from pyoco_runtime.engine.resolver import load_resolver, no_flows
from pyoco_runtime.engine.thread_runner import ThreadRunner
from pyoco_runtime.in_flight import InFlight
from pyoco_runtime.jetstream.dead_letters import NatsDeadLetters
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.jetstream.wheel_store import NatsWheelStore
from pyoco_runtime.jetstream.work_queue import ConsumerSettings, NatsWorkQueue
from pyoco_runtime.jetstream.worker_registry import NatsWorkerRegistry
from pyoco_runtime.layout import ActorLayout
from pyoco_runtime.letterbox import Letterbox
from pyoco_runtime.model.worker import WheelSync
from pyoco_runtime.ports import (
    Clock,
    DeadLetters,
    Delivery,
    FlowRunner,
    Link,
    RunStore,
    WheelStore,
    WorkerRegistry,
    WorkQueue,
)
from pyoco_runtime.settings import Isolation, Settings
from pyoco_runtime.single_run import SingleRun
from pyoco_runtime.slots import Slots
from pyoco_runtime.wheel_gate import WheelGate
from pyoco_runtime.wheel_overlay import WheelOverlay

_log = logging.getLogger(__name__)
_NO_NAME = re.compile(r"[^A-Za-z0-9_.:-]")


class FlowPool(FlowRunner, Protocol):
    """What executes flows, and can be closed."""

    async def close(self) -> None:
        """End everything."""


@frozen(kw_only=True)
class WorkerPorts:
    """What a worker needs from outside."""

    link: Link
    runs: RunStore
    queue: WorkQueue
    registry: WorkerRegistry
    letters: DeadLetters
    wheels: WheelStore
    pool: FlowPool
    clock: Clock = time.time


class WorkerParts:
    """What the actors of one worker share. It belongs to the tree, so that each of them can be restarted alone."""

    def __init__(
        self,
        settings: Settings,
        ports: WorkerPorts,
        worker_id: str,
        overlay: WheelOverlay | None = None,
        single: SingleRun | None = None,
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._overlay = overlay
        self._single = single
        self._slots = Slots(settings.concurrency if single is None else 1)
        self._in_flight = InFlight()
        self._letters = Letterbox()
        self._runs = Children()
        self._pattern = ActorLayout("run", restart=Restart.TEMPORARY)
        self._gate = WheelGate(is_open=overlay is None)
        self._news = WheelNews(_no_sync_yet(enabled=overlay is not None))
        self._offers = _offers_of(ports.pool)
        self._who = Identity(worker_id, uuid.uuid4().hex, settings.tags, settings.concurrency)
        self._workshop = Workshop(
            worker_id,
            ports.runs,
            ports.pool,
            self._letters,
            self._in_flight,
            self._slots.vacate if single is None else single.end,
            ports.clock,
            cancel_grace_sec=settings.cancel_grace_period_sec,
            letter_on_error=settings.dlq_publish_execution_error,
        )

    def makers(self) -> dict[str, Callable[[ActorLayout], Callable[[], Actor]]]:
        """How each actor that there is once is made."""
        return {
            "runners": lambda layout: self._runners,
            "wheel-syncer": lambda layout: self._wheel_syncer,
            "heartbeat": lambda layout: self._heartbeat,
            "dlq-publisher": lambda layout: self._dlq_publisher,
            "ticker": lambda layout: lambda: Ticker(self._in_flight, self._settings.ack_progress_interval_sec),
            "cancel-watcher": lambda layout: (
                lambda: CancelWatcher(self._in_flight, self._ports.runs, self._ports.link, self._ports.clock)
            ),
        }

    def runs_like(self, layout: ActorLayout) -> Children:
        """The handle through which runs of this pattern are started."""
        self._pattern = layout
        return self._runs

    def consumers(self) -> Iterator[tuple[str, Callable[[], Actor]]]:
        """The name of the consumer of each tag, and how it is made."""
        for tag in self._settings.tags:
            yield (
                f"consumer:{tag}",
                lambda tag=tag: Consumer(  # type: ignore[misc]  # mypy does not infer lambdas with defaults
                    tag, self._ports.queue, self._ports.link, self._slots, self._launch, self._gate.wait
                ),
            )

    def _launch(self, delivery: Delivery) -> None:
        layout = self._pattern
        lives = itertools.count()

        def start() -> Actor:
            # a job is given back when its actor ends early: a second life must not execute it
            return Over() if next(lives) else Run(delivery, self._workshop)

        self._runs.start(
            ActorSpec(
                _name(delivery),
                start,
                restart=layout.restart,
                backoff=layout.backoff,
                start_timeout_sec=math.inf,  # it is ready at once
                shutdown_sec=layout.shutdown_sec,
            )
        )
        if self._single is not None:
            self._single.begin()

    def _runners(self) -> Actor:
        assert isinstance(self._ports.pool, ProcessRunner)
        return Runners(self._ports.pool)

    def _heartbeat(self) -> Actor:
        return Heartbeat(
            self._who,
            self._in_flight,
            self._ports.registry,
            self._news,
            self._ports.link,
            self._ports.clock,
            worker_sec=self._settings.worker_heartbeat_interval_sec,
            run_sec=self._settings.run_heartbeat_interval_sec,
            offers=self._offers,
        )

    def _dlq_publisher(self) -> Actor:
        return DlqPublisher(self._letters, self._ports.letters, self._ports.link)

    def _wheel_syncer(self) -> Actor:
        assert self._overlay is not None
        return WheelSyncer(
            self._ports.wheels,
            self._overlay,
            self._ports.link,
            self._settings.tags,
            gate=self._gate,
            interval_sec=self._settings.wheel_sync_interval_sec,
            on_change=self._wheels_changed,
            report=self._news.tell,
            clock=self._ports.clock,
        )

    def _wheels_changed(self) -> None:
        if isinstance(self._ports.pool, ProcessRunner):
            self._ports.pool.replace()
        else:
            _log.warning("new wheels are used after a restart of this process: flows are executed in its threads")


class Over:
    """A run that was in somebody's hands before; there is nothing left to do."""

    async def run(self, context: Context) -> None:
        """Return at once."""


def _offers_of(pool: FlowPool) -> OfferNews:
    news = OfferNews()
    match pool:
        case ProcessRunner():
            pool.tell_offer(news.tell)
        case ThreadRunner():
            news.tell(pool.offer)
    return news


def _name(delivery: Delivery) -> str:
    """Unique among the runs of a worker: two deliveries of one run may meet here."""
    run_id = _NO_NAME.sub("_", delivery.job.run_id or f"seq-{delivery.attempt.seq}")[:128]
    return f"run:{run_id}" if delivery.attempt.delivery == 1 else f"run:{run_id}.{delivery.attempt.delivery}"


def jetstream_ports(settings: Settings, link: NatsLink, pool: FlowPool) -> WorkerPorts:
    """A worker's world on JetStream."""
    consumer = ConsumerSettings(
        settings.consumer_ack_wait_sec, settings.consumer_max_deliver, settings.consumer_max_ack_pending
    )
    return WorkerPorts(
        link=link,
        runs=NatsRunStore(link, settings.runs_kv_bucket, settings.max_run_snapshot_bytes),
        queue=NatsWorkQueue(link, settings.work_subject_prefix, consumer),
        registry=NatsWorkerRegistry(link, settings.workers_kv_bucket),
        letters=NatsDeadLetters(link, settings.dlq_subject_prefix, settings.dlq_stream),
        wheels=NatsWheelStore(link, settings.wheel_object_store_bucket),
        pool=pool,
    )


def flow_pool(settings: Settings, overlay: WheelOverlay | None) -> FlowPool:
    """What executes flows, as the settings want it. Raises UserError."""
    if settings.isolation is Isolation.THREAD:
        resolver = load_resolver(settings.flow_resolver) if settings.flow_resolver else no_flows
        return ThreadRunner(resolver, settings.concurrency, callable_allow=settings.callable_allow or ())
    return ProcessRunner(
        settings.flow_resolver,
        settings.concurrency,
        overlay=overlay.paths if overlay else tuple,
        callable_allow=settings.callable_allow or (),
    )


def wheel_overlay(settings: Settings) -> WheelOverlay | None:
    """Where wheels are installed, if they are."""
    if not settings.wheel_sync_enabled:
        return None
    return WheelOverlay(settings.wheel_sync_dir, install_timeout_sec=settings.wheel_install_timeout_sec)


def _no_sync_yet(*, enabled: bool) -> WheelSync:
    return WheelSync(enabled=enabled, last_result="idle" if enabled else "disabled")
