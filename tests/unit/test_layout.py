"""supervisor.toml: what is read, what is merged, and what is said when something is wrong."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyoco_runtime.core.spec import Backoff, Intensity, Restart, Strategy
from pyoco_runtime.errors import InvalidLayout
from pyoco_runtime.layout import SHIPPED, ActorLayout, Known, Layout, SupervisorLayout, parse, shipped_text
from pyoco_runtime.tree import KNOWN

REPOSITORY = Path(__file__).parents[2]


def read(text: str, known: Known = KNOWN) -> Layout:
    return parse(text, source="supervisor.toml", known=known)


def refused(text: str, known: Known = KNOWN) -> str:
    with pytest.raises(InvalidLayout) as caught:
        read(text, known)
    return str(caught.value)


def child(layout: Layout, *path: str) -> ActorLayout | SupervisorLayout:
    here: ActorLayout | SupervisorLayout = layout.root
    for name in path:
        assert isinstance(here, SupervisorLayout)
        here = next(each for each in here.children if each.name == name)
    return here


# -- the shipped file -------------------------------------------------------------------------------------------------


def test_the_shipped_file_is_the_tree_of_the_design() -> None:
    """An empty file of the user's own gives the root and its children in start order."""
    root = read("").root
    assert root.name == "runtime"
    assert [each.name for each in root.children] == ["probe", "nats", "link", "gateway", "worker", "console"]
    assert child(read(""), "gateway", "http") == ActorLayout("http", shutdown_sec=10.0)
    assert child(read(""), "nats") == ActorLayout("nats", shutdown_sec=10.0)
    assert child(read(""), "worker", "ticker") == ActorLayout("ticker")
    assert child(read(""), "worker", "runs", "run") == ActorLayout("run", restart=Restart.TEMPORARY, shutdown_sec=25.0)


def test_the_shipped_file_passes_as_a_file_of_ones_own() -> None:
    """Whoever copies the shipped file and starts from there gets the same tree."""
    assert read(shipped_text()) == read("")


def test_the_shipped_file_writes_every_key_of_everything_out() -> None:
    """The shipped file is its own documentation, so that no default hides in the code."""
    data = tomllib.loads(shipped_text())
    supervisor = {"strategy", "children", "max_restarts", "within_sec", "kill_sec", "restart", "backoff"}
    assert data["supervisors"].pop("runtime").keys() == supervisor - {"restart", "backoff"}
    assert all(table.keys() == supervisor for table in data["supervisors"].values())
    actor = {"restart", "start_timeout_sec", "shutdown_sec", "backoff"}
    assert all(table.keys() == actor for table in data["actors"].values())
    tables = [*data["supervisors"].values(), *data["actors"].values()]
    assert all(table["backoff"].keys() == {"initial_sec", "factor", "max_sec", "jitter"} for table in tables)
    assert data["actors"].keys() | data["supervisors"].keys() | {"runtime"} == KNOWN.actors | KNOWN.supervisors


def test_the_file_at_the_top_of_the_repository_is_the_shipped_one() -> None:
    """There is one shipped file, and a link to it where people look for it."""
    top = REPOSITORY / "supervisor.toml"
    assert top.is_symlink()
    assert top.read_text(encoding="utf-8") == shipped_text()


