"""The one converter between the values of the contract and their JSON.

Reading is strict about the types of known fields, and keeps unknown ones in `extra`; writing puts them back.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

import cattrs
from attrs import fields, has
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.model.api_key import ApiKeyRecord
from pyoco_runtime.model.compaction import fit
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskStatus
from pyoco_runtime.model.worker import WorkerRecord, WorkerState

T = TypeVar("T")


def job_from(data: bytes) -> Job | InvalidJob:
    """Read a message of the work queue; what is no job says why."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return InvalidJob("the message is not JSON", data)
    if not isinstance(found, dict):
        return InvalidJob(f"the message is not a JSON object but {_kind(found)}", data)
    try:
        job = _converter.structure(found, Job)
    except (cattrs.BaseValidationError, ValueError) as error:
        return InvalidJob(_explain(error), data, _text(found.get("run_id")), _text(found.get("flow_name")))
    empty = [name for name in ("run_id", "flow_name", "tag") if not getattr(job, name)]
    if empty:
        return InvalidJob(f"{', '.join(empty)}: must not be empty", data, job.run_id or None, job.flow_name or None)
    return job


def job_to(job: Job) -> bytes:
    """The message for the work queue."""
    return dump(_converter.unstructure(job))


def snapshot_from(data: bytes) -> RunSnapshot:
    """Read a snapshot, whoever wrote it. Raises Unreadable."""
    return _read(data, RunSnapshot)


def snapshot_to(snapshot: RunSnapshot, max_bytes: int, hard_limit: float = math.inf) -> tuple[bytes, bool]:
    """The value to store, and whether it fits into `max_bytes` once everything that can be spared is gone.

    `hard_limit` is what the store takes at all.
    """
    return fit(snapshot, min(max_bytes, hard_limit), _snapshot_bytes, hard_limit)


def snapshot_json(snapshot: RunSnapshot) -> dict[str, Any]:
    """The snapshot as plain JSON values."""
    return cast("dict[str, Any]", _converter.unstructure(snapshot))


def worker_json(record: WorkerRecord) -> dict[str, Any]:
    """The worker record as plain JSON values."""
    return cast("dict[str, Any]", _converter.unstructure(record))


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """The dead letter as plain JSON values."""
    return cast("dict[str, Any]", _converter.unstructure(letter))


def worker_from(data: bytes) -> WorkerRecord:
    """Read a worker record, whoever wrote it. Raises Unreadable."""
    return _read(data, WorkerRecord)


def worker_to(record: WorkerRecord) -> bytes:
    """The value to store."""
    return dump(_converter.unstructure(record))


def letter_from(data: bytes) -> DeadLetter:
    """Read a dead letter. Raises Unreadable."""
    return _read(data, DeadLetter)


def letter_to(letter: DeadLetter) -> bytes:
    """The message for the dead letter stream."""
    return dump(_converter.unstructure(letter))


def key_from(data: bytes, key_id: str) -> ApiKeyRecord:
    """Read the record of that API key, whoever wrote it. Raises Unreadable, also if it is the record of another."""
    record = _read(data, ApiKeyRecord)
    if record.key_id != key_id:
        raise Unreadable("not an ApiKeyRecord of its place: key_id names another key")
    return record


def key_to(record: ApiKeyRecord) -> bytes:
    """The value to store."""
    return dump(_converter.unstructure(record))


def _snapshot_bytes(snapshot: RunSnapshot) -> bytes:
    return dump(_converter.unstructure(snapshot))


def _read(data: bytes, kind: type[T]) -> T:
    try:
        found = json.loads(data)
        if not isinstance(found, dict):
            raise Unreadable(f"not a {kind.__name__}: not a JSON object but {_kind(found)}")
        return _converter.structure(found, kind)
    except (cattrs.BaseValidationError, ValueError, RecursionError) as error:
        raise Unreadable(f"not a {kind.__name__}: {_explain(error)}") from error


def dump(value: Any) -> bytes:
    """JSON in bytes."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:  # NaN and infinities are not JSON; as everything that is not, they are stored as their repr
        return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


# -- how the converter is made ----------------------------------------------------------------------------------------


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=True)
    for kind, words in ((str, "text"), (bool, "true or false"), (int, "a whole number"), (float, "a number")):
        converter.register_structure_hook(kind, _strict(kind, words))
    for choices in (RunStatus, TaskStatus, WorkerState, Reason):
        converter.register_structure_hook(choices, _choice)
    converter.register_structure_hook_func(_is_mapping, _mapping)
    converter.register_unstructure_hook_func(_is_mapping, _as_is)
    converter.register_structure_hook_func(_is_list, _listed(converter))
    converter.register_structure_hook_factory(_has_extra, lambda kind: _reader(converter, kind))
    converter.register_unstructure_hook_factory(_has_extra, lambda kind: _writer(converter, kind))
    return converter


def _strict(kind: type, words: str) -> Callable[[Any, Any], Any]:
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"must be {words}, not {_kind(value)}")
        return value

    return structure


def _choice(value: Any, kind: type[enum.StrEnum]) -> enum.StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(kind)}, not {value!r}") from None


def _is_mapping(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is Mapping and get_args(kind)[1] is Any


def _mapping(value: Any, _: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {_kind(value)}")
    return value


def _as_is(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is plain JSON already is not copied value by value: params, outputs and graphs can be large."""
    return value if type(value) is dict else dict(value)


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is tuple


def _listed(converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    def structure(value: Any, kind: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError(f"must be a list, not {_kind(value)}")
        inner = get_args(kind)[0]
        return tuple(converter.structure(each, inner) for each in value)

    return structure


def _has_extra(kind: Any) -> bool:
    return has(kind) and any(each.name == "extra" for each in fields(kind))


def _reader(converter: cattrs.Converter, kind: Any) -> Callable[[Any, Any], Any]:
    known = frozenset(each.name for each in fields(kind)) - {"extra"}
    # another writer may store null where we have a default
    nullable = frozenset(each.name for each in fields(kind) if "None" not in str(each.type) and each.name != "extra")
    inner = make_dict_structure_fn(kind, converter)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"must be an object, not {_kind(value)}")
        given = {name: each for name, each in value.items() if name in known}
        if None in given.values():
            given = {name: each for name, each in given.items() if each is not None or name not in nullable}
        extra = {name: each for name, each in value.items() if name not in known}
        if extra:
            given["extra"] = extra
        return inner(given, kind)

    return structure


def _writer(converter: cattrs.Converter, kind: Any) -> Callable[[Any], Any]:
    inner = make_dict_unstructure_fn(kind, converter)

    def unstructure(value: Any) -> Any:
        made = inner(value)
        extra = made.pop("extra")
        return {**extra, **made} if extra else made

    return unstructure


def _explain(error: BaseException) -> str:
    if isinstance(error, cattrs.BaseValidationError):
        return "; ".join(_sentence(line) for line in cattrs.transform_error(error, path="", format_exception=_cause))
    return str(error)


def _cause(error: BaseException, _: type | None) -> str:
    return "is missing" if isinstance(error, KeyError) else str(error)


def _sentence(line: str) -> str:
    """cattrs ends a line with `@ .name`; people read it the other way round."""
    text, _, path = line.rpartition(" @ ")
    return f"{path.lstrip('.')}: {text}" if path else text


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


_converter = _make_converter()
