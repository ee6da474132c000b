"""A request and its answer as plain values, so that a route does not care who serves it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from attrs import frozen

from pyoco_runtime.errors import InvalidRequest
from pyoco_runtime.gateway.query import Query
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.roll_call import Behind
from pyoco_runtime.model.wire import dump

JSON = "application/json"


@frozen(kw_only=True)
class Ask:
    """What a client wants to know or have done."""

    query: Query
    caller: Principal | None = None
    body: bytes = b""
    idempotency_key: str | None = None

    def json(self) -> Any:
        """The body as JSON; None if there is none. Raises InvalidRequest."""
        if not self.body.strip():
            return None
        try:
            return json.loads(self.body, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"the body is not JSON: {error}") from error


@frozen(kw_only=True)
class Reply:
    """What it gets."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = {}


def query_of(raw: bytes) -> Query:
    """Read a query string; one that cannot be read is refused by the first look into it, with the route's own id."""
    try:
        return Query(parse_qs(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100, errors="strict"))
    except ValueError as error:
        return Query({}, broken=f"the query string cannot be read: {error}")


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON answer."""
    return Reply(body=dump(value), status=status, headers=headers or {})


def behind_headers(behind: Behind | None) -> dict[str, str]:
    """What is said along with an answer from an index that catches up; the reason may hold what no header can."""
    if behind is None:
        return {}
    return {"x-pyoco-behind": "".join(each if " " <= each <= "~" else "?" for each in behind.why)}


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
