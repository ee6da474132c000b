"""How the published command lines become settings."""

from __future__ import annotations

import pytest

from pyoco_runtime.cli import admin, server, worker


def test_empty_options_count_as_not_given() -> None:
    """As with the published programs, whose start scripts pass variables that may be empty."""
    args = worker._parser().parse_args(["--nats-url", "", "--tags", " ", "--worker-id", "w1"])
    assert worker._given(args) == {"role": "worker", "worker_id": "w1"}


def test_run_once_executes_one_run_at_a_time() -> None:
    """Whatever concurrency was asked for."""
    args = worker._parser().parse_args(["--run-once", "--concurrency", "8", "--no-wheel-sync"])
    assert worker._given(args) == {"role": "worker", "concurrency": "1", "wheel_sync_enabled": "false"}


@pytest.mark.parametrize("argv", [[], ["up"]])
def test_up_may_be_left_out(argv: list[str]) -> None:
    """The old flat form of the published program."""
    args = server._parser().parse_args([*argv, "--port", "9000", "--log-level", "trace"])
    assert server._given(args) == {"role": "gateway", "port": "9000", "log_level": "debug"}


@pytest.mark.parametrize(
    "argv",
    [
        ["--nats-url", "nats://h:1", "api-key", "list"],
        ["api-key", "list", "--nats-url", "nats://h:1"],
    ],
)
def test_the_nats_url_stands_before_or_after_the_command(argv: list[str]) -> None:
    """The published program has it before."""
    assert admin._parser().parse_args(argv).nats_url == "nats://h:1"
