"""Wheels: what the store says about one, and which of them a worker installs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import cattrs
from attrs import asdict, evolve, frozen
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from pyoco_runtime.errors import InvalidWheel, WheelConflict
from pyoco_runtime.model.run import NOTHING
from pyoco_runtime.model.worker import WheelSync

SHOWN = 50  # items of each list in a worker record, as the peer cuts them
ERROR_LIMIT = 2000  # characters of last_error
UNSUPPORTED = "unsupported_wheel_tags"


@frozen(kw_only=True)
class WheelInfo:
    """A wheel in the store."""

    name: str
    nuid: str
    """Changes with every upload."""
    size_bytes: int
    sha256_hex: str | None = None
    tags: tuple[str, ...] = ()
    """Which workers it is for; empty is for all."""
    modified: float | None = None
    bucket: str = ""
    digest: str = ""
    """As the object store writes it: `SHA-256=` and the URL-safe base64 of the digest."""
    mtime: str = ""
    """When it was uploaded, as the object store writes it."""


@frozen
class WheelShelf:
    """All wheels at one moment."""

    wheels: tuple[WheelInfo, ...]
    """By name."""
    revision: int
    """Changes with every upload and every deletion, by whomever; to compare with when a wheel is added."""


# -- the file name ----------------------------------------------------------------------------------------------------


@frozen
class WheelName:
    """What the file name of a wheel says."""

    package_name: str
    """Normalized: `Foo_Bar` and `foo.bar` are one package."""
    version: Version
    platform_tags: frozenset[str]
    """Such as `py3-none-any`; it fits an interpreter that supports one of them."""


# It becomes a file name and an argument, whoever put it into the store: no path, no option, no longer than a file's.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,250}\.whl")


def is_wheel_file(name: str) -> bool:
    """Whether it looks like the file name of a wheel; it may have no version that can be read."""
    return _SAFE.fullmatch(name) is not None


def wheel_name_from(name: str) -> WheelName | None:
    """Read a file name; None if it is not a valid one for a wheel."""
    if not _SAFE.fullmatch(name):
        return None
    try:
        package_name, version, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return None
    return WheelName(package_name, version, frozenset(map(str, tags)))


# -- what may be uploaded ---------------------------------------------------------------------------------------------

_TAG = re.compile(r"[A-Za-z0-9_-]+")
TAGS_LIMIT = 4096  # characters of all tags together; they are stored in a header


def checked_name(file_name: str) -> WheelName:
    """Read the name of a file to be uploaded. Raises InvalidWheel."""
    if not is_wheel_file(file_name):
        raise InvalidWheel(
            f"invalid wheel name: {shortened(file_name, 100)!r}; a wheel is named like demo-1.0-py3-none-any.whl"
        )
    name = wheel_name_from(file_name)
    if name is None:
        raise InvalidWheel(
            f"invalid wheel filename: {shortened(file_name, 100)!r} is not name-version-python-abi-platform.whl,"
            " for example demo-1.0-py3-none-any.whl"
        )
    return name


def tags_from(csv: str) -> tuple[str, ...]:
    """Read tags with commas between them, each once. Raises InvalidWheel."""
    tags = tuple(dict.fromkeys(tag for each in csv.split(",") if (tag := each.strip())))
    wrong = next((tag for tag in tags if not _TAG.fullmatch(tag)), None)
    if wrong is not None:
        raise InvalidWheel(
            f"invalid wheel tags: {shortened(wrong, 100)!r}; use letters, digits, - and _, for example a,b"
        )
    if len(csv) > TAGS_LIMIT:
        raise InvalidWheel(f"invalid wheel tags: more than {TAGS_LIMIT} characters")
    return tags


def check_newer(name: WheelName, stored: Iterable[WheelInfo]) -> None:
    """Let only a version through that is newer than all of its package, whatever the platform. Raises WheelConflict."""
    versions = {found.version for info in stored if (found := _same_package(name, info)) is not None}
    newest = max(versions, default=None)
    if newest is None or name.version > newest:
        return
    short = (
        "wheel version already exists; bump version"
        if name.version in versions
        else "wheel version must be greater than existing latest version"
    )
    raise WheelConflict(f"{short}: the newest {name.package_name} in the store is {newest}, this one is {name.version}")


def _same_package(name: WheelName, info: WheelInfo) -> WheelName | None:
    found = wheel_name_from(info.name)
    return found if found is not None and found.package_name == name.package_name else None


# -- the manifest -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class InstalledWheel:
    """An entry of the manifest `.installed.json`, in the peer's format."""

    nuid: str
    package_name: str
    package_version: str
    size_bytes: int
    sha256_hex: str
    tags: tuple[str, ...] = ()
    installed_at: float | None = None


