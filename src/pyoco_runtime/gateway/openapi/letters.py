"""The operations on dead letters."""

from __future__ import annotations

from pyoco_runtime.gateway.openapi import refusal
from pyoco_runtime.gateway.openapi.components import TEXT
from pyoco_runtime.gateway.openapi.examples import EVENTS_OF_LETTERS, LETTER, RUN_ID
from pyoco_runtime.gateway.openapi.operation import (
    EVENTS,
    TIMEOUT,
    Access,
    Answer,
    Group,
    Link,
    Operation,
    in_path,
    query,
    whole,
)
from pyoco_runtime.gateway.openapi.runs import BEHIND, OF_THE_RUN
from pyoco_runtime.gateway.openapi.shape import choice, ref
from pyoco_runtime.model.dead_letter import Reason

_SEQ = in_path("seq", {"type": "integer", "minimum": 0}, "The sequence number of the letter.", 17)

_LIST = Operation(
    name="listLetters",
    method="get",
    path="/dlq",
    title="List dead letters",
    text="The newest first. Under API keys those of the key's own tenant.",
    parameters=(
        query("reason", choice(Reason), "Only letters with this reason.", "execution_error"),
        query("tag", TEXT, "Only letters about jobs with this tag."),
        query("flow", TEXT, "Only letters about this flow."),
        query("run_id", TEXT, "Only letters about this run."),
        query("limit", whole(1, 200, 50), "How many at most."),
        query("before", whole(1, 2**62), "The `next_before` of the page before."),
    ),
    answer=Answer(
        text="A page.",
        shape=ref("LetterPage"),
        example={"items": [LETTER], "next_before": None},
        headers=BEHIND,
        links=(Link("seq", "/items/0/seq", ("readLetter", "replayLetter", "deleteLetter")),),
    ),
    refusals=(refusal.BAD_QUERY, refusal.BROKEN_QUERY, refusal.NO_NATS),
    access=Access.ADMIN,
)
_READ = Operation(
    name="readLetter",
    method="get",
    path="/dlq/{seq}",
    title="Read a dead letter",
    parameters=(_SEQ,),
    answer=Answer(text="The letter.", shape=ref("Letter"), example=LETTER),
    refusals=(refusal.NO_LETTER, refusal.NO_PATH, refusal.NO_NATS),
    access=Access.ADMIN,
)
_REPLAY = Operation(
    name="replayLetter",
    method="post",
    path="/dlq/{seq}/replay",
    title="Replay a dead letter",
    text="Its job goes back on the queue as a new run, which names its origin. The letter stays.",
    parameters=(_SEQ,),
    answer=Answer(
        text="The new run is on its way.",
        shape=ref("Replayed"),
        example={"run_id": RUN_ID, "status": "PENDING", "replay_of": 17},
        links=OF_THE_RUN,
    ),
    refusals=(refusal.NO_LETTER, refusal.NO_PATH, refusal.NO_REPLAY, refusal.NO_NATS),
    access=Access.ADMIN,
)
_DROP = Operation(
    name="deleteLetter",
    method="delete",
    path="/dlq/{seq}",
    title="Delete a dead letter",
    parameters=(_SEQ,),
    answer=Answer(text="It is gone.", shape=ref("LetterDeleted"), example={"seq": 17, "deleted": True}),
    refusals=(refusal.NO_LETTER, refusal.NO_PATH, refusal.NO_NATS),
    access=Access.ADMIN,
)

_WATCH = Operation(
    name="watchLetters",
    method="get",
    path="/dlq/watch",
    title="Watch the dead letters",
    text="Server-sent events: `change` at once, and when letters have come or gone, with how many there are for each "
    "reason; `heartbeat` after 5 s of silence, `end` when the gateway stops. List the letters again after a change.",
    parameters=(TIMEOUT,),
    answer=Answer(text="Events, one after the other.", shape=ref("Event"), example=EVENTS_OF_LETTERS, media=EVENTS),
    refusals=(refusal.BROKEN_QUERY, refusal.NO_NATS),
    access=Access.ADMIN,
)

LETTERS = Group(
    "Dead letters",
    "A dead letter tells of a job that did not end well. The run's snapshot is the truth; letters are best effort. "
    "Under API keys they are for admins.",
    (_LIST, _WATCH, _READ, _REPLAY, _DROP),
)
