"""pyoco-client wheel-upload: a wheel for the workers."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyoco_runtime.cli.client.options import add_output, tags_from
from pyoco_runtime.cli.client.progress import bar
from pyoco_runtime.cli.client.screen import note
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.wheel_check import checked
from pyoco_runtime.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `wheel-upload`."""
    parser.add_argument("--wheel-file", required=True, metavar="FILE", help="path to *.whl")
    parser.add_argument(
        "--tags", default=None, help="comma-separated tags: the workers that it is for; none is for all"
    )
    parser.add_argument("--replace", dest="replace", action="store_true", default=True, help="[default]")
    parser.add_argument(
        "--no-replace", dest="replace", action="store_false", help="refuse a name that is there already"
    )
    parser.add_argument(
        "--preflight",
        choices=["strict", "warn", "off"],
        default="strict",
        help="look into the wheel before it is sent [default strict]",
    )
    parser.add_argument("--allow-no-entry-points", action="store_true", help="a wheel without entry points is fine")
    parser.add_argument("--allow-missing-usage-doc", action="store_true", help="a wheel without documentation is fine")
    add_output(parser, "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Check it, send it with a progress bar, and print what the registry has now."""
    wheel = Path(args.wheel_file)
    try:
        _check(args, wheel, session)
        with bar(wheel.name, is_bytes=True) as update:
            stored = session.client.upload_wheel_file(
                wheel, replace=args.replace, tags=tags_from(args.tags), on_progress=update
            )
    except OSError as error:
        raise UserError(session.say(120, path=args.wheel_file, reason=error.strerror or error)) from error
    session.screen.json(stored)
    return 0


def _check(args: argparse.Namespace, wheel: Path, session: Session) -> None:
    if args.preflight == "off":
        return
    found = checked(
        wheel,
        needs_entry_points=not args.allow_no_entry_points,
        needs_usage_doc=not args.allow_missing_usage_doc,
    )
    for warning in found.warnings + (found.errors if args.preflight == "warn" else []):
        note(f"[pyoco-client][preflight][warn] {warning}")
    if found.errors and args.preflight == "strict":
        raise UserError(session.say(124, reasons="; ".join(found.errors)))
