"""The HTTP client, sync and async."""

from __future__ import annotations

from pyoco_runtime.client.async_client import AsyncPyocoHttpClient
from pyoco_runtime.client.errors import (
    ClientError,
    ConnectionLost,
    GatewayRefused,
    GatewayUnreachable,
    InvalidArgument,
    NoAnswerInTime,
    NotAGateway,
    NotConnected,
    WaitTimeout,
)
from pyoco_runtime.client.events import (
    Heartbeat,
    Interrupted,
    ListDropped,
    ListEvent,
    ListReady,
    RunChanged,
    RunEvent,
    RunGone,
    RunListed,
)
from pyoco_runtime.client.sync_client import PyocoHttpClient

__all__ = [
    "AsyncPyocoHttpClient",
    "ClientError",
    "ConnectionLost",
    "GatewayRefused",
    "GatewayUnreachable",
    "Heartbeat",
    "Interrupted",
    "InvalidArgument",
    "ListDropped",
    "ListEvent",
    "ListReady",
    "NoAnswerInTime",
    "NotAGateway",
    "NotConnected",
    "PyocoHttpClient",
    "RunChanged",
    "RunEvent",
    "RunGone",
    "RunListed",
    "WaitTimeout",
]
