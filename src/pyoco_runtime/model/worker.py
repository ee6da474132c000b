"""A worker as the registry shows it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from pyoco_runtime.model.offer import Offer
from pyoco_runtime.model.run import NOTHING


class WorkerState(enum.StrEnum):
    """What a worker does; DISCONNECTED is derived by the reader and never written."""

    RUNNING = "RUNNING"
    IDLE = "IDLE"
    STOPPED_GRACEFUL = "STOPPED_GRACEFUL"
    DISCONNECTED = "DISCONNECTED"


@frozen(kw_only=True)
class WheelSync:
    """How the last wheel sync of a worker went."""

    enabled: bool = False
    last_result: str = "disabled"
    """disabled, idle, ok or error."""
    last_attempt_at: float | None = None
    last_success_at: float | None = None
    last_synced_at: float | None = None
    last_error: str | None = None
    selected_count: int = 0
    updated_count: int = 0
    removed_count: int = 0
    skipped_incompatible_count: int = 0
    selected_wheels: tuple[str, ...] = ()
    updated_wheels: tuple[str, ...] = ()
    removed_wheels: tuple[str, ...] = ()
    skipped_incompatible: tuple[Mapping[str, Any], ...] = ()
    installed_wheels: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = NOTHING


@frozen(kw_only=True)
class WorkerRecord:
    """One worker, one KV value."""

    worker_id: str
    instance_id: str
    state: WorkerState
    hidden: bool = False
    """Set by people through the gateway; a worker keeps what it finds."""
    tags: tuple[str, ...] = ()
    last_seen_at: float = 0.0
    last_heartbeat_at: float = 0.0
    heartbeat_at: float = 0.0
    current_run_id: str | None = None
    last_run_id: str | None = None
    last_run_status: str | None = None
    last_run_started_at: float | None = None
    last_run_finished_at: float | None = None
    stopped_at: float | None = None
    stop_reason: str | None = None
    updated_at: float = 0.0
    wheel_sync: WheelSync = field(factory=WheelSync)
    flows: tuple[str, ...] | None = None
    """The flows that it knows by name, sorted; None if it cannot tell, as workers of other makes: then any."""
    tasks: tuple[str, ...] | None = None
    """The tasks that it offers to every flow.yaml, likewise."""
    extra: Mapping[str, Any] = NOTHING

    @property
    def offer(self) -> Offer:
        """What it announces."""
        return Offer(self.flows, self.tasks)


def effective_state(record: WorkerRecord, now: float, disconnect_timeout_sec: float) -> WorkerState:
    """What a reader shows: a worker that is silent for too long is DISCONNECTED, unless it said good-bye."""
    if record.state is not WorkerState.STOPPED_GRACEFUL and now - record.last_seen_at > disconnect_timeout_sec:
        return WorkerState.DISCONNECTED
    return record.state
