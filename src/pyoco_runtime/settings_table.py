"""Every setting, declared once: its kind, default, option and meaning. All else about settings derives from here."""

# `setting` makes an attrs field, as attrs.field does; ruff only knows the latter.
# ruff: noqa: RUF009

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any, TypeVar

import attrs
from attrs import Factory, frozen

from pyoco_runtime import setting_kinds as kinds
from pyoco_runtime.setting_kinds import Kind

T = TypeVar("T")
D = TypeVar("D")


class Role(enum.StrEnum):
    """Which part of the tree this process runs."""

    GATEWAY = "gateway"
    WORKER = "worker"
    ALL = "all"


class AuthMode(enum.StrEnum):
    """What an HTTP request must bring along."""

    NONE = "none"
    API_KEY = "api_key"


class Isolation(enum.StrEnum):
    """Where flows are executed."""

    PROCESS = "process"
    THREAD = "thread"


class NatsHere(enum.StrEnum):
    """Whether this process starts a nats-server, and how."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    BOOTSTRAP = "bootstrap"


class Lang(enum.StrEnum):
    """The language of the dashboard."""

    AUTO = "auto"
    JA = "ja"
    EN = "en"


class LogLevel(enum.StrEnum):
    """From which level on records are written."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class LogFormat(enum.StrEnum):
    """How a log record is written."""

    JSON = "json"
    TEXT = "text"


@frozen
class Setting:
    """What is known about one setting before it has a value."""

    name: str
    kind: Kind[Any]
    default: str
    """As the reference page shows it."""
    doc: str
    has_option: bool
    option_name: str | None
    """Its option, where that is not made from its name."""
    secret: bool
    in_dotenv: bool
    in_file: bool

    @property
    def env(self) -> str:
        """Its environment variable."""
        return f"PYOCO_{self.name.upper()}"

    @property
    def option(self) -> str:
        """Its command line option, offered if `has_option`."""
        return self.option_name or f"--{self.name.replace('_', '-')}"


def setting(
    kind: Kind[T],
    default: D,
    doc: str,
    *,
    default_text: str | None = None,
    option: bool | str = False,
    secret: bool = False,
    in_dotenv: bool = True,
    in_file: bool = True,
) -> T | D:
    """Declare a field of Settings."""

    def show(value: T | None) -> str:
        return "None" if value is None else kind.show(value)

    default_text = default_text or ("not set" if default is None else kind.show(default))  # type: ignore[arg-type]  # D is T when not None
    about = {"kind": kind, "default": default_text, "doc": doc, "has_option": bool(option), "secret": secret}
    about |= {"option_name": option if isinstance(option, str) else None, "in_dotenv": in_dotenv, "in_file": in_file}
    # The repr goes through `show`, so that no password reaches a log or a traceback.
    field: T | D = attrs.field(default=default, repr=False if secret else show, metadata={"setting": about})
    return field


