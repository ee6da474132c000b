"""supervisor.toml as checked values: who supervises whom, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from pyoco_runtime import toml_file
from pyoco_runtime.core.spec import Backoff, Intensity, Restart, Strategy
from pyoco_runtime.errors import InvalidLayout
from pyoco_runtime.layout_keys import ROOT, Known, problems
from pyoco_runtime.toml_file import TomlFile
from pyoco_runtime.wording import not_one_of, quoted

__all__ = [
    "ROOT",
    "SHIPPED",
    "ActorLayout",
    "Known",
    "Layout",
    "RawSetting",
    "SupervisorLayout",
    "parse",
    "shipped_text",
]

SHIPPED = "supervisor.toml shipped with pyoco-runtime"
"""What messages call the file that every other one is laid over."""


@frozen
class ActorLayout:
    """How one actor is started, stopped and restarted."""

    name: str
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = field(factory=Backoff)
    start_timeout_sec: float = 30.0
    shutdown_sec: float = 5.0


@frozen
class SupervisorLayout:
    """A supervisor and, in start order, its children."""

    name: str
    children: tuple[ActorLayout | SupervisorLayout, ...] = ()
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: Intensity = field(factory=Intensity)
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = field(factory=Backoff)
    kill_sec: float = 5.0


@frozen
class RawSetting:
    """A value of [settings], not yet read, and where it stands."""

    value: object = field(repr=False)  # it may be a secret
    source: str
    line: int | None


@frozen
class Layout:
    """A whole supervisor.toml: the tree, and the settings that it carries."""

    root: SupervisorLayout
    settings: Mapping[str, RawSetting]


def shipped_text() -> str:
    """The supervisor.toml that comes with the package."""
    return resources.files("pyoco_runtime").joinpath("supervisor.toml").read_text(encoding="utf-8")


def parse(text: str, *, source: str, known: Known) -> Layout:
    """Lay the text over the shipped file and check the whole; raises InvalidLayout with all that is wrong."""
    own = toml_file.read(text, source)
    _raise_if_any(problems(own, known))
    shipped = toml_file.read(shipped_text(), SHIPPED)
    tree = _Tree(own, shipped, known, _merged(shipped.data, own.data))
    _raise_if_any(tree.cycle())
    _raise_if_any(tree.misplaced())
    _raise_if_any(tree.unused())
    return Layout(tree.supervisor(ROOT), MappingProxyType({**_settings(shipped), **_settings(own)}))


@frozen
class _Tree:
    """The two files merged, before and while they become values."""

    own: TomlFile
    shipped: TomlFile
    known: Known
    data: Mapping[str, Any]

    def children(self, name: str) -> list[str]:
        children: list[str] = self.table("supervisors", name).get("children", [])
        return children

    def table(self, kind: str, name: str) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self.data.get(kind, {}).get(name, {})
        return table

    def is_supervisor(self, name: str) -> bool:
        return name == ROOT or name in self.known.supervisors

    def cycle(self) -> Iterator[str]:
        """The first cycle among the supervisors, from the root on, then among those that nobody reaches."""
        clear: set[str] = set()
        for name in (ROOT, *self.own.data.get("supervisors", {})):
            if cycle := self._cycle_below((name,), clear):
                at = self._children_place(cycle[-2])
                yield f"{at}: a supervisor cannot be below itself: {' -> '.join(cycle)}"
                return

    def _cycle_below(self, way: tuple[str, ...], clear: set[str]) -> tuple[str, ...] | None:
        for child in self.children(way[-1]):
            if child in way:
                return (*way[way.index(child) :], child)
            if child not in clear and self.is_supervisor(child):
                found = self._cycle_below((*way, child), clear)
                if found:
                    return found
        clear.add(way[-1])
        return None

    def misplaced(self) -> Iterator[str]:
        """Children that do not exist and children that are there twice."""
        parents: dict[str, str] = {}
        for parent, child in self.pairs():
            place = self._children_place(parent)
            if not self.is_supervisor(child) and child not in self.known.actors:
                names = sorted(self.known.actors | self.known.supervisors - {ROOT})
                yield f"{place}: {not_one_of(child, 'an actor or a supervisor', names)}"
            elif parents.get(child) == parent:
                yield f"{place}: {quoted(child)} is in the list twice; remove one"
            elif child in parents:
                yield f"{place}: {quoted(child)} is a child of {parents[child]} already; keep it in one list only"
            parents.setdefault(child, parent)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every (parent, child) from the root down, each parent once."""
        waiting, seen = [ROOT], {ROOT}
        for parent in waiting:
            for child in self.children(parent):
                yield parent, child
                if self.is_supervisor(child) and child not in seen:
                    waiting.append(child)
                    seen.add(child)

    def unused(self) -> Iterator[str]:
        """Tables in the user's own file that the tree has no use for."""
        used = {ROOT} | {child for _, child in self.pairs()}
        for kind in ("supervisors", "actors"):
            for name in self.own.data.get(kind, {}):
                if name not in used:
                    yield (
                        f"{self.own.place((kind, name))}: nobody has {quoted(name)} as a child;"
                        " add it to the children of a supervisor, or remove this table"
                    )

    def _children_place(self, name: str) -> str:
        path = ("supervisors", name, "children")
        return (self.own if self.own.has(path) else self.shipped).place(path)

    def child(self, name: str) -> ActorLayout | SupervisorLayout:
        return self.supervisor(name) if self.is_supervisor(name) else self.actor(name)

    def supervisor(self, name: str) -> SupervisorLayout:
        plain, table = SupervisorLayout(name), self.table("supervisors", name)
        return SupervisorLayout(
            name,
            children=tuple(self.child(child) for child in self.children(name)),
            strategy=Strategy(table.get("strategy", plain.strategy)),
            intensity=Intensity(
                max_restarts=table.get("max_restarts", plain.intensity.max_restarts),
                within_sec=float(table.get("within_sec", plain.intensity.within_sec)),
            ),
            restart=Restart(table.get("restart", plain.restart)),
            backoff=_backoff(table),
            kill_sec=float(table.get("kill_sec", plain.kill_sec)),
        )

    def actor(self, name: str) -> ActorLayout:
        plain, table = ActorLayout(name), self.table("actors", name)
        return ActorLayout(
            name,
            restart=Restart(table.get("restart", plain.restart)),
            backoff=_backoff(table),
            start_timeout_sec=float(table.get("start_timeout_sec", plain.start_timeout_sec)),
            shutdown_sec=float(table.get("shutdown_sec", plain.shutdown_sec)),
        )


def _backoff(table: Mapping[str, Any]) -> Backoff:
    return Backoff(**{key: float(value) for key, value in table.get("backoff", {}).items()})


def _settings(file: TomlFile) -> dict[str, RawSetting]:
    settings = file.data.get("settings", {})
    return {name: RawSetting(value, file.source, file.line(("settings", name))) for name, value in settings.items()}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; whatever is not a table, lists too, is replaced whole."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def _raise_if_any(found: Iterator[str]) -> None:
    if lines := list(found):
        raise InvalidLayout("\n".join(lines))
