"""The requests that both gateways get: every route, with what is right and with what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from attrs import field, frozen

from tests.compat.house import GREETING, steady


@frozen
class Case:
    """One request. What is in braces in its path is filled in from the runs that were made before."""

    method: str
    path: str
    kwargs: Mapping[str, Any] = field(factory=dict)
    differs: str | None = None
    """The row of docs/reference/compatibility.md that says why the answers differ."""

    @property
    def name(self) -> str:
        """Short, for the test's id."""
        body = {key: value for key, value in self.kwargs.items() if key != "headers"}
        return f"{self.method} {self.path} {body or ''}".replace("\n", " ").strip()[:120]

    def ask(self, gate: httpx.Client, made: Mapping[str, str]) -> httpx.Response:
        """Send it."""
        kwargs = dict(self.kwargs)
        if "params" in kwargs:
            filled = {key: value.format_map(made) for key, value in kwargs["params"].items() if isinstance(value, str)}
            kwargs["params"] = {**kwargs["params"], **filled}
        return steady(lambda: gate.request(self.method, self.path.format_map(made), **kwargs))


def case(method: str, path: str, differs: str | None = None, **kwargs: Any) -> Case:
    """Write a case in a line."""
    return Case(method, path, kwargs, differs)


def yaml_case(text: str | bytes, differs: str | None = None, **form: str) -> Case:
    """POST /runs/yaml."""
    data = text.encode() if isinstance(text, str) else text
    files = {"workflow": ("flow.yaml", data, "application/x-yaml")}
    return case("POST", "/runs/yaml", differs, files=files, data={"flow_name": "main", "tag": "nobody", **form})


def wheel_case(name: str, data: bytes = b"", differs: str | None = None, **form: str) -> Case:
    """POST /wheels."""
    return case("POST", "/wheels", differs, files={"wheel": (name, data, "application/octet-stream")}, data=form)


