"""Runs in the peer's interpreter: calls methods of its PyocoHttpClient as stdin says, and prints what they give."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import httpx
from pyoco_server.http_client import PyocoHttpClient  # type: ignore[import-not-found]  # not in our environment

TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")


def main() -> None:
    """Read one order, print one list."""
    order = json.load(sys.stdin)
    client = PyocoHttpClient(order["url"], api_key=order["api_key"])
    try:
        answers = [answer(client, *each) for each in order["calls"]]
    finally:
        client.close()
    json.dump(answers, sys.stdout)


def answer(client: Any, method: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What one call gives."""
    if method == "methods":
        return [name for name in dir(client) if not name.startswith("_")]
    try:
        found = getattr(client, method)(*args, **{name: plain(value) for name, value in kwargs.items()})
        return up_to_the_end(found) if method == "watch_run" else found
    except httpx.HTTPStatusError as error:
        if error.response.status_code == 503 and "NoKeysError" in error.response.text:  # see house.steady
            return answer(client, method, args, kwargs)
        return {"error": "HTTPStatusError", "status": error.response.status_code}
    except (httpx.HTTPError, TimeoutError) as error:
        return {"error": type(error).__name__, "status": None}


def plain(value: Any) -> Any:
    """Bytes travel as text."""
    if isinstance(value, str) and value.startswith("base64:"):
        return base64.b64decode(value.removeprefix("base64:"))
    return value


def up_to_the_end(events: Any) -> list[Any]:
    """All events until the run has ended or the stream has."""
    found = []
    for event in events:
        found.append(event)
        if (event["data"].get("snapshot") or {}).get("status") in TERMINAL:
            break
    events.close()
    return found


if __name__ == "__main__":
    main()
