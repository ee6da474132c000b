"""The files of the dashboard, as they are in the package."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

HOME = Path(__file__).parent / "static"

TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".LICENSE": "text/plain; charset=utf-8",
}
"""What is served, and as what; a file of any other kind is not there."""

_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # so that none is hidden, none is `..`, and none has a drive


@frozen
class StaticFile:
    """A file as it is answered."""

    body: bytes
    content_type: str
    etag: str


def made(body: bytes, content_type: str) -> StaticFile:
    """A file that is on no disk."""
    return StaticFile(body, content_type, hashlib.sha256(body).hexdigest()[:32])


class StaticFiles:
    """Reads a file when it is asked for and has changed since: whoever works on the page reloads it and sees it."""

    def __init__(self, home: Path = HOME) -> None:
        self._home = home.resolve()
        self._read: dict[str, tuple[tuple[int, int], StaticFile]] = {}

    def find(self, name: str) -> StaticFile | None:
        """The file under this path, with `/` between its steps; None if there is none that may be seen."""
        path = self._path(name)
        if path is None:
            return None
        stat = path.stat()
        version = (stat.st_mtime_ns, stat.st_size)
        known = self._read.get(name)
        if known is None or known[0] != version:
            known = self._read[name] = (version, made(path.read_bytes(), TYPES[path.suffix]))
        return known[1]

    def _path(self, name: str) -> Path | None:
        if not all(map(_STEP.fullmatch, name.split("/"))):
            return None
        path = (self._home / name).resolve()  # a link must not lead out of the house either
        is_here = path.suffix in TYPES and path.is_relative_to(self._home) and path.is_file()
        return path if is_here else None
