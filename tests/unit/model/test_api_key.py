"""API keys: their form, their records, and who is let in by them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.errors import InvalidApiKey, PyocoError, Unreadable, UserError
from pyoco_runtime.model.api_key import (
    ITERATIONS,
    LONGEST,
    ApiKey,
    ApiKeyRecord,
    Principal,
    check_key_id,
    check_tenant_id,
    is_key_id,
    new_key,
    newest_first,
    parse_key,
    revoked,
    verified,
)
from pyoco_runtime.model.wire import key_from, key_to

ID = "0123456789abcdef01234567"
SECRET = "s3cret-s3cret_s3cret"
FEW = 3  # iterations; how many there are changes nothing but the time
RAW = {
    "key_id": ID,
    "tenant_id": "demo",
    "kdf": "pbkdf2_hmac_sha256",
    "iterations": FEW,
    "salt_b64": "c2FsdHNhbHRzYWx0c2FsdA",
    "created_at": 1.5,
    "revoked_at": None,
}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def hashed(password: str, iterations: int = FEW) -> str:
    return b64(hashlib.pbkdf2_hmac("sha256", password.encode(), b"saltsaltsaltsalt", iterations, 32))


def record(pepper: str = "", **fields: Any) -> ApiKeyRecord:
    """A record made by hand, with hashlib alone."""
    iterations = fields.get("iterations", FEW)
    raw = {**RAW, "hash_b64": hashed(SECRET + pepper, iterations), **fields}
    return key_from(json.dumps(raw).encode(), raw["key_id"])


def counted(start: int = 0) -> Callable[[int], bytes]:
    """Randomness that is none."""
    return lambda n: bytes((start + i) % 256 for i in range(n))


# -- the form ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key_id", "secret"),
    [
        ("pyoco_abcdefgh.0123456789abcdef", "abcdefgh", "0123456789abcdef"),
        ("pyoco_" + "a" * 64 + "." + "b" * 256, "a" * 64, "b" * 256),
        ("pyoco_________._--_--_--_--_--_-", "________", "_--_--_--_--_--_-"),
        ("pyoco_pyoco_pyoco_.pyoco_pyoco_pyoco_", "pyoco_pyoco_", "pyoco_pyoco_pyoco_"),
    ],
)
def test_a_key_is_taken_apart(text: str, key_id: str, secret: str) -> None:
    """And put together again as it was."""
    key = parse_key(text)
    assert (key.key_id, key.secret) == (key_id, secret)
    assert key.plain() == text
    assert len(text) <= LONGEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pyoco_",
        "pyoco_.",
        "pyoco_abcdefgh",
        "pyoco_abcdefg.0123456789abcdef",
        "pyoco_abcdefgh.0123456789abcde",
        "pyoco_" + "a" * 65 + ".0123456789abcdef",
        "pyoco_abcdefgh." + "b" * 257,
        "PYOCO_abcdefgh.0123456789abcdef",
        "xpyoco_abcdefgh.0123456789abcdef",
        " pyoco_abcdefgh.0123456789abcdef",
        "pyoco_abcdefgh.0123456789abcdef\n",
        "pyoco_abcdefgh.0123456789abcdef\x00",
        "pyoco_abc.efgh.0123456789abcdef",
        "pyoco_abcdefgh.0123456789abcde.",
        "pyoco_abcdefg*.0123456789abcdef",
        "pyoco_abcdefg>.0123456789abcdef",
        "pyoco_abcdefgh.0123456789abcde=",
        "pyoco_abcdefgh.0123456789abcdeé",
        "pyoco_abcdefg\uff41.0123456789abcdef",
        "pyoco_abcdefgh.\ud800123456789abcdef",
        "Bearer pyoco_abcdefgh.0123456789abcdef",
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    """All with the same words, none of which is the text."""
    with pytest.raises(InvalidApiKey, match=r"^invalid api key$"):
        parse_key(text)


@given(st.text(max_size=400))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    """Whatever it is."""
    with contextlib.suppress(InvalidApiKey):
        assert parse_key(text).plain() == text


@pytest.mark.parametrize(
    ("text", "right"), [("abcdefgh", True), ("short", False), ("a" * 65, False), ("abcdefg.", False)]
)
def test_key_ids(text: str, right: bool) -> None:
    """The error does not repeat the text: it may be a whole key, by mistake."""
    assert is_key_id(text) is right
    if right:
        assert check_key_id(text) == text
    else:
        with pytest.raises(UserError) as caught:
            check_key_id(text)
        assert text not in str(caught.value).split()


@pytest.mark.parametrize("text", ["", "a b", "a.b", "テナント", "a" * 65, "a\n"])
def test_a_tenant_that_cannot_be(text: str) -> None:
    """Is refused before anything is made."""
    with pytest.raises(UserError, match="for example demo"):
        check_tenant_id(text)
    with pytest.raises(UserError):
        new_key(text, now=1.0, pepper=None, randomness=counted(), iterations=FEW)


# -- the record -------------------------------------------------------------------------------------------------------


def test_a_record_survives_the_round_trip() -> None:
    """With the fields that others have added, also when it is revoked."""
    raw = {**RAW, "hash_b64": "eA", "note": {"by": ["peer"]}}
    found = key_from(json.dumps(raw).encode(), ID)
    assert found.extra == {"note": {"by": ["peer"]}}
    assert json.loads(key_to(found)) == {**raw, "admin": False}
    assert json.loads(key_to(revoked(found, 9.0))) == {**raw, "admin": False, "revoked_at": 9.0}


def test_an_old_record_is_not_admin() -> None:
    """Only a record that says so is, and it must say it as a boolean."""
    assert not record().admin
    assert record(admin=True).admin
    with pytest.raises(Unreadable, match="admin: must be true or false"):
        record(admin="true")


def test_nulls_of_another_writer_are_defaults() -> None:
    """The peer reads them so, too."""
    found = record(kdf=None, iterations=FEW, created_at=None)
    assert (found.kdf, found.created_at) == ("pbkdf2_hmac_sha256", 0.0)
    raw = {**RAW, "iterations": None, "hash_b64": "eA"}
    assert key_from(json.dumps(raw).encode(), ID).iterations == ITERATIONS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"[]",
        b"\xff",
        b"{}",
        json.dumps({**RAW}).encode(),
        json.dumps({**RAW, "hash_b64": 5}).encode(),
        json.dumps({**RAW, "hash_b64": "eA", "iterations": "many"}).encode(),
        json.dumps({**RAW, "hash_b64": "eA", "revoked_at": "yes"}).encode(),
        json.dumps({**RAW, "hash_b64": "eA", "key_id": "somebody-else"}).encode(),
    ],
)
def test_a_record_that_is_none_is_unreadable(data: bytes) -> None:
    """Also one that lies in another key's place: whose it is, is decided by the place."""
    with pytest.raises(Unreadable):
        key_from(data, ID)


