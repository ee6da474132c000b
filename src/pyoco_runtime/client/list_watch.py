"""Following the list of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pyoco_runtime.client.answers import RunSummary
from pyoco_runtime.client.errors import ClientError, NotAGateway
from pyoco_runtime.client.events import Heartbeat, Interrupted, ListDropped, ListEvent, ListReady, RunGone, RunListed
from pyoco_runtime.client.persistence import Persistence
from pyoco_runtime.client.request import Request
from pyoco_runtime.client.sse import ServerEvent
from pyoco_runtime.client.watch import Watch, data_of


class ListWatch(Watch[ListEvent]):
    """Tells every change of the list, or that changes were left out."""

    def __init__(self, ask: Callable[[str | None], Request[None]], *, persistence: Persistence) -> None:
        super().__init__(persistence)
        self._ask = ask

    def _request(self, timeout_sec: int) -> Request[None]:
        return self._ask(self.last_event_id)

    def _told(self, event: ServerEvent) -> ListEvent | None:
        data = data_of(event)
        try:
            match event.name:
                case "ready":
                    return ListReady(int(data["revision"]), data.get("behind"), float(data["ts"]))
                case "run":
                    return RunListed(cast("RunSummary", data), event.event_id)
                case "gone":
                    return RunGone(str(data["run_id"]), event.event_id)
                case "dropped":
                    return ListDropped(str(data["reason"]))
                case "heartbeat":
                    return Heartbeat(float(data["ts"]))
                case _:
                    return None  # `end`, and what later gateways may have to say
        except (KeyError, TypeError, ValueError) as error:
            raise NotAGateway(f"an event {event.name!r} came that cannot be read: {error!r}") from error

    def _interrupted(self, problem: ClientError, sec: float) -> ListEvent:
        return Interrupted(str(problem), sec)
