"""Which wheels a worker installs, what stays when one is bad, and what is told about it."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pyoco_runtime.model.wheels import (
    ERROR_LIMIT,
    SHOWN,
    Choice,
    InstalledWheel,
    Local,
    Manifest,
    Outcome,
    Part,
    Plan,
    compose,
    manifest_from,
    manifest_to,
    plan_sync,
    shortened,
    status_after,
    status_failed,
    status_idle,
    wheel_name_from,
)
from pyoco_runtime.model.wheels import WheelInfo as Info
from pyoco_runtime.model.worker import WheelSync

ANY = frozenset({"py3-none-any", "cp311-cp311-linux_x86_64"})


def wheel(name: str, nuid: str = "1", *tags: str) -> Info:
    return Info(name=name, nuid=nuid, size_bytes=1, tags=tags)


def pure(package: str, version: str, nuid: str = "1", *tags: str) -> Info:
    return wheel(f"{package}-{version}-py3-none-any.whl", nuid, *tags)


def entry(package: str, version: str, nuid: str = "1") -> InstalledWheel:
    return InstalledWheel(
        nuid=nuid, package_name=package, package_version=version, size_bytes=1, sha256_hex="00", installed_at=5.0
    )


def here(*wheels: tuple[str, str, str]) -> Local:
    manifest = {
        f"{package}-{version}-py3-none-any.whl": entry(package, version, nuid) for package, version, nuid in wheels
    }
    return Local(ANY, manifest, frozenset(manifest))


def names(choices: Iterable[Choice]) -> list[str]:
    return [choice.name for choice in choices]


def plan(*stored: Info, tags: tuple[str, ...] = ("a",), local: Local | None = None) -> Plan:
    return plan_sync(stored, tags, local or Local(ANY))


# -- names


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x.whl",
        "x-1.0-py3-none-any.zip",
        "x-1.0-py3-none-any.whl\n",
        "x-not_a_version-py3-none-any.whl",
        "../x-1.0-py3-none-any.whl",
        "x-1.0-py3-none-../../any.whl",
        "x-1.0-1/2-py3-none-any.whl",
        "-1.0-py3-none-any.whl",
        "--target-1.0-py3-none-any.whl",
        f"x-1.0-{'1' * 5000}-py3-none-any.whl",
        f"{'x' * 300}-1.0-py3-none-any.whl",
        "ｘ-1.0-py3-none-any.whl",
    ],
)
def test_what_is_not_the_name_of_a_wheel_is_skipped(name: str) -> None:
    """Names become paths and arguments: nothing unusual gets through, and nothing raises."""
    assert wheel_name_from(name) is None
    assert plan(wheel(name)) == Plan()


def test_a_name_says_package_version_and_platforms() -> None:
    """Package names are normalized; compressed tags are spread."""
    found = wheel_name_from("Foo_Bar-1.0.post1-2-py2.py3-none-any.whl")
    assert found is not None
    assert found.package_name == "foo-bar"
    assert found.version == Version("1.0.post1")
    assert found.platform_tags == {"py2-none-any", "py3-none-any"}


@given(st.text())
def test_no_name_breaks_the_reading(name: str) -> None:
    """Whatever is in the store."""
    wheel_name_from(name + ".whl")


# -- the plan


@pytest.mark.parametrize(
    ("wheel_tags", "worker_tags", "is_chosen"),
    [
        ((), ("a",), True),
        ((), (), True),
        (("a",), ("a", "b"), True),
        (("a", "c"), ("c",), True),
        (("b",), ("a",), False),
        (("b",), (), False),
    ],
)
def test_tags_choose(wheel_tags: tuple[str, ...], worker_tags: tuple[str, ...], is_chosen: bool) -> None:
    """A wheel is for the workers with one of its tags; one without tags is for all."""
    assert bool(plan(pure("x", "1", "1", *wheel_tags), tags=worker_tags).selected) is is_chosen


def test_a_wheel_for_another_platform_is_skipped_and_named() -> None:
    """In the peer's words; an older one that fits is taken instead; other workers' wheels are not mentioned."""
    windows = "x-2.0-cp311-cp311-win_amd64.whl"
    found = plan(wheel(windows), pure("x", "1.0"), wheel("y-1-cp27-none-any.whl", "1", "other"))
    assert names(found.selected) == ["x-1.0-py3-none-any.whl"]
    assert [asdict(each) for each in found.skipped_incompatible] == [
        {
            "wheel_name": windows,
            "package_name": "x",
            "package_version": "2.0",
            "reason": "unsupported_wheel_tags",
        }
    ]


def test_the_newest_of_each_package() -> None:
    """By version and not by text, across spellings of the package's name; a tie goes to the greater file name."""
    found = plan(
        pure("x", "1.9"),
        pure("x", "1.10"),
        pure("X", "1.2"),
        pure("y", "1.0"),
        wheel("y-1.0-cp311-cp311-linux_x86_64.whl"),
        pure("z", "2.0rc1"),
        pure("z", "1.0"),
    )
    assert names(found.selected) == ["x-1.10-py3-none-any.whl", "y-1.0-py3-none-any.whl", "z-2.0rc1-py3-none-any.whl"]


