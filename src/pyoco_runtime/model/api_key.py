"""API keys: how they look, what is stored of them, and whether one is right."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from pyoco_runtime.errors import InvalidApiKey, UserError
from pyoco_runtime.model.run import NOTHING

KDF = "pbkdf2_hmac_sha256"
ITERATIONS = 200_000
MOST_ITERATIONS = 10_000_000  # some seconds; a record that asks for more is damaged, or meant to keep us busy
SALT_BYTES = 16
HASH_BYTES = 32
SECRET_BYTES = 32
KEY_ID_BYTES = 12  # written in hex: an id that begins with a dash would look like an option to the command line

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_TENANT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY = re.compile(rf"pyoco_({_KEY_ID.pattern})\.([A-Za-z0-9_-]{{16,256}})")
LONGEST = len("pyoco_") + 64 + len(".") + 256  # characters of a key


@frozen
class ApiKey:
    """A key as its holder presents it. Never stored; its secret shows in no repr."""

    key_id: str
    secret: str = field(repr=False)

    def plain(self) -> str:
        """The whole key, to be shown once, to the person that it was made for."""
        return f"pyoco_{self.key_id}.{self.secret}"


@frozen(kw_only=True)
class ApiKeyRecord:
    """What is stored of a key, one KV value."""

    key_id: str
    tenant_id: str
    kdf: str = KDF
    iterations: int = ITERATIONS
    salt_b64: str = field(repr=False)
    hash_b64: str = field(repr=False)
    created_at: float = 0.0
    revoked_at: float | None = None
    admin: bool = False
    """May look at and change what belongs to no tenant (ours)."""
    extra: Mapping[str, Any] = field(default=NOTHING, repr=False)
    """Fields of other writers, kept on rewrite."""


@frozen
class Principal:
    """Who asks: the holder of a key that was found right."""

    key_id: str
    tenant_id: str
    is_admin: bool


def parse_key(text: str) -> ApiKey:
    """Read `pyoco_<key_id>.<secret>`. Raises InvalidApiKey, which says nothing about what is wrong."""
    found = _KEY.fullmatch(text)
    if found is None:
        raise InvalidApiKey
    return ApiKey(found[1], found[2])


def is_key_id(text: str) -> bool:
    """Whether a key can have that id."""
    return _KEY_ID.fullmatch(text) is not None


def check_key_id(text: str) -> str:
    """The id as it is. Raises UserError, without what was given: it may be the whole key, by mistake."""
    if is_key_id(text):
        return text
    raise UserError(
        "this cannot be a key id: it is what stands between pyoco_ and the dot of a key,"
        " 8 to 64 letters, digits, - and _; `api-key list` shows all of them"
    )


def check_tenant_id(text: str) -> str:
    """The tenant as it is. Raises UserError."""
    if _TENANT_ID.fullmatch(text):
        return text
    raise UserError(f"{text!r} cannot be a tenant: 1 to 64 letters, digits, - and _, for example demo")


def new_key(
    tenant_id: str,
    *,
    now: float,
    pepper: str | None,
    randomness: Callable[[int], bytes],
    admin: bool = False,
    iterations: int = ITERATIONS,
) -> tuple[ApiKey, ApiKeyRecord]:
    """A key and what to store of it; `randomness` gives so many secret bytes. Raises UserError."""
    key = ApiKey(randomness(KEY_ID_BYTES).hex(), _to_b64(randomness(SECRET_BYTES)))
    salt = randomness(SALT_BYTES)
    record = ApiKeyRecord(
        key_id=key.key_id,
        tenant_id=check_tenant_id(tenant_id),
        iterations=iterations,
        salt_b64=_to_b64(salt),
        hash_b64=_to_b64(_derived(key, pepper, salt, iterations)),
        created_at=now,
        admin=admin,
    )
    return key, record


def revoked(record: ApiKeyRecord, at: float) -> ApiKeyRecord:
    """The record from now on; one that is revoked stays as it is."""
    return record if record.revoked_at is not None else evolve(record, revoked_at=at)


def newest_first(record: ApiKeyRecord) -> tuple[float, str]:
    """How lists of keys are sorted."""
    return (-record.created_at, record.key_id)


def verified(key: ApiKey, record: ApiKeyRecord | None, pepper: str | None) -> Principal | None:
    """Whose key it is, or None if it is not right; takes a fraction of a second of CPU, so not in the event loop.

    A key without a record, or with one that is of no use, takes as long as a wrong secret: nobody can find out which
    key ids there are.
    """
    lock = _lock(record) if record is not None else None
    fits = _fits(key, lock or _NOBODYS, pepper)
    if record is None or lock is None or not fits:
        return None
    if record.key_id != key.key_id or record.revoked_at is not None or not _TENANT_ID.fullmatch(record.tenant_id):
        return None
    return Principal(record.key_id, record.tenant_id, record.admin)


@frozen
class _Lock:
    """What a secret must fit."""

    salt: bytes
    hash: bytes = field(repr=False)
    iterations: int


_NOBODYS = _Lock(bytes(SALT_BYTES), bytes(HASH_BYTES), ITERATIONS)


def _lock(record: ApiKeyRecord) -> _Lock | None:
    if record.kdf != KDF or not 1 <= record.iterations <= MOST_ITERATIONS:
        return None
    try:
        salt, expected = _from_b64(record.salt_b64), _from_b64(record.hash_b64)
    except (binascii.Error, ValueError):
        return None
    return _Lock(salt, expected, record.iterations) if len(expected) == HASH_BYTES else None


def _fits(key: ApiKey, lock: _Lock, pepper: str | None) -> bool:
    return hmac.compare_digest(_derived(key, pepper, lock.salt, lock.iterations), lock.hash)


def _derived(key: ApiKey, pepper: str | None, salt: bytes, iterations: int) -> bytes:
    password = (key.secret + (pepper or "")).encode()
    return hashlib.pbkdf2_hmac("sha256", password, salt, iterations, HASH_BYTES)


def _to_b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _from_b64(text: str) -> bytes:
    bare = text.rstrip("=")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)
