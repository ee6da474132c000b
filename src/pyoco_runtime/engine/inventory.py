"""What can be run here, found where the user's code may be imported.

A resolver says what it knows by an attribute `flows`: names, a mapping by name, or a function that returns one of
these; None says that it cannot tell. Without the attribute the pyoco Flows at the top level of its module count, also
those in a mapping there.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyoco.core.models import Flow

from pyoco_runtime.engine.registered import registered_tasks
from pyoco_runtime.engine.resolver import Resolver, last_words, no_flows
from pyoco_runtime.model.offer import Offer, announced

_log = logging.getLogger("pyoco_runtime.engine")


def take_inventory(resolver: Resolver) -> Offer:
    """Everything that can be run here; imports the modules and plug-ins that offer tasks."""
    return Offer(flows_of(resolver), _tasks())


def flows_of(resolver: Resolver) -> tuple[str, ...] | None:
    """The names of the flows that it knows, None if it cannot tell; calls the user's function at most once."""
    if resolver is no_flows:
        return ()
    try:
        if hasattr(resolver, "flows"):
            return _said(resolver.flows() if callable(resolver.flows) else resolver.flows)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code runs here
        _log.warning("the flow resolver cannot say which flows it has: %s", last_words(error))
        return None
    module = sys.modules.get(getattr(resolver, "__module__", None) or "")
    return announced(_at_the_top(vars(module) if module else {})) or None  # none there: then they are made elsewhere


def _said(names: Any) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        found = list(names)
        if all(isinstance(name, str) for name in found):
            return announced(found)
    raise TypeError(f"`flows` of the flow resolver must be names, as ['hello', 'goodbye'], not {names!r:.80}")


def _at_the_top(names: Mapping[str, Any]) -> Iterator[str]:
    for value in tuple(names.values()):
        if isinstance(value, Flow):
            yield str(value.name)
        elif isinstance(value, dict):
            yield from (key for key, each in value.items() if isinstance(key, str) and isinstance(each, Flow))


def _tasks() -> tuple[str, ...] | None:
    found = registered_tasks()
    return None if found.problems else announced(found.tasks)  # what failed may be there on the next try