def test_the_first_revocation_counts() -> None:
    """A second one changes nothing."""
    once = revoked(record(), 5.0)
    assert once.revoked_at == 5.0
    assert revoked(once, 6.0) is once


def test_the_newest_is_listed_first() -> None:
    """Ties by id."""
    found = [record(key_id=f"key-000{n}", created_at=at) for n, at in ((2, 1.0), (1, 1.0), (3, 2.0))]
    assert [each.key_id[-1] for each in sorted(found, key=newest_first)] == ["3", "1", "2"]


# -- who is let in ----------------------------------------------------------------------------------------------------


def test_the_hash_is_what_the_contract_says() -> None:
    """PBKDF2-HMAC-SHA256 of secret + pepper with 200,000 iterations, 32 bytes, url-safe without padding."""
    key, made = new_key("demo", now=7.0, pepper="pepper", randomness=counted())
    assert key.key_id == bytes(range(12)).hex()
    assert key.secret == b64(bytes(range(32)))
    expected = hashlib.pbkdf2_hmac("sha256", (key.secret + "pepper").encode(), bytes(range(16)), 200_000, 32)
    assert made == ApiKeyRecord(
        key_id=key.key_id, tenant_id="demo", salt_b64=b64(bytes(range(16))), hash_b64=b64(expected), created_at=7.0
    )
    assert (made.kdf, made.iterations) == ("pbkdf2_hmac_sha256", 200_000)
    assert verified(key, made, "pepper") == Principal(key.key_id, "demo", False)
    assert parse_key(key.plain()) == key


def test_a_known_answer() -> None:
    """RFC 7914, section 11: PBKDF2-HMAC-SHA256 of "passwd" and "salt", one iteration, here cut to 32 bytes."""
    answer = bytes.fromhex("55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc")
    known = evolve(record(), iterations=1, salt_b64=b64(b"salt"), hash_b64=b64(answer))
    assert verified(ApiKey(ID, "passwd"), known, None) is not None
    assert verified(ApiKey(ID, "pass"), known, "wd") is not None