def test_every_example_on_the_reference_page_is_right() -> None:
    """What the page shows can be copied and started."""
    page = (REPOSITORY / "docs/reference/supervisor-toml.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert examples
    for text in examples:
        read(text)


# -- merging ----------------------------------------------------------------------------------------------------------


def test_a_file_needs_only_the_keys_that_it_changes() -> None:
    """A key that is not written keeps its shipped value, in nested tables too."""
    http = child(read("[actors.http]\nbackoff = { max_sec = 60 }"), "gateway", "http")
    assert http == ActorLayout("http", backoff=Backoff(max_sec=60.0), shutdown_sec=10.0)


def test_a_list_of_children_is_replaced_whole() -> None:
    """A child left out of one's own list is not in the tree, and its shipped table is simply unused."""
    root = read('[supervisors.runtime]\nchildren = ["probe", "link"]').root
    assert [each.name for each in root.children] == ["probe", "link"]


def test_the_order_of_children_is_the_order_in_the_list() -> None:
    """The list is the start order."""
    root = read('[supervisors.runtime]\nchildren = ["console", "worker", "gateway", "link", "nats"]').root
    assert [each.name for each in root.children] == ["console", "worker", "gateway", "link", "nats"]


def test_policy_of_supervisors_and_actors_is_read() -> None:
    """Every key of a supervisor arrives in its value, whole numbers as seconds included."""
    text = """
        [supervisors.gateway]
        strategy = "rest_for_one"
        max_restarts = 3
        within_sec = 5
        kill_sec = 0
        restart = "transient"
        [supervisors.gateway.backoff]
        factor = 1
    """
    gateway = child(read(text), "gateway")
    assert gateway == SupervisorLayout(
        "gateway",
        children=(
            *(
                ActorLayout(name, shutdown_sec=2.0)
                for name in ("run-index", "worker-index", "letter-index", "queue-sampler", "key-cache")
            ),
            ActorLayout("reconciler"),
            ActorLayout("http", shutdown_sec=10.0),
        ),
        strategy=Strategy.REST_FOR_ONE,
        intensity=Intensity(3, 5.0),
        restart=Restart.TRANSIENT,
        backoff=Backoff(factor=1.0),
        kill_sec=0.0,
    )


def test_settings_come_with_their_file_and_line() -> None:
    """A setting's value stays unread, and where it stands is known for later messages."""
    port = read("# mine\n[settings]\nport = 8080").settings["port"]
    assert (port.value, port.source, port.line) == (8080, "supervisor.toml", 3)


def test_a_setting_does_not_show_in_the_repr_of_a_layout() -> None:
    """A pepper in the file must not reach a log through a repr."""
    assert "hunter2" not in repr(read('[settings]\nauth_pepper = "hunter2"'))


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_misspelt_strategy_gets_the_whole_message() -> None:
    """File, line, key path, what was found, what was meant, and what there is."""
    text = '# one\n\n[supervisors.gateway]\nkill_sec = 1.0\n\n\nstrategy = "one_for_oen"\n'
    assert refused(text) == (
        'supervisor.toml, line 7, supervisors.gateway.strategy: "one_for_oen" is not a strategy;'
        ' did you mean "one_for_one"? (one_for_one, one_for_all, rest_for_one)'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[actors.http", ["line 1", "not readable as TOML"]),
        ("a = 1\na = 2", ["line 2", "not readable as TOML"]),
        ("x = " + "[" * 5000, ["not readable as TOML"]),
        ("x = " + "9" * 5000, ["not readable as TOML"]),
        ("[supervisor.gateway]", ["line 1, supervisor:", 'did you mean "supervisors"?']),
        ("actors = 5", ["line 1, actors: 5 is not a table"]),
        ("[[actors]]", ["line 1, actors: a list is not a table"]),
        ("[actors]\nhttp = true", ["line 2, actors.http: true is not a table"]),
        ("[actors.htpp]", ["line 1, actors.htpp:", 'did you mean "http"?']),
        ("[actors.gateway]", ['"gateway" is a supervisor; write [supervisors.gateway]']),
        ("[supervisors.http]", ['"http" is an actor; write [actors.http]']),
        ("[supervisors.runtme]\nkill_sec = 1.0", ["line 1, supervisors.runtme:", 'did you mean "runtime"?']),
        ('["actors"."http"]\nresart = "x"', ["line 2, actors.http.resart:", 'did you mean "restart"?']),
        ('actors.http.restart = "permanant"', ["line 1, actors.http.restart:", 'did you mean "permanent"?']),
        ("[actors.http]\nrestart = 1", ["line 2", "1 is not a restart word (permanent, transient, temporary)"]),
        ("[actors.http]\nshutdown_sec = true", ["true is not a number of seconds, 0 or more"]),
        ('[actors.http]\nshutdown_sec = "5"', ['"5" is not a number of seconds']),
        ("[actors.http]\nshutdown_sec = -0.1", ["-0.1 is not a number of seconds, 0 or more"]),
        ("[actors.http]\nshutdown_sec = inf", ["inf is not a number of seconds"]),
        ("[actors.http]\nshutdown_sec = nan", ["nan is not a number of seconds"]),
        (f"[actors.http]\nshutdown_sec = 1{'0' * 400}", ["a very large number is not a number of seconds"]),
        ("[actors.http]\nstart_timeout_sec = 0", ["0 is not a number of seconds, more than 0"]),
        ("[actors.http]\nbackoff = 3", ["line 2, actors.http.backoff: 3 is not a table"]),
        ("[actors.http]\nbackoff = { jitter = 1.1 }", ["line 2, actors.http.backoff.jitter: 1.1 is not a number"]),
        ("[actors.http.backoff]\n\nfactor = 0.5", ["line 3, actors.http.backoff.factor: 0.5 is not a number, 1"]),
        ("[actors.http]\nbackoff = { inital_sec = 1 }", ['did you mean "initial_sec"?']),
        ("[supervisors.gateway]\nmax_restarts = 1.5", ["1.5 is not a whole number, 0 or more"]),
        ("[supervisors.gateway]\nmax_restarts = true", ["true is not a whole number"]),
        ("[supervisors.gateway]\nmax_restarts = -1", ["-1 is not a whole number"]),
        ("[supervisors.gateway]\nwithin_sec = 0.0", ["0.0 is not a number of seconds, more than 0"]),
        ('[supervisors.gateway]\nchildren = "http"', ['"http" is not a list of names']),
        ("[supervisors.gateway]\nchildren = [1]", ["a list is not a list of names"]),
        ('[supervisors.runtime]\nrestart = "permanent"', ["supervisors.runtime.restart: runtime is the root"]),
        ("[supervisors.runtime]\nbackoff = {}", ["supervisors.runtime.backoff: runtime is the root"]),
        ('[supervisors.gateway]\nchildren = ["htp"]', ["line 2, supervisors.gateway.children:", '"http"?']),
        ('[supervisors.gateway]\nchildren = ["http", "http"]', ['"http" is in the list twice']),
        ('[supervisors.gateway]\nchildren = ["http", "link"]', ['"link" is a child of runtime already']),
        ("[supervisors.gateway]\nchildren = []\n[actors.http]", ['line 3, actors.http: nobody has "http"']),
        ('[supervisors.runtime]\nchildren = ["link"]\n[supervisors.worker]', ['nobody has "worker" as a child']),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, said: list[str]) -> None:
    """Each mistake is refused in words that lead to it."""
    message = refused(text)
    assert message.startswith("supervisor.toml")
    for words in said:
        assert words in message


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    """Nobody has to start the program once per mistake."""
    message = refused('[actors.http]\nrestart = "never"\nshutdown_sec = -1\n[actors.probe]\nfoo = 1')
    assert [line.split(":")[0] for line in message.splitlines()] == [
        "supervisor.toml, line 2, actors.http.restart",
        "supervisor.toml, line 3, actors.http.shutdown_sec",
        "supervisor.toml, line 5, actors.probe.foo",
    ]


def test_a_mistake_that_involves_the_shipped_file_names_that_file() -> None:
    """A child moved to another parent is still in the shipped list, and the message says in which file."""
    message = refused('[supervisors.runtime]\nchildren = ["http", "gateway"]')
    assert message.startswith(f"{SHIPPED}, line ")
    assert 'supervisors.gateway.children: "http" is a child of runtime already' in message


@pytest.mark.parametrize(
    ("text", "cycle"),
    [
        ('[supervisors.gateway]\nchildren = ["runtime"]', "runtime -> gateway -> runtime"),
        ('[supervisors.gateway]\nchildren = ["gateway"]', "gateway -> gateway"),
        (
            '[supervisors.gateway]\nchildren = ["worker"]\n[supervisors.worker]\nchildren = ["gateway"]',
            "gateway -> worker -> gateway",
        ),
        (
            '[supervisors.runtime]\nchildren = []\n[supervisors.gateway]\nchildren = ["worker"]\n'
            '[supervisors.worker]\nchildren = ["gateway"]',
            "gateway -> worker -> gateway",
        ),
    ],
)
def test_a_cycle_is_named(text: str, cycle: str) -> None:
    """A supervisor below itself is refused with the way around, reachable from the root or not."""
    assert refused(text).endswith(f"cannot be below itself: {cycle}")


def test_a_setting_that_does_not_exist_is_named_with_the_nearest() -> None:
    """A misspelt setting and the environment's spelling both lead to the right name; the value is not repeated."""
    known = Known(KNOWN.actors, KNOWN.supervisors, frozenset({"port", "auth_pepper"}))
    message = refused('[settings]\nPYOCO_PORT = 1\nauth_peper = "hunter2"', known)
    assert message.splitlines() == [
        'supervisor.toml, line 2, settings.PYOCO_PORT: "PYOCO_PORT" is not a setting; did you mean "port"?',
        'supervisor.toml, line 3, settings.auth_peper: "auth_peper" is not a setting; did you mean "auth_pepper"?',
    ]


def test_lines_inside_a_long_string_are_not_taken_for_keys() -> None:
    """The line of a key is right although a string before it holds the same words."""
    text = '[settings]\na = """\n[actors.http]\nrestart = 1\n"""\n[actors.http]\nrestart = 1\n'
    assert refused(text).startswith("supervisor.toml, line 7, actors.http.restart")


# -- properties -------------------------------------------------------------------------------------------------------

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,8}", fullmatch=True).filter(lambda name: name != "runtime")
at_least_zero = st.floats(0, 1e12)
more_than_zero = st.floats(0, 1e12, exclude_min=True)
backoffs = st.builds(Backoff, at_least_zero, st.floats(1, 1e6), at_least_zero, st.floats(0, 1))
policies = st.fixed_dictionaries({"restart": st.sampled_from(Restart), "backoff": backoffs})


@st.composite
def layouts(draw: st.DrawFn) -> SupervisorLayout:
    """Any tree whose names are all different."""
    free = draw(st.lists(names, unique=True, max_size=9))

    def actor() -> ActorLayout:
        return ActorLayout(
            free.pop(), start_timeout_sec=draw(more_than_zero), shutdown_sec=draw(at_least_zero), **draw(policies)
        )

    def supervisor(name: str, depth: int) -> SupervisorLayout:
        children: list[ActorLayout | SupervisorLayout] = []
        for _ in range(draw(st.integers(0, len(free)))):
            if not free:
                break  # the children drawn so far took the last names for their own
            deeper = depth < 3 and draw(st.booleans())
            children.append(supervisor(free.pop(), depth + 1) if deeper else actor())
        return SupervisorLayout(
            name,
            children=tuple(children),
            strategy=draw(st.sampled_from(Strategy)),
            intensity=draw(st.builds(Intensity, st.integers(0, 10**20), more_than_zero)),
            kill_sec=draw(at_least_zero),
            **({} if name == "runtime" else draw(policies)),
        )

    return supervisor("runtime", 0)


def rendered(layout: ActorLayout | SupervisorLayout) -> str:
    """The layout as the text of a supervisor.toml."""
    below = ""
    if isinstance(layout, ActorLayout):
        lines = [
            f"[actors.{json.dumps(layout.name)}]",
            f"start_timeout_sec = {layout.start_timeout_sec}",
            f"shutdown_sec = {layout.shutdown_sec}",
        ]
    else:
        lines = [
            f"[supervisors.{json.dumps(layout.name)}]",
            f"children = {json.dumps([each.name for each in layout.children])}",
            f'strategy = "{layout.strategy}"',
            f"max_restarts = {layout.intensity.max_restarts}",
            f"within_sec = {layout.intensity.within_sec}",
            f"kill_sec = {layout.kill_sec}",
        ]
        below = "".join(map(rendered, layout.children))
    if layout.name != "runtime":
        pause = layout.backoff
        lines += [
            f'restart = "{layout.restart}"',
            f"backoff = {{ initial_sec = {pause.initial_sec}, factor = {pause.factor},"
            f" max_sec = {pause.max_sec}, jitter = {pause.jitter} }}",
        ]
    return "\n".join(lines) + "\n\n" + below


def known_of(layout: ActorLayout | SupervisorLayout) -> tuple[set[str], set[str]]:
    if isinstance(layout, ActorLayout):
        return {layout.name}, set()
    actors, supervisors = set[str](), {layout.name}
    for each in layout.children:
        more_actors, more_supervisors = known_of(each)
        actors |= more_actors
        supervisors |= more_supervisors
    return actors, supervisors


@given(layouts())
def test_any_layout_written_as_toml_is_read_back_the_same(root: SupervisorLayout) -> None:
    """Nothing that a value can hold is lost or changed on the way through the file."""
    actors, supervisors = known_of(root)
    known = Known(frozenset(actors), frozenset(supervisors))
    assert read(rendered(root), known).root == root


def read_or_refused(text: str) -> None:
    """Fail on any error but InvalidLayout, and on one that does not name its file."""
    message = None
    try:
        read(text, Known(KNOWN.actors, KNOWN.supervisors, frozenset({"port"})))
    except InvalidLayout as error:
        message = str(error)
    assert message is None or message.startswith("supervisor.toml")


PIECES = [
    "\n", "[", "]", "[[", "{", "}", "=", ".", '"', "'", '"""', ",", "#", "\\", "\r", "\0", "\ufeff", "é", "-", "_",
    "nan", "inf", "true", "1979-05-27", "0x", "1e999", "99:99:99", "runtime", "gateway", "http", "children", "backoff",
    "settings", "[settings]\n", "[supervisors.gateway]\n", "[actors.http.backoff]\n", 'children = ["gateway"]\n',
]  # fmt: skip


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from(PIECES) | st.text(max_size=5)), min_size=1)
)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(damages: list[tuple[float, int, str]]) -> None:
    """Whatever is cut out of the shipped file and put in instead, no other error comes out."""
    text = shipped_text()
    for where, cut, piece in damages:
        at = math.floor(where * len(text))
        text = text[:at] + piece + text[at + cut :]
    read_or_refused(text)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8)).map("".join))
@example('"\\uD800" = 1')
@example("[settings]\n" + ".".join("a" * 3000) + " = 1")
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    """Text that was never a supervisor.toml is refused just as politely."""
    read_or_refused(text)
