"""Hypercorn's settings for one life of the http actor."""

from __future__ import annotations

import logging
import sys

from hypercorn.config import Config

KEEP_ALIVE_SEC = 75.0  # longer than clients keep a silent connection (httpx: 5), so that they close it and not we
HEAD_SEC = 20.0  # from the first byte of a request to the end of its headers


class LifeConfig(Config):
    """What clients may do; from the moment that the life ends, every answer says that the connection closes."""

    errorlog = logging.getLogger("pyoco_runtime.http")
    accesslog = None
    include_server_header = False
    keep_alive_max_requests = sys.maxsize  # its default would close busy connections under the client
    is_ending = False

    def __init__(self, *, keep_alive_sec: float = KEEP_ALIVE_SEC, head_sec: float = HEAD_SEC) -> None:
        super().__init__()
        self.keep_alive_timeout = keep_alive_sec
        self.head_sec = head_sec

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """What every answer has."""
        headers = super().response_headers(protocol)
        if self.is_ending and protocol == "h11":
            headers.append((b"connection", b"close"))  # else a client may use it again just before it is closed
        return headers
