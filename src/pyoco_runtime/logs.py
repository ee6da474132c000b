"""Logs as in the contract's part 6: JSON lines or text on stdout, with the actor's name on every line. One place."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any, TextIO, assert_never

from attrs import frozen

from pyoco_runtime.core import (
    Escalated,
    Event,
    Exited,
    Ready,
    Restarting,
    Started,
    Stopped,
    Stuck,
    current_path,
)

CONTEXT = ("actor", "run_id", "flow_name", "tag", "worker_id", "err_id", "msg_id", "reason")
_log = logging.getLogger("pyoco_runtime.house")


@frozen
class LogStyle:
    """How records are written."""

    service: str
    json: bool = True
    utc: bool = True
    traceback: bool = True


def set_up(style: LogStyle, level: str, stream: TextIO = sys.stdout) -> None:
    """Send everything that is logged in this process to `stream`. For programs only, never for an embedding host."""
    handler = Handler(stream)
    handler.setFormatter(JsonFormatter(style) if style.json else TextFormatter(style))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)


class Handler(logging.StreamHandler[TextIO]):
    """Adds the actor's name; a record that cannot be written is told on stderr with ERR-PYOCO-0013."""

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "actor"):
            record.actor = current_path.get()
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the standard library's
        print(f"[ERR-PYOCO-0013] a log record of {record.name} could not be written", file=sys.stderr)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, style: LogStyle) -> None:
        super().__init__()
        self._log_style = style

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": stamp(record.created, utc=self._log_style.utc),
            "service": self._log_style.service,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pathname": record.pathname,
            "lineno": record.lineno,
            "func": record.funcName,
        }
        line.update(context(record))
        if record.exc_info and record.exc_info[1] is not None:
            line.update(self._exception(record.exc_info[1]))
        return json.dumps(line, ensure_ascii=False, default=str, separators=(",", ":"))

    def _exception(self, error: BaseException) -> dict[str, Any]:
        shown: dict[str, Any] = {"exc_type": type(error).__name__, "exc_message": str(error)}
        if self._log_style.traceback:
            shown["exc_traceback"] = "".join(traceback.format_exception(error))
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            shown["exc_origin"] = {"file": frames[-1].filename, "line": frames[-1].lineno, "func": frames[-1].name}
        return shown


class TextFormatter(logging.Formatter):
    """One readable line, for a terminal."""

    def __init__(self, style: LogStyle) -> None:
        super().__init__()
        self._log_style = style

    def format(self, record: logging.LogRecord) -> str:
        known = context(record)
        actor = str(known.pop("actor", "-")).removeprefix("runtime/")
        line = f"{stamp(record.created, utc=False)[11:19]} {record.levelname:<7} {actor:<14} {record.getMessage()}"
        if known:
            line += "  " + " ".join(f"{key}={value}" for key, value in known.items())
        if record.exc_info and record.exc_info[1] is not None and self._log_style.traceback:
            line += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return line


def context(record: logging.LogRecord) -> dict[str, Any]:
    """What the record says about where it belongs."""
    found = {key: getattr(record, key, None) for key in CONTEXT}
    return {key: value for key, value in found.items() if value is not None}


def stamp(at: float, *, utc: bool) -> str:
    """A time as ISO 8601 with milliseconds."""
    if utc:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"
    return time.strftime("%Y-%m-%dT%H:%M:%S.{:03d}%z", time.localtime(at)).format(int(at % 1 * 1000))


def log_event(event: Event) -> None:
    """Write what happens in the tree; a listener for its feed."""
    extra: dict[str, object] = {"actor": event.path}
    match event:
        case Started():
            _log.debug("started (life %d)", event.life, extra=extra)
        case Ready():
            _log.debug("ready (life %d)", event.life, extra=extra)
        case Exited(crash=None):
            _log.debug("stopped" if event.wanted else "ended", extra=extra)
        case Exited():
            assert event.crash is not None
            extra["err_id"] = getattr(event.error, "err_id", None)
            _log.error("crashed: %s: %s", event.crash.type, event.crash.message, extra=extra, exc_info=event.error)
        case Restarting():
            also = "" if event.because == event.path else f" because {event.because} failed"
            _log.warning("restarting in %.1f s%s", event.delay_sec, also, extra=extra)
        case Escalated():
            _log.critical("%s", event.reason, extra={**extra, "err_id": "ERR-PYOCO-0031"})
        case Stuck():
            _log.error(
                "cancelled and still running after %g s", event.after_sec, extra={**extra, "err_id": "ERR-PYOCO-0032"}
            )
        case Stopped():
            _log.debug("all children are down", extra=extra)
        case _:
            assert_never(event)
