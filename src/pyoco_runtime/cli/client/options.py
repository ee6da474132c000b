"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.errors import UserError


def add_output(parser: argparse.ArgumentParser, *choices: str) -> None:
    """--output; the first choice is the default, as published."""
    parser.add_argument("--output", choices=choices, default=choices[0], help=f"[default {choices[0]}]")


def add_run_filters(parser: argparse.ArgumentParser) -> None:
    """Which runs a list has."""
    parser.add_argument("--status", default=None, help="only runs in this status")
    parser.add_argument("--flow", default=None, help="only runs of this flow")
    parser.add_argument("--tag", default=None, help="only runs with this tag")


def tags_from(raw: str | None) -> list[str] | None:
    """Comma-separated tags; None if there are none."""
    return [tag.strip() for tag in (raw or "").split(",") if tag.strip()] or None


def file_text(path: str, session: Session) -> str:
    """A file that the user named. Raises UserError."""
    return file_bytes(path, session).decode("utf-8", "replace")


def file_bytes(path: str, session: Session) -> bytes:
    """A file that the user named. Raises UserError."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(session.say(120, path=path, reason=error.strerror or error)) from error
