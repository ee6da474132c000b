"""`pyoco-server-admin api-key ...`: makes, lists and revokes API keys."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from rich.console import Console as Terminal
from rich.table import Table
from rich.text import Text

from pyoco_runtime.cli import house as view
from pyoco_runtime.cli.run import configured
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.key_store import NatsKeyStore
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.messages import language, text
from pyoco_runtime.model.api_key import ApiKeyRecord, check_key_id, check_tenant_id, new_key
from pyoco_runtime.settings import Settings
from pyoco_runtime.tree import DEFAULT_NATS_URL, resource_names

T = TypeVar("T")


def create(args: argparse.Namespace) -> int:
    """Make a key and print it, the only time that anybody sees it."""
    settings = _settings(args)
    key, record = new_key(
        check_tenant_id(args.tenant),
        now=time.time(),
        pepper=settings.auth_pepper,
        randomness=secrets.token_bytes,
        admin=args.admin,
    )
    _with_keys(settings, lambda keys: keys.create(record))
    _print(
        {
            "key_id": record.key_id,
            "tenant_id": record.tenant_id,
            "api_key": key.plain(),
            "created_at": record.created_at,
            "admin": record.admin,
        }
    )
    if sys.stderr.isatty():
        print(text("MSG-PYOCO-0200", language()), file=sys.stderr)
    return 0


def show(args: argparse.Namespace) -> int:
    """Print all keys, the newest first, without their secrets."""
    stored = _with_keys(_settings(args), lambda keys: keys.list())
    records = [each.record for each in stored]
    if args.output == "json":
        _print([_listed(record) for record in records])
    elif records:
        terminal = Terminal() if sys.stdout.isatty() else Terminal(width=200)
        terminal.print(_table(records))
    else:
        print(text("MSG-PYOCO-0201", language()))
    return 0


def revoke(args: argparse.Namespace) -> int:
    """Make a key invalid; one that was revoked before keeps the time of that."""
    key_id = check_key_id(args.key_id)
    stored = _with_keys(_settings(args), lambda keys: keys.revoke(key_id, time.time()))
    if stored is None:
        _print({"error": "not_found", "key_id": key_id})
        print(
            f"[pyoco-server-admin][ERR-PYOCO-0018] {text('MSG-PYOCO-0202', language(), key_id=key_id)}", file=sys.stderr
        )
        return 1
    _print({"key_id": key_id, "revoked_at": stored.record.revoked_at})
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    return configured({"nats_url": args.nats_url} if args.nats_url else {}).settings


def _with_keys(settings: Settings, work: Callable[[NatsKeyStore], Awaitable[T]]) -> T:
    """What `work` returns. Raises UserError when NATS does not answer."""
    urls = settings.nats_url or (DEFAULT_NATS_URL,)

    async def done() -> T:
        async with _key_store(settings, urls) as keys:
            return await work(keys)

    try:
        return anyio.run(done)
    except NatsUnavailable as error:
        raise view.unreachable(urls, error) from error


@asynccontextmanager
async def _key_store(settings: Settings, urls: tuple[str, ...]) -> AsyncIterator[NatsKeyStore]:
    """The keys, on a connection of our own; the bucket is made if it is missing. Raises NatsUnavailable."""
    link = NatsLink(lambda: urls, "pyoco-server-admin", resource_names(settings))
    await link.connect()
    try:
        await link.prepare()
        link.declare_up()
        yield NatsKeyStore(link, settings.auth_kv_bucket)
    finally:
        with anyio.move_on_after(1, shield=True):
            await link.close()


def _listed(record: ApiKeyRecord) -> dict[str, object]:
    return {
        "key_id": record.key_id,
        "tenant_id": record.tenant_id,
        "created_at": record.created_at,
        "revoked_at": record.revoked_at,
        "admin": record.admin,
    }


def _table(records: list[ApiKeyRecord]) -> Table:
    drawn = Table("key id", "tenant", "admin", "created", "state", box=None, padding=(0, 2, 0, 0))
    for record in records:
        is_active = record.revoked_at is None
        state = "active" if record.revoked_at is None else f"revoked {_moment(record.revoked_at)}"
        drawn.add_row(
            Text(record.key_id, overflow="fold"),
            Text(record.tenant_id, overflow="fold"),
            "yes" if record.admin else "",
            _moment(record.created_at),
            Text(state, style="green" if is_active else "dim"),
        )
    return drawn


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if at else ""


def _print(value: object) -> None:
    print(json.dumps(value), flush=True)
