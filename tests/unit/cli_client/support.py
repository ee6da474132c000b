"""pyoco-client on a gateway that answers what a test says."""

from __future__ import annotations

import argparse
from typing import Any, cast

import httpx
from attrs import define, field

from pyoco_runtime.cli.client.commands import command, parser_for
from pyoco_runtime.cli.client.screen import Screen
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.client import GatewayRefused
from pyoco_runtime.messages import Language


@define
class FakeClient:
    """Answers each method with what was put in; remembers what it was asked. An exception is raised."""

    answers: dict[str, Any] = field(factory=dict)
    asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(factory=list)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.answers:
            raise AttributeError(name)

        def answer(*args: Any, **named: Any) -> Any:
            self.asked.append((name, args, named))
            found = self.answers[name]
            if isinstance(found, Exception):
                raise found
            return found(*args, **named) if callable(found) else found

        return answer


def session(lang: Language = "en", **answers: Any) -> Session:
    return Session("http://gateway:8000", cast(Any, FakeClient(answers)), Screen(), lang)


def asked(of: Session) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    return cast(FakeClient, of.client).asked


def parsed(*argv: str) -> argparse.Namespace:
    return parser_for(argv).parse_args(list(argv))


def run(of: Session, *argv: str) -> int:
    """Run one command line; returns its exit code."""
    args = parsed(*argv)
    return command(args.command).run(args, of)


def refused(status: int, detail: object, number: int | None = None, path: str = "/runs/x") -> GatewayRefused:
    request = httpx.Request("GET", f"http://gateway:8000{path}")
    ids = (None, None) if number is None else (f"ERR-PYOCO-{number:04d}", f"MSG-PYOCO-{number:04d}")
    return GatewayRefused(httpx.Response(status, request=request), detail, *ids)
