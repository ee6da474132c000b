"""The operations on the house itself: health, figures, actors, and this description."""

from __future__ import annotations

from pyoco_runtime.gateway.openapi import refusal
from pyoco_runtime.gateway.openapi.components import TEXT
from pyoco_runtime.gateway.openapi.examples import (
    EVENTS_OF_STATS,
    EVENTS_OF_THE_HOUSE,
    METRICS,
    NOT_READY,
    PROCESS,
    STATS,
)
from pyoco_runtime.gateway.openapi.operation import EVENTS, TIMEOUT, Access, Answer, Group, Link, Operation, in_path
from pyoco_runtime.gateway.openapi.refusal import Refusal
from pyoco_runtime.gateway.openapi.runs import BEHIND
from pyoco_runtime.gateway.openapi.shape import ref

_HEALTH = Operation(
    name="health",
    method="get",
    path="/health",
    title="Ask whether the process lives",
    text="Also while NATS is away.",
    answer=Answer(text="It lives.", shape=ref("Health"), example={"status": "ok"}),
    access=Access.OPEN,
)
_READY = Operation(
    name="ready",
    method="get",
    path="/ready",
    title="Ask whether it can serve",
    text="It can when NATS is connected and every essential actor runs.",
    answer=Answer(text="It can.", shape=ref("Ready"), example={"status": "ready"}),
    refusals=(Refusal(503, 3, "It cannot; `detail.missing` lists what is missing.", NOT_READY),),
    access=Access.OPEN,
)
_METRICS = Operation(
    name="metrics",
    method="get",
    path="/metrics",
    title="Read the figures, for Prometheus",
    text="Under API keys everybody gets the figures of his tenant; those of the house are for admins.",
    answer=Answer(text="The figures.", shape=TEXT, example=METRICS, media="text/plain"),
    refusals=(refusal.NO_NATS,),
)
_ACTORS = Operation(
    name="listActors",
    method="get",
    path="/actors",
    title="See the supervision trees of all processes",
    answer=Answer(
        text="The processes.",
        shape={"type": "array", "items": ref("Process")},
        example=[PROCESS],
        links=(Link("process", "/0/process", ("restartActor",)),),
    ),
    refusals=(refusal.NO_NATS,),
    access=Access.ADMIN,
)
_WATCH_ACTORS = Operation(
    name="watchActors",
    method="get",
    path="/actors/watch",
    title="Watch the supervision trees",
    text="Server-sent events: `actors` with all trees at once, `process` with one when it has changed, as by a crash, "
    "within a second, `gone` when a process does not answer any more, `heartbeat` after 5 s of silence, `end` when "
    "NATS is lost or the gateway stops.",
    parameters=(TIMEOUT,),
    answer=Answer(text="Events, one after the other.", shape=ref("Event"), example=EVENTS_OF_THE_HOUSE, media=EVENTS),
    refusals=(refusal.BROKEN_QUERY, refusal.NO_NATS),
    access=Access.ADMIN,
)
_STATS = Operation(
    name="stats",
    method="get",
    path="/stats",
    title="Read the last hour",
    text="In buckets of a minute, from memory. Runs that ended before this gateway started count too; the queue is "
    "known since then. Under API keys everybody gets the runs of his tenant; the queue is for admins.",
    answer=Answer(text="The last hour.", shape=ref("Stats"), example=STATS, headers=BEHIND),
    refusals=(refusal.NO_NATS,),
)
_WATCH_STATS = Operation(
    name="watchStats",
    method="get",
    path="/stats/watch",
    title="Watch the last hour",
    text="Server-sent events: `stats` at once and every 15 s, `counts` when the number of stored runs of a status has "
    "changed, once a second at most, `heartbeat` after 5 s of silence, `end` when the gateway stops.",
    parameters=(TIMEOUT,),
    answer=Answer(text="Events, one after the other.", shape=ref("Event"), example=EVENTS_OF_STATS, media=EVENTS),
    refusals=(refusal.BROKEN_QUERY, refusal.NO_NATS),
)
_RESTART = Operation(
    name="restartActor",
    method="post",
    path="/actors/{process}/{actor}/restart",
    title="Restart one actor",
    parameters=(
        in_path("process", {"type": "string", "minLength": 1}, "The name of the process.", "gw-1"),
        in_path("actor", {"type": "string", "minLength": 1}, "Its name, or its path with the slashes.", "run-index"),
    ),
    answer=Answer(
        text="It is being restarted.",
        shape=ref("Restarted"),
        example={"process": "gw-1", "actor": "runtime/gateway/run-index"},
    ),
    refusals=(refusal.NO_ACTOR, refusal.NO_PATH, refusal.NO_NATS),
    access=Access.ADMIN,
)
_OPENAPI = Operation(
    name="openapi",
    method="get",
    path="/openapi.json",
    title="Read this description, for programs",
    answer=Answer(text="An OpenAPI 3.1 document.", shape={"type": "object"}),
)
_DOCS = Operation(
    name="docs",
    method="get",
    path="/docs",
    title="Read this description, for people",
    answer=Answer(text="A page without scripts.", shape=TEXT, media="text/html"),
)

HOUSE = Group(
    "The house",
    "The gateway itself and the processes around it.",
    (_HEALTH, _READY, _METRICS, _STATS, _WATCH_STATS, _ACTORS, _WATCH_ACTORS, _RESTART, _OPENAPI, _DOCS),
)
