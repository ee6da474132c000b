"""flow.yaml: what it may hold, what it is told when it is wrong, and the flow that comes of it."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from pyoco.core.models import Flow

from pyoco_runtime.engine import registered
from pyoco_runtime.engine.driver import Driver
from pyoco_runtime.engine.flow_build import build_flow
from pyoco_runtime.engine.flow_yaml import InvalidFlowFile, check_flow_yaml
from pyoco_runtime.engine.outbox import Outbox
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import Completed, FlowEnded, Raised, TaskEnded

TASKS = """
from subprocess import run as borrowed
from pyoco import task
import os
NOT_CALLABLE = 1
def one(): return 1
def add(x, y=1): return x + y
def name_of(item): return item
def env(token): return token
@task
def wrapped(): return "wrapped"
def register(registry):
    registry.register_callable(lambda: "plugged", name="demo/plugged")
"""


@pytest.fixture(autouse=True)
def _user_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yaml_tasks.py").write_text(TASKS)
    (tmp_path / "yaml_broken.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("yaml_tasks", "yaml_broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(registered, "_known", {})


def outputs(text: str, params: dict[str, Any] | None = None, allow: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """Build and execute; the outputs in the order in which the tasks ended."""
    job = Job(run_id="run", flow_name="main", tag="t", submitted_at=0.0)
    outbox = Outbox(lambda: None)
    flow = build_flow(check_flow_yaml(text), "main", allow)
    Driver(job, Attempt(7, 2), params or {}, outbox).execute(lambda job: flow)
    events = outbox.fetch()
    assert isinstance(events[-1], FlowEnded)
    assert isinstance(events[-1].ending, Completed), events[-1].ending
    return [(event.task, event.output) for event in events if isinstance(event, TaskEnded)]


def flow_of(graph: str, *callables: str, extra: str = "") -> str:
    """A file with this graph over functions of yaml_tasks, each under its own name."""
    tasks = "".join(f"  {name}: {{callable: 'yaml_tasks:{name}'}}\n" for name in callables)
    lines = "\n".join("    " + line for line in graph.splitlines())
    return f"flow:\n  graph: |\n{lines}\ntasks:\n{tasks}{extra}"


# -- what it may hold -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        ("- a", "must be a mapping with the keys version, flow, tasks, pipes, runtime, not a list"),
        ("a: [", r"not YAML: line 1, column 5"),
        ("a: !!python/object/apply:os.system [ls]", "not YAML: line 1"),
        ("a: \x01", "not YAML"),
        ("flow: {graph: a}\nflows: {}", r"flows \(line 2\): the key \"flows\" is not allowed: .* use `flow:`"),
        ("flow: {graph: a}\ndiscovery: {}", r"discovery \(line 2\): .* set PYOCO_DISCOVERY_MODULES"),
        ("flow: {graph: a}\ntask: {}", r'task \(line 2\): "task" is not a key of flow.yaml; did you mean "tasks"'),
        ("tasks: {}", r"flow\.graph: is missing"),
        ("flow:\n  defaults: {}", r"flow\.graph \(line 1\): is missing"),
        ("flow: {graph: ' '}", r"flow\.graph \(line 1\): is empty"),
        ("flow: {graph: [a]}", r"flow\.graph \(line 1\): must be text as `a >> b`, not a list"),
        ("flow: a", r"flow \(line 1\): must be a mapping, not text"),
        ("flow:\n  graph: a\n  params: {}", r'flow\.params \(line 3\): "params" is not a key of flow '),
        ("flow: {graph: a, defaults: [1]}", r"flow\.defaults \(line 1\): must be a mapping, not a list"),
        ("flow:\n  graph: a\n  defaults:\n    day: 2026-01-01", r"flow\.defaults\.day \(line 4\): is not JSON"),
        ("flow:\n  graph: a\n  defaults:\n    1: x", r"flow\.defaults\.1 \(line 4\): a param's name must be text"),
        ("flow: {graph: a}\ntasks: [a]", r"tasks \(line 2\): must be a mapping"),
        ("flow: {graph: a}\ntasks:\n  a:", r"tasks\.a \(line 3\): must be a mapping, not nothing"),
        ("flow: {graph: a}\ntasks:\n  1: {}", r"tasks\.1 \(line 3\): a task's name must be text"),
        ("flow: {graph: a}\ntasks:\n  a:\n    retries: 3", r'tasks\.a\.retries \(line 4\): "retries" is not a key'),
        (
            "flow: {graph: a}\ntasks:\n  a: {callable: f}",
            r"tasks\.a\.callable \(line 3\): must be text as ",
        ),
        ("flow: {graph: a}\ntasks:\n  a: {callable: 'a:b:c'}", r"tasks\.a\.callable"),
        ("flow: {graph: a}\ntasks:\n  a: {use: 3}", r"tasks\.a\.use \(line 3\): must be the name of a registered task"),
        ("flow: {graph: a}\ntasks:\n  a: {use: b, callable: 'c:d'}", r"tasks\.a \(line 3\): has both"),
        ("flow: {graph: a}\ntasks:\n  a: {inputs: [1]}", r"tasks\.a\.inputs \(line 3\): must be a mapping"),
        ("flow: {graph: a}\ntasks:\n  a: {outputs: x}", r"tasks\.a\.outputs \(line 3\): must be a list of texts"),
        ("flow: {graph: a}\npipes: {p: 1}", r"pipes\.p \(line 2\): must be text"),
        ("flow: {graph: a}\nruntime: {workers: 1}", r'runtime\.workers \(line 2\): "workers" is not a key of runtime'),
        ("flow: {graph: a}\nruntime: {expose_env: X}", r"runtime\.expose_env \(line 2\): must be a list of texts"),
        ("flow: {graph: a}\nversion: one", r"version \(line 2\): must be a whole number, as 1, not \"one\""),
        ("flow: {graph: a}\nversion: true", r"version \(line 2\)"),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_line(text: str, told: str) -> None:
    """The contract's policy, key by key."""
    with pytest.raises(InvalidFlowFile, match=told) as caught:
        check_flow_yaml(text)
    assert caught.value.err_id == "ERR-PYOCO-0002"


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        ("a >\nb", r"line 1, column 3 of the graph: Unsupported operator '>'.* Use '>>' only"),
        ("a >> b\nc", r"line 2, column 1 of the graph"),
        ("(a & b) >> c", r"line 1, column 4 of the graph: .* A graph knows `>>`"),
        ("a >> b & c", r"Unexpected character '&'.* A graph knows `>>`"),
        ("a >> switc(on=x){ y: b }", r"Did you mean switch\?"),
        ("a >> pipe(p)", "Unknown pipe reference: p"),
        ("switch(on=x){ y: a; y: b }", "duplicate switch case 'y'"),
        ("until(cond={{a b}}){ a }", "Unsupported expression"),
        ("until(cond={{$ctx.a.b + foo()}}){ a }", "Unknown identifier|Only"),
        ("repeat(count=2, collect=all){ a }", "collect mode 'all'|Invalid collect mode"),
        ("a >> b >> a", r'the task "a" is there twice: give the second one a name, as `again: a`'),
        ("x: a >> x: b", "Duplicate node name: x"),
        ("__import__('os')", "Unknown callable term"),
    ],
)
def test_a_wrong_graph_is_refused_before_anything_is_imported(graph: str, told: str) -> None:
    """The gateway says so at submit; the tasks of this file do not exist."""
    with pytest.raises(InvalidFlowFile, match=rf"flow\.graph \(line 2\): .*({told})"):
        check_flow_yaml(flow_of(graph))


