"""Whether a gateway can serve."""

from __future__ import annotations

from pyoco_runtime.gateway.readiness import Readiness
from pyoco_runtime.run_board import RunBoard


class Lacking:
    """The process lacks these."""

    def __init__(self, *lacks: str) -> None:
        self._lacks = lacks

    def missing(self) -> tuple[str, ...]:
        return self._lacks


def test_a_gateway_is_ready_when_its_indexes_have_caught_up() -> None:
    """Until then it names the actor and says how far it is; and again when the feed is lost."""
    board = RunBoard()
    ready = Readiness(Lacking("nats: away"), {"run-index": board})
    assert ready.missing() == ("nats: away", "run-index is behind: no runs have been read yet")
    board.begin_load()
    assert "reading the stored runs" in ready.missing()[1]
    board.end_load()
    assert ready.missing() == ("nats: away",)
    board.lose("the feed was lost", 5.0)
    assert ready.missing()[1] == "run-index is behind: the feed was lost"
