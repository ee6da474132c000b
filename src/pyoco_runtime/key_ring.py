"""The API keys that were found right, or wrong, so that each is hashed once."""

from __future__ import annotations

import functools
import hashlib
import logging
import math
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import anyio
from attrs import define, field

from pyoco_runtime.errors import ApiKeyRequired, Busy, InvalidApiKey, NatsUnavailable, Unreadable
from pyoco_runtime.hash_threads import HashThreads
from pyoco_runtime.model.api_key import LONGEST, ApiKey, Principal, parse_key, verified
from pyoco_runtime.ports import KeyStore, StoredKey

_log = logging.getLogger(__name__)

RIGHT = 10_000  # keys in memory, about 1.5 kB each
WRONG = 1_000  # apart, so that wrong keys push out no right ones
BLIND_SEC = 30.0  # how long a right key is trusted when nobody tells us of changes
WRONG_SEC = 5.0  # the same for a wrong one
NOBODY = ""  # the lane of all keys without a record
SIBLINGS = 64  # different secrets of one key id at a time; some are guesses
STRANGERS = 64  # of those at a time; a few seconds of hashing

Hashing = Callable[[Callable[[], Principal | None], str], Awaitable[Principal | None]]
"""Calls what it is given, outside of the event loop; fair to the lanes that the second argument names."""


@define(eq=False)
class _Verdict:
    """What is known about one presented key: who it is, by which record, and how fresh that record is."""

    key_id: str
    stored: StoredKey | None
    principal: Principal | None
    round: int
    """The round of the watch in which the record was read, or told."""
    at: float
    is_kept: bool = False
    """It lies in a drawer, where news of its record reach it."""


@define(eq=False)
class _Check:
    """A presented key that is being looked at; all who present it meanwhile get the same answer."""

    is_stale: bool = False
    """Its record has changed since it was read."""
    verdict: _Verdict | None = None
    problem: NatsUnavailable | None = None
    over: anyio.Event = field(factory=anyio.Event)


