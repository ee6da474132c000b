"""The program `pyoco-server`: the HTTP gateway, with the command line of the published program of that name."""

from __future__ import annotations

import argparse
import sys

from pyoco_runtime.cli.parser import Parser, guarded

PROG = "pyoco-server"
MONITOR_PORT = "8222"  # where the published program has it
EXAMPLE = """\
smallest working example:
  pyoco-server up --with-nats-bootstrap    a gateway on http://127.0.0.1:8000 and a NATS on this machine
  pyoco-server up --nats-url nats://127.0.0.1:4222    a gateway on a NATS that runs already

The word `up` may be left out. This is `pyoco-runtime --role gateway`: the same settings, variables and files.
Flows are executed by workers: pyoco-worker --help.
"""
_OPTIONS = ("host", "port", "nats_url", "log_level", "log_format", "config", "dashboard_lang")
_NATS_OPTIONS = ("nats_listen_host", "nats_client_port", "nats_http_port")


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal stops it; returns the exit code."""
    return guarded(PROG, _serve, argv)


def _serve(argv: list[str]) -> int:
    from pyoco_runtime.cli import run

    args = _parser().parse_args(argv)
    loaded = run.configured(_given(args))
    if args.with_nats_bootstrap and args.nats_url:
        _check_url(args.nats_url, loaded.settings.nats_listen_host, loaded.settings.nats_client_port)
    return run.start(loaded, only_check=args.check, prog=PROG)


def _parser() -> Parser:
    from pyoco_runtime.cli import run
    from pyoco_runtime.settings import SETTINGS

    parser = Parser(
        PROG,
        example=f"{PROG} up --nats-url nats://127.0.0.1:4222",
        description="Starts the HTTP gateway of pyoco-runtime.",
        epilog=EXAMPLE,
    )
    parser.add_argument("command", nargs="?", choices=["up"], default="up", metavar="up", help="start the gateway")
    run.add_settings(parser, (each for each in SETTINGS if each.name in _OPTIONS))
    nats = parser.add_argument_group("a NATS of its own")
    nats.add_argument(
        "--with-nats-bootstrap",
        action="store_true",
        help="start a nats-server too, by the program nats-bootstrap if that is installed, else the embedded one",
    )
    run.add_settings(nats, (each for each in SETTINGS if each.name in _NATS_OPTIONS))
    run.add_check(parser)
    return parser


def _given(args: argparse.Namespace) -> dict[str, str]:
    """The options as settings; an empty one counts as not given."""
    found: dict[str, str] = {name: getattr(args, name) or "" for name in (*_OPTIONS, *_NATS_OPTIONS)}
    if found["log_level"].strip().lower() == "trace":
        found["log_level"] = "debug"  # a word of uvicorn, whose levels the published program takes
    if args.with_nats_bootstrap:
        found["nats_server"] = "bootstrap"
        found["nats_http_port"] = found["nats_http_port"] or _monitor_port()
    return {"role": "gateway", **{name: value for name, value in found.items() if value.strip()}}


def _monitor_port() -> str:
    """Where the monitoring pages go unless a variable or a file says otherwise."""
    from pyoco_runtime.cli import run

    return "" if run.configured({}).settings.nats_http_port is not None else MONITOR_PORT


def _check_url(url: str, host: str, port: int) -> None:
    from pyoco_runtime.errors import UserError

    managed = f"nats://{host}:{port}"
    if url.strip() != managed:
        raise UserError(
            f"--nats-url {url} is not the NATS that --with-nats-bootstrap starts, which is {managed}: leave --nats-url"
            f" out, or leave --with-nats-bootstrap out to use the one at {url}"
        )


if __name__ == "__main__":
    sys.exit(main())
