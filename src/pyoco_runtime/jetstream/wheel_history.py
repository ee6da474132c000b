"""The history of the wheels in its KV bucket."""

from __future__ import annotations

import heapq

from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.feed import Deliver, feeding
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.object_bucket import read
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.model.wheel_event import HistoryQuery, WheelEvent, wheel_event_from, wheel_event_to


class NatsWheelHistory:
    """Implements ports.WheelHistory. A key is written once, so a second write of the same event changes nothing.

    The events come in batches through one consumer, and no more of them are kept than are asked for.
    """

    def __init__(self, link: NatsLink, bucket: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self._stream = f"KV_{bucket}"
        self._prefix = f"$KV.{bucket}."

    async def append(self, event: WheelEvent) -> None:
        await self._requests.store(self._prefix + event.key, wheel_event_to(event), {})

    async def recent(self, query: HistoryQuery) -> list[WheelEvent]:
        newest: dict[str, WheelEvent] = {}
        everything = f"{self._prefix}>"
        async with feeding(self._link, self._requests, self._stream, everything, Deliver.LAST_PER_SUBJECT) as feed:
            while not feed.is_caught_up:
                message = await read(feed)
                event = None if is_marker(message.headers) else wheel_event_from(message.data)
                if event is None or not query.wants(event):
                    continue
                newest[message.subject] = event
                if len(newest) >= 2 * query.limit:
                    newest = dict(heapq.nlargest(query.limit, newest.items(), key=lambda item: item[1].order))
        return heapq.nlargest(query.limit, newest.values(), key=lambda event: event.order)
