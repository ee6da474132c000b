"""Settings: where they come from, what they may be, and what is never shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyoco_runtime import settings_page
from pyoco_runtime.errors import InvalidLayout, InvalidSetting, UserError
from pyoco_runtime.layout import SHIPPED
from pyoco_runtime.settings import (
    SETTINGS,
    AuthMode,
    Isolation,
    Lang,
    Loaded,
    LogFormat,
    LogLevel,
    NatsHere,
    Role,
    Setting,
    Settings,
    load,
    shown,
)
from pyoco_runtime.tree import KNOWN

REPOSITORY = Path(__file__).parents[2]
NOWHERE = Path("/nonexistent")  # a working directory without files, for tests that need none
BY_NAME = {each.name: each for each in SETTINGS}


def loaded(environ: dict[str, str] | None = None, options: dict[str, str] | None = None, cwd: Path = NOWHERE) -> Loaded:
    return load(options or {}, environ or {}, cwd, KNOWN)


def refused(environ: dict[str, str] | None = None, options: dict[str, str] | None = None, cwd: Path = NOWHERE) -> str:
    with pytest.raises(InvalidSetting) as caught:
        loaded(environ, options, cwd)
    return str(caught.value)


# -- defaults ---------------------------------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_contract() -> None:
    """Name for name and value for value what part 5 of the contract says, and our own."""
    assert attrs.asdict(loaded().settings) == {
        "role": Role.ALL,
        "config": None,
        "load_dotenv": True,
        "env_file": Path(".env"),
        "process_name": None,
        "nats_url": None,
        "nats_server": NatsHere.AUTO,
        "nats_store_dir": Path(".pyoco/nats"),
        "nats_listen_host": "127.0.0.1",
        "nats_client_port": 4222,
        "nats_http_port": None,
        "nats_replicas": 1,
        "host": "127.0.0.1",
        "port": 8000,
        "http_auth_mode": AuthMode.NONE,
        "http_api_key_header": "X-API-Key",
        "http_max_connections": 10000,
        "auth_kv_bucket": "pyoco_auth",
        "auth_pepper": None,
        "dashboard_lang": Lang.AUTO,
        "workflow_yaml_max_bytes": 262144,
        "default_tag": "default",
        "tags": ("default",),
        "worker_id": None,
        "flow_resolver": None,
        "concurrency": 4,
        "isolation": Isolation.PROCESS,
        "callable_allow": None,
        "worker_probe_host": "127.0.0.1",
        "worker_probe_port": None,
        "run_heartbeat_interval_sec": 1.0,
        "worker_heartbeat_interval_sec": 5.0,
        "worker_disconnect_timeout_sec": 20.0,
        "cancel_grace_period_sec": 30.0,
        "work_subject_prefix": "pyoco.work",
        "consumer_ack_wait_sec": 30.0,
        "consumer_max_deliver": 20,
        "consumer_max_ack_pending": 200,
        "ack_progress_interval_sec": 10.0,
        "runs_kv_bucket": "pyoco_runs",
        "max_run_snapshot_bytes": 262144,
        "workers_kv_bucket": "pyoco_workers",
        "workers_kv_ttl_sec": 604800.0,
        "dlq_stream": "PYOCO_DLQ",
        "dlq_subject_prefix": "pyoco.dlq",
        "dlq_publish_execution_error": True,
        "dlq_max_age_sec": 604800.0,
        "dlq_max_msgs": 100000,
        "dlq_max_bytes": 536870912,
        "wheel_object_store_bucket": "pyoco_wheels",
        "wheel_max_bytes": 536870912,
        "wheel_sync_enabled": False,
        "wheel_sync_dir": Path(".pyoco/wheels"),
        "wheel_sync_interval_sec": 10.0,
        "wheel_install_timeout_sec": 180.0,
        "wheel_history_kv_bucket": "pyoco_wheel_history",
        "wheel_history_ttl_sec": 7776000.0,
        "log_level": LogLevel.INFO,
        "log_format": LogFormat.JSON,
        "log_utc": True,
        "log_include_traceback": True,
    }


def test_every_default_is_a_value_that_its_own_kind_reads() -> None:
    """The default as it is shown could be written by a user and would mean the same."""
    for each in SETTINGS:
        value = getattr(Settings(), each.name)
        assert value is None or each.kind.read(each.kind.show(value)) == value


def test_the_options_are_those_of_the_command_line() -> None:
    """Only what one wants to change from start to start has an option."""
    assert {each.option for each in SETTINGS if each.has_option} == {
        "--role", "--config", "--nats-url", "--host", "--port", "--tags", "--worker-id", "--flow-resolver",
        "--concurrency", "--isolation", "--probe-host", "--probe-port", "--log-level", "--log-format",
    }  # fmt: skip


def test_a_worker_without_tags_takes_the_default_tag() -> None:
    """The default of the tags follows PYOCO_DEFAULT_TAG."""
    assert loaded({"PYOCO_DEFAULT_TAG": "gpu"}).settings.tags == ("gpu",)


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("role", "Gateway", Role.GATEWAY),
        ("port", " 0 ", 0),
        ("port", "65535", 65535),
        ("concurrency", "1024", 1024),
        ("consumer_ack_wait_sec", "1e1", 10.0),
        ("consumer_ack_wait_sec", ".5", 0.5),
        ("workers_kv_ttl_sec", "0", 0.0),
        ("dlq_max_msgs", "-1", -1),
        ("wheel_sync_enabled", "YES", True),
        ("wheel_sync_enabled", "on", True),
        ("log_utc", "0", False),
        ("log_level", "warning", LogLevel.WARNING),
        ("tags", "gpu, cpu,,gpu", ("gpu", "cpu")),
        ("worker_id", "host.example-1", "host.example-1"),
        ("flow_resolver", "flows/main.py:resolve", "flows/main.py:resolve"),
        ("flow_resolver", "package.flows:Flows.resolve", "package.flows:Flows.resolve"),
        ("host", "::1", "::1"),
        ("nats_url", "nats://h:4222", ("nats://h:4222",)),
        ("nats_url", "tls://u:p@h, wss://h/nats/", ("tls://u:p@h", "wss://h/nats/")),
        ("nats_url", "nats://[::1]:4222", ("nats://[::1]:4222",)),
        ("auth_pepper", " with spaces ", " with spaces "),
    ],
)
def test_a_right_value_is_read(name: str, text: str, value: object) -> None:
    """Text from the environment becomes a typed value."""
    assert getattr(loaded({BY_NAME[name].env: text}).settings, name) == value


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("port", "abc", 'environment PYOCO_PORT: "abc" is not a whole number from 0 to 65535'),
        ("port", "65536", '"65536" is not a whole number from 0 to 65535'),
        ("port", "1_0", '"1_0" is not a whole number'),
        ("port", "9" * 5000, "is not a whole number"),
        ("concurrency", "0", '"0" is not a whole number from 1 to 1024'),
        ("consumer_ack_wait_sec", "nan", '"nan" is not a number of seconds from 0.001 to 1000000000'),
        ("consumer_ack_wait_sec", "inf", '"inf" is not a number of seconds'),
        ("consumer_ack_wait_sec", "0", '"0" is not a number of seconds'),
        ("consumer_ack_wait_sec", "1e999", '"1e999" is not a number of seconds'),
        ("log_utc", "maybe", '"maybe" is not true or false (also 1, 0, yes, no, on, off)'),
        ("role", "gatway", 'did you mean "gateway"? (gateway, worker, all)'),
        ("http_auth_mode", "apikey", 'did you mean "api_key"? (none, api_key)'),
        ("tags", "a.b", '"a.b" is not names of letters, digits, _ and -'),
        ("tags", ",", '"," is not names'),
        ("worker_id", "a/b", '"a/b" is not a name'),
        ("process_name", "a b", '"a b" is not a name of letters, digits, _ and -'),
        ("flow_resolver", "flows", '"flows" is not module:function or path/file.py:function'),
        ("work_subject_prefix", "pyoco.*", '"pyoco.*" is not names'),
        ("nats_url", "localhost:4222", '"localhost:***" is not a list of URLs such as nats://host:4222'),
        ("nats_url", "http://h", '"http://h" is not a list of URLs'),
        ("nats_url", "nats://", '"nats://" is not a list of URLs'),
        ("nats_url", "nats://h:x", '"nats://h:***" is not a list of URLs'),
        ("nats_url", "nats://h/path", '"nats://h/path" is not a list of URLs'),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(name: str, text: str, said: str) -> None:
    """The message names the variable, what was found, and what it should have been."""
    message = refused({BY_NAME[name].env: text})
    assert BY_NAME[name].env in message
    assert said in message


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    """As in the peer: PYOCO_PORT= in a unit file means the default."""
    at = loaded({"PYOCO_PORT": "", "PYOCO_AUTH_PEPPER": "  "})
    assert (at.settings.port, at.settings.auth_pepper, at.sources["port"]) == (8000, None, "default")


def test_a_variable_of_somebody_else_is_left_alone() -> None:
    """Others may use the prefix too."""
    assert loaded({"PYOCO_SOMETHING_ELSE": "x"}).settings == Settings()


def test_an_empty_option_is_a_mistake() -> None:
    """Whoever writes --host '' meant something, and gets told."""
    assert 'option --host (PYOCO_HOST): "" is not a host name' in refused(options={"host": ""})


@pytest.mark.parametrize("name", ["prot", "load_dotenv", "env_file"])
def test_an_option_that_does_not_exist_is_refused(name: str) -> None:
    """A wrong key in the options is a mistake of the caller, never ignored."""
    assert f'"{name}" is not a setting that can be given as an option' in refused(options={name: "1"})


# -- sources ----------------------------------------------------------------------------------------------------------


def test_every_source_is_named_in_words(tmp_path: Path) -> None:
    """Where a value came from can be read by the person who wants to change it."""
    (tmp_path / ".env").write_text("PYOCO_HOST=0.0.0.0\n")
    (tmp_path / "supervisor.toml").write_text("[settings]\nconcurrency = 2\n")
    at = loaded({"PYOCO_PORT": "1"}, {"role": "worker"}, tmp_path)
    named = {name: at.sources[name] for name in ("role", "port", "host", "concurrency", "log_level")}
    assert named == {
        "role": "option --role",
        "port": "environment PYOCO_PORT",
        "host": ".env PYOCO_HOST",
        "concurrency": "supervisor.toml [settings] concurrency",
        "log_level": "default",
    }
    assert at.config_path == "supervisor.toml"


def test_settings_in_the_file_may_be_native_toml(tmp_path: Path) -> None:
    """Numbers, flags and lists need no quotes, and may have them."""
    (tmp_path / "supervisor.toml").write_text(
        "[settings]\nport = 1\nconsumer_ack_wait_sec = 2\nrun_heartbeat_interval_sec = 0.5\nlog_utc = false\n"
        'tags = ["a", "b"]\nconcurrency = "3"\nnats_url = ["nats://a", "nats://b"]\n'
    )
    assert loaded(cwd=tmp_path).settings == Settings(
        port=1,
        consumer_ack_wait_sec=2.0,
        run_heartbeat_interval_sec=0.5,
        log_utc=False,
        tags=("a", "b"),
        concurrency=3,
        nats_url=("nats://a", "nats://b"),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("port = true", "true is not a whole number"),
        ("port = 1.0", "1.0 is not a whole number"),
        ("log_utc = 1", "1 is not true or false"),
        ("default_tag = 5", "5 is not a name"),
        ("tags = [1]", "a list is not names"),
        ('tags = ["a,b"]', "a list is not names"),
        ("consumer_ack_wait_sec = nan", "nan is not a number of seconds"),
        ("port = {}", "a table is not a whole number"),
        ("port = 1979-05-27", "1979-05-27 is not a whole number"),
    ],
)
def test_a_wrong_value_in_the_file_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    """The file's values are as strict as the others, and their place is told to the line."""
    (tmp_path / "supervisor.toml").write_text(f"[settings]\n{line}\n")
    name = line.split(" ")[0]
    assert refused(cwd=tmp_path).startswith(f"supervisor.toml, line 2, [settings] {name} ({BY_NAME[name].env}): {said}")