def test_aliases_cannot_make_it_explode() -> None:
    """A billion laughs are refused by counting, not by laughing; and so is what holds itself."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    with pytest.raises(InvalidFlowFile, match="aliases"):
        check_flow_yaml("\n".join(lines))
    with pytest.raises(InvalidFlowFile, match=r"line 1: an alias .* holds itself"):
        check_flow_yaml("a: &a [*a]")
    with pytest.raises(InvalidFlowFile, match="nested too deeply"):
        check_flow_yaml("a: " + "[" * 50_000)


def test_bytes_must_be_utf8() -> None:
    """Another encoding is named, not guessed."""
    with pytest.raises(InvalidFlowFile, match="not UTF-8: byte 8"):
        check_flow_yaml("flow: 'é'".encode("latin-1"))


def test_a_right_file_is_a_value() -> None:
    """With everything that it says."""
    file = check_flow_yaml(
        b"version: 1\nflow: {graph: 'a >> pipe(p)', defaults: {n: 1}}\ntasks: {a: {use: x/y, inputs: {k: 1}}}\n"
        b"pipes: {p: b >> c}\nruntime: {expose_env: [HOME]}"
    )
    assert (file.graph, file.defaults, file.pipes, file.expose_env) == (
        "a >> pipe(p)",
        {"n": 1},
        {"p": "b >> c"},
        ("HOME",),
    )
    assert (file.tasks["a"].use, file.tasks["a"].inputs) == ("x/y", {"k": 1})


# -- what comes of it -------------------------------------------------------------------------------------------------


def test_tasks_run_in_the_graphs_order_with_their_inputs() -> None:
    """Three in a row, with inputs from tasks, params and the fencing token."""
    text = flow_of(
        "one >> two >> three",
        "one",
        extra="  two: {callable: 'yaml_tasks:add', inputs: {x: $node.one.output, y: $ctx.params.n}}\n"
        "  three: {callable: 'yaml_tasks:env', inputs: {token: $env.PYOCO_ATTEMPT}}\n",
    )
    assert outputs(text, {"n": 10}) == [("one", 1), ("two", 11), ("three", "7.2")]


@pytest.mark.parametrize(
    ("graph", "ran"),
    [
        ("one # the first\n>> second: one", ["one", "second"]),
        ("switch(on={{mode}}){ a: one; default: wrapped }", ["wrapped"]),
        (
            "switch(on={{params.mode}}){ b: one >> again: one; default: wrapped } >> wrapped",
            ["one", "again", "wrapped"],
        ),
        ("repeat(count=2){ one }", ["one", "one"]),
        ("repeat(count={{times}}){ one >> wrapped }", ["one", "wrapped"] * 3),
        ("until(cond={{params.done}}, max_iter=5){ one }", ["one"]),
        ("one >> foreach(over={{items}}, item=item){ wrapped }", ["one", "wrapped", "wrapped"]),
        ("one >> pipe(rest)", ["one", "wrapped"]),
    ],
)
def test_the_graphs_of_pyoco_work(graph: str, ran: list[str]) -> None:
    """Names, comments, switch, loops and pipes."""
    text = flow_of(graph, "one", "wrapped", extra="pipes: {rest: wrapped}\n")
    params = {"mode": "b", "times": 3, "done": True, "items": [1, 2]}
    assert [task for task, _ in outputs(text, params)] == ran


def test_a_task_may_be_used_from_a_module_a_plug_in_or_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered tasks by name, `use` of them, and of the file's own tasks."""
    monkeypatch.setenv("PYOCO_DISCOVERY_MODULES", "yaml_tasks")
    entry = metadata.EntryPoint("demo", "yaml_tasks:register", "pyoco.tasks")
    monkeypatch.setattr(registered, "iter_entry_points", lambda: [entry])
    extra = "  plug: {use: demo/plugged}\n  more: {use: base, inputs: {y: 5}}\n"
    extra += "  base: {callable: 'yaml_tasks:add', inputs: {x: 1}}\n"
    assert outputs(flow_of("wrapped >> plug >> more", extra=extra)) == [
        ("wrapped", "wrapped"),
        ("plug", "plugged"),
        ("more", 6),
    ]