Manifest = Mapping[str, InstalledWheel]
"""What is installed, by wheel name."""

_converter = cattrs.Converter()


def manifest_from(data: bytes) -> Manifest:
    """Read a manifest; a broken one is empty, and a broken entry is as if it were not there."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    entries = {name: _entry_from(each) for name, each in found.items()}
    return {name: entry for name, entry in entries.items() if entry is not None and wheel_name_from(name)}


def _entry_from(found: Any) -> InstalledWheel | None:
    try:
        return _converter.structure(found, InstalledWheel)
    except (cattrs.BaseValidationError, TypeError, ValueError):
        return None


def manifest_to(manifest: Manifest) -> bytes:
    """The file's content."""
    entries = {name: asdict(entry) for name, entry in sorted(manifest.items())}
    return json.dumps(entries, separators=(",", ":")).encode()


# -- the plan ---------------------------------------------------------------------------------------------------------


@frozen
class Local:
    """What this worker has."""

    supported: frozenset[str]
    """The platform tags of its interpreter."""
    manifest: Manifest = NOTHING
    """The wheels that are installed and whose files are whole."""
    present: frozenset[str] = frozenset()
    """The names of the wheel files in the sync directory."""


@frozen
class Choice:
    """A wheel that this worker shall have."""

    info: WheelInfo
    package_name: str
    package_version: str

    @property
    def name(self) -> str:
        """The wheel's name."""
        return self.info.name


@frozen
class SkippedWheel:
    """A wheel for this worker's tags that does not fit its interpreter."""

    wheel_name: str
    package_name: str
    package_version: str
    reason: str = UNSUPPORTED


@frozen
class Plan:
    """What a sync does; everything by wheel name."""

    selected: tuple[Choice, ...] = ()
    to_install: tuple[Choice, ...] = ()
    """Those of the selected that are not here as they are in the store."""
    to_remove: tuple[str, ...] = ()
    """Those that are here and are not selected."""
    skipped_incompatible: tuple[SkippedWheel, ...] = ()


def plan_sync(stored: Iterable[WheelInfo], worker_tags: Collection[str], local: Local) -> Plan:
    """Choose the newest fitting wheel of each package; what has its nuid and its file is not touched."""
    newest: dict[str, tuple[Version, str, Choice]] = {}
    skipped = []
    for info in stored:
        name = wheel_name_from(info.name)
        if name is None or (info.tags and set(worker_tags).isdisjoint(info.tags)):
            continue
        if local.supported.isdisjoint(name.platform_tags):
            skipped.append(SkippedWheel(info.name, name.package_name, str(name.version)))
            continue
        candidate = (name.version, info.name, Choice(info, name.package_name, str(name.version)))
        best = newest.get(name.package_name)
        if best is None or candidate[:2] > best[:2]:
            newest[name.package_name] = candidate
    selected = sorted((choice for _, _, choice in newest.values()), key=lambda choice: choice.name)
    return Plan(
        tuple(selected),
        tuple(choice for choice in selected if not _is_here(choice, local)),
        tuple(sorted((set(local.manifest) | local.present) - {choice.name for choice in selected})),
        tuple(sorted(skipped, key=lambda each: each.wheel_name)),
    )