def test_an_unknown_setting_in_the_file_is_refused(tmp_path: Path) -> None:
    """In our own file, other than in the environment, every name must be ours."""
    (tmp_path / "supervisor.toml").write_text("[settings]\nprot = 1\n")
    with pytest.raises(InvalidLayout, match=r'line 2, settings.prot: .* did you mean "port"\?'):
        loaded(cwd=tmp_path)


@pytest.mark.parametrize("name", ["config", "load_dotenv", "env_file"])
def test_what_decides_which_files_are_read_cannot_stand_in_the_file(tmp_path: Path, name: str) -> None:
    """It would come too late; the message says where it belongs."""
    (tmp_path / "supervisor.toml").write_text(f'[settings]\n{name} = "x"\n')
    with pytest.raises(InvalidLayout, match=f"line 2, .*set PYOCO_{name.upper()} instead"):
        loaded(cwd=tmp_path)


# -- the two files ----------------------------------------------------------------------------------------------------


def test_without_a_file_the_shipped_one_is_used() -> None:
    """No file is needed to start."""
    at = loaded()
    assert at.config_path == SHIPPED
    assert at.layout.root.name == "runtime"


@pytest.mark.parametrize("how", ["option", "environment", ".env"])
def test_the_file_to_use_can_be_named_in_three_places(tmp_path: Path, how: str) -> None:
    """The option, the environment and .env are read before the file, so each may name it."""
    (tmp_path / "mine.toml").write_text("[supervisors.runtime]\nmax_restarts = 3\n")
    (tmp_path / "supervisor.toml").write_text("not read")
    if how == ".env":
        (tmp_path / ".env").write_text("PYOCO_CONFIG=mine.toml\n")
    at = loaded(
        {"PYOCO_CONFIG": "mine.toml"} if how == "environment" else {},
        {"config": "mine.toml"} if how == "option" else {},
        tmp_path,
    )
    assert at.layout.root.intensity.max_restarts == 3
    assert at.config_path == "mine.toml"


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    """A path with a slip of the pen must not end in the shipped tree or in a start without the secrets of .env."""
    assert refused({"PYOCO_CONFIG": "no.toml"}, cwd=tmp_path) == (
        'environment PYOCO_CONFIG: there is no file "no.toml"'
    )
    assert refused({"PYOCO_ENV_FILE": "no.env"}, cwd=tmp_path) == (
        'environment PYOCO_ENV_FILE: there is no file "no.env"'
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A directory or bytes that are no text end in a message, not in a traceback."""
    (tmp_path / "d").mkdir()
    (tmp_path / "b").write_bytes(b"\xff\xfe")
    assert 'cannot read "d": Is a directory' in refused({"PYOCO_CONFIG": "d"}, cwd=tmp_path)
    assert 'cannot read "b": it is not UTF-8 text' in refused({"PYOCO_CONFIG": "b"}, cwd=tmp_path)
    assert 'cannot read "b": it is not UTF-8 text' in refused({"PYOCO_ENV_FILE": "b"}, cwd=tmp_path)


def test_a_directory_called_dotenv_is_no_dotenv_file(tmp_path: Path) -> None:
    """Some people keep their virtual environment there."""
    (tmp_path / ".env").mkdir()
    assert loaded(cwd=tmp_path).settings == Settings()


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    """Some editors put one in front of every file."""
    (tmp_path / "supervisor.toml").write_text("[settings]\nport = 1\n", encoding="utf-8-sig")
    (tmp_path / ".env").write_text("PYOCO_HOST=h\n", encoding="utf-8-sig")
    at = loaded(cwd=tmp_path).settings
    assert (at.port, at.host) == (1, "h")


def test_dotenv_can_be_turned_off_and_renamed(tmp_path: Path) -> None:
    """PYOCO_LOAD_DOTENV and PYOCO_ENV_FILE decide, and the source carries the file's name."""
    (tmp_path / ".env").write_text("PYOCO_PORT=1\n")
    (tmp_path / "prod.env").write_text("export PYOCO_PORT='2' # two\n")
    assert loaded({"PYOCO_LOAD_DOTENV": "0"}, cwd=tmp_path).settings.port == 8000
    other = loaded({"PYOCO_ENV_FILE": "prod.env"}, cwd=tmp_path)
    assert (other.settings.port, other.sources["port"]) == (2, "prod.env PYOCO_PORT")


def test_what_controls_dotenv_is_not_read_from_it(tmp_path: Path) -> None:
    """A .env file cannot say that it is not to be read, nor name another."""
    (tmp_path / ".env").write_text("PYOCO_LOAD_DOTENV=nonsense\nPYOCO_ENV_FILE=no.env\nPYOCO_PORT=1\n")
    at = loaded(cwd=tmp_path).settings
    assert (at.load_dotenv, at.env_file, at.port) == (True, Path(".env"), 1)


def test_dotenv_values_mean_what_they_say(tmp_path: Path) -> None:
    """A dollar sign in a secret is a dollar sign."""
    (tmp_path / ".env").write_text("PYOCO_AUTH_PEPPER=a${HOME}b\n")
    assert loaded(cwd=tmp_path).settings.auth_pepper == "a${HOME}b"


# -- secrets ----------------------------------------------------------------------------------------------------------


def test_secrets_and_passwords_are_hidden_where_settings_are_shown() -> None:
    """The pepper is set or not set; a URL loses its login and keeps the rest."""
    at = loaded({"PYOCO_AUTH_PEPPER": "hunter2", "PYOCO_NATS_URL": "nats://me:hunter3@h:1,nats://hunter4@h"})
    values = {env: value for env, value, _ in shown(at)}
    assert values["PYOCO_AUTH_PEPPER"] == "set"
    assert values["PYOCO_NATS_URL"] == "nats://***@h:1,nats://***@h"
    assert "hunter" not in repr(at)
    assert {env: value for env, value, _ in shown(loaded())}["PYOCO_AUTH_PEPPER"] == "not set"


def test_a_password_pasted_into_the_wrong_setting_is_hidden_too() -> None:
    """What looks like a URL with a login is never repeated whole."""
    assert "hunter2" not in refused({"PYOCO_HOST": "nats://me:hunter2@h"})


def test_a_secret_that_is_no_text_is_not_repeated(tmp_path: Path) -> None:
    """Of a secret the message tells only what would be right."""
    (tmp_path / "supervisor.toml").write_text("[settings]\nauth_pepper = 314159\n")
    message = refused(cwd=tmp_path)
    assert "PYOCO_AUTH_PEPPER" in message
    assert "314159" not in message


# -- the page ---------------------------------------------------------------------------------------------------------


def test_the_reference_page_is_the_one_that_the_code_makes() -> None:
    """Run python -m pyoco_runtime.settings_page > docs/reference/settings.md after a change of the settings."""
    assert (REPOSITORY / "docs/reference/settings.md").read_text(encoding="utf-8") == settings_page.page()


def test_every_meaning_is_one_sentence() -> None:
    """The page and the help of the command line show it in one cell."""
    assert all(re.fullmatch(r"[A-Z].*[^.]\.", each.doc) for each in SETTINGS)


def test_every_heading_of_the_page_stands_before_a_setting() -> None:
    """A renamed setting must take its heading along."""
    assert settings_page.HEADINGS.keys() <= BY_NAME.keys()
    assert settings_page.page().count("\n## ") == len(settings_page.HEADINGS)


# -- properties -------------------------------------------------------------------------------------------------------

any_setting = st.sampled_from(SETTINGS)
# What an environment can hold: no NUL, and lone surrogates where bytes were no UTF-8.
any_text = st.text(st.characters(exclude_characters="\0"), min_size=1)
telling_text = st.sampled_from(
    ["0", "-1", "1", "1.5", "nan", "true", "a,b", "nats://a:b@c:d", "m:f", "x" * 200, "\udcff"]
)


@given(any_setting.filter(lambda each: each.name not in ("config", "env_file")), any_text | telling_text)
def test_any_text_for_any_setting_is_read_or_refused_by_name(setting: Setting, text: str) -> None:
    """No text brings out another error, and a refusal always names the variable."""
    message = None
    try:
        loaded({setting.env: text})
    except InvalidSetting as error:
        message = str(error)
    assert message is None or setting.env in message


@given(st.sampled_from(["config", "env_file"]), any_text)
@example("config", "~nobody-at-all/x")
@example("env_file", "x" * 5000)
def test_any_text_for_a_path_is_read_or_refused_by_name(name: str, text: str) -> None:
    """A path that does not exist, is too long or is no path at all is refused by name."""
    message = None
    try:
        loaded({BY_NAME[name].env: text})
    except InvalidSetting as error:
        message = str(error)
    assert message is None or BY_NAME[name].env in message
    assert message or not text.strip()  # only a blank one is as good as none: no such file is there


SOURCES = ["option --port", "environment PYOCO_PORT", ".env PYOCO_PORT", "supervisor.toml [settings] port", "default"]


@given(st.sets(st.sampled_from(range(4))))
def test_the_first_source_that_has_a_value_wins(tmp_path_factory: pytest.TempPathFactory, having: set[int]) -> None:
    """Option, environment, .env, supervisor.toml, default: in this order for any of them that are there."""
    cwd = tmp_path_factory.mktemp("cwd")
    if 2 in having:
        (cwd / ".env").write_text("PYOCO_PORT=2\n")
    if 3 in having:
        (cwd / "supervisor.toml").write_text("[settings]\nport = 3\n")
    environ = {"PYOCO_PORT": "1"} if 1 in having else {"PYOCO_PORT": ""}
    at = loaded(environ, {"port": "0"} if 0 in having else {}, cwd)
    first = min(having, default=4)
    assert at.settings.port == (8000 if first == 4 else first)
    assert at.sources["port"] == SOURCES[first]


# Zq7 alone must not come out either: half a password is too much, and a repr may spell the rest differently.
secrets = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).map(lambda text: f"Zq7{text}Wx9")
urls_with: list[Callable[[str], str]] = [
    lambda secret: f"nats://me:{secret}@host:4222",
    lambda secret: f"nats://{secret}@host",
    lambda secret: f"nats://me:{secret}",
    lambda secret: f"me:{secret}@host",
    lambda secret: f"http://me:{secret}@host",
    lambda secret: f"nats://host,nats://me:{secret}@other:99999",
    lambda secret: f"nats://me:{secret}@host:port",
    lambda secret: f"wss://me:{secret}@host/path?query",
]


