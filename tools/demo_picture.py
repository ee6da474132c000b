"""Makes docs/images/demo.svg anew: python tools/demo_picture.py. Needs the usual ports of the demo to be free."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # it has no types
import pyte
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/demo.svg"
COLUMNS, LINES = 100, 40
LIMIT_SEC = 60.0
END = "Ctrl-C stops everything."
COLOURS = {"brown": "yellow"}  # pyte calls it so
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- Made by tools/demo_picture.py -->
<title>pyoco-runtime demo: six tasks with green ticks, and three commands to try next</title>
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own fetches a font from elsewhere; a page that shows the picture must not."""


def main() -> int:
    """Run it, and write the picture; returns the exit code."""
    with tempfile.TemporaryDirectory() as place:
        lines = _screen(Path(place))
    text = "\n".join(line.plain for line in lines)
    if "is in use" in text:
        print("a port of the demo is in use: the picture would not show the usual ones", file=sys.stderr)
        return 1
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in (Text("$ make demo", "bold"), *lines):
        console.print(line, no_wrap=True, crop=True)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(console.export_svg(title="pyoco-runtime", code_format=FORMAT, unique_id="demo"))
    print(PICTURE.relative_to(ROOT))
    return 0


def _screen(place: Path) -> list[Text]:
    """What the demo shows when the run is over, without the empty lines below."""
    shutil.copytree(ROOT / "examples", place / "examples")
    (place / ".venv").symlink_to(Path(sys.executable).parents[1])
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYOCO_")}
    environ |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYOCO_LOAD_DOTENV": "0"}
    child = pexpect.spawn(
        str(place / ".venv/bin/python"),
        ["-m", "pyoco_runtime.cli.main", "demo"],
        cwd=str(place),
        env=environ,
        dimensions=(LINES, COLUMNS),
        encoding="utf-8",
    )
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.Stream(screen)
    deadline = time.monotonic() + LIMIT_SEC
    try:
        while END not in "".join(screen.display):
            if time.monotonic() > deadline:
                raise TimeoutError("\n".join(screen.display))
            stream.feed(child.read_nonblocking(4096, timeout=LIMIT_SEC))
        child.sendintr()
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    last = next(number for number in range(LINES) if END in screen.display[number])
    return [_line(screen, number) for number in range(last + 1)]


def _line(screen: pyte.Screen, number: int) -> Text:
    line = Text()
    for column in range(COLUMNS):
        cell = screen.buffer[number][column]
        colour = "" if cell.fg == "default" else COLOURS.get(cell.fg, cell.fg)
        line.append(cell.data, f"{'bold ' if cell.bold else ''}{colour}".strip())
    line.rstrip()
    return line


if __name__ == "__main__":
    sys.exit(main())
