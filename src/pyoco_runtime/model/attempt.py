"""The fencing token of one execution of a run."""

from __future__ import annotations

from attrs import frozen


@frozen(order=True)
class Attempt:
    """Which delivery of which message an execution answers; a greater one is newer and takes the run over."""

    seq: int
    """The job's sequence number in the work stream."""
    delivery: int
    """How many times the server has delivered it, this time included; 1 is the first."""

    def __str__(self) -> str:
        return f"{self.seq}.{self.delivery}"
