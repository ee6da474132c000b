"""The actor runtime: channels, actors and their supervisors. Knows anyio, nothing of NATS, HTTP or runs."""

from pyoco_runtime.core.actor import Actor, Context, current_path
from pyoco_runtime.core.alarm import Alarm
from pyoco_runtime.core.channel import Channel, Receiver, Sender
from pyoco_runtime.core.children import Children
from pyoco_runtime.core.crash import Crash
from pyoco_runtime.core.early import may_end_early
from pyoco_runtime.core.events import (
    Escalated,
    Event,
    Exited,
    Feed,
    Ready,
    Restarting,
    Started,
    Stopped,
    Stuck,
)
from pyoco_runtime.core.machine import World
from pyoco_runtime.core.plan import Phase
from pyoco_runtime.core.program import run_program
from pyoco_runtime.core.spec import (
    ActorSpec,
    Backoff,
    ChildSpec,
    Intensity,
    Restart,
    Strategy,
    SupervisorSpec,
)
from pyoco_runtime.core.status import ActorStatus
from pyoco_runtime.core.supervisor import Supervisor

__all__ = [
    "Actor",
    "ActorSpec",
    "ActorStatus",
    "Alarm",
    "Backoff",
    "Channel",
    "ChildSpec",
    "Children",
    "Context",
    "Crash",
    "Escalated",
    "Event",
    "Exited",
    "Feed",
    "Intensity",
    "Phase",
    "Ready",
    "Receiver",
    "Restart",
    "Restarting",
    "Sender",
    "Started",
    "Stopped",
    "Strategy",
    "Stuck",
    "Supervisor",
    "SupervisorSpec",
    "World",
    "current_path",
    "may_end_early",
    "run_program",
]
