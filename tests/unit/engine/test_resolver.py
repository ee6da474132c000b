"""The flow resolver's text, and what the user is told when it is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyoco.core.models import Flow

from pyoco_runtime.engine.driver import NoSuchFlow
from pyoco_runtime.engine.finder import Finder
from pyoco_runtime.engine.resolver import load_resolver, no_flows, parse_spec
from pyoco_runtime.errors import UserError
from pyoco_runtime.model.job import Job

GOOD = """
from dataclasses import dataclass
from pyoco.core.models import Flow
import neighbour_of_resolver
@dataclass
class Thing:
    x: "int" = 1
def resolve(name):
    return Flow(name)
class Flows:
    @staticmethod
    def get(name):
        return Flow(name)
FLOWS = {}
"""


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A resolver with a neighbour that it imports."""
    (tmp_path / "neighbour_of_resolver.py").write_text("")
    path = tmp_path / "some flows.py"
    path.write_text(GOOD)
    return path


def job(name: str) -> Job:
    return Job(run_id="r", flow_name=name, tag="t", submitted_at=0.0)


def test_a_file_is_loaded_with_its_neighbours(file: Path) -> None:
    """`path/file.py:function`, as python would run the file."""
    assert load_resolver(f"{file}:resolve")("x").name == "x"


def test_a_method_of_a_class_will_do(file: Path) -> None:
    """A dotted name is looked up step by step."""
    assert load_resolver(f"{file}:Flows.get")("x").name == "x"


def test_a_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`module:function`, from wherever Python finds modules."""
    (tmp_path / "my_flows_module.py").write_text("def resolve(name): raise KeyError(name)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyError):
        load_resolver("my_flows_module:resolve")("x")


@pytest.mark.parametrize("text", ["", "flows", "flows:", ":resolve", " : "])
def test_a_text_without_both_parts_is_refused(text: str) -> None:
    """The message shows how it is written."""
    with pytest.raises(UserError, match=r"as examples/hello_flow\.py:resolve"):
        parse_spec(text)


def test_what_is_missing_is_named(file: Path) -> None:
    """No such file, module or function."""
    with pytest.raises(UserError, match=r"nowhere\.py does not exist"):
        load_resolver("nowhere.py:resolve")
    with pytest.raises(UserError, match='no module "no_such_module_here" for the flow resolver'):
        load_resolver("no_such_module_here:resolve")
    with pytest.raises(UserError, match='no function "reslove" for the flow resolver; did you mean "resolve"'):
        load_resolver(f"{file}:reslove")
    with pytest.raises(UserError, match="FLOWS is dict, not a function"):
        load_resolver(f"{file}:FLOWS")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "import no_such_dependency",
            r"ModuleNotFoundError: .*no_such_dependency.* \(.*bad\.py, line 1\)",
        ),
        ("x = 1\nx.y()", r"AttributeError: .* \(.*bad\.py, line 2\)"),
        ("def f(:", r"SyntaxError: .* \(.*bad\.py, line 1\)"),
        ("import sys\nsys.exit('no licence')", "SystemExit: no licence"),
    ],
)
@pytest.mark.parametrize("as_module", [False, True])
def test_an_import_that_fails_tells_the_users_own_error(
    code: str, told: str, as_module: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the line of the user's code, not ours."""
    (tmp_path / "bad.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bad", raising=False)
    with pytest.raises(UserError, match=f"cannot be imported: {told}") as caught:
        load_resolver("bad:resolve" if as_module else f"{tmp_path}/bad.py:resolve")
    assert caught.value.err_id == "ERR-PYOCO-0018"


def test_key_error_means_no_such_flow() -> None:
    """Whatever key: another one is told, because it may be a mistake in the resolver."""
    with pytest.raises(NoSuchFlow, match=r'^this worker has no flow "x"$'):
        Finder(no_flows)(job("x"))

    def wrong(name: str) -> Flow:
        raise KeyError("HOME")

    with pytest.raises(NoSuchFlow, match="raised KeyError: 'HOME'"):
        Finder(wrong)(job("x"))


def test_a_resolver_must_return_a_flow() -> None:
    """Returning None for an unknown flow is a usual mistake."""
    with pytest.raises(UserError, match=r"returned NoneType for \"x\", not a pyoco Flow"):
        Finder(lambda name: None)(job("x"))