def test_only_a_new_nuid_is_a_change() -> None:
    """Same nuid: nothing to do; another one, or a missing file, or no entry: install."""
    name = "x-1-py3-none-any.whl"
    assert plan(pure("x", "1", "n1"), local=here(("x", "1", "n1"))).to_install == ()
    assert names(plan(pure("x", "1", "n2"), local=here(("x", "1", "n1"))).to_install) == [name]
    assert names(plan(pure("x", "1", "n1"), local=Local(ANY, {name: entry("x", "1", "n1")})).to_install) == [name]
    assert names(plan(pure("x", "1", "n1"), local=Local(ANY, {}, frozenset({name}))).to_install) == [name]


def test_what_is_not_chosen_any_more_goes() -> None:
    """Gone from the store, replaced by a newer one, not for us any more, or a file that nobody remembers."""
    local = here(("gone", "1", "1"), ("old", "1", "1"), ("theirs", "1", "1"), ("kept", "1", "1"))
    local = Local(ANY, local.manifest, local.present | {"stray-1-py3-none-any.whl"})
    found = plan(pure("old", "1"), pure("old", "2"), pure("theirs", "1", "1", "b"), pure("kept", "1"), local=local)
    assert found.to_remove == tuple(f"{name}-1-py3-none-any.whl" for name in ("gone", "old", "stray", "theirs"))


infos = st.lists(
    st.builds(
        lambda package, version, platform, nuid, tags: wheel(f"{package}-{version}-{platform}.whl", nuid, *tags),
        st.sampled_from(["x", "y", "Z_z", "z.z"]),
        st.sampled_from(["1", "1.0", "2", "1.10", "1.9", "bad_one"]),
        st.sampled_from(["py3-none-any", "cp311-cp311-linux_x86_64", "cp27-none-win32"]),
        st.sampled_from(["n1", "n2"]),
        st.sets(st.sampled_from(["a", "b"])),
    ),
    unique_by=lambda info: info.name,
)
tag_sets = st.frozensets(st.sampled_from(["a", "b", "c"]))


def after(found: Plan) -> Local:
    """This worker once the plan was carried out."""
    manifest = {
        choice.name: InstalledWheel(
            nuid=choice.info.nuid,
            package_name=choice.package_name,
            package_version=choice.package_version,
            size_bytes=1,
            sha256_hex="00",
        )
        for choice in found.selected
    }
    return Local(ANY, manifest, frozenset(manifest))


@given(infos, infos, tag_sets)
def test_the_plan_keeps_its_promises(old: list[Info], new: list[Info], tags: frozenset[str]) -> None:
    """One wheel a package, the greatest of those that fit; a second sync has nothing to do; order does not matter."""
    local = after(plan_sync(old, tags, Local(ANY)))
    found = plan_sync(new, tags, local)
    fitting = [
        (name.package_name, name.version, info.name)
        for info in new
        if (name := wheel_name_from(info.name))
        and not (info.tags and tags.isdisjoint(info.tags))
        and not name.platform_tags.isdisjoint(ANY)
    ]
    best = {package: max(each[1:] for each in fitting if each[0] == package)[1] for package, _, _ in fitting}
    assert names(found.selected) == sorted(best.values())
    assert set(found.to_install) <= set(found.selected)
    assert not set(found.to_remove) & set(names(found.selected))
    assert plan_sync(reversed(new), tags, local) == found
    again = plan_sync(new, tags, after(found))
    assert (again.to_install, again.to_remove) == ((), ())


# -- the next generation


def test_an_old_version_stays_while_its_successor_is_bad() -> None:
    """The good ones of a set come in; a bad one with no predecessor is left out; the same name may be both."""
    local = here(("same", "1", "n1"), ("up", "1", "n1"), ("kept", "1", "n1"), ("gone", "1", "n1"))
    found = plan(
        pure("same", "1", "n2"),
        pure("up", "2"),
        pure("kept", "1", "n1"),
        pure("new", "1"),
        pure("ok", "1"),
        local=local,
    )
    assert compose(found, local.manifest, {"ok-1-py3-none-any.whl"}) == (
        Part("kept-1-py3-none-any.whl", "n1", False),
        Part("ok-1-py3-none-any.whl", "1", True),
        Part("same-1-py3-none-any.whl", "n1", False),
        Part("up-1-py3-none-any.whl", "n1", False),
    )


