"""Makes docs/reference/errors.md from errors.py and the catalogue: python tools/errors_page.py > <the page>."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyoco_runtime.errors
from pyoco_runtime.errors import PyocoError
from pyoco_runtime.messages import text

CONTRACT = range(1, 25)
"""The ids that pyoco-server 0.5.1 has too."""

INTRODUCTION = """\
# Errors

<!-- Made by `python tools/errors_page.py`; change that, src/pyoco_runtime/errors.py or messages/en.toml instead. -->

ERR and MSG ids share their numbers: ERR-PYOCO-0025 has the text MSG-PYOCO-0025, in English and in Japanese. HTTP
answers (`err_id`, `msg_id`), logs, dead letters and messages on stderr carry them. `detail` of an HTTP answer, and what
stands behind the id on stderr, says what is wrong in this case; the texts below are the general ones.

## Of the contract

These are the ids that `pyoco-server` 0.5.1 uses too; the same number means the same there.

| id | text | where | what to do |
|---|---|---|---|
"""

MIDDLE = """
## Of pyoco-runtime

| id | error | meaning | what to do |
|---|---|---|---|
"""

END = """
## Without an id

These never leave the process. [Supervision](../explanation/supervision.md) explains those of the actors.

| error | meaning |
|---|---|
"""

WHERE = {
    1: ("client, exit 1", "Start a gateway, or name the right one with `--server` or `PYOCO_SERVER`."),
    2: ("HTTP 422 (413 for a wheel); every other HTTP error without an id of its own", "`detail` names the field."),
    3: ("HTTP 503, logs", "Nothing at first: we connect again by ourselves. If it stays: `pyoco-client doctor`."),
    4: ("log", "Nothing: the reconciler ends the run."),
    5: ("HTTP 404", "`pyoco-client list` shows your runs; those of other tenants are not found either."),
    6: ("log, dead letter", "Start a worker whose resolver has the flow, then `pyoco-client dlq replay`."),
    7: ("log, dead letter", "The flow raised: `pyoco-client tasks <run_id>` shows in which task."),
    8: ("log", "Nothing: it is tried until NATS takes it, or another attempt has the run."),
    9: ("log", "Nothing, unless it stays: then the job goes to another worker."),
    10: ("log", "Return less from your tasks, or raise `PYOCO_MAX_RUN_SNAPSHOT_BYTES`."),
    11: ("log", "The snapshot has the same reason. Look why NATS refuses the letter."),
    12: ("log, dead letter", "Whoever published it must send what [the wire format](wire-formats.md#job) asks for."),
    13: ("log, stderr", "Report it with the log; everything else goes on."),
    14: ("HTTP 401", "Send the key: `--api-key`, `PYOCO_API_KEY` or the header `X-API-Key`."),
    15: ("HTTP 403", "Check the key; `pyoco-server-admin api-key list` shows those that there are."),
    16: ("HTTP 413", "Make the file smaller, or raise `PYOCO_WORKFLOW_YAML_MAX_BYTES` at the gateway."),
    17: ("HTTP 422", "`detail` names the parameter and what is right."),
    18: ("exit 1", "The message has a correct example. Other things that you can mend have this id too."),
    19: ("HTTP 422", "`detail` says what is right."),
    20: ("HTTP 404", "`pyoco-client workers --scope all` shows them."),
    21: ("log", "Nothing for child processes: the run is killed. In threads the flow must look at `ctx.is_cancelled`."),
    22: ("HTTP 409", "Raise the version: only newer ones of a package are taken."),
    23: ("HTTP 404", "`pyoco-client wheels` shows them."),
    24: ("log, worker record", "Read the reason; the old wheels stay in use, and it is tried again."),
}
"""Where each id of the contract appears, and what to do."""

ADVICE = {
    "InvalidSetting": "Correct the value where the message says; [Settings](settings.md) says what is right.",
    "InvalidLayout": "Correct the line that the message names; try it with `--check`."
    " See [supervisor.toml](supervisor-toml.md).",
    "AddressInUse": "Stop that program, or choose another port with the option or variable in the message;"
    " 0 takes any free one.",
    "StoreLocked": "Stop the process with the pid in the message, or set another `PYOCO_NATS_STORE_DIR`.",
    "NatsServerDied": "Nothing at first: it is restarted. If it repeats, read its last words in the message and"
    " its log lines (logger `nats-server`).",
    "StartTimeout": "Counts as a crash. Find out what it waits for, or raise its `start_timeout_sec`.",
    "RestartIntensityExceeded": "Mend what the crash in the message names. At the root the process ends with 1."
    " `max_restarts` and `within_sec` are in supervisor.toml.",
    "ChildStuck": "It is a defect of that actor: it ignores cancellation. Report it with the log; restart the process.",
    "NoSuchActor": "Take one of the names in the message.",
    "Unreadable": "The message says what is wrong with the value. A run with such a snapshot becomes a dead letter.",
    "RunnerUnavailable": "Read the reason: usually the flow resolver cannot be imported. The job is given back.",
    "LetterNotFound": "Take a `seq` from `pyoco-client dlq list`.",
    "NotReplayable": "The message says why; submit the run again by hand.",
    "KeyReused": "Use a new Idempotency-Key for a new request.",
    "AdminOnly": "Use a key that was made with `pyoco-server-admin api-key create --admin`.",
    "BodyTooLarge": "Send less, or in several requests.",
    "Busy": "Ask again in a moment.",
}
"""What to do, by the name of the error."""


def page() -> str:
    """The whole page as Markdown."""
    return INTRODUCTION + _lines(_of_contract()) + MIDDLE + _lines(_ours()) + END + _lines(_nameless())


def _of_contract() -> Iterator[str]:
    for number in CONTRACT:
        where, advice = WHERE[number]
        yield f"| ERR-PYOCO-{number:04d} | {text(f'MSG-PYOCO-{number:04d}', 'en')} | {where} | {advice} |"


def _ours() -> Iterator[str]:
    numbered = [(error.number, name) for name, error in _errors() if (error.number or 0) not in (0, *CONTRACT)]
    for number, name in sorted(numbered):
        yield f"| ERR-PYOCO-{number:04d} | `{name}` | {_meaning(name)} | {ADVICE[name]} |"


def _nameless() -> Iterator[str]:
    for name, error in _errors():
        if error.number is None and error not in (PyocoError, pyoco_runtime.errors.ActorError):
            yield f"| `{name}` | {_meaning(name)} |"


def _errors() -> Iterator[tuple[str, type[PyocoError]]]:
    for name, error in vars(pyoco_runtime.errors).items():
        if isinstance(error, type) and issubclass(error, PyocoError):
            yield name, error


def _meaning(name: str) -> str:
    return str(getattr(pyoco_runtime.errors, name).__doc__).strip()


def _lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
