"""The dead letters in their stream."""

from __future__ import annotations

import re

from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.wire import letter_to

NO_TAG = "unknown"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


class NatsDeadLetters:
    """Implements ports.DeadLetters; a letter without a usable tag goes to `<prefix>.unknown`."""

    def __init__(self, link: NatsLink, subject_prefix: str, stream: str) -> None:
        self._requests = Requests(link)
        self._prefix = subject_prefix
        self._stream = stream

    async def publish(self, letter: DeadLetter) -> None:
        tag = letter.tag if letter.tag and _TOKEN.fullmatch(letter.tag) else NO_TAG
        headers = {"Nats-Expected-Stream": self._stream}
        await self._requests.store(f"{self._prefix}.{tag}", letter_to(letter), headers)
