"""The reference page of the settings, made from their declarations: python -m pyoco_runtime.settings_page."""

from __future__ import annotations

import sys

from pyoco_runtime.settings_table import SETTINGS, Setting

HEADINGS = {
    "role": "The process",
    "nats_url": "NATS",
    "host": "The gateway",
    "default_tag": "The worker",
    "work_subject_prefix": "Jobs, runs and workers on NATS",
    "dlq_stream": "Dead letters",
    "wheel_object_store_bucket": "Wheels",
    "log_level": "Logs",
}
"""By the setting that each heading stands before."""

INTRODUCTION = """\
# Settings

<!-- Made by `python -m pyoco_runtime.settings_page`; change src/pyoco_runtime/settings_table.py instead. -->

A setting is taken from the first of these places that has it:

1. its command line option, where it has one;
2. its variable in the process environment;
3. its variable in the `.env` file;
4. `[settings]` in [supervisor.toml](supervisor-toml.md), by its lower-case name without `PYOCO_`: `PYOCO_NATS_URL` is
   `nats_url`. Numbers and `true`/`false` may be written without quotes, and what has commas as a list of strings;
5. its default.

An empty variable counts as not set. A value that is not right stops the start with a message that names the setting
and the place it came from. `pyoco-runtime --check` shows every setting, its value and its place; secrets and the
logins in URLs are hidden.
"""


def page() -> str:
    """The whole page as Markdown."""
    lines = [INTRODUCTION]
    for each in SETTINGS:
        if heading := HEADINGS.get(each.name):
            lines.append(f"## {heading}\n\n| setting | default | right is | what it does |\n|---|---|---|---|")
        lines.append(_row(each) + ("\n" if _ends_table(each) else ""))
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(setting: Setting) -> str:
    name = f"`{setting.env}`" + (f" `{setting.option}`" if setting.has_option else "")
    default = setting.default if setting.default == "not set" else f"`{setting.default}`"
    secret = " Secret: never shown." if setting.secret else ""
    cells = [name, default, setting.kind.right, setting.doc + secret]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _ends_table(setting: Setting) -> bool:
    after = SETTINGS.index(setting) + 1
    return after < len(SETTINGS) and SETTINGS[after].name in HEADINGS


if __name__ == "__main__":
    sys.stdout.write(page())
