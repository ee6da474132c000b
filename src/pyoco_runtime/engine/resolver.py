"""The user's flow resolver: `module:function` or `path/file.py:function` -> the function that knows the flows."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from attrs import frozen
from pyoco.core.models import Flow

from pyoco_runtime.errors import UserError
from pyoco_runtime.wording import nearest, quoted

Resolver = Callable[[str], Flow]
"""Gives the flow of that name; raises KeyError for one that it does not have."""

_EXAMPLES = "examples/hello_flow.py:resolve or mypackage.flows:resolve"


@frozen
class ResolverSpec:
    """Where the resolver is, as the user wrote it."""

    place: str
    """A module's name or the path of a file."""
    function: str

    @property
    def file(self) -> Path | None:
        """The file, if it is one and no module."""
        is_file = self.place.endswith(".py") or "/" in self.place or "\\" in self.place
        return Path(self.place).expanduser().resolve() if is_file else None


def parse_spec(text: str) -> ResolverSpec:
    """Read `place:function` without looking whether it is there. Raises UserError."""
    place, colon, function = (part.strip() for part in text.rpartition(":"))
    if not (place and colon and function):
        raise UserError(f"the flow resolver {quoted(text)} must name a file or module and a function, as {_EXAMPLES}")
    return ResolverSpec(place, function)


def load_resolver(text: str) -> Resolver:
    """Import the resolver. Raises UserError, which says what to change."""
    spec = parse_spec(text)
    module = _import_file(spec.file) if spec.file else _import_module(spec.place)
    return _function(module, spec)


def no_flows(name: str) -> Flow:
    """The resolver of a worker that takes its flows from flow.yaml only."""
    raise KeyError(name)


def last_words(error: BaseException) -> str:
    """The error in a line, with the place in the user's code where it came up."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    text = traceback.format_exception_only(error)[-1].strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"the flow resolver's file {path} does not exist: check the path, or use module:function")
    # As for a program that Python is told to run: it may import its neighbours.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    # Not under its own name: a file called json.py must not take the place of a module.
    name = f"pyoco_flows_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise UserError(f"the flow resolver's file {path} is no Python module: its name must end with .py")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's code runs here
        del sys.modules[name]
        raise UserError(f"the flow resolver's file {path} cannot be imported: {last_words(error)}") from error
    return module


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise UserError(f"the flow resolver's module {name} cannot be imported: {last_words(error)}") from error
        raise UserError(
            f"there is no module {quoted(name)} for the flow resolver: install it, start where it can be imported,"
            f" or name a file, as {_EXAMPLES}"
        ) from None
    except (Exception, SystemExit) as error:  # the user's code runs here
        raise UserError(f"the flow resolver's module {name} cannot be imported: {last_words(error)}") from error


def _function(module: ModuleType, spec: ResolverSpec) -> Resolver:
    found: object = module
    for part in spec.function.split("."):
        if not hasattr(found, part):
            callables = [name for name, each in vars(module).items() if callable(each)]
            near = nearest(spec.function, callables)
            hint = f"; did you mean {quoted(near)}?" if near else ""
            raise UserError(f"{spec.place} has no function {quoted(spec.function)} for the flow resolver{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise UserError(
            f"{spec.place}:{spec.function} is {type(found).__name__}, not a function: the flow resolver is called with"
            " a flow's name and returns the Flow"
        )
    return found


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen") or filename == __file__ or filename == importlib.__file__