def _is_here(choice: Choice, local: Local) -> bool:
    entry = local.manifest.get(choice.name)
    return entry is not None and entry.nuid == choice.info.nuid and choice.name in local.present


@frozen
class Part:
    """A wheel of the next generation."""

    name: str
    nuid: str
    is_new: bool
    """It comes from the file that was just downloaded, not from the one that is here."""


def compose(plan: Plan, manifest: Manifest, usable: Collection[str]) -> tuple[Part, ...]:
    """The next generation when of the wheels to install only the `usable` ones can be: the others' old ones stay."""
    to_install = {choice.name for choice in plan.to_install}
    old = {entry.package_name: name for name, entry in sorted(manifest.items())}
    parts = []
    for choice in plan.selected:
        if choice.name not in to_install or choice.name in usable:
            parts.append(Part(choice.name, choice.info.nuid, choice.name in to_install))
        elif choice.package_name in old:
            name = old[choice.package_name]
            parts.append(Part(name, manifest[name].nuid, is_new=False))
    return tuple(sorted(parts, key=lambda part: part.name))


# -- what is told about it --------------------------------------------------------------------------------------------


@frozen
class Outcome:
    """What a sync has done."""

    manifest: Manifest
    """What is installed now."""
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: Mapping[str, str] = NOTHING
    """Wheels that could not be installed, and why."""


def status_idle(manifest: Manifest) -> WheelSync:
    """The status before the first attempt."""
    return WheelSync(enabled=True, last_result="idle", installed_wheels=_installed(manifest))


def status_after(previous: WheelSync, plan: Plan, outcome: Outcome, *, started_at: float, now: float) -> WheelSync:
    """The status after a sync that came to its end, perhaps without some wheels."""
    status = WheelSync(
        enabled=True,
        last_result="ok",
        last_attempt_at=started_at,
        last_success_at=now,
        last_synced_at=now,
        selected_count=len(plan.selected),
        updated_count=len(outcome.updated),
        removed_count=len(outcome.removed),
        skipped_incompatible_count=len(plan.skipped_incompatible),
        selected_wheels=tuple(choice.name for choice in plan.selected[:SHOWN]),
        updated_wheels=outcome.updated[:SHOWN],
        removed_wheels=outcome.removed[:SHOWN],
        skipped_incompatible=tuple(asdict(each) for each in plan.skipped_incompatible[:SHOWN]),
        installed_wheels=_installed(outcome.manifest),
        extra=previous.extra,
    )
    if not outcome.problems:
        return status
    return evolve(
        status,
        last_result="error",
        last_success_at=previous.last_success_at,
        last_synced_at=previous.last_synced_at,
        last_error=shortened(describe(outcome.problems)),
    )


def status_failed(previous: WheelSync, error: str, *, started_at: float) -> WheelSync:
    """The status after a sync that has changed nothing."""
    return evolve(previous, enabled=True, last_result="error", last_attempt_at=started_at, last_error=shortened(error))


def describe(problems: Mapping[str, str]) -> str:
    """The problems as one text."""
    return "; ".join(f"{name}: {problem}" for name, problem in sorted(problems.items()))


def shortened(text: str, limit: int = ERROR_LIMIT) -> str:
    """Cut in the middle: installers say first what they did, and last why it failed."""
    if len(text) <= limit:
        return text
    gap = " [...] "
    head = limit // 4
    return text[:head] + gap + text[head + len(gap) - limit :]


def _installed(manifest: Manifest) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {
            "wheel_name": name,
            "package_name": entry.package_name,
            "package_version": entry.package_version,
            "installed_at": entry.installed_at,
            "nuid": entry.nuid,
        }
        for name, entry in sorted(manifest.items())[:SHOWN]
    )
