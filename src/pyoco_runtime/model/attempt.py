"""The fencing token of one execution of a run."""

from __future__ import annotations

from attrs import evolve, frozen


@frozen(order=True)
class Attempt:
    """Which delivery of which message an execution answers; a greater one is newer and takes the run over."""

    seq: int
    """The job's sequence number in the work stream."""
    delivery: int
    """How many times the server has delivered it, this time included; 1 is the first. More if it has lost count."""

    def after(self, found: Attempt | None) -> Attempt:
        """The token to claim a run with, when `found` is the one that it was claimed with last.

        A server that was killed may have forgotten a delivery, and makes it again with the same count.
        """
        return evolve(self, delivery=self.delivery + 1) if found == self else self

    def __str__(self) -> str:
        return f"{self.seq}.{self.delivery}"
