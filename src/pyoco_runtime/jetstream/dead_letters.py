"""The dead letters in their stream."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyoco_runtime.jetstream.feed import Deliver, feeding
from pyoco_runtime.jetstream.letter_changes import NatsLetterChanges
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Refused, Requests, payload_limit
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.letter_size import LETTER_LIMIT, letter_within
from pyoco_runtime.model.wire import letter_from
from pyoco_runtime.ports import StoredLetter

NO_TAG = "unknown"
MAX_SEQ = 2**63 - 1  # the server refuses to read a larger number
NOT_FOUND = frozenset({10037, 10043})  # in the words of get and of delete
DELETE_FAILED = 10057  # among others for a sequence beyond the last
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


class NatsDeadLetters:
    """Implements ports.DeadLetters; a letter without a usable tag goes to `<prefix>.unknown`."""

    def __init__(self, link: NatsLink, subject_prefix: str, stream: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self._prefix = subject_prefix
        self._stream = stream

    async def publish(self, letter: DeadLetter) -> None:
        tag = letter.tag if letter.tag and _TOKEN.fullmatch(letter.tag) else NO_TAG
        data = letter_within(letter, min(LETTER_LIMIT, payload_limit(self._link.client())))
        await self._requests.store(f"{self._prefix}.{tag}", data, {"Nats-Expected-Stream": self._stream})

    async def get(self, seq: int) -> StoredLetter | None:
        data = await self._read(seq)
        return None if data is None else StoredLetter(seq, letter_from(data))

    async def drop(self, seq: int) -> bool:
        if not 0 < seq <= MAX_SEQ:
            return False
        try:
            await self._requests.call(f"$JS.API.STREAM.MSG.DELETE.{self._stream}", {"seq": seq, "no_erase": True})
        except Refused as error:
            is_gone = error.err_code in NOT_FOUND
            if not is_gone and (error.err_code != DELETE_FAILED or await self._read(seq) is not None):
                raise
            return False
        return True

    async def count(self) -> int:
        return int((await self._requests.call(f"$JS.API.STREAM.INFO.{self._stream}"))["state"]["messages"])

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[NatsLetterChanges]:
        subject = f"{self._prefix}.>"
        async with feeding(self._link, self._requests, self._stream, subject, Deliver.ALL) as feed:
            yield NatsLetterChanges(feed, f"{self._prefix}.")

    async def _read(self, seq: int) -> bytes | None:
        if not 0 < seq <= MAX_SEQ:
            return None
        try:
            # of the leader: a replica may not know it yet, and one that was dropped must not be shown again
            answer = await self._requests.call(f"$JS.API.STREAM.MSG.GET.{self._stream}", {"seq": seq})
        except Refused as error:
            if error.err_code in NOT_FOUND:
                return None
            raise
        return base64.b64decode(answer["message"].get("data", ""))