def test_two_flows_do_not_share_their_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building a flow writes its order into its tasks: a registered one must not keep it for the next flow."""
    monkeypatch.setenv("PYOCO_DISCOVERY_MODULES", "yaml_tasks")
    for graph in ("wrapped >> one", "one >> wrapped", "wrapped >> one"):
        assert len(outputs(flow_of(graph, "one"))) == 2


def test_what_the_flow_does_to_its_inputs_is_forgotten() -> None:
    """The same text is executed again with the inputs that are written there."""
    text = flow_of("a", extra="  a: {callable: 'yaml_tasks:name_of', inputs: {item: [1]}}\n")
    first = build_flow(check_flow_yaml(text), "main")
    (task,) = first.tasks
    task.inputs["item"].append(2)
    assert outputs(text) == [("a", [1])]


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (
            "  a: {callable: 'no_such_module:f'}",
            r'a\.callable: there is no module "no_such_module" on this worker',
        ),
        ("  a: {callable: 'yaml_tasks:nothing'}", r"tasks\.a\.callable: .* has no attribute 'nothing'"),
        ("  a: {callable: 'yaml_tasks:NOT_CALLABLE'}", r"yaml_tasks:NOT_CALLABLE is int, not a function"),
        (
            "  a: {callable: 'yaml_broken:f'}",
            r"yaml_broken cannot be imported: .*yaml_broken\.py, line 1",
        ),
        ("  a: {use: nobody}", r'tasks\.a\.use names "nobody", which is neither in `tasks` nor registered'),
        ("  a: {use: a}", r'tasks\.a\.use names "a"'),
        ("  a: {use: b}\n  b: {use: a}", r'use names "a", which is neither'),
        ("  b: {}", r'flow\.graph names the task "a", which is neither'),
    ],
)
def test_what_cannot_be_loaded_is_an_error_that_says_why(extra: str, told: str) -> None:
    """pyoco's own loader prints such errors and goes on without the task."""
    with pytest.raises(InvalidFlowFile, match=told):
        build_flow(check_flow_yaml(flow_of("a", extra=extra)), "main")


