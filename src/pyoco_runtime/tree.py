"""Settings -> the tree. The only place where everything is wired; reading it tells the whole system."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeVar

from attrs import evolve, frozen

from pyoco_runtime.actors.console import Console
from pyoco_runtime.actors.link import Link
from pyoco_runtime.actors.nats import Nats
from pyoco_runtime.core import Actor, ActorSpec, Children, ChildSpec, SupervisorSpec, World
from pyoco_runtime.desk import Desk
from pyoco_runtime.errors import AddressInUse, StoreLocked
from pyoco_runtime.gateway.app import create_probe_app
from pyoco_runtime.gateway.http import Http
from pyoco_runtime.gateway.listener import Listener
from pyoco_runtime.gateway_parts import Gateway, jetstream_gateway_ports
from pyoco_runtime.jetstream.console import NatsConsoleHost
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.resources import Names
from pyoco_runtime.layout import ActorLayout, Known, SupervisorLayout
from pyoco_runtime.nats_bootstrap import STARTING, find_bootstrap, usual_store
from pyoco_runtime.nats_server import NatsServer, ServerConfig, check_free
from pyoco_runtime.pulling import Pulling
from pyoco_runtime.settings import AuthMode, Isolation, Loaded, NatsHere, Role, Settings
from pyoco_runtime.single_run import SingleRun
from pyoco_runtime.worker_parts import FlowPool, WorkerParts, flow_pool, jetstream_ports, wheel_overlay

T = TypeVar("T")
VERSION = version("pyoco-runtime")
ORPHAN_SEC = 2.0  # the server of a runtime that was killed just now takes a moment to end
DEFAULT_NATS_URL = "nats://127.0.0.1:4222"

KNOWN = Known(
    actors=frozenset(
        {"nats", "link", "probe", "console"}
        | {"http", "run-index", "worker-index", "letter-index", "queue-sampler", "key-cache", "reconciler"}
        | {"runners", "wheel-syncer", "heartbeat", "dlq-publisher", "ticker", "cancel-watcher", "consumer", "run"}
    ),
    supervisors=frozenset({"runtime", "gateway", "worker", "runs"}),
)
"""Every name that supervisor.toml may use."""

Makers = dict[str, Callable[[ActorLayout], Callable[[], Actor]]]


def members(settings: Settings) -> frozenset[str]:
    """The children of the layout that this role runs."""
    gateway = {"gateway", "http", "run-index", "worker-index", "letter-index", "queue-sampler", "reconciler"}
    if settings.http_auth_mode is AuthMode.API_KEY:
        gateway.add("key-cache")
    worker = {"worker", "heartbeat", "dlq-publisher", "ticker", "cancel-watcher", "runs", "run", "consumer"}
    if settings.isolation is Isolation.PROCESS:
        worker.add("runners")
    if settings.wheel_sync_enabled:
        worker.add("wheel-syncer")
    every = {"link", "console"} | ({"nats"} if _has_server(settings) else set())
    match settings.role:
        case Role.GATEWAY:
            return frozenset(every | gateway)
        case Role.WORKER:
            return frozenset(every | worker | ({"probe"} if settings.worker_probe_port is not None else set()))
        case Role.ALL:
            return frozenset(every | gateway | worker)


def _has_server(settings: Settings) -> bool:
    if settings.nats_server is NatsHere.AUTO:
        return settings.role is Role.ALL and settings.nats_url is None
    return True


@frozen
class Tree:
    """A tree that is ready to start: every socket is bound, every setting is checked."""

    spec: SupervisorSpec
    world: World
    desk: Desk
    process: str
    http: Listener | None
    probe: Listener | None
    nats: NatsServer | None
    nats_urls: Callable[[], tuple[str, ...]]
    pool: FlowPool | None
    pulling: Pulling | None
    link: NatsLink

    async def aclose(self) -> None:
        """End the processes that executed flows; for when the tree has ended."""
        if self.pool is not None:
            await self.pool.close()

    def close(self) -> None:
        """Close the sockets; for when the tree has ended."""
        for listener in (self.http, self.probe):
            if listener is not None:
                listener.close()


def plant(
    loaded: Loaded,
    *,
    pool: FlowPool | None = None,
    single: SingleRun | None = None,
    without: frozenset[str] = frozenset(),
) -> Tree:
    """Bind the sockets and wire the actors. Raises UserError; starts nothing.

    `pool` executes the flows if it is given, and those named in `without` stay out, as when somebody embeds a worker.
    With `single` the worker takes that one run and no other.
    """
    settings, present = loaded.settings, members(loaded.settings) - without
    server = _server(loaded) if "nats" in present else None
    urls = _urls(settings, server)
    process = settings.process_name or process_name(settings.role)
    world = World()
    names = resource_names(settings)
    link = NatsLink(urls, f"pyoco-runtime {process}", names)
    desk = Desk(process, settings.role, VERSION, link)
    http = Listener(settings.host, settings.port, option="--port") if "http" in present else None
    probe = _probe_listener(settings) if "probe" in present else None
    host = NatsConsoleHost(link, process, VERSION)
    makers: Makers = {
        "nats": lambda layout: lambda: Nats(_there(server)),
        "link": lambda layout: lambda: Link(link),
        "probe": lambda layout: lambda: Http(create_probe_app(desk), _there(probe), _grace(layout)),
        "console": lambda layout: lambda: Console(desk, host, link, world.feed),
    }
    if http is not None:
        makers |= Gateway(settings, jetstream_gateway_ports(settings, link, names), desk, http).makers()
    worker = pulling = None
    if "worker" in present:
        overlay = wheel_overlay(settings)
        pool = pool or flow_pool(settings, overlay)
        ports = jetstream_ports(settings, link, pool)
        pulling = Pulling(ports.queue, settings.tags)
        worker = WorkerParts(settings, evolve(ports, queue=pulling), settings.worker_id or process, overlay, single)
        makers |= worker.makers()
    spec = supervisor_spec(loaded.layout.root, present, makers, worker)
    return Tree(spec, world, desk, process, http, probe, server, urls, pool, pulling, link)


def outline(layout: SupervisorLayout, present: frozenset[str]) -> SupervisorLayout:
    """The layout as this role runs it."""
    kept = tuple(
        outline(child, present) if isinstance(child, SupervisorLayout) else child
        for child in layout.children
        if child.name in present
    )
    return SupervisorLayout(
        name=layout.name,
        children=kept,
        strategy=layout.strategy,
        intensity=layout.intensity,
        restart=layout.restart,
        backoff=layout.backoff,
        kill_sec=layout.kill_sec,
    )


def process_name(role: Role) -> str:
    """A name for this process that is one NATS token and unique on this NATS."""
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname()) or "host"
    return f"{role}-{host}-{os.getpid()}"


def supervisor_spec(
    layout: SupervisorLayout, present: frozenset[str], makers: Makers, worker: WorkerParts | None
) -> SupervisorSpec:
    """What the core runs, from the layout."""
    pruned = outline(layout, present)
    children: list[ChildSpec] = []
    dynamic: Children | None = None
    for child in pruned.children:
        if isinstance(child, SupervisorLayout):
            children.append(supervisor_spec(child, present, makers, worker))
        elif child.name == "run":
            dynamic = _there(worker).runs_like(child)
        elif child.name == "consumer":
            children += [_actor(child, name, make) for name, make in _there(worker).consumers()]
        else:
            children.append(_actor(child, child.name, makers[child.name](child)))
    return SupervisorSpec(
        pruned.name,
        tuple(children),
        strategy=pruned.strategy,
        intensity=pruned.intensity,
        restart=pruned.restart,
        backoff=pruned.backoff,
        kill_sec=pruned.kill_sec,
        dynamic=dynamic,
    )


def _actor(layout: ActorLayout, name: str, make: Callable[[], Actor]) -> ActorSpec:
    return ActorSpec(
        name,
        make,
        restart=layout.restart,
        backoff=layout.backoff,
        start_timeout_sec=layout.start_timeout_sec,
        shutdown_sec=layout.shutdown_sec,
    )


def _probe_listener(settings: Settings) -> Listener:
    assert settings.worker_probe_port is not None  # it is a member only then
    return Listener(settings.worker_probe_host, settings.worker_probe_port, option="--probe-port")


def _server_config(loaded: Loaded) -> ServerConfig:
    settings = loaded.settings
    bootstrap = find_bootstrap() if settings.nats_server is NatsHere.BOOTSTRAP else None
    config = ServerConfig(
        settings.nats_store_dir,
        settings.nats_listen_host,
        settings.nats_client_port,
        http_port=settings.nats_http_port,
        through=() if bootstrap is None else (str(bootstrap), *STARTING),
    )
    if bootstrap is not None and loaded.sources["nats_store_dir"] == "default":
        return evolve(config, store_dir=usual_store())
    return config


def _server(loaded: Loaded) -> NatsServer:
    config = _server_config(loaded)
    deadline = time.monotonic() + ORPHAN_SEC
    while True:
        try:
            check_free(config)
            return NatsServer(config)
        except (AddressInUse, StoreLocked):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _urls(settings: Settings, server: NatsServer | None) -> Callable[[], tuple[str, ...]]:
    if server is not None:
        return lambda: (server.address,) if server.address else ()
    given = settings.nats_url or (DEFAULT_NATS_URL,)
    return lambda: given


def _grace(layout: ActorLayout) -> float:
    """Most of the shutdown time: what is left is for cancelling the slow ones."""
    return layout.shutdown_sec * 0.8


def resource_names(settings: Settings) -> Names:
    """What we keep in JetStream, as the settings call it."""
    return Names(
        work_subject_prefix=settings.work_subject_prefix,
        dlq_stream=settings.dlq_stream,
        dlq_subject_prefix=settings.dlq_subject_prefix,
        dlq_max_age_sec=settings.dlq_max_age_sec,
        dlq_max_msgs=settings.dlq_max_msgs,
        dlq_max_bytes=settings.dlq_max_bytes,
        runs_bucket=settings.runs_kv_bucket,
        workers_bucket=settings.workers_kv_bucket,
        workers_ttl_sec=settings.workers_kv_ttl_sec,
        auth_bucket=settings.auth_kv_bucket,
        wheels_bucket=settings.wheel_object_store_bucket,
        wheel_history_bucket=settings.wheel_history_kv_bucket,
        wheel_history_ttl_sec=settings.wheel_history_ttl_sec,
        replicas=settings.nats_replicas,
    )


def _there(thing: T | None) -> T:
    assert thing is not None  # members() and plant() agree on who is there
    return thing
