"""Makes docs/reference/pyoco-client.md from the parsers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from pyoco_runtime.cli.client.commands import COMMANDS, DEFAULT_HEADER, DEFAULT_SERVER, whole_parser

HEAD = f"""\
# pyoco-client

<!-- Made by `python -m pyoco_runtime.cli.client.reference_page`; change the files beside that one instead. -->

Talks to a gateway of pyoco-runtime, or of pyoco-server 0.5.1, over HTTP.

```text
pyoco-client [--server URL] [--api-key KEY] [--api-key-header NAME] <command> ...
```

| option | variable | default | what it does |
|---|---|---|---|
| `--server` | `PYOCO_SERVER` | `{DEFAULT_SERVER}` | The gateway to ask. |
| `--api-key` | `PYOCO_API_KEY` | | The key, if the gateway wants one. |
| `--api-key-header` | | `{DEFAULT_HEADER}` | The header that carries the key. |

These stand before the command.

## What all commands share

- `--output json` prints one line of JSON. It is what the gateway answered, for programs.
- `--output table` fits the width of a terminal: the least important columns are cut first, ids never. In a pipe it
  prints every value in full and raw, in columns with two spaces between them.
- Colours are for terminals only. `NO_COLOR=1` turns them off.
- Progress bars and remarks go to stderr. The result goes to stdout.
- Messages are Japanese if `LC_ALL`, `LC_MESSAGES` or `LANG` begins with `ja`, else English.

| exit code | meaning |
|---|---|
| 0 | done; also when whoever reads the output has had enough (`pyoco-client list \\| head`) |
| 1 | something you can fix: stderr says what, with the id of the [error](errors.md) and the next step |
| 130 | interrupted by Ctrl-C |

## Commands
"""

REMARKS = {
    "submit": (
        "The params are merged: `--params`, then `--params-file`, then `--param`; the later wins. A"
        " value of `--param` is"
        " JSON if it can be read as that (`x=1` is a number), else text. If no live worker announces"
        " the flow, stderr says"
        " so, with the flows that there are; the run is accepted all the same."
    ),
    "batch": (
        "Every line is checked before anything is sent; wrong ones are named by their number. Runs are"
        " sent 500 at a time."
        " If the connection breaks in between, stderr says with which `--from-line` to go on. Prints"
        " the run ids, one a line."
    ),
    "logs": (
        "Each line begins with the name of its task, unless `--task` names one. A record keeps the end"
        " of a long output."
        " Workers of pyoco-server 0.5.1 keep none."
    ),
    "watch": (
        "With `--until-terminal` and without `--timeout-sec` it connects again by itself until the run has ended."
        " `--output status` prints time, event, status and run id; in a pipe with tabs between them."
    ),
    "top": (
        "What runs comes first, then what waits, then what ended last. Runs come from the stream of the"
        " list; nothing is"
        " polled for them. Ctrl-C ends it. `--output json` prints the events of the stream, one a line."
    ),
    "doctor": (
        "Looks at the server, the clock, NATS, what is stored, workers, flows, the queue, dead letters,"
        " actors and versions."
        " Each line is `ok`, `warning` or `problem`, with what to do below it. Exit code 1 if there is a problem."
    ),
    "completion": (
        "For bash: `source <(pyoco-client completion bash)`. For zsh: write the output to a file"
        " `_pyoco-client` in a folder"
        " of `fpath`."
    ),
    "wheel-upload": (
        "The wheel is looked into before it is sent; `--preflight warn` only complains, `off` does not look."
    ),
    "dlq": "Under API keys these need an admin's key.",
    "actors": "Under API keys this needs an admin's key.",
}


def page() -> str:
    """The whole page."""
    commands = _choices(whole_parser())
    return HEAD + "".join(f"\n{part}" for name in COMMANDS for part in _section(name, commands[name]))


def _section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{parser.description}\n"
    yield f"```text\npyoco-client {COMMANDS[name].example}\n```\n"
    if rows := list(_rows(parser)):
        yield "| argument | what it is |\n|---|---|\n" + "\n".join(rows) + "\n"
    for action, nested in _choices(parser).items():
        yield f"`{name} {action}`: {nested.description or 'List dead letters, the newest first.'}\n"
        yield "| argument | what it is |\n|---|---|\n" + "\n".join(_rows(nested)) + "\n"
    if name in REMARKS:
        yield f"{REMARKS[name]}\n"


def _rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # argparse has no public way to ask
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        yield f"| `{_written(action)}` | {_meaning(action)} |"


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"<{action.dest}>"
    if action.nargs == 0:
        return action.option_strings[0]
    value = "\\|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest.upper()
    return f"{action.option_strings[0]} {value if action.metavar is None else action.metavar}"


def _meaning(action: argparse.Action) -> str:
    told = (action.help or "").replace("|", "\\|")
    if not action.option_strings and action.choices:
        told = " or ".join(map(str, action.choices))
    return f"{told} (required)".strip() if action.required and action.option_strings else told


def _choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


if __name__ == "__main__":
    sys.stdout.write(page())
