"""The parts of a gateway, wired: what its actors share, and how each of them is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version

from attrs import frozen

from pyoco_runtime.actors.key_cache import KeyCache
from pyoco_runtime.actors.letter_index import LetterIndexer
from pyoco_runtime.actors.queue_sampler import QueueSampler
from pyoco_runtime.actors.reconciler import Reconciler
from pyoco_runtime.actors.run_index import RunIndexer
from pyoco_runtime.actors.worker_index import WorkerIndexer
from pyoco_runtime.board_changes import IndexedRunStore
from pyoco_runtime.core import Actor
from pyoco_runtime.desk import Desk
from pyoco_runtime.engine.flow_yaml import check_flow_yaml
from pyoco_runtime.gateway.app import create_gateway
from pyoco_runtime.gateway.auth import Gate
from pyoco_runtime.gateway.closing import Closing
from pyoco_runtime.gateway.dashboard_config import DashboardConfig
from pyoco_runtime.gateway.http import Http
from pyoco_runtime.gateway.listener import Listener
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.readiness import Readiness
from pyoco_runtime.gateway.traffic import Traffic
from pyoco_runtime.jetstream.consumer import ConsumerSettings
from pyoco_runtime.jetstream.dead_letters import NatsDeadLetters
from pyoco_runtime.jetstream.house_view import NatsHouseView
from pyoco_runtime.jetstream.key_store import NatsKeyStore
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.promise_store import NatsPromiseStore
from pyoco_runtime.jetstream.queue_gauge import NatsQueueGauge
from pyoco_runtime.jetstream.queue_inspector import NatsQueueInspector
from pyoco_runtime.jetstream.resources import Names
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.jetstream.wheel_history import NatsWheelHistory
from pyoco_runtime.jetstream.wheel_store import NatsWheelStore
from pyoco_runtime.jetstream.work_queue import NatsWorkQueue
from pyoco_runtime.jetstream.worker_registry import NatsWorkerRegistry
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.layout import ActorLayout
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.model.reconcile import Limits
from pyoco_runtime.ports import (
    Clock,
    DeadLetters,
    HouseView,
    KeyStore,
    Link,
    PromiseStore,
    QueueGauge,
    QueueInspector,
    RunStore,
    WheelHistory,
    WheelRegistry,
    WorkerRegistry,
    WorkQueue,
)
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.run_keeper import RunKeeper
from pyoco_runtime.settings import AuthMode, Settings
from pyoco_runtime.submitter import Submitter
from pyoco_runtime.wheel_shop import WheelShop
from pyoco_runtime.worker_board import WorkerBoard

VERSION = version("pyoco-runtime")


@frozen(kw_only=True)
class GatewayPorts:
    """What a gateway needs from outside."""

    link: Link
    runs: RunStore
    queue: WorkQueue
    promises: PromiseStore
    registry: WorkerRegistry
    letters: DeadLetters
    gauge: QueueGauge
    inspector: QueueInspector
    wheels: WheelRegistry
    wheel_history: WheelHistory
    keys: KeyStore
    house: HouseView
    clock: Clock = time.time


class Gateway:
    """What the actors of one gateway share. It belongs to the tree, so that each of them can be restarted alone."""

    def __init__(self, settings: Settings, ports: GatewayPorts, desk: Desk, listener: Listener) -> None:
        self._settings = settings
        self._ports = ports
        self._listener = listener
        self._ring = _ring(settings, ports)
        self.parts = _parts(settings, ports, desk, self._ring)

    def makers(self) -> dict[str, Callable[[ActorLayout], Callable[[], Actor]]]:
        """How each actor is made."""
        ports, parts = self._ports, self.parts
        link, clock = ports.link, ports.clock
        return {
            "http": lambda layout: lambda: self._http(layout),
            "run-index": lambda layout: lambda: RunIndexer(parts.runs, ports.runs, link, clock),
            "worker-index": lambda layout: lambda: WorkerIndexer(parts.workers, ports.registry, link, clock),
            "letter-index": lambda layout: lambda: LetterIndexer(parts.letters, ports.letters, link, clock),
            "queue-sampler": lambda layout: lambda: QueueSampler(ports.gauge, parts.queue_minutes, link, clock),
            "key-cache": lambda layout: self._key_cache,
            "reconciler": lambda layout: self._reconciler,
        }

    def _http(self, layout: ActorLayout) -> Actor:
        grace_sec = layout.shutdown_sec * 0.8  # what is left is for cancelling the slow ones
        return Http(
            create_gateway(self.parts),
            self._listener,
            grace_sec,
            closing=self.parts.closing,
            max_connections=self._settings.http_max_connections,
        )

    def _key_cache(self) -> Actor:
        assert self._ring is not None  # it is a member only then
        return KeyCache(self._ring, self._ports.keys, self._ports.link)

    def _reconciler(self) -> Actor:
        ports = self._ports
        limits = Limits(silent_sec=_silent_sec(self._settings))
        runs = IndexedRunStore(ports.runs, self.parts.runs)
        return Reconciler(runs, ports.inspector, ports.letters, ports.link, ports.clock, limits)


def jetstream_gateway_ports(settings: Settings, link: NatsLink, names: Names) -> GatewayPorts:
    """A gateway's world on JetStream."""
    consumer = ConsumerSettings(
        settings.consumer_ack_wait_sec, settings.consumer_max_deliver, settings.consumer_max_ack_pending
    )
    return GatewayPorts(
        link=link,
        runs=NatsRunStore(link, settings.runs_kv_bucket, settings.max_run_snapshot_bytes),
        queue=NatsWorkQueue(link, settings.work_subject_prefix, consumer),
        promises=NatsPromiseStore(link, names.promises_bucket),
        registry=NatsWorkerRegistry(link, settings.workers_kv_bucket),
        letters=NatsDeadLetters(link, settings.dlq_subject_prefix, settings.dlq_stream),
        gauge=NatsQueueGauge(link, settings.work_subject_prefix),
        inspector=NatsQueueInspector(link, settings.work_subject_prefix),
        wheels=NatsWheelStore(link, settings.wheel_object_store_bucket),
        wheel_history=NatsWheelHistory(link, settings.wheel_history_kv_bucket),
        keys=NatsKeyStore(link, settings.auth_kv_bucket),
        house=NatsHouseView(link),
    )


