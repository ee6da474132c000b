"""From what became of an attempt to what is done next. No I/O: both clients carry it out."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import httpx
from attrs import frozen

from pyoco_runtime.client.backoff import LONGEST_WISH_SEC, Backoff, wish_of
from pyoco_runtime.client.errors import (
    ClientError,
    ConnectionLost,
    GatewayRefused,
    GatewayUnreachable,
    NoAnswerInTime,
    NotAGateway,
    NotConnected,
)
from pyoco_runtime.client.reading import problem_in
from pyoco_runtime.client.request import Again, Request

T = TypeVar("T")

NOT_DONE = frozenset({429, 503})  # whoever says so has done nothing
UNCLEAR = frozenset({502, 504})  # said by proxies: the gateway may have got it
PASSING = NOT_DONE | UNCLEAR
_LIKE_UNSENT = 429
_LIKE_UNCLEAR = 502
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class Keys(enum.Enum):
    """What is known of the gateway: whether a request with the same Idempotency-Key is the same request."""

    UNKNOWN = "nobody has asked, or it cannot be told"
    HONOURED = "as ours do"
    IGNORED = "as the published one does"


@frozen
class Done(Generic[T]):
    """Here is the result."""

    value: T


@frozen
class Pause:
    """Wait, and try again."""

    sec: float


@frozen
class FindOut:
    """Find out about Idempotency-Keys, and ask for the next step again."""


@frozen
class Fail:
    """It is over."""

    error: ClientError


Step = Done[T] | Pause | FindOut | Fail


class Trial(Generic[T]):
    """One request with all its attempts."""

    def __init__(self, request: Request[T], backoff: Backoff, keys: Keys) -> None:
        self._request = request
        self._backoff = backoff
        self._keys = keys
        self._has_asked = False
        self._failures = 0
        self._may_have_arrived = False

    def answered(self, response: httpx.Response) -> Step[T]:
        """The next step after an answer. Raises NotAGateway if it makes no sense."""
        request, status = self._request, response.status_code
        if status in request.expects:
            return Done(request.read(response))
        if status == 404 and self._may_have_arrived and request.gone_is is not None:
            return Done(request.gone_is)
        self._may_have_arrived |= status in UNCLEAR
        return self._next(refused(response), status, wish_of(response))

    def failed(self, error: httpx.RequestError, address: str) -> Step[T]:
        """The next step when no answer came."""
        if isinstance(error, _UNSENT):
            return self._next(unreachable(error, address), _LIKE_UNSENT)
        self._may_have_arrived = True
        if not isinstance(error, httpx.TransportError):
            return Fail(unreachable(error, address))
        return self._next(unreachable(error, address), _LIKE_UNCLEAR)

    def found_out(self, keys: Keys) -> Pause | Fail:
        """The next step when it is known, as far as it can be, what the gateway makes of keys."""
        self._has_asked = True
        self._keys = keys
        error, status, wish_sec = self._open_question
        step = self._next(error, status, wish_sec)
        assert not isinstance(step, FindOut), "it was found out"
        return step

    def _after_status(self, status: int) -> bool | None:
        """Whether it may be sent again; None if that hangs on the gateway, of which nothing is known."""
        if status not in PASSING:
            return False
        match self._request.again:
            case Again.SAFE:
                return True
            case Again.UNSENT:
                return status == 429
            case Again.KEYED:
                return True if status == 429 else self._with_key(status)

    def _with_key(self, status: int) -> bool | None:
        if self._keys is Keys.UNKNOWN:
            return None if not self._has_asked else status in NOT_DONE
        # the published gateway says 503 also when its job is on the way after all
        return self._keys is Keys.HONOURED

    def _next(self, error: ClientError, status: int, wish_sec: float | None = None) -> Pause | Fail | FindOut:
        may_repeat = self._after_status(status)
        if may_repeat is False or self._failures >= self._backoff.retries or (wish_sec or 0) > LONGEST_WISH_SEC:
            return Fail(error)
        if may_repeat is None:
            self._open_question = error, status, wish_sec
            return FindOut()
        self._failures += 1
        return Pause(max(self._backoff.pause(self._failures), wish_sec or 0))


def honours_keys(document: Mapping[str, Any]) -> Keys:
    """What a gateway's /openapi.json says about the Idempotency-Key of POST /runs."""
    try:
        parameters = document["paths"]["/runs"]["post"].get("parameters", [])
        names = {str(each.get("name")).lower() for each in parameters if each.get("in") == "header"}
    except (KeyError, TypeError, AttributeError):
        return Keys.UNKNOWN
    return Keys.HONOURED if "idempotency-key" in names else Keys.IGNORED


def refused(response: httpx.Response) -> GatewayRefused:
    """The error that this answer is."""
    return GatewayRefused(response, *problem_in(response))


def unreachable(error: httpx.RequestError, address: str) -> GatewayUnreachable:
    """The error of ours for an error of httpx."""
    request = error._request
    why = str(error) or type(error).__name__
    if isinstance(error, _UNSENT):
        return NotConnected(f"no gateway can be reached at {address}: {why}", request=request)
    if isinstance(error, httpx.TimeoutException):
        return NoAnswerInTime(f"the gateway at {address} does not answer in time: {why}", request=request)
    if isinstance(error, httpx.TransportError):
        return ConnectionLost(f"the connection to {address} was lost: {why}", request=request)
    return NotAGateway(f"what {address} answers cannot be read: {why}", request=request)