@frozen(kw_only=True)
class Settings:
    """All settings, read and checked."""

    role: Role = setting(kinds.choice(Role), Role.ALL, "Which part of the tree this process runs.", option=True)
    config: Path | None = setting(
        kinds.path(),
        None,
        "The supervisor.toml to use; if not set, the one in the working directory, else the one in the package.",
        option=True,
        in_file=False,
    )
    load_dotenv: bool = setting(
        kinds.flag(),
        True,
        "Whether to read the .env file; itself read from the process environment only.",
        in_dotenv=False,
        in_file=False,
    )
    env_file: Path = setting(
        kinds.path(),
        Path(".env"),
        "The .env file, which must be there if it is named here; read from the process environment only.",
        in_dotenv=False,
        in_file=False,
    )
    process_name: str | None = setting(
        kinds.token(), None, "What this process calls itself on NATS and in logs; made up if not set."
    )

    nats_url: tuple[str, ...] | None = setting(
        kinds.urls(),
        None,
        "Where NATS is, one URL or several; if not set, the role all starts an embedded server and the others use"
        " nats://127.0.0.1:4222.",
        option=True,
    )
    nats_server: NatsHere = setting(
        kinds.choice(NatsHere),
        NatsHere.AUTO,
        "Whether this process starts a nats-server and uses it: auto in the role all without PYOCO_NATS_URL, embedded"
        " always, bootstrap always and by the program nats-bootstrap if that is installed.",
    )
    nats_store_dir: Path = setting(kinds.path(), Path(".pyoco/nats"), "Where the embedded server keeps its streams.")
    nats_listen_host: str = setting(kinds.host(), "127.0.0.1", "Where the embedded server listens.")
    nats_client_port: int = setting(kinds.port(), 4222, "The embedded server's port; 0 takes any free one.")
    nats_http_port: int | None = setting(
        kinds.whole(1, 65535), None, "The port of the embedded server's own monitoring pages; if not set, none."
    )
    nats_replicas: int = setting(
        kinds.whole(1, 5),  # JetStream has no more
        1,
        "On how many servers of a NATS cluster the streams and buckets that we make are kept; 3 on a cluster of three."
        " What exists keeps its own number.",
    )

    host: str = setting(kinds.host(), "127.0.0.1", "Where the HTTP gateway listens.", option=True)
    port: int = setting(kinds.port(), 8000, "The HTTP gateway's port; 0 takes any free one.", option=True)
    http_auth_mode: AuthMode = setting(kinds.choice(AuthMode), AuthMode.NONE, "Whether HTTP requests need an API key.")
    http_api_key_header: str = setting(kinds.header(), "X-API-Key", "The header that carries the API key.")
    http_max_connections: int = setting(
        kinds.whole(1),
        10000,
        "How many HTTP connections may be open, as far as the limit of open files allows; one that is idle makes room.",
    )
    auth_kv_bucket: str = setting(kinds.token(), "pyoco_auth", "The KV bucket of the API keys.")
    auth_pepper: str | None = setting(
        kinds.secret(), None, "Mixed into every API key's hash; it must stay the same for keys to work.", secret=True
    )
    dashboard_lang: Lang = setting(
        kinds.choice(Lang), Lang.AUTO, "The dashboard's language; auto follows the server's locale."
    )
    workflow_yaml_max_bytes: int = setting(kinds.size(), 262144, "The largest flow.yaml that is accepted.")

    default_tag: str = setting(kinds.token(), "default", "The tag of a run that was submitted without one.")
    tags: tuple[str, ...] = setting(
        kinds.tokens(),
        Factory(lambda self: (self.default_tag,), takes_self=True),
        "The tags whose runs this worker takes.",
        default_text="PYOCO_DEFAULT_TAG",
        option=True,
    )
    worker_id: str | None = setting(
        kinds.key(), None, "This worker's id, unique among all workers; made up if not set.", option=True
    )
    flow_resolver: str | None = setting(
        kinds.resolver(), None, "The function that turns a flow's name into the flow.", option=True
    )
    concurrency: int = setting(
        kinds.whole(1, 1024), 4, "How many runs this worker executes at the same time.", option=True
    )
    isolation: Isolation = setting(
        kinds.choice(Isolation),
        Isolation.PROCESS,
        "Where flows are executed: in child processes, one run at a time each, or in threads of this process.",
        option=True,
    )
    callable_allow: tuple[str, ...] | None = setting(
        kinds.modules(),
        None,
        "The modules, with all below them, that a flow.yaml may name as callable; if not set, all.",
    )
    worker_probe_host: str = setting(
        kinds.host(), "127.0.0.1", "Where a worker without gateway answers /health and /ready.", option="--probe-host"
    )
    worker_probe_port: int | None = setting(
        kinds.port(), None, "The port of those; if not set, none; 0 takes any free one.", option="--probe-port"
    )
    run_heartbeat_interval_sec: float = setting(
        kinds.seconds(0.001), 1.0, "How often a running run shows that it is alive."
    )
    worker_heartbeat_interval_sec: float = setting(
        kinds.seconds(0.001), 5.0, "How often a worker shows that it is alive."
    )
    worker_disconnect_timeout_sec: float = setting(
        kinds.seconds(0.001), 20.0, "How long a worker may be silent before it counts as DISCONNECTED."
    )
    cancel_grace_period_sec: float = setting(
        kinds.seconds(0), 30.0, "How long a cancel may take before ERR-PYOCO-0021 is logged."
    )

    work_subject_prefix: str = setting(kinds.subject(), "pyoco.work", "The subject of the jobs, before the tag.")
    consumer_ack_wait_sec: float = setting(
        kinds.seconds(0.001), 30.0, "How long a job may show no progress before it is delivered again."
    )
    consumer_max_deliver: int = setting(
        kinds.whole(1), 20, "How many times one job is delivered before it is given up."
    )
    consumer_max_ack_pending: int = setting(
        kinds.whole(1), 200, "How many jobs of one tag may be out at the same time, over all workers."
    )
    ack_progress_interval_sec: float = setting(
        kinds.seconds(0.001),
        10.0,
        "How often a worker reports progress on a job; kept below the ack wait, whatever is set.",
    )
    runs_kv_bucket: str = setting(kinds.token(), "pyoco_runs", "The KV bucket of the run snapshots.")
    max_run_snapshot_bytes: int = setting(
        kinds.size(), 262144, "The largest snapshot; above it the task records shrink."
    )
    workers_kv_bucket: str = setting(kinds.token(), "pyoco_workers", "The KV bucket of the worker records.")
    workers_kv_ttl_sec: float = setting(
        kinds.seconds(0), 604800.0, "How long a silent worker's record is kept; 0 keeps it for ever."
    )

    dlq_stream: str = setting(kinds.token(), "PYOCO_DLQ", "The stream of the dead letters.")
    dlq_subject_prefix: str = setting(kinds.subject(), "pyoco.dlq", "The subject of the dead letters, before the tag.")
    dlq_publish_execution_error: bool = setting(
        kinds.flag(), True, "Whether a run whose flow raised leaves a dead letter too."
    )
    dlq_max_age_sec: float = setting(kinds.seconds(0), 604800.0, "How long a dead letter is kept; 0 keeps it for ever.")
    dlq_max_msgs: int = setting(kinds.whole(-1), 100000, "How many dead letters are kept; -1 keeps all.")
    dlq_max_bytes: int = setting(kinds.size(-1), 536870912, "How much room dead letters may take; -1 sets no limit.")

    wheel_object_store_bucket: str = setting(kinds.token(), "pyoco_wheels", "The object store of the wheels.")
    wheel_max_bytes: int = setting(kinds.size(), 536870912, "The largest wheel that is accepted.")
    wheel_sync_enabled: bool = setting(
        kinds.flag(), False, "Whether this worker installs the wheels that are meant for its tags."
    )
    wheel_sync_dir: Path = setting(kinds.path(), Path(".pyoco/wheels"), "Where this worker keeps those wheels.")
    wheel_sync_interval_sec: float = setting(
        kinds.seconds(0.001),
        10.0,
        "How long it waits before it tries again after a failure; new wheels are noticed at once.",
    )
    wheel_install_timeout_sec: float = setting(kinds.seconds(0.001), 180.0, "How long one installation may take.")
    wheel_history_kv_bucket: str = setting(kinds.token(), "pyoco_wheel_history", "The KV bucket of the wheel history.")
    wheel_history_ttl_sec: float = setting(
        kinds.seconds(0), 7776000.0, "How long the wheel history is kept; 0 keeps it for ever."
    )

    log_level: LogLevel = setting(
        kinds.choice(LogLevel), LogLevel.INFO, "From which level on records are logged.", option=True
    )
    log_format: LogFormat = setting(
        kinds.choice(LogFormat), LogFormat.JSON, "How a log record is written.", option=True
    )
    log_utc: bool = setting(kinds.flag(), True, "Whether log times are UTC; otherwise local time.")
    log_include_traceback: bool = setting(kinds.flag(), True, "Whether a logged error brings its traceback.")


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(name=field.name, **field.metadata["setting"]) for field in attrs.fields(Settings)
)
"""Every setting there is, in the order of the reference page."""
