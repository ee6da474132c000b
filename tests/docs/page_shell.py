"""Runs the commands of a page as its reader would: in order, in one shell, in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from attrs import field, frozen

from tests.docs.pages import BIN, ROOT, Step

LIMIT_SEC = 180.0  # it takes 10 to 30; the machine may be busy with other tests
LINKED = ("Makefile", "pyproject.toml", "requirements.lock", "src", "supervisor.toml", "tests")
MARK = "\x1e"  # the separator of records, which no output has
STAYS = re.compile(r"(\w+=\S+ )*(make demo|(\S*/)?(pyoco-server|pyoco-worker|pyoco-runtime (--role|demo))(?![\w-]).*)")
ENDS = re.compile(r"--(check|run-once|help)\b")

PRELUDE = r"""
set -m -e -o pipefail
services=()
until_up() {  # another process is waited for, and its words are all that it shows
  until grep -q 'Ctrl-C stops' "$1"; do kill -0 "$2" || { cat "$1"; exit 1; }; sleep 0.05; done
}
ctrl_c() {
  for (( i = ${#services[@]} - 1; i >= 0; i-- )); do
    kill -INT -- "-${services[i]}"
    code=0; wait "${services[i]}" || code=$?
    [ $code = 0 ] || [ $code = 130 ] || { echo "ended with $code:" >&2; cat "service-$i.log" >&2; exit 1; }
  done
}
curl() {  # an answer that is an error ends it
  case "$*" in -sf*|*http_code*) ;; *) set -- --silent --show-error --fail-with-body "$@" ;; esac
  command curl "$@"
}
"""


@frozen
class Shell:
    """A place with free ports, in which the commands of one page are run."""

    place: Path
    http_port: int = field(factory=lambda: _free_port())
    nats_port: int = field(factory=lambda: _free_port())

    def run(self, steps: Iterable[Step]) -> list[str]:
        """Run them all; returns what each has printed. Raises AssertionError if one of them fails."""
        wanted = list(steps)
        _copy(self.place)
        script = PRELUDE + "".join(map(self._lines, wanted)) + "ctrl_c; rm -f pids\n"
        with (self.place / "output").open("w+") as output:
            process = subprocess.Popen(
                ["bash", "-c", script], cwd=self.place, env=self._environ(), stdout=output, stderr=subprocess.STDOUT
            )
            code: int | str = f"nothing after {LIMIT_SEC:g} s"
            try:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(LIMIT_SEC)
            finally:
                _end(process, self.place / "pids")
            output.seek(0)
            said = output.read().split(MARK)[1:]
        assert code == 0, f"ended with {code} at: {wanted[len(said) - 1].command}\n{''.join(said)[-3000:]}"
        assert len(said) == len(wanted)
        return [self._usual(text) for text in said]

    def _lines(self, step: Step) -> str:
        command = self._moved(step.command)
        if STAYS.fullmatch(step.command) and not ENDS.search(step.command):
            log = "service-${#services[@]}.log"
            return (
                f"printf '{MARK}'\nlog={log}\n{{ {command}; }} >$log 2>&1 &\n"
                f"services+=($!); echo $! >>pids; until_up $log $!; cat $log\n"
                f"export PYOCO_NATS_URL=nats://127.0.0.1:{self.nats_port}\n"  # as the usual port would tell the others
            )
        if step.fails:
            command = f"if {command}; then echo 'this was to fail'; exit 1; fi"
        return f"printf '{MARK}'\n{command}\n"

    def _moved(self, command: str) -> str:
        """On the ports that are free here, and without setting up what the tests run on."""
        command = command.replace(":8000", f":{self.http_port}").replace(":4222", f":{self.nats_port}")
        command = re.sub(r"^make demo$", "make -o .venv/.ready demo", command)
        return re.sub(r"^make test$", "make -o .venv/.ready -o .venv-peers/.ready --dry-run test", command)

    def _usual(self, text: str) -> str:
        host = socket.gethostname()
        text = text.replace(str(self.http_port), "8000").replace(str(self.nats_port), "4222")
        return text.replace(re.sub(r"[^A-Za-z0-9_-]", "-", host), "myhost").replace(host, "myhost")

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYOCO_")}
        return {
            **kept,
            "LC_ALL": "C.UTF-8",
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYOCO_LOAD_DOTENV": "0",
            "PYOCO_PORT": str(self.http_port),
            "PYOCO_NATS_CLIENT_PORT": str(self.nats_port),
            "PYOCO_NATS_HTTP_PORT": str(_free_port()),
            "PYOCO_SERVER": f"http://127.0.0.1:{self.http_port}",
        }


def check_sample(step: Step, said: str) -> None:
    """Every line that the page shows was printed, up to ids, numbers and the space between the columns."""
    printed = {_plain(line) for line in said.splitlines()}
    for line in step.sample.splitlines():
        if line.strip() not in ("", "..."):
            assert _plain(line) in printed, f"{step.command} did not print {line!r}, but:\n{said}"


def _plain(line: str) -> str:
    line = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "<id>", line)
    line = re.sub(r"\d+(\.\d+)?(e-\d+)?( ?ms|(?=s\b))?", "0", line)
    return re.sub(r"\s+", " ", line).strip()


def _copy(place: Path) -> None:
    """As much of the repository as the commands need: linked, except for what they write to."""
    shutil.copytree(ROOT / "examples", place / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name in LINKED:
        (place / name).symlink_to(ROOT / name)
    (place / ".venv").symlink_to(BIN.parent)


def _end(process: subprocess.Popen[bytes], pids: Path) -> None:
    """Whatever is left of what was started; nothing, if all went well."""
    process.kill()
    process.wait()
    for pid in pids.read_text().split() if pids.exists() else ():
        with suppress(ProcessLookupError):
            os.killpg(int(pid), signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
