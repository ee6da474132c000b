"""The actor that stores dead letters."""

from __future__ import annotations

import logging

import anyio

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.letterbox import Letterbox
from pyoco_runtime.ports import DeadLetters, Link

_log = logging.getLogger(__name__)

RETRY_SEC = 1.0  # when the link says up and the store fails all the same


class DlqPublisher:
    """Store every letter of the box, in order; asked to stop, it empties the box first."""

    def __init__(self, box: Letterbox, letters: DeadLetters, link: Link) -> None:
        self._box = box
        self._letters = letters
        self._link = link

    async def run(self, context: Context) -> None:
        """Work until asked to stop and the box is empty; it is cancelled with letters in it only if NATS is away."""
        context.ready()
        with context.until_stopping():
            while True:
                await self._store_next()
        while len(self._box):
            await self._store_next()

    async def _store_next(self) -> None:
        posted = await self._box.first()
        await self._link.wait_up()
        try:
            await self._letters.publish(posted.letter)
        except NatsUnavailable as error:
            about = {"err_id": "ERR-PYOCO-0011", "msg_id": "MSG-PYOCO-0011", "run_id": posted.letter.run_id}
            _log.warning("cannot store a dead letter yet: %s", error, extra=about)
            await anyio.sleep(RETRY_SEC)
            return
        self._box.take_out(posted)