@pytest.mark.parametrize(
    ("key", "stored", "pepper", "right"),
    [
        (ApiKey(ID, SECRET), record(), None, True),
        (ApiKey(ID, SECRET), record(), "", True),
        (ApiKey(ID, SECRET), record(iterations=1), None, True),
        (ApiKey(ID, SECRET), record(hash_b64=hashed(SECRET) + "="), None, True),
        (ApiKey(ID, SECRET), record(pepper="p"), "p", True),
        (ApiKey(ID, SECRET), record(pepper="胡椒"), "胡椒", True),
        (ApiKey(ID, SECRET), record(pepper="p"), None, False),
        (ApiKey(ID, SECRET), record(pepper="p"), "q", False),
        (ApiKey(ID, SECRET), record(), "p", False),
        (ApiKey(ID, SECRET + "x"), record(), None, False),
        (ApiKey(ID, SECRET[:-1]), record(), None, False),
        (ApiKey("another-id", SECRET), record(), None, False),
        (ApiKey(ID, SECRET), None, None, False),
        (ApiKey(ID, SECRET), record(revoked_at=1.0), None, False),
        (ApiKey(ID, SECRET), record(revoked_at=0), None, False),
        (ApiKey(ID, SECRET), record(revoked_at=9e9), None, False),
        (ApiKey(ID, SECRET), record(kdf="plain"), None, False),
        (ApiKey(ID, SECRET), record(kdf="scrypt"), None, False),
        (ApiKey(ID, SECRET), evolve(record(), iterations=0), None, False),
        (ApiKey(ID, SECRET), evolve(record(), iterations=-1), None, False),
        (ApiKey(ID, SECRET), evolve(record(), iterations=10**12), None, False),
        (ApiKey(ID, SECRET), record(salt_b64="*"), None, False),
        (ApiKey(ID, SECRET), record(salt_b64="é"), None, False),
        (ApiKey(ID, SECRET), record(hash_b64="*" + hashed(SECRET)), None, False),
        (ApiKey(ID, SECRET), record(hash_b64="a"), None, False),
        (ApiKey(ID, SECRET), record(hash_b64=""), None, False),
        (ApiKey(ID, SECRET), record(hash_b64=hashed(SECRET)[:-2]), None, False),
        (ApiKey(ID, SECRET), record(tenant_id="a b"), None, False),
        (ApiKey(ID, SECRET), record(tenant_id=""), None, False),
    ],
)
def test_who_is_let_in(key: ApiKey, stored: ApiKeyRecord | None, pepper: str | None, right: bool) -> None:
    """Only the right secret and pepper for a record that is whole and not revoked."""
    expected = Principal(ID, "demo", False) if right else None
    assert verified(key, stored, pepper) == expected


@pytest.mark.parametrize(
    "stored",
    [None, record(), record(revoked_at=1.0), record(kdf="plain"), record(hash_b64="*"), record(salt_b64="a")],
    ids=["unknown", "wrong", "revoked", "kdf", "hash", "salt"],
)
def test_every_refusal_takes_one_hash(monkeypatch: pytest.MonkeyPatch, stored: ApiKeyRecord | None) -> None:
    """One and no more, by the usual number of iterations where the record gives none that counts."""
    made: list[int] = []

    def counting(name: str, password: bytes, salt: bytes, iterations: int, dklen: int) -> bytes:
        made.append(iterations)
        return bytes(range(dklen))

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counting)
    assert verified(ApiKey(ID, "x" * 16), stored, None) is None
    is_whole = stored is not None and stored.kdf != "plain" and "*" not in stored.hash_b64 and stored.salt_b64 != "a"
    assert made == [FEW if is_whole else ITERATIONS]


def test_an_admin_is_one_who_has_the_key_of_one() -> None:
    """Who was minted so."""
    key, made = new_key("ops", now=1.0, pepper=None, randomness=counted(), admin=True, iterations=FEW)
    assert verified(key, made, None) == Principal(key.key_id, "ops", True)


# -- silence ----------------------------------------------------------------------------------------------------------


def test_no_secret_shows() -> None:
    """Not in a repr, not in an error, not in the whole traceback of one."""
    key, made = new_key("demo", now=1.0, pepper="the-pepper", randomness=counted(100), iterations=FEW)
    shown = [repr(key), str(key), repr(made), repr(verified(key, made, "the-pepper"))]
    doings: list[Callable[[], object]] = [
        lambda: parse_key(key.plain() + "!"),
        lambda: check_key_id(key.plain()),
        lambda: key_from(key_to(made).replace(b'"kdf":"', b'"kdf":5,"x":"'), key.key_id),
        lambda: key_from(key_to(made), "another-id"),
        lambda: key_from(key_to(made)[:-1], key.key_id),
    ]
    for doing in doings:
        with pytest.raises(PyocoError) as caught:
            doing()
        shown += [repr(caught.value), "".join(traceback.format_exception(caught.value))]
    for secret in (key.secret, made.hash_b64, made.salt_b64, "the-pepper"):
        assert not [text for text in shown if secret in text]