class KeyRing:
    """Says whose key it is. Belongs to the tree; the key cache actor tells it how the records change.

    A verdict holds for one version of the record. While the watch is live it is trusted until another version is told;
    without the watch for a limited time, and then the record is read for every check, which costs a round trip and no
    hash. Presented keys are kept as a digest that only this process can make.

    Against floods of wrong keys: they have a drawer of their own; hashes are made by few threads, in turns that are
    fair between key ids, all ids without a record counting as one; and past `STRANGERS` of those at a time the others
    are refused without a hash, which for them only hides that there is no record.
    """

    def __init__(self, store: KeyStore, pepper: str | None, hashing: Hashing | None = None) -> None:
        self._store = store
        self._pepper = pepper
        self._hashing: Hashing = hashing or HashThreads().run
        self._blank = hashlib.blake2b(key=secrets.token_bytes(32), digest_size=32)
        self._right = _Drawer(RIGHT)
        self._wrong = _Drawer(WRONG)
        self._checks: dict[str, dict[bytes, _Check]] = {}
        self._strangers = 0
        self._round = 0
        self._live_round = 0
        """The last round that had told everything; a verdict of an older one says nothing any more."""
        self._trusted_until = -math.inf

    def known(self, presented: str) -> Principal | None:
        """Whose key this is, if that needs no waiting; None says nothing: ask `check`."""
        if len(presented) > LONGEST or not presented.isascii():
            return None
        verdict = self._right.get(self._digest(presented))
        return verdict.principal if verdict is not None and self._is_trusted(verdict) else None

    async def check(self, presented: str | None) -> Principal:
        """Whose key this is. Raises ApiKeyRequired, InvalidApiKey, Busy, NatsUnavailable."""
        if not presented:
            raise ApiKeyRequired
        principal = self.known(presented)
        if principal is None:
            principal = (await self._verdict(parse_key(presented), self._digest(presented))).principal
        if principal is None:
            raise InvalidApiKey
        return principal

    # -- for the key cache actor ---------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """A watch was opened: from now on all records are told, and every write after them."""
        self._round += 1

    def end_load(self) -> None:
        """All that was stored has been told: the watch is live."""
        self._live_round = self._round
        self._trusted_until = math.inf

    def watch_lost(self) -> None:
        """Nobody tells us any more."""
        if self._trusted_until == math.inf:
            self._trusted_until = anyio.current_time() + BLIND_SEC

    def note(self, stored: StoredKey) -> None:
        """This is stored: verdicts by any other version are forgotten, those by this one are fresh."""
        self._compare(stored.record.key_id, stored)

    def forget(self, key_id: str) -> None:
        """The record is gone."""
        self._compare(key_id, None)

    def _compare(self, key_id: str, stored: StoredKey | None) -> None:
        for drawer in (self._right, self._wrong):
            for digest, verdict in drawer.of(key_id):
                if verdict.stored == stored:
                    verdict.round = self._round
                else:  # perhaps by a newer version, which we have read: then it costs a hash to be sure
                    drawer.drop(digest)
        for check in self._checks.get(key_id, {}).values():
            check.is_stale = True

    # -- how a key is looked at ----------------------------------------------------------------------------------------

    def _digest(self, presented: str) -> bytes:
        made = self._blank.copy()
        made.update(presented.encode())
        return made.digest()

    def _is_trusted(self, verdict: _Verdict) -> bool:
        if verdict.round >= self._live_round and self._trusted_until == math.inf:
            return True
        now = anyio.current_time()
        if verdict.principal is None:
            return now < verdict.at + WRONG_SEC
        return verdict.round >= self._live_round and now < self._trusted_until

    async def _verdict(self, key: ApiKey, digest: bytes) -> _Verdict:
        """The verdict that is known, or that somebody finds out just now, or that we find out."""
        verdict = self._wrong.get(digest)
        if verdict is not None and self._is_trusted(verdict):
            return verdict
        while check := self._checks.get(key.key_id, {}).get(digest):
            await check.over.wait()
            if check.problem is not None:
                raise NatsUnavailable(str(check.problem))
            if check.verdict is not None and check.verdict.is_kept:
                return check.verdict  # else it was cancelled, or there were news before we woke: once more
        return await self._found_out(key, digest)

    async def _found_out(self, key: ApiKey, digest: bytes) -> _Verdict:
        """Look at the key for all who present it; who is cancelled leaves that to the next."""
        check = _Check()
        siblings = self._checks.setdefault(key.key_id, {})
        if len(siblings) >= SIBLINGS:
            raise Busy("many different secrets are tried for this API key; ask again in a moment")
        siblings[digest] = check
        try:
            check.verdict = await self._examined(key, digest, check)
            return check.verdict
        except NatsUnavailable as error:
            check.problem = error
            raise
        finally:
            del siblings[digest]
            if not siblings:
                del self._checks[key.key_id]
            check.over.set()

    async def _examined(self, key: ApiKey, digest: bytes, check: _Check) -> _Verdict:
        verdict = self._right.get(digest) or self._wrong.get(digest)
        while True:
            check.is_stale = False
            # as they are before the read: what changes after it may not be told to us
            reading, at = self._round, anyio.current_time()
            stored = await self._read(key.key_id)
            if verdict is None or verdict.stored != stored:
                principal = await self._hashed(key, stored)
                verdict = _Verdict(key.key_id, stored, principal, reading, at)
            verdict.round, verdict.at = reading, at
            if not check.is_stale:
                self._keep(digest, verdict)
                return verdict

    async def _read(self, key_id: str) -> StoredKey | None:
        try:
            return await self._store.get(key_id)
        except Unreadable as error:
            _log.warning("the record of an API key cannot be read: %s", error, extra={"api_key_id": key_id})
            return None

    async def _hashed(self, key: ApiKey, stored: StoredKey | None) -> Principal | None:
        if stored is not None:
            return await self._hashing(functools.partial(verified, key, stored.record, self._pepper), key.key_id)
        if self._strangers >= STRANGERS:
            return None
        self._strangers += 1
        try:
            return await self._hashing(functools.partial(verified, key, None, self._pepper), NOBODY)
        finally:
            self._strangers -= 1

    def _keep(self, digest: bytes, verdict: _Verdict) -> None:
        drawer, other = (self._right, self._wrong) if verdict.principal else (self._wrong, self._right)
        other.drop(digest)
        drawer.put(digest, verdict)


class _Drawer:
    """Verdicts by digest; when it is full, the one that was not used for the longest time falls out."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._of: dict[str, set[bytes]] = {}

    def get(self, digest: bytes) -> _Verdict | None:
        """The verdict, which is used by that."""
        found = self._verdicts.get(digest)
        if found is not None:
            self._verdicts.move_to_end(digest)
        return found

    def of(self, key_id: str) -> list[tuple[bytes, _Verdict]]:
        """All verdicts about keys with that id."""
        return [(digest, self._verdicts[digest]) for digest in self._of.get(key_id, ())]

    def put(self, digest: bytes, verdict: _Verdict) -> None:
        """Keep it."""
        self.drop(digest)
        self._verdicts[digest] = verdict
        self._of.setdefault(verdict.key_id, set()).add(digest)
        verdict.is_kept = True
        if len(self._verdicts) > self._capacity:
            self.drop(next(iter(self._verdicts)))

    def drop(self, digest: bytes) -> None:
        """Forget it, if it is there."""
        verdict = self._verdicts.pop(digest, None)
        if verdict is None:
            return
        verdict.is_kept = False
        siblings = self._of[verdict.key_id]
        siblings.discard(digest)
        if not siblings:
            del self._of[verdict.key_id]
