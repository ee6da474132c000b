"""What a client can fail with. Each is also the httpx error that users of the published client catch."""

from __future__ import annotations

import httpx

from pyoco_runtime.errors import PyocoError


class ClientError(PyocoError):
    """The root of what the client raises."""


class InvalidArgument(ClientError, ValueError):
    """Something that cannot be asked for; says what would be right."""

    number = 2


class WaitTimeout(ClientError, TimeoutError):
    """What was waited for did not happen in time; it may still happen."""


class GatewayUnreachable(ClientError, httpx.TransportError):
    """No answer came; names the address."""

    number = 1


class NotConnected(GatewayUnreachable, httpx.ConnectError):
    """Nobody listens there, or nobody can get there: nothing was sent."""


class ConnectionLost(GatewayUnreachable, httpx.NetworkError):
    """The connection broke before the answer was complete: what was asked for may have happened."""


class NoAnswerInTime(GatewayUnreachable, httpx.TimeoutException):
    """The time was up before the answer was complete: what was asked for may have happened."""


class NotAGateway(GatewayUnreachable):
    """Something answers there, but not as a gateway does."""


class GatewayRefused(ClientError, httpx.HTTPStatusError):
    """The gateway answered with an error."""

    def __init__(self, response: httpx.Response, detail: object, err_id: str | None, msg_id: str | None) -> None:
        said = detail if isinstance(detail, str) else repr(detail)
        text = f"{response.request.method} {response.request.url.path}: {response.status_code} {said}"
        httpx.HTTPStatusError.__init__(self, text, request=response.request, response=response)
        self.status = response.status_code
        self.detail = detail
        self._err_id = err_id
        self._msg_id = msg_id

    @property
    def err_id(self) -> str | None:
        """The id that the gateway gave; the published gateway gives none."""
        return self._err_id

    @property
    def msg_id(self) -> str | None:
        """The id of the text in the message catalogue."""
        return self._msg_id
