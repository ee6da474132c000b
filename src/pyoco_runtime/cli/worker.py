"""The program `pyoco-worker`: a worker, with the command line of the published program of that name."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyoco_runtime.cli.parser import Parser, guarded

PROG = "pyoco-worker"
EXAMPLE = """\
smallest working example:
  pyoco-worker --flow-resolver examples/hello_flow.py:resolve    runs its flows, on the NATS at 127.0.0.1:4222
  pyoco-worker --tags gpu,big --concurrency 2                    runs that bring their own flow.yaml, of two tags
  pyoco-worker --run-once --poll-timeout 5                       one run at most, then it ends

This is `pyoco-runtime --role worker`: the same settings, variables and files. A run is submitted to a gateway:
pyoco-server --help.
"""
_OPTIONS = (
    *("nats_url", "tags", "worker_id", "flow_resolver", "concurrency", "isolation"),
    *("wheel_sync_dir", "wheel_sync_interval_sec", "wheel_install_timeout_sec"),
    *("worker_probe_host", "worker_probe_port", "log_level", "log_format", "config"),
)
POLL_SEC = 1.0  # as the published program


def main(argv: list[str] | None = None) -> int:
    """Work until a signal stops it, or for one run; returns the exit code."""
    return guarded(PROG, _work, argv)


def _work(argv: list[str]) -> int:
    from pyoco_runtime.cli import run

    args = _parser().parse_args(argv)
    loaded = run.configured(_given(args))
    _check_resolver(loaded.settings.flow_resolver)
    return run.start(loaded, only_check=args.check, prog=PROG, once_sec=args.poll_timeout if args.run_once else None)


def _parser() -> Parser:
    from pyoco_runtime.cli import run
    from pyoco_runtime.settings import SETTINGS

    parser = Parser(
        PROG,
        example=f"{PROG} --tags default --flow-resolver examples/hello_flow.py:resolve",
        description="Takes runs of its tags off the queue and executes their flows.",
        epilog=EXAMPLE,
    )
    run.add_settings(parser, (each for each in SETTINGS if each.name in _OPTIONS))
    wheels = parser.add_mutually_exclusive_group()
    wheels.add_argument(
        "--wheel-sync",
        dest="wheel_sync",
        action="store_true",
        default=None,
        help="install the wheels that are meant for its tags [PYOCO_WHEEL_SYNC_ENABLED; default false]",
    )
    wheels.add_argument("--no-wheel-sync", dest="wheel_sync", action="store_false", help="do not")
    parser.add_argument("--run-once", action="store_true", help="take one run at most, bring it to its end, and exit")
    parser.add_argument(
        "--poll-timeout",
        type=_seconds,
        default=POLL_SEC,
        metavar="SEC",
        help=f"how long --run-once looks for a run [default {POLL_SEC:g}]; without it jobs are pushed, nobody polls",
    )
    run.add_check(parser)
    return parser


def _seconds(text: str) -> float:
    from pyoco_runtime.setting_kinds import seconds

    kind = seconds(0)
    try:
        return kind.read(text)
    except ValueError:
        raise argparse.ArgumentTypeError(kind.explain(text)) from None


def _given(args: argparse.Namespace) -> dict[str, str]:
    """The options as settings; an empty one counts as not given."""
    found: dict[str, str] = {name: getattr(args, name) or "" for name in _OPTIONS}
    if args.wheel_sync is not None:
        found["wheel_sync_enabled"] = "true" if args.wheel_sync else "false"
    if args.run_once:
        found["concurrency"] = "1"
    return {"role": "worker", **{name: value for name, value in found.items() if value.strip()}}


def _check_resolver(spec: str | None) -> None:
    """Raise UserError for a file that is not there; all else shows when a child process imports it."""
    from pyoco_runtime.errors import UserError

    place = (spec or "").rpartition(":")[0].strip()
    if place.endswith(".py") and not Path(place).expanduser().is_file():
        raise UserError(
            f"--flow-resolver {spec}: there is no file {place}; name one that is there, as in"
            " --flow-resolver examples/hello_flow.py:resolve, or a module: --flow-resolver mypackage.flows:resolve"
        )


if __name__ == "__main__":
    sys.exit(main())
