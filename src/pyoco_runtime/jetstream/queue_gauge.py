"""How full the work stream is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from attrs import frozen

from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Refused, Requests
from pyoco_runtime.jetstream.resources import WORK_STREAM
from pyoco_runtime.ports import TagDepth

NO_MESSAGE = 10037


@frozen
class _Reading:
    """What a consumer says about its tag."""

    waiting: int
    in_hand: int
    next_seq: int
    """All that wait are at this sequence or above."""


class NatsQueueGauge:
    """Implements ports.QueueGauge: one answer about the consumers, one about the subjects, one for each tag with jobs.

    A tag without a consumer of its own has only waiting jobs, also if somebody reads it through a wildcard. Jobs whose
    deliveries are used up neither wait nor are in anybody's hands.
    """

    def __init__(self, link: NatsLink, subject_prefix: str) -> None:
        self._requests = Requests(link)
        self._prefix = f"{subject_prefix}."

    async def read(self) -> tuple[TagDepth, ...]:
        readings = await self._consumers()
        for tag, count in (await self._subjects()).items():
            readings.setdefault(tag, _Reading(count, 0, 1))
        return tuple([await self._depth(tag, readings[tag]) for tag in sorted(readings)])

    async def _depth(self, tag: str, reading: _Reading) -> TagDepth:
        oldest = await self._oldest(tag, reading.next_seq) if reading.waiting else None
        return TagDepth(tag, reading.waiting, reading.in_hand, oldest)

    async def _oldest(self, tag: str, seq: int) -> float | None:
        which = {"seq": seq, "next_by_subj": self._prefix + tag}
        try:
            answer = await self._requests.call(f"$JS.API.STREAM.MSG.GET.{WORK_STREAM}", which)
        except Refused as error:
            if error.err_code == NO_MESSAGE:
                return None  # somebody has taken it meanwhile
            raise
        return datetime.fromisoformat(answer["message"]["time"]).timestamp()

    async def _subjects(self) -> dict[str, int]:
        body = {"subjects_filter": f"{self._prefix}>"}
        state = (await self._requests.call(f"$JS.API.STREAM.INFO.{WORK_STREAM}", body))["state"]
        subjects: dict[str, int] = state.get("subjects") or {}
        return {tag: count for subject, count in subjects.items() if (tag := self._tag(subject)) is not None}

    async def _consumers(self) -> dict[str, _Reading]:
        found: dict[str, _Reading] = {}
        offset = 0
        while True:
            page = await self._requests.call(f"$JS.API.CONSUMER.LIST.{WORK_STREAM}", {"offset": offset})
            for each in page["consumers"] or []:
                tag = self._tag(each["config"].get("filter_subject", ""))
                if tag is not None:
                    found[tag] = _reading(each)
            offset += page["limit"]  # not what came: a consumer whose leader is away is counted and not shown
            if offset >= page["total"]:
                return found

    def _tag(self, subject: str) -> str | None:
        """The tag of a subject; None for wildcards, and for what is none of ours."""
        tag = subject[len(self._prefix) :]
        is_tag = subject.startswith(self._prefix) and tag not in ("", "*", ">") and "." not in tag
        return tag if is_tag else None


def _reading(consumer: dict[str, Any]) -> _Reading:
    return _Reading(consumer["num_pending"], consumer["num_ack_pending"], consumer["delivered"]["stream_seq"] + 1)
