"""Reads and cancels single runs, for whoever may see them."""

from __future__ import annotations

import anyio
import anyio.lowlevel
from attrs import evolve

from pyoco_runtime.errors import RevisionConflict, RunNotFound, Unreadable
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.transition import cancelling
from pyoco_runtime.ports import Clock, RunStore, StoredRun

REASON_LIMIT = 500  # characters


class RunKeeper:
    """Another tenant's run is as absent as one that never was."""

    def __init__(self, runs: RunStore, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock
        self.last_revision = 0
        """Of the last snapshot that was written here."""

    async def get(self, run_id: str, caller: Principal | None) -> StoredRun:
        """The latest. Raises RunNotFound, NatsUnavailable."""
        try:
            found = await self._runs.get(run_id)
        except Unreadable as error:
            raise RunNotFound(f"its snapshot cannot be read: {error}") from error
        if found is None or not may_see(caller, found.snapshot.tenant_id):
            raise RunNotFound
        return found

    async def cancel(self, run_id: str, caller: Principal | None, reason: str | None = None) -> RunSnapshot:
        """Ask it to stop, as often as one likes; returns what is stored then. Raises RunNotFound, NatsUnavailable."""
        while True:
            found = await self.get(run_id, caller)
            wanted = self._cancelling(found.snapshot, caller, reason)
            if wanted == found.snapshot:
                return wanted
            try:
                self.last_revision = await self._runs.update(wanted, found.revision)
            except RevisionConflict:
                await anyio.lowlevel.checkpoint()  # somebody wrote in between: look again
                continue
            return wanted

    def _cancelling(self, found: RunSnapshot, caller: Principal | None, reason: str | None) -> RunSnapshot:
        by = f"api_key:{caller.key_id}" if caller else None
        wanted = cancelling(found, self._clock(), by)
        if reason is None or found.cancel_requested_at is not None or wanted.cancel_requested_at is None:
            return wanted
        return evolve(wanted, extra={**wanted.extra, "cancel_reason": reason[:REASON_LIMIT]})


def may_see(caller: Principal | None, tenant_id: str | None) -> bool:
    """Whether the caller may know of what belongs to this tenant; without API keys everybody may."""
    return caller is None or caller.tenant_id == tenant_id
