"""The operations on wheels."""

from __future__ import annotations

from pyoco_runtime.gateway.openapi import refusal
from pyoco_runtime.gateway.openapi.components import FLAG, TEXT
from pyoco_runtime.gateway.openapi.examples import WHEEL, WHEEL_EVENT, WHEEL_NAME
from pyoco_runtime.gateway.openapi.operation import FORM, Answer, Body, Group, Link, Operation, in_path, query, whole
from pyoco_runtime.gateway.openapi.shape import Shape, choice, object_of, ref
from pyoco_runtime.model.wheel_event import WheelAction

WHEEL_FILE: Shape = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,250}\.whl$"}
_NAME = in_path("name", {"type": "string", "minLength": 1}, "The file name.", WHEEL_NAME)

_LIST = Operation(
    name="listWheels",
    method="get",
    path="/wheels",
    title="List wheels",
    text="By name.",
    answer=Answer(text="The wheels.", shape={"type": "array", "items": ref("Wheel")}, example=[WHEEL]),
    refusals=(refusal.NO_NATS,),
)
_UPLOAD = Operation(
    name="uploadWheel",
    method="post",
    path="/wheels",
    title="Upload a wheel",
    text="Of a package only newer versions than those in the store are accepted.",
    body=Body(
        media=FORM,
        shape=object_of(
            {
                "wheel": {"type": "string", "format": "binary", "description": "The wheel, as a file `*.whl`."},
                "replace": {**FLAG, "default": True, "description": "Written into the history, and nothing more."},
                "tags": {**TEXT, "description": "Which workers it is for, with commas between; none is for all."},
            },
            optional=("replace", "tags"),
        ),
        example={"wheel": "(the bytes)", "tags": "default,gpu"},
    ),
    answer=Answer(
        text="It is in the store.",
        shape=ref("Wheel"),
        example=WHEEL,
        links=(Link("name", "/name", ("downloadWheel", "deleteWheel")),),
    ),
    refusals=(
        refusal.BAD_WHEEL,
        refusal.WHEEL_TOO_LARGE,
        refusal.OLD_WHEEL,
        refusal.WHEEL_STALLED,
        refusal.NO_NATS,
    ),
)
_HISTORY = Operation(
    name="listWheelEvents",
    method="get",
    path="/wheels/history",
    title="See who uploaded or deleted what",
    text="The newest first.",
    parameters=(
        query("limit", whole(1, 500, 100), "How many at most.", 20),
        query("wheel_name", WHEEL_FILE, "Only events of this wheel, by its file name."),
        query("action", choice(WheelAction), "Only events of this kind."),
    ),
    answer=Answer(text="The events.", shape={"type": "array", "items": ref("WheelEvent")}, example=[WHEEL_EVENT]),
    refusals=(refusal.BAD_WHEEL, refusal.NO_NATS),
)
_DOWNLOAD = Operation(
    name="downloadWheel",
    method="get",
    path="/wheels/{name}",
    title="Download a wheel",
    parameters=(_NAME,),
    answer=Answer(
        text="The bytes, as an attachment.",
        shape={"type": "string", "format": "binary"},
        media="application/octet-stream",
        headers={"Content-Disposition": "The file name."},
    ),
    refusals=(refusal.NO_WHEEL, refusal.NO_PATH, refusal.NO_NATS),
)
_DELETE = Operation(
    name="deleteWheel",
    method="delete",
    path="/wheels/{name}",
    title="Delete a wheel",
    text="Workers with wheel sync drop it too.",
    parameters=(_NAME,),
    answer=Answer(text="It is gone.", shape=ref("WheelDeleted"), example={"name": WHEEL_NAME, "deleted": True}),
    refusals=(refusal.NO_WHEEL, refusal.NO_PATH, refusal.NO_NATS),
)

WHEELS = Group(
    "Wheels",
    "Wheels with flows and what they need, for the workers that have wheel sync on. They belong to no tenant.",
    (_LIST, _UPLOAD, _HISTORY, _DOWNLOAD, _DELETE),
)
