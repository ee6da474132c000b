"""How the API says no: statuses and ids come from the one table of the errors."""

from __future__ import annotations

from attrs import frozen

from pyoco_runtime.errors import (
    AdminOnly,
    ApiKeyRequired,
    BodyTooLarge,
    Busy,
    InvalidApiKey,
    InvalidQuery,
    InvalidRequest,
    InvalidWheel,
    InvalidWorkersRequest,
    KeyReused,
    LetterNotFound,
    NatsUnavailable,
    NoSuchActor,
    NotReplayable,
    PyocoError,
    RunNotFound,
    WheelConflict,
    WheelNotFound,
    WheelTooLarge,
    WorkerNotFound,
    WorkflowTooLarge,
)
from pyoco_runtime.gateway.problems import detail_of, status_of


@frozen
class Refusal:
    """One status with one id."""

    status: int
    number: int
    when: str
    detail: object
    """For example."""

    @property
    def err_id(self) -> str:
        """The id in the answer."""
        return f"ERR-PYOCO-{self.number:04d}"


def _refusal(error: PyocoError, when: str, status: int | None = None) -> Refusal:
    assert error.number is not None
    return Refusal(status or status_of(error), error.number, when, detail_of(error))


NO_KEY = _refusal(ApiKeyRequired(), "The request carries no API key.")
WRONG_KEY = _refusal(InvalidApiKey(), "The API key is malformed, unknown, revoked or wrong.")
NO_ADMIN = _refusal(
    AdminOnly("make one with: pyoco-server-admin api-key create --tenant <tenant> --admin"),
    "The API key is right, but it is no admin's.",
)
BUSY = _refusal(
    Busy("many different secrets are tried for this API key; ask again in a moment"),
    "Many wrong secrets were tried for this API key at the same time. Ask again in a moment.",
)
NO_NATS = _refusal(NatsUnavailable("ConnectionRefusedError"), "NATS is away. Ask again later.")
BAD_REQUEST = _refusal(
    InvalidRequest("flow_name: is missing; name the flow to run"),
    "Something in the request is wrong; `detail` names it.",
)
BAD_QUERY = _refusal(
    InvalidQuery("limit: must be a whole number from 1 to 200, not '0'"), "A parameter is wrong; `detail` names it."
)
BROKEN_QUERY = _refusal(
    InvalidRequest("the query string cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid"),
    "The query string cannot be read, or `timeout_sec` or `since` is wrong.",
)
BAD_WORKERS = _refusal(
    InvalidWorkersRequest("limit: must be a whole number from 1 to 500, not '0'"), "Something in the request is wrong."
)
BAD_WHEEL = _refusal(
    InvalidWheel("the file is missing: send the wheel in the field `wheel`"), "Something in the request is wrong."
)
BODY_TOO_LARGE = _refusal(BodyTooLarge("a body has at most 16,777,216 bytes"), "The body has more than 16 MiB.")
FLOW_TOO_LARGE = _refusal(
    WorkflowTooLarge("a flow.yaml has at most 262,144 bytes"),
    "The file has more bytes than `PYOCO_WORKFLOW_YAML_MAX_BYTES`.",
)
WHEEL_TOO_LARGE = _refusal(
    WheelTooLarge("wheel too large: at most 536870912 bytes are accepted (PYOCO_WHEEL_MAX_BYTES)"),
    "The wheel has more bytes than `PYOCO_WHEEL_MAX_BYTES`.",
    413,
)
WHEEL_STALLED = Refusal(408, 2, "Nothing of the upload came for a minute.", "request timeout: POST /wheels")
KEY_REUSED = _refusal(
    KeyReused("'nightly-2026-11-18' came with another request before; use a new key for a new request"),
    "The `Idempotency-Key` came with another request within the last 24 hours.",
)
NO_PATH = Refusal(404, 2, "The path is none of this API's.", "not found: GET /runs/a/b")
NO_RUN = _refusal(RunNotFound(), "There is no such run, or it belongs to another tenant.")
NO_WORKER = _refusal(WorkerNotFound(), "There is no such worker.")
NO_WHEEL = _refusal(
    WheelNotFound("wheel not found: 'demo-1.0-py3-none-any.whl'; GET /wheels lists those that there are"),
    "There is no such wheel.",
)
OLD_WHEEL = _refusal(
    WheelConflict("demo-1.0-py3-none-any.whl: the newest demo in the store is 1.0, this one is 1.0"),
    "The store has this version of the package or a newer one.",
)
NO_LETTER = _refusal(LetterNotFound(), "There is no such dead letter, or it belongs to another tenant.")
NO_REPLAY = _refusal(
    NotReplayable("it was about a message that was no job"), "No run can be made from this letter; `detail` says why."
)
NO_ACTOR = _refusal(
    NoSuchActor("gw-1 has no actor 'htp'; did you mean 'http'? (it has: runtime, runtime/link, ...)"),
    "No process, or no actor, has that name.",
)
