"""What the routes share."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from pyoco_runtime.gateway.auth import Gate
from pyoco_runtime.gateway.closing import Closing
from pyoco_runtime.gateway.dashboard_config import DashboardConfig
from pyoco_runtime.gateway.flow_check import FlowCheck
from pyoco_runtime.gateway.health_view import HealthView
from pyoco_runtime.gateway.streams import Streams
from pyoco_runtime.gateway.traffic import Traffic
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.model.house import ProcessReport
from pyoco_runtime.model.queue_minutes import QueueMinutes
from pyoco_runtime.ports import Clock, DeadLetters, HouseView, Link, QueueGauge, WorkerRegistry
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.run_keeper import RunKeeper
from pyoco_runtime.submitter import Submitter
from pyoco_runtime.wheel_shop import WheelShop
from pyoco_runtime.worker_board import WorkerBoard


@frozen(kw_only=True)
class GatewayParts:
    """Everything behind the HTTP routes. It belongs to the tree, so that the http actor can be restarted alone."""

    health: HealthView
    gate: Gate
    closing: Closing
    clock: Clock
    link: Link
    submitter: Submitter
    keeper: RunKeeper
    runs: RunBoard
    workers: WorkerBoard
    letters: LetterBoard
    registry: WorkerRegistry
    dead_letters: DeadLetters
    gauge: QueueGauge
    queue_minutes: QueueMinutes = field(factory=QueueMinutes)
    house: HouseView
    own_report: Callable[[], ProcessReport]
    shop: WheelShop
    check_flow: FlowCheck
    traffic: Traffic
    streams: Streams = field(factory=Streams)
    dashboard: DashboardConfig = field(factory=DashboardConfig)
    default_tag: str
    workflow_yaml_max_bytes: int
    disconnect_timeout_sec: float
