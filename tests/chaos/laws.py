"""What must hold whatever was killed: laws over every revision of every run."""

from __future__ import annotations

from collections.abc import Mapping

from pyoco_runtime.model.run import RunSnapshot


def check_laws(revisions: Mapping[str, list[RunSnapshot]]) -> None:
    """Every run ends, and nothing is written to it after that; its attempts never go back."""
    for run_id, snapshots in revisions.items():
        story = [(snapshot.status, str(snapshot.attempt), snapshot.worker_id) for snapshot in snapshots]
        ends = [snapshot.status.is_terminal for snapshot in snapshots]
        assert ends[-1], f"run {run_id} has not ended: {story}"
        assert sum(ends) == 1, f"run {run_id} was written to after its end: {story}"
        attempts = [snapshot.attempt for snapshot in snapshots if snapshot.attempt is not None]
        assert attempts == sorted(attempts), f"run {run_id} went back to an older attempt: {story}"
