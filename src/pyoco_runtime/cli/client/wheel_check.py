"""What a wheel should have before it goes to the workers: looked up in the file, before anything is sent."""

from __future__ import annotations

import configparser
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

from attrs import Factory, define

DESCRIPTION_CHARS = 80  # a description of this length says how the package is used
_DOCS = {"documentation", "docs", "doc", "usage"}


@define
class Findings:
    """What is wrong with a wheel, and what could be better."""

    errors: list[str] = Factory(list)
    warnings: list[str] = Factory(list)

    def lacks(self, is_error: bool, error: str, warning: str) -> None:
        """Something is missing; how bad that is was decided by the user."""
        (self.errors if is_error else self.warnings).append(error if is_error else warning)


def checked(wheel: Path, *, needs_entry_points: bool, needs_usage_doc: bool) -> Findings:
    """Look into the wheel. Raises OSError if it cannot be read."""
    findings = Findings()
    try:
        with zipfile.ZipFile(wheel) as archive:
            metadata = _member(archive, "METADATA")
            entry_points = _member(archive, "entry_points.txt")
    except zipfile.BadZipFile:
        findings.errors.append("wheel file is not a valid zip archive")
        return findings
    if metadata is None:
        findings.errors.append("missing dist-info/METADATA")
        return findings
    _check_metadata(Parser().parsestr(metadata), findings, needs_usage_doc)
    _check_entry_points(entry_points, findings, needs_entry_points)
    return findings


def _member(archive: zipfile.ZipFile, name: str) -> str | None:
    found = sorted(member for member in archive.namelist() if member.endswith(f".dist-info/{name}"))
    return archive.read(found[0]).decode("utf-8", "replace") if found else None


def _check_metadata(metadata: Message, findings: Findings, needs_usage_doc: bool) -> None:
    for name in ("Name", "Version"):
        if not str(metadata.get(name) or "").strip():
            findings.errors.append(f"METADATA {name} is missing")
    if not str(metadata.get("Summary") or "").strip():
        findings.warnings.append("METADATA Summary is empty")
    if not _says_how_to_use(metadata):
        findings.lacks(
            needs_usage_doc,
            f"usage documentation is missing (need METADATA description>={DESCRIPTION_CHARS} chars"
            " or Project-URL: Documentation,...)",
            "usage documentation seems missing",
        )


def _says_how_to_use(metadata: Message) -> bool:
    if len(str(metadata.get_payload() or "").strip()) >= DESCRIPTION_CHARS:
        return True
    urls = (str(each).partition(",") for each in metadata.get_all("Project-URL") or ())
    return any(label.strip().lower() in _DOCS and url.strip() for label, _, url in urls)


def _check_entry_points(text: str | None, findings: Findings, is_needed: bool) -> None:
    declared = configparser.ConfigParser(interpolation=None)
    try:
        declared.read_string(text or "")
    except configparser.Error:
        findings.errors.append("dist-info/entry_points.txt format is invalid")
    if not any(declared.options(section) for section in declared.sections()):
        findings.lacks(is_needed, "entry_points are missing (dist-info/entry_points.txt)", "entry_points are missing")
