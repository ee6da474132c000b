"""A house with something of everything: what the pictures of the documentation show and axe looks at."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskStatus
from tests.browser import flows
from tests.browser.fragile_worker import wish_for
from tests.browser.house import House, wheel
from tests.browser.stored_runs import store
from tests.integration.gateway_client import good, until

FRAGILE = Path(__file__).with_name("fragile_worker.py")
LONG_WORKER = "ip-10-0-113-207-eu-central-1-compute-internal-pool-analytics-large-memory-0007"
LONG_ERROR = (
    "OperationalError: could not connect to server: Connection timed out. Is the server running on host"
    ' "warehouse.internal.example" (10.0.3.17) and accepting TCP/IP connections on port 5432?'
)


@frozen
class Scene:
    """The house, and the runs that are worth a look."""

    house: House
    report: str
    failed: str
    looping: str
    switching: str
    running: str
    waiting: str


def prepare(house: House) -> Scene:
    """Fill a house whose gateway runs and in which nobody works yet."""
    store(house.nats.url, hour())
    wish = house.place / "crash"
    program = (sys.executable, str(FRAGILE), str(wish))
    house.start_worker("eu-worker-1", tags="default,eu", program=program, PYOCO_ACK_PROGRESS_INTERVAL_SEC="0.2")
    house.start_worker(LONG_WORKER, tags="default,gpu,a-tag-that-is-rather-long")
    gone = house.start_worker("eu-worker-2", tags="night")
    for name in ("eu-worker-1", LONG_WORKER, "eu-worker-2"):
        house.until_worker(name)
    gone.terminate()
    upload(house)
    found = submit(house)
    house.until_running(found.running)
    crash(house, wish)
    return found


def submit(house: House) -> Scene:
    """Runs in every state."""
    report = house.ended("report", region="eu", seconds=0.4)
    failed = house.ended("failing", amount=0, order=4711)
    looping = house.ended("looping", items=["north", "south", "west"])
    switching = house.ended("switching", how="sea")
    house.ended("hello", name="世界")
    house.ended(flows.LONG)
    house.ended("there_is_no_such_flow")
    stopped = house.submit("slow")
    house.until_running(stopped)
    good(house.http.post(f"/runs/{stopped}/cancel", json={"reason": "no longer needed"}))
    house.until_ended(stopped)
    waiting = house.submit("hello", tag="night")
    running = house.submit("slow", tag="eu")  # for eu-worker-1: while it lasts its ticker ticks, and can crash
    house.until_letters(2)
    return Scene(house, report, failed, looping, switching, running, waiting)


def upload(house: House) -> None:
    """Wheels of several versions, one of them deleted."""
    for name, version, tags in (
        ("tools", "1.0", ""),
        ("old_tools", "0.9.1", "night"),
        ("a_package_with_a_rather_long_name_for_weekly_reports", "2026.11.18", "default,gpu"),
    ):
        file, data = wheel(name, version)
        good(house.http.post("/wheels", files={"wheel": (file, data)}, data={"tags": tags}))
    good(house.http.delete(f"/wheels/{wheel('old_tools', '0.9.1')[0]}"))


def crash(house: House, wish: Path) -> None:
    """An actor of eu-worker-1 crashes once: while a run is in flight its ticker ticks."""
    why = "the connection was reset in the middle of a sentence"
    wish_for(wish, why)
    until(lambda: why in house.http.get("/actors").text, bool)


def hour() -> Iterator[RunSnapshot]:
    """What went on in the last hour: two flows, and some trouble in the middle."""
    now = time.time()
    for number in range(900):
        ended = now - 120 - number * 3.7
        flow = "report" if number % 3 else "import_orders"
        is_bad = 300 < number < 360 and number % 4 == 0
        took = (2.0 if flow == "report" else 6.5) * (1 + 0.4 * ((number * 7919) % 13) / 13)
        yield RunSnapshot(
            run_id=str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))),
            flow_name=flow,
            status=RunStatus.FAILED if is_bad else RunStatus.COMPLETED,
            tag="default",
            tags=("default",),
            tasks={"fetch": TaskStatus.FAILED if is_bad else TaskStatus.SUCCEEDED},
            worker_id="eu-worker-1",
            submitted_at=ended - took - 0.1,
            start_time=ended - took,
            end_time=ended,
            heartbeat_at=ended,
            updated_at=ended,
            error=LONG_ERROR if is_bad else None,
        )