def everything_said(environ: dict[str, str], cwd: Path) -> str:
    """All that a user or a log could get to see of these settings."""
    try:
        at = loaded(environ, cwd=cwd)
    except UserError as error:
        return f"{error} {error!r} {error.__cause__} {error.__suppress_context__ or error.__context__}"
    return f"{shown(at)} {at!r}"


@given(secrets, st.sampled_from(urls_with))
@example("Zq7:Wx9", urls_with[1])
def test_no_password_of_a_url_is_ever_said(secret: str, url_with: Callable[[str], str]) -> None:
    """However the URL is written, well or badly, its password or token comes out nowhere."""
    assert "Zq7" not in everything_said({"PYOCO_NATS_URL": url_with(secret)}, NOWHERE)


@given(secrets, st.sampled_from(["", "[settings]\nport = true\n", "[settings]\nprot = 1\n", "[x", "[actors.x]\n"]))
def test_the_pepper_is_never_said(tmp_path_factory: pytest.TempPathFactory, secret: str, mistake: str) -> None:
    """Not in what is shown, and in no message about the file or environment that it stands in."""
    cwd = tmp_path_factory.mktemp("cwd")
    pepper = f"auth_pepper = {json.dumps(secret, ensure_ascii=False)}\n"
    (cwd / "supervisor.toml").write_text((mistake or "[settings]\n") + pepper, encoding="utf-8")
    assert "Zq7" not in everything_said({"PYOCO_LOAD_DOTENV": "0"}, cwd)
    assert "Zq7" not in everything_said({"PYOCO_LOAD_DOTENV": "0", "PYOCO_AUTH_PEPPER": secret}, cwd)
