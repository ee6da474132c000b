"""One job in our hands, and what is said to the server about it."""

from __future__ import annotations

import json
from typing import assert_never

from attrs import frozen
from nats.aio.msg import Msg

from pyoco_runtime.jetstream.ack_subject import AckSubject
from pyoco_runtime.jetstream.consumer import Consumer
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.jetstream.translate import translating
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.settlement import Ack, Nak, Settlement, Term
from pyoco_runtime.model.wire import job_from

SEC = 1_000_000_000


@frozen(kw_only=True, eq=False)
class NatsDelivery:
    """Implements ports.Delivery. It outlives its puller, and the connection that it came over."""

    job: Job | InvalidJob
    attempt: Attempt
    tag: str
    subject: str
    is_last: bool
    ack_wait_sec: float
    reply: str
    link: NatsLink
    requests: Requests

    async def in_progress(self) -> None:
        with translating():
            await self.link.client().publish(self.reply, b"+WPI")

    async def settle(self, settlement: Settlement) -> None:
        await self.requests.ask(self.reply, _said(settlement))


def delivery_from(message: Msg, consumer: Consumer, link: NatsLink, requests: Requests) -> NatsDelivery:
    """Read a message that the consumer has delivered."""
    meta = AckSubject.parse(message.reply)
    return NatsDelivery(
        job=job_from(message.data),
        attempt=Attempt(meta.stream_seq, meta.delivered),
        tag=consumer.tag,
        subject=message.subject,
        is_last=meta.delivered >= consumer.max_deliver > 0 and meta.delivered > 1,
        ack_wait_sec=consumer.ack_wait_sec,
        reply=message.reply,
        link=link,
        requests=requests,
    )


def _said(settlement: Settlement) -> bytes:
    match settlement:
        case Ack():
            return b"+ACK"
        case Nak(delay_sec) if delay_sec > 0:
            return b"-NAK " + json.dumps({"delay": int(delay_sec * SEC)}).encode()
        case Nak():
            return b"-NAK"
        case Term(reason):
            return b"+TERM " + " ".join(reason.split()).encode()
        case _:
            assert_never(settlement)
