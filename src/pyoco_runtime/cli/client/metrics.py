"""pyoco-client metrics: the figures of the gateway."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: -?\d+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `metrics`."""
    add_output(parser, "text", "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print them as Prometheus reads them, or as JSON."""
    page = session.client.get_metrics()
    if args.output == "json":
        session.screen.json(list(samples(page)))
    else:
        session.screen.lines(page)
    return 0


def samples(page: str) -> Iterator[dict[str, Any]]:
    """Every figure of a page in the text format of Prometheus."""
    for line in page.splitlines():
        if found := _SAMPLE.match(line):
            yield {
                "name": found["name"],
                "labels": {name: _ESCAPED.sub(_meant, value) for name, value in _LABEL.findall(found["labels"] or "")},
                "value": float(found["value"]),
            }


def _meant(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]
