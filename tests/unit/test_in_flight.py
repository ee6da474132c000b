"""The runs that a worker has in its hands."""

from __future__ import annotations

from pyoco_runtime.in_flight import InFlight
from tests.unit.actors.support import FakeSeat, in_virtual_time


@in_virtual_time
async def test_seats_come_and_go_and_listeners_hear_of_it() -> None:
    """Two deliveries of one run are two seats; to remove one twice is to remove it once."""
    in_flight, heard = InFlight(), []
    unlisten = in_flight.on_change(lambda: heard.append(len(in_flight)))
    one, other = FakeSeat("r-1"), FakeSeat("r-1")
    in_flight.add(one)
    in_flight.add(other)
    assert list(in_flight) == [one, other]
    assert one in in_flight
    in_flight.remove(one)
    in_flight.remove(one)
    assert one not in in_flight
    assert list(in_flight) == [other]
    assert heard == [1, 2, 1]
    unlisten()
    in_flight.remove(other)
    assert heard == [1, 2, 1]


@in_virtual_time
async def test_it_can_be_walked_while_it_changes() -> None:
    """Whoever walks sees those that were there."""
    in_flight = InFlight()
    for n in range(3):
        in_flight.add(FakeSeat(f"r-{n}"))
    for seat in in_flight:
        in_flight.remove(seat)
    assert len(in_flight) == 0
