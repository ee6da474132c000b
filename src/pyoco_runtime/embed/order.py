"""What a program passes to `worker(...)`, checked: settings over the shipped layout, and nothing from anywhere else."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from attrs import frozen

from pyoco_runtime.engine.resolver import Resolver
from pyoco_runtime.engine.thread_runner import ThreadRunner
from pyoco_runtime.errors import InvalidSetting
from pyoco_runtime.layout import SHIPPED, Layout, parse
from pyoco_runtime.setting_kinds import Kind, from_toml, seconds
from pyoco_runtime.settings import SETTINGS, Isolation, Loaded, Role, Setting, Settings
from pyoco_runtime.tree import KNOWN, process_name
from pyoco_runtime.wording import not_one_of, quoted
from pyoco_runtime.worker_parts import FlowPool

_LOGGING = "logging is up to your program, and the worker's loggers are below pyoco_runtime"
_FILES = "an embedded worker reads no file and no environment; pass settings as parameters"
_NATS = "an embedded worker starts no server; say where one is with nats_url"
_PROBE = "an embedded worker listens on no port; use status() and wait_ready()"
_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "role": "an embedded worker is always a worker",
        **dict.fromkeys(("config", "load_dotenv", "env_file"), _FILES),
        **dict.fromkeys(("log_level", "log_format", "log_utc", "log_include_traceback"), _LOGGING),
        **dict.fromkeys(("worker_probe_host", "worker_probe_port"), _PROBE),
        **dict.fromkeys(("nats_server", "nats_http_port"), _NATS),
    }
)
_OFFERED: Mapping[str, Setting] = MappingProxyType({each.name: each for each in SETTINGS if each.name not in _REFUSED})


@frozen
class Order:
    """A worker as it was ordered; nothing of it has been made yet."""

    loaded: Loaded
    resolver: Resolver | None
    """A function of the program's own; None if the settings say where flows come from."""
    worker_id: str
    flows: tuple[str, ...] | None = None
    """What that function has; None if it says so itself, or nobody does."""

    def pool(self) -> FlowPool | None:
        """What executes the flows of the program's own function, made for the loop that runs."""
        if self.resolver is None:
            return None
        settings = self.loaded.settings
        allow = settings.callable_allow or ()
        return ThreadRunner(self.resolver, settings.concurrency, callable_allow=allow, flows=self.flows)


def order_from(flow_resolver: object, drain_sec: object, given: Mapping[str, object], flows: object = None) -> Order:
    """Check everything. Raises InvalidSetting, which names the parameter."""
    given = {name: value for name, value in given.items() if value is not None}
    resolver = None
    if flow_resolver is not None and not isinstance(flow_resolver, str):
        resolver = _function(flow_resolver)
    else:
        given = {**given, **({} if flow_resolver is None else {"flow_resolver": flow_resolver})}
    given = {"isolation": Isolation.PROCESS if isinstance(flow_resolver, str) else Isolation.THREAD, **given}
    name = f"{process_name(Role.WORKER)}-{uuid.uuid4().hex[:8]}"  # one process may have several
    values = {"process_name": name, "worker_id": name, **{key: _value(key, value) for key, value in given.items()}}
    if resolver is not None and values["isolation"] is Isolation.PROCESS:
        raise InvalidSetting(
            "parameter isolation: a function cannot be handed to other processes; leave isolation out, or name the"
            ' function in flow_resolver, as "mypackage.flows:resolve"'
        )
    sources = {each: f"parameter {each}" if each in given else "default" for each in _OFFERED}
    loaded = Loaded(Settings(role=Role.WORKER, **values), MappingProxyType(sources), _layout(drain_sec), SHIPPED)
    return Order(loaded, resolver, values["worker_id"], _flows(flows, resolver))


def _function(found: object) -> Resolver:
    if not callable(found):
        raise InvalidSetting(
            f'parameter flow_resolver: {quoted(found)} is neither a function nor the name of one, as "module:function"'
        )
    if inspect.iscoroutinefunction(found):
        raise InvalidSetting(
            "parameter flow_resolver: an async function cannot be used; it is called in a thread and returns the Flow"
        )
    return cast("Callable[[str], Any]", found)


def _flows(found: object, resolver: Resolver | None) -> tuple[str, ...] | None:
    if found is None:
        return None
    if resolver is None:
        raise InvalidSetting(
            "parameter flows: only for a function as flow_resolver; one that is named says it by its attribute `flows`"
        )
    if isinstance(found, str) or not isinstance(found, Iterable) or not all(isinstance(each, str) for each in found):
        raise InvalidSetting(f'parameter flows: must be names, as ["hello", "goodbye"], not {quoted(found)}')
    return tuple(found)


def _layout(drain_sec: object) -> Layout:
    drain = _read("drain_sec", seconds(0), drain_sec)
    return parse(f"[actors.run]\nshutdown_sec = {drain!r}\n", source="parameter drain_sec", known=KNOWN)


def _value(name: str, value: object) -> Any:
    if name in _REFUSED:
        raise InvalidSetting(f"parameter {name}: {_REFUSED[name]}")
    if name not in _OFFERED:
        raise InvalidSetting(f"parameter {not_one_of(name, 'a setting', _OFFERED)}")
    setting = _OFFERED[name]
    return _read(name, setting.kind, value, is_secret=setting.secret)


def _read(name: str, kind: Kind[Any], value: object, *, is_secret: bool = False) -> Any:
    found = _spelled(value)
    try:
        return from_toml(kind, found)
    except ValueError:
        wrong = f"the value is not {kind.right}" if is_secret else kind.explain(found)
        # None: the cause could repeat a password that `explain` hides.
        raise InvalidSetting(f"parameter {name}: {wrong}") from None


def _spelled(value: object) -> object:
    """The value as supervisor.toml would hold it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
        are_plain = all(isinstance(item, str) and "," not in item for item in items)
        return ",".join(items) if are_plain else items
    return value
