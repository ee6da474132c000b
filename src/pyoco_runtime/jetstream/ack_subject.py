"""What the reply subject of a delivered message tells about it."""

from __future__ import annotations

from attrs import frozen

PLAIN = 9  # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
DOMAIN = 2  # more in front: $JS.ACK.<domain>.<account>.<stream>...


@frozen
class AckSubject:
    """The numbers in it."""

    delivered: int
    stream_seq: int
    consumer_seq: int
    pending: int

    @staticmethod
    def parse(reply: str) -> AckSubject:
        """Read a subject that starts with `$JS.ACK.`."""
        parts = reply.split(".")
        at = 4 if len(parts) == PLAIN else 4 + DOMAIN
        return AckSubject(int(parts[at]), int(parts[at + 1]), int(parts[at + 2]), int(parts[at + 4]))