RUN = {"flow_name": "hello", "tag": "nobody"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"
DETAIL = "validation-detail"
WORDS = "detail-words"
SMALL = "tasks: {a: {callable: 'string:capwords'}}\n"

READS = [
    case("GET", "/health"),
    case("GET", "/runs/{done}"),
    case("GET", "/runs/{done}", params={"include": "records"}),
    case("GET", "/runs/{done}", params={"include": "task_records"}),
    case("GET", "/runs/{done}", params={"include": ["records", "full"]}),
    case("GET", "/runs/{done}", params={"include": "all"}),
    case("GET", "/runs/{done}", params={"include": "nonsense"}),
    case("GET", "/runs/{failed}", params={"include": "records"}),
    case("GET", "/runs/{unheard}"),
    case("GET", "/runs/{unheard}", params={"include": "records"}),
    case("GET", "/runs/{cancelled}"),
    case("GET", "/runs/{yaml}"),
    case("GET", "/runs/{waiting}"),
    case("GET", "/runs/{their_done}"),
    case("GET", "/runs/{their_done}", params={"include": "records"}),
    case("GET", "/runs/{their_failed}", params={"include": "full"}),
    case("GET", "/runs/{their_cancelled}"),
    case("GET", "/runs/{done}/tasks"),
    case("GET", "/runs/{failed}/tasks"),
    case("GET", "/runs/{waiting}/tasks"),
    case("GET", "/runs/{their_done}/tasks"),
    case("POST", "/runs/{done}/cancel"),
    case("POST", "/runs/{their_done}/cancel"),
    case("GET", f"/runs/{UNKNOWN}"),
    case("GET", "/runs/no-such-run"),
    case("GET", f"/runs/{UNKNOWN}/tasks"),
    case("GET", f"/runs/{UNKNOWN}/watch"),
    case("POST", f"/runs/{UNKNOWN}/cancel"),
    case("GET", "/runs/{done}/watch", params={"timeout_sec": 0}, differs=DETAIL),
    case("GET", "/runs/{done}/watch", params={"timeout_sec": 601}, differs=DETAIL),
    case("GET", "/runs/{done}/watch", params={"since": "x"}, differs=DETAIL),
    case("GET", "/runs/{done}/watch", params={"timeout_sec": 1}),
    case("GET", "/runs/{done}/watch", params={"timeout_sec": 1, "include": "records"}),
    case("GET", "/runs/{done}/watch", params={"timeout_sec": 1, "since": 4e9}),
    case("GET", "/runs"),
    case("GET", "/runs", params={"limit": 2}),
    case("GET", "/runs", params={"status": "COMPLETED"}),
    case("GET", "/runs", params={"flow": "hello"}),
    case("GET", "/runs", params={"tag": "theirs"}),
    case("GET", "/runs", params={"tag": "nowhere"}),
    case("GET", "/runs", params={"status": "COMPLETED", "flow": "hello", "tag": "ours"}),
    case("GET", "/runs", params={"include": "full"}),
    case("GET", "/runs", params={"include": "all"}),
    case("GET", "/runs", params={"include": "records"}),
    case("GET", "/runs", params={"updated_after": 0}),
    case("GET", "/runs", params={"updated_after": 0, "limit": 2}),
    case("GET", "/runs", params={"updated_after": 4e9}),
    case("GET", "/runs", params={"cursor": "{cursor}", "limit": 2}),
    case("GET", "/runs", params={"cursor": "{our_cursor}", "limit": 2}),
    case("GET", "/runs", params={"workflow_yaml_sha256": "{sha256}"}),
    case("GET", "/runs", params={"workflow_yaml_sha256": "0" * 64}),
    case("GET", "/runs", params={"updated_after": 0, "tag": "nowhere"}),
    case("GET", "/runs", params={"status": "completed"}, differs="status-case"),
    case("GET", "/runs", params={"status": "NONSENSE"}, differs="unknown-status"),
    case("GET", "/runs", params={"status": ""}),
    case("GET", "/runs", params={"cursor": ""}, differs="empty-parameter"),
    case("GET", "/runs", params={"limit": 0}, differs=DETAIL),
    case("GET", "/runs", params={"limit": 201}, differs=DETAIL),
    case("GET", "/runs", params={"limit": "x"}, differs=DETAIL),
    case("GET", "/runs", params={"limit": ""}, differs="empty-parameter"),
    case("GET", "/runs", params={"updated_after": "x"}, differs=DETAIL),
    case("GET", "/runs", params={"cursor": "not-a-cursor"}),
    case("GET", "/workers"),
    case("GET", "/workers", params={"scope": "all"}),
    case("GET", "/workers", params={"scope": "ALL"}),
    case("GET", "/workers", params={"state": "IDLE"}),
    case("GET", "/workers", params={"state": "idle"}),
    case("GET", "/workers", params={"state": "STOPPED_GRACEFUL", "scope": "all"}),
    case("GET", "/workers", params={"include_hidden": "true"}),
    case("GET", "/workers", params={"include_hidden": "1", "limit": 500}),
    case("GET", "/workers", params={"scope": "some"}),
    case("GET", "/workers", params={"state": "TIRED"}),
    case("GET", "/workers", params={"limit": 0}, differs=DETAIL),
    case("GET", "/workers", params={"limit": 501}, differs=DETAIL),
    case("GET", "/workers", params={"include_hidden": "perhaps"}, differs=DETAIL),
    case("PATCH", "/workers/nobody", json={"hidden": True}),
    case("PATCH", "/workers/our-worker", json={}, differs=DETAIL),
    case("PATCH", "/workers/our-worker", json={"hidden": [1]}, differs=DETAIL),
    case("PATCH", "/workers/our-worker", json={"hidden": "no"}, differs="strict-hidden"),
    case("PATCH", "/workers/our-worker", json={"hidden": 1}, differs="strict-hidden"),
    case("PATCH", "/workers/our-worker", json={"hidden": False}),
    case("PATCH", "/workers/their-worker", json={"hidden": False, "more": 1}),
    case("GET", "/metrics"),
    case("GET", "/wheels"),
    case("GET", "/wheels/{wheel}"),
    case("GET", "/wheels/no_such-1.0-py3-none-any.whl"),
    case("GET", "/wheels/what"),
    case("DELETE", "/wheels/no_such-1.0-py3-none-any.whl"),
    case("DELETE", "/wheels/what"),
    case("GET", "/wheels/history"),
    case("GET", "/wheels/history", params={"limit": 1}),
    case("GET", "/wheels/history", params={"action": "upload"}),
    case("GET", "/wheels/history", params={"action": "UPLOAD"}),
    case("GET", "/wheels/history", params={"action": "delete"}),
    case("GET", "/wheels/history", params={"wheel_name": "{wheel}"}),
    case("GET", "/wheels/history", params={"wheel_name": "what"}, differs=WORDS),
    case("GET", "/wheels/history", params={"action": "mend"}, differs=WORDS),
    case("GET", "/wheels/history", params={"limit": 0}, differs=DETAIL),
    case("GET", "/nowhere", differs=WORDS),
    case("PUT", "/runs", differs=WORDS),
    case("DELETE", "/runs/{done}", differs=WORDS),
    case("HEAD", "/health", differs="head"),
]

WRITES = [
    case("POST", "/runs", json=RUN),
    case("POST", "/runs", json={"flow_name": "hello"}),
    case("POST", "/runs", json={**RUN, "params": {"a": [1, {"b": None}]}, "tags": ["x", "y"]}),
    case("POST", "/runs", json={**RUN, "tag": None}),
    case("POST", "/runs", json={**RUN, "tags": []}),
    case("POST", "/runs", json={**RUN, "params": {}, "more": 1}),
    case("POST", "/runs", json={**RUN, "params": None}, differs="null-fields"),
    case("POST", "/runs", json={**RUN, "tags": None}, differs="null-fields"),
    case("POST", "/runs", json={}, differs=DETAIL),
    case("POST", "/runs", json={**RUN, "flow_name": ""}, differs=DETAIL),
    case("POST", "/runs", json={**RUN, "flow_name": 7}, differs=DETAIL),
    case("POST", "/runs", json={**RUN, "tag": "a.b"}, differs=DETAIL),
    case("POST", "/runs", json={**RUN, "tag": ""}, differs="null-fields"),
    case("POST", "/runs", json={**RUN, "tags": "x"}, differs=DETAIL),
    case("POST", "/runs", json={**RUN, "tags": [1]}, differs=DETAIL),
    case("POST", "/runs", json={**RUN, "params": [1]}, differs=DETAIL),
    case("POST", "/runs", json=[RUN], differs=DETAIL),
    case("POST", "/runs", content=b"not JSON", headers={"content-type": "application/json"}, differs=DETAIL),
    case("POST", "/runs", content=b"", differs=DETAIL),
    case("POST", "/runs", content=b'{"flow_name": "hello", "tag": "nobody"}', differs="any-content-type"),
    yaml_case(GREETING),
    yaml_case(GREETING, tag=""),
    yaml_case(GREETING, tag="a.b", differs=WORDS),
    yaml_case(GREETING, flow_name=" ", differs=WORDS),
    yaml_case(GREETING, flow_name="", differs=DETAIL),
    yaml_case(GREETING + "#" * 2000),
    yaml_case("version: 1\nflow: [}", differs=WORDS),
    yaml_case(b"\xff\xfe", differs=WORDS),
    yaml_case("- a list", differs=WORDS),
    yaml_case("", differs=WORDS),
    yaml_case(GREETING + "nonsense: 1\n", differs=WORDS),
    yaml_case(GREETING + "flows: {}\n", differs=WORDS),
    yaml_case(GREETING + "discovery: {}\n", differs=WORDS),
    yaml_case("version: 1\nflow: {graph: ''}\ntasks: {}\n", differs=WORDS),
    yaml_case("version: 1\nflow: {graph: a}\n"),
    yaml_case("version: 1\nflow: {graph: a, more: 1}\n" + SMALL, differs=WORDS),
    yaml_case("version: 1\nflow: {graph: a}\ntasks: {a: {callable: 'string:capwords', more: 1}}\n", differs=WORDS),
    yaml_case("version: 1\n" + SMALL, differs=WORDS),
    yaml_case("version: 1\nflow: {graph: 'a >>'}\n" + SMALL, differs="graph-checked"),
    yaml_case("version: 1\nflow: {graph: 'a & a'}\n" + SMALL, differs="graph-operators"),
    yaml_case("version: 1\nruntime: {expose_env: [HOME]}\nflow: {graph: a}\n" + SMALL),
    case("POST", "/runs/yaml", data={"flow_name": "main"}, differs=DETAIL),
    case("POST", "/runs/yaml", files={"workflow": ("f", GREETING.encode())}, differs=DETAIL),
    case("POST", "/runs/yaml", json={}, differs=DETAIL),
    wheel_case("what", b"x", differs=WORDS),
    wheel_case("what.whl", b"x", differs=WORDS),
    wheel_case("pyoco_big-1.0-py3-none-any.whl", b"x" * 50001),
    wheel_case("pyoco_tagged-1.0-py3-none-any.whl", b"x", tags="a.b", differs=WORDS),
    wheel_case("pyoco_compat-1.0-py3-none-any.whl", b"x"),
    wheel_case("pyoco_compat-0.9-py3-none-any.whl", b"x"),
    wheel_case("pyoco_compat-1.0-py3-none-any.whl", b"x", replace="false"),
    wheel_case("pyoco_compat-2.0-py3-none-any.whl", b"x", replace="perhaps", differs=DETAIL),
    case("POST", "/wheels", data={"tags": "x"}, differs=DETAIL),
]
