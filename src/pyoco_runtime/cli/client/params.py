"""The params of a run, as `submit` takes them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from pyoco_runtime.cli.client.options import file_text
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.errors import UserError


def params_from(args: argparse.Namespace, session: Session) -> dict[str, Any]:
    """--params, then --params-file, then --param: the later wins. Raises UserError."""
    found: dict[str, Any] = {}
    if args.params is not None:
        found |= _object(args.params, session)
    if args.params_file:
        found |= _file(args.params_file, session)
    return found | _assignments(args.param, session)


def _object(raw: str, session: Session) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except json.JSONDecodeError as error:
        raise UserError(session.say(121, reason=error)) from error
    if not isinstance(value, dict):
        raise UserError(session.say(121, reason=raw[:80]))
    return value


def _file(path: str, session: Session) -> dict[str, Any]:
    raw = file_text(path, session)
    try:
        value = json.loads(raw)
    except json.JSONDecodeError:
        value = _yaml(path, raw, session)
    if not isinstance(value, dict):
        raise UserError(session.say(122, path=path, reason=type(value).__name__))
    return value


def _yaml(path: str, raw: str, session: Session) -> object:
    import yaml  # most params come from the command line

    try:
        return yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise UserError(session.say(122, path=path, reason=" ".join(str(error).split()))) from error


def _assignments(given: Iterable[str], session: Session) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for raw in given:
        key, mark, value = (part.strip() for part in raw.partition("="))
        if not (key and mark):
            raise UserError(session.say(123, given=raw))
        found[key] = _value(value)
    return found


def _value(raw: str) -> object:
    """JSON if it is that (x=1 is a number), else the text itself."""
    try:
        return json.loads(raw)
    except json.JSONDecodeError:
        return raw