@given(infos, infos, tag_sets, st.data())
def test_every_generation_has_at_most_one_wheel_of_a_package(
    old: list[Info], new: list[Info], tags: frozenset[str], data: st.DataObject
) -> None:
    """With all usable it is what was selected; with none it is what was there and is still wanted."""
    local = after(plan_sync(old, tags, Local(ANY)))
    found = plan_sync(new, tags, local)
    usable = data.draw(st.frozensets(st.sampled_from([choice.name for choice in found.to_install] or ["-"])))
    parts = compose(found, local.manifest, usable)
    packages = [name.package_name for part in parts if (name := wheel_name_from(part.name))]
    assert len(packages) == len(set(packages)) == len(parts)
    assert set(packages) <= {choice.package_name for choice in found.selected}
    assert {part.name for part in parts if part.is_new} == usable & set(names(found.to_install))
    assert all(part.is_new or local.manifest[part.name].nuid == part.nuid for part in parts)
    everything = compose(found, local.manifest, names(found.to_install))
    assert [part.name for part in everything] == names(found.selected)


# -- the manifest


def test_the_manifest_has_the_peers_format() -> None:
    """A file that pyoco-server 0.5.1 wrote is read, and ours has the same fields."""
    theirs = {
        "x-1-py3-none-any.whl": {
            "nuid": "n1",
            "package_name": "x",
            "package_version": "1",
            "size_bytes": 3,
            "sha256_hex": "ab",
            "tags": ["a"],
            "installed_at": 1.5,
        }
    }
    found = manifest_from(json.dumps(theirs).encode())
    assert found["x-1-py3-none-any.whl"].tags == ("a",)
    assert json.loads(manifest_to(found)) == theirs


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"x": 1}', b'{"x": {"nuid": "1"}}']
)
def test_a_broken_manifest_is_empty(data: bytes) -> None:
    """Then everything is installed again."""
    assert manifest_from(data) == {}


def test_a_broken_entry_is_as_if_it_were_not_there() -> None:
    """The others stay; a name that would lead out of the directory does not."""
    good: Manifest = {"x-1-py3-none-any.whl": entry("x", "1")}
    entries = json.loads(manifest_to({**good, "../../x-1-py3-none-any.whl": entry("x", "1")}))
    entries["y-1-py3-none-any.whl"] = {"nuid": "n1", "size_bytes": "many"}
    assert manifest_from(json.dumps(entries).encode()) == good


# -- the status


def test_the_status_counts_all_and_shows_fifty() -> None:
    """As the peer cuts its lists."""
    found = plan(
        *(pure(f"p{n:03}", "1") for n in range(70)), *(wheel(f"w{n:03}-1-cp27-none-win32.whl") for n in range(60))
    )
    gone = tuple(f"g{n:03}-1-py3-none-any.whl" for n in range(55))
    outcome = Outcome(after(found).manifest, tuple(names(found.to_install)), gone)
    status = status_after(WheelSync(), found, outcome, started_at=1.0, now=2.0)
    assert (status.enabled, status.last_result, status.last_error) == (True, "ok", None)
    assert (status.last_attempt_at, status.last_success_at, status.last_synced_at) == (1.0, 2.0, 2.0)
    counts = (status.selected_count, status.updated_count, status.removed_count, status.skipped_incompatible_count)
    assert counts == (70, 70, 55, 60)
    lists = (status.selected_wheels, status.updated_wheels, status.removed_wheels, status.installed_wheels)
    assert [len(each) for each in lists] == [SHOWN] * 4
    assert len(status.skipped_incompatible) == SHOWN
    assert status.installed_wheels[0] == {
        "wheel_name": "p000-1-py3-none-any.whl",
        "package_name": "p000",
        "package_version": "1",
        "installed_at": None,
        "nuid": "1",
    }


def test_the_status_of_failures() -> None:
    """A sync without some wheels tells what it did and what not; one that did nothing keeps what was."""
    idle = status_idle({"x-1-py3-none-any.whl": entry("x", "1")})
    assert (idle.enabled, idle.last_result, len(idle.installed_wheels)) == (True, "idle", 1)
    ok = status_after(idle, plan(pure("x", "1")), Outcome({}), started_at=1.0, now=2.0)
    partly = status_after(
        ok, plan(pure("x", "2")), Outcome({}, (), ("g",), {"x": "it is bad"}), started_at=3.0, now=4.0
    )
    assert (partly.last_result, partly.last_error) == ("error", "x: it is bad")
    assert (partly.last_attempt_at, partly.last_success_at, partly.last_synced_at) == (3.0, 2.0, 2.0)
    assert (partly.removed_wheels, partly.selected_count) == (("g",), 1)
    failed = status_failed(partly, "e" * 5000, started_at=5.0)
    assert (failed.last_result, failed.last_attempt_at, failed.removed_wheels) == ("error", 5.0, ("g",))
    assert len(failed.last_error or "") == ERROR_LIMIT


@given(st.text(), st.integers(40, 200))
def test_a_long_text_keeps_its_beginning_and_its_end(text: str, limit: int) -> None:
    """And is never longer than it may be."""
    short = shortened(text * 10, limit)
    assert len(short) <= limit
    assert short[:10] == (text * 10)[:10]
    assert short[-10:] == (text * 10)[-10:]
