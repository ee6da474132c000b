"""Whether any live worker can run what was submitted, as far as workers tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pyoco_runtime.model.offer import Offered
from pyoco_runtime.model.submit_warning import flow_warning, no_worker, task_warnings
from pyoco_runtime.ports import Clock
from pyoco_runtime.worker_board import WorkerBoard

Warnings = tuple[str, ...]

LOOK_AGAIN_SEC = 1.0  # that a worker has fallen silent is no change of the index
BATCH_WARNINGS = 20  # of a thousand flows that nobody has, some are enough to see it
_REMEMBERED = 1000  # texts between two looks


class Doubts:
    """Warns and never refuses. What workers announce is looked through when it changes, and not for each run."""

    def __init__(self, workers: WorkerBoard, clock: Clock, disconnect_timeout_sec: float) -> None:
        self._workers = workers
        self._clock = clock
        self._disconnect_timeout_sec = disconnect_timeout_sec
        self._offers: Mapping[str, Offered] = {}
        self._version = -1
        self._looked_at = -math.inf
        self._said: dict[tuple[str, str], Warnings] = {}

    def about_flow(self, flow_name: str, tag: str) -> Warnings:
        """Of a run of a flow that workers know by its name."""
        offers = self._look()
        if offers is None:
            return ()
        offered = offers.get(tag)
        if offered is not None and (offered.flows is None or flow_name in offered.flows):
            return ()  # almost always
        said = self._said.get((flow_name, tag))
        if said is None:
            said = _about_flow(flow_name, tag, offers)
            if len(self._said) < _REMEMBERED:
                self._said[flow_name, tag] = said
        return said

    def about_flows(self, wanted: Iterable[tuple[str, str]]) -> Warnings:
        """Of many flows, each with its tag; every text once, and some if they are many."""
        found: dict[str, None] = {}
        for flow_name, tag in wanted:
            found.update(dict.fromkeys(self.about_flow(flow_name, tag)))
            if len(found) > BATCH_WARNINGS:
                return (*list(found)[:BATCH_WARNINGS], "and more like these")
        return tuple(found)

    def about_tasks(self, tasks: Iterable[str], tag: str) -> Warnings:
        """Of a run with its flow.yaml, which needs these tasks from its worker."""
        offers = self._look()
        if offers is None:
            return ()
        offered = offers.get(tag)
        return (no_worker(tag, offers),) if offered is None else task_warnings(tasks, tag, offered)

    def _look(self) -> Mapping[str, Offered] | None:
        """What is announced by tag; None while this gateway does not know all workers."""
        if self._workers.behind is not None:
            return None
        index, now = self._workers.index, self._clock()
        if index.version != self._version or not 0 <= now - self._looked_at < LOOK_AGAIN_SEC:
            self._offers = index.offers(now, self._disconnect_timeout_sec)
            self._version, self._looked_at = index.version, now
            self._said.clear()
        return self._offers


def _about_flow(flow_name: str, tag: str, offers: Mapping[str, Offered]) -> Warnings:
    offered = offers.get(tag)
    text = no_worker(tag, offers) if offered is None else flow_warning(flow_name, tag, offered)
    return () if text is None else (text,)