def _silent_sec(settings: Settings) -> float:
    """How long a run that is executed may be silent: the contract's STALE."""
    return max(30.0, 3 * settings.run_heartbeat_interval_sec)


def _ring(settings: Settings, ports: GatewayPorts) -> KeyRing | None:
    if settings.http_auth_mode is AuthMode.NONE:
        return None
    return KeyRing(ports.keys, settings.auth_pepper)


def _parts(settings: Settings, ports: GatewayPorts, desk: Desk, ring: KeyRing | None) -> GatewayParts:
    runs = RunBoard(clock=ports.clock)
    workers = WorkerBoard(settings.workers_kv_ttl_sec or None)
    return GatewayParts(
        health=Readiness(desk, {"run-index": runs, "worker-index": workers}),
        gate=Gate(ring, settings.http_api_key_header),
        closing=Closing(),
        clock=ports.clock,
        link=ports.link,
        submitter=Submitter(ports.runs, ports.queue, ports.promises, ports.clock),
        keeper=RunKeeper(ports.runs, ports.clock),
        runs=runs,
        workers=workers,
        letters=LetterBoard(max_age_sec=settings.dlq_max_age_sec or None),
        registry=ports.registry,
        dead_letters=ports.letters,
        gauge=ports.gauge,
        house=ports.house,
        own_report=desk.report,
        shop=WheelShop(ports.wheels, ports.wheel_history, ports.clock, max_bytes=settings.wheel_max_bytes),
        check_flow=check_flow_yaml,
        traffic=Traffic(),
        dashboard=DashboardConfig(
            lang=settings.dashboard_lang.value, version=VERSION, stale_after_sec=_silent_sec(settings)
        ),
        default_tag=settings.default_tag,
        workflow_yaml_max_bytes=settings.workflow_yaml_max_bytes,
        disconnect_timeout_sec=settings.worker_disconnect_timeout_sec,
    )