def test_a_broken_module_or_plug_in_is_told_when_a_task_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only then: flows that do not need it still run."""
    monkeypatch.setenv("PYOCO_DISCOVERY_MODULES", "yaml_broken, yaml_tasks")
    monkeypatch.setattr(
        registered, "iter_entry_points", lambda: [metadata.EntryPoint("bad", "yaml_tasks:NOT_CALLABLE", "pyoco.tasks")]
    )
    assert outputs(flow_of("wrapped")) == [("wrapped", "wrapped")]
    with pytest.raises(InvalidFlowFile, match=r"yaml_broken of PYOCO_DISCOVERY_MODULES.*; the plug-in bad "):
        build_flow(check_flow_yaml(flow_of("missing")), "main")


def test_only_allowed_modules_may_be_named() -> None:
    """The allow-list knows modules and what is below them, not what they have borrowed from elsewhere."""
    assert outputs(flow_of("one", "one"), allow=("yaml_tasks",)) == [("one", 1)]
    for allow in (("yaml_task",), ("yaml_tasks.deeper",), ("other",)):
        with pytest.raises(InvalidFlowFile, match=r"tasks\.one\.callable: .*PYOCO_CALLABLE_ALLOW"):
            build_flow(check_flow_yaml(flow_of("one", "one")), "main", allow)
    with pytest.raises(InvalidFlowFile, match="comes from the module subprocess"):
        build_flow(check_flow_yaml(flow_of("borrowed", "borrowed")), "main", ("yaml_tasks",))


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """examples/hello/flow.yaml, with its own defaults but for the pauses, as a worker started in the repository."""
    root = Path(__file__).parents[3]
    monkeypatch.syspath_prepend(str(root))
    text = (root / "examples/hello/flow.yaml").read_text()
    ended = dict(outputs(text, {**check_flow_yaml(text).defaults, "pause_sec": 0}))
    assert list(ended) == ["read", "count", "longest", "commonest", "join", "greet"]
    assert ended["join"] == f"{ended['count']} different words; the longest is worker, the commonest is a"
    assert ended["greet"] == f"Hello, world! {ended['join']}."


@pytest.mark.parametrize(
    ("graph", "tasks", "registered"),
    [
        ("a >> b", "tasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}}", ()),
        ("a >> b", "tasks: {a: {callable: 'm:a'}}", ("b",)),
        ("a >> b", "tasks: {a: {use: p/one}, b: {use: p/two}, unused: {use: p/three}}", ("p/one", "p/two")),
        ("a", "tasks: {a: {use: b}, b: {callable: 'm:b'}}", ()),
        ("a", "tasks: {a: {use: b}, b: {use: c}, c: {inputs: {}}}", ("c",)),
        ("a", "tasks: {a: {use: a}}", ("a",)),
        ("a >> repeat(count=2){ inner }", "", ("a", "inner")),
    ],
)
def test_the_tasks_that_a_worker_must_have_are_known(graph: str, tasks: str, registered: tuple[str, ...]) -> None:
    """Those that the file names and does not define, wherever in the graph they are."""
    assert check_flow_yaml(f"flow: {{graph: '{graph}'}}\n{tasks}").registered == registered


def test_a_wrong_file_ends_its_run_with_its_words() -> None:
    """A worker that is sent one by an older gateway; our own traceback would only confuse."""
    job = Job(run_id="run", flow_name="main", tag="t", submitted_at=0.0)
    outbox = Outbox(lambda: None)

    def find(job: Job) -> Flow:
        return build_flow(check_flow_yaml("flows: {}"), "main")

    Driver(job, Attempt(1, 1), {}, outbox).execute(find)
    (ended,) = outbox.fetch()
    assert isinstance(ended, FlowEnded)
    assert isinstance(ended.ending, Raised)
    assert ended.ending.error.startswith("flows (line 1)")
    assert ended.ending.traceback is None
