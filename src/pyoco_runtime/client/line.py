"""What both clients hold: the address, the headers, and the numbers that every request shares."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import httpx
from attrs import frozen

from pyoco_runtime.client.backoff import Backoff
from pyoco_runtime.client.errors import InvalidArgument, NotAGateway
from pyoco_runtime.client.request import Request

CONNECT_SEC = 5.0  # a machine that says nothing for so long is away
UPLOAD_SILENCE_SEC = 300.0  # a gateway stores a whole file before it answers
# streams stay open: they must not use up the connections of other requests
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


@frozen
class Line:
    """How a gateway is reached."""

    address: httpx.URL
    headers: dict[str, str]
    timeout_sec: float
    backoff: Backoff

    @property
    def name(self) -> str:
        """The address for people, without a password."""
        return str(self.address.copy_with(username=None, password=None)).rstrip("/")

    def timeout(self, request: Request[Any]) -> httpx.Timeout:
        """How long each step of this request may take."""
        limit = self.timeout_sec
        read = request.silence_sec or (max(limit, UPLOAD_SILENCE_SEC) if request.upload else limit)
        return httpx.Timeout(limit, connect=min(limit, CONNECT_SEC), read=read)

    def whole_sec(self, request: Request[Any]) -> float | None:
        """How long an attempt may take altogether; a file takes as long as it takes while it moves on."""
        return None if request.upload else self.timeout_sec

    def headers_of(self, request: Request[Any]) -> dict[str, str]:
        """What is sent along. Raises OSError if the file to send cannot be read."""
        return {**request.headers, **(request.upload.headers if request.upload else {})}


def line(base_url: str, api_key: str | None, api_key_header: str, timeout_sec: float, retries: int) -> Line:
    """The line to this gateway. Raises InvalidArgument."""
    headers = {"user-agent": f"pyoco-runtime/{version('pyoco-runtime')}"}
    if api_key:
        if not api_key.isascii() or not api_key.isprintable():
            raise InvalidArgument("api_key: has characters that no key has; it looks like pyoco_<id>.<secret>")
        headers[api_key_header] = api_key
    if timeout_sec <= 0:
        raise InvalidArgument(f"timeout_sec: must be more than 0, not {timeout_sec:g}")
    return Line(_address(base_url), headers, timeout_sec, Backoff(max(0, retries)))


def check_stream(response: httpx.Response) -> None:
    """Raises NotAGateway if this is no stream of events."""
    found = response.headers.get("content-type", "")
    if not found.startswith("text/event-stream"):
        raise NotAGateway(f"{response.request.url} answers with {found or 'nothing'!r} and not with events")


def complete(response: httpx.Response, body: bytes) -> httpx.Response:
    """The answer with its body, which was read and decoded already."""
    spared = ("content-encoding", "transfer-encoding", "content-length")
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in spared]
    return httpx.Response(response.status_code, headers=headers, content=body, request=response.request)


def _address(base_url: str) -> httpx.URL:
    try:
        address = httpx.URL(base_url.strip().rstrip("/"))
    except httpx.InvalidURL as error:
        raise InvalidArgument(f"{base_url!r} is no address: {error}; it looks like http://127.0.0.1:8000") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidArgument(f"{base_url!r} is no address of a gateway; it looks like http://127.0.0.1:8000")
    return address
