"""Every page with commands is a story: all of them are run in order, and print what the page shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from attrs import evolve, frozen

from tests.docs.page_shell import Shell, check_sample
from tests.docs.pages import PAGES, ROOT, Step, blocks, called, commands, steps

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "make"))), reason="bash, curl or make is not on this machine"
)

ALL = "pyoco-runtime --role all --flow-resolver examples/hello_flow.py:resolve"

# a worker says what it can run a moment after it is up
ANNOUNCED = "until pyoco-client workers --output json | grep -q failing; do sleep 0.1; done"


@frozen
class Story:
    """How the commands of a page are tried."""

    before: tuple[str, ...] = ()
    """What the page says that runs already."""
    files: tuple[tuple[str, str], ...] = ()
    """The files that the page has its reader write: the name, and the kind of the block; the first such block is it."""
    fails: tuple[str, ...] = ()
    """The commands that end with an error, as the page says."""
    says: tuple[tuple[str, str], ...] = ()
    """What the page promises in words: the beginning of the command, and what its last output must have."""


STORIES = {
    "README.md": Story(says=(("make demo", "greet SUCCEEDED"), ("make test", "-m pytest"))),
    "docs/tutorials/first-steps.md": Story(
        says=(
            ("make demo", "greet SUCCEEDED"),
            ("curl http://127.0.0.1:8000/ready", '{"status":"ready"}'),
            (".venv/bin/pyoco-runtime restart", "runtime/link of all-myhost"),
            (".venv/bin/pyoco-runtime actors", "NatsServerDied"),
            (".venv/bin/pyoco-client get", '"COMPLETED"'),
        ),
    ),
    "docs/tutorials/your-own-flow.md": Story(
        says=(
            (".venv/bin/pyoco-client watch $wrong_id", "FAILED"),
            (".venv/bin/pyoco-client dlq list", "execution_error"),
            ("wrong_id", 'no live worker with the tag "small" has the task "split"'),
            (".venv/bin/pyoco-client dlq replay", "run_id"),
        ),
    ),
    "docs/explanation/supervision.md": Story(),
    "docs/how-to/change-the-tree.md": Story(
        files=(("my-tree.toml", "toml"),),
        says=((".venv/bin/pyoco-runtime --config", "3 restarts in 30 s"),),
    ),
    "docs/how-to/diagnose-a-stuck-run.md": Story(
        before=(ALL, ANNOUNCED),
        fails=("pyoco-client doctor",),
        says=(
            ("pyoco-client get $run_id", '"waiting": {"code": "no_worker", "tag": "gpu"}'),
            ("pyoco-client get $slow_id", '"code": "task"'),
            ("pyoco-client metrics", 'pyoco_queue_waiting{tag="gpu"} 1'),
            ("pyoco-runtime actors", "consumer:default"),
            ("pyoco-client cancel --run-id $slow_id", '"CANCELLED"'),
            ("pyoco-client watch", "CANCELLED"),
            ("pyoco-client dlq show", "this flow always fails"),
        ),
    ),
    "docs/how-to/keys-and-tenants.md": Story(
        says=(
            ("pyoco-client submit", '"PENDING"'),
            ("pyoco-client --api-key $admin", "http"),
            ("pyoco-server-admin api-key list", "demo"),
        ),
    ),
    "docs/how-to/move-from-pyoco-server.md": Story(says=(("pyoco-runtime --role gateway --check", "is valid"),)),
    "docs/how-to/restart-an-actor.md": Story(
        before=(ALL,), says=((".venv/bin/pyoco-runtime restart", "runtime/gateway/http of all-myhost"),)
    ),
    "docs/how-to/run-a-worker.md": Story(before=("pyoco-server up --with-nats-bootstrap",)),
}


def test_every_page_with_commands_is_a_story() -> None:
    """No page shows a command that nobody tries; the page about the HTTP API has a test of its own."""
    told = {called(page) for page in PAGES if commands(page)}
    assert told - {"docs/how-to/use-the-http-api.md"} == set(STORIES)


@pytest.mark.parametrize("name", STORIES)
def test_the_commands_of_a_page_work(name: str, tmp_path: Path) -> None:
    """Each ends well, and prints what the page shows and promises."""
    story = STORIES[name]
    wanted = [
        *map(Step, story.before),
        *(evolve(step, fails=step.command in story.fails) for step in steps(ROOT / name)),
    ]
    for file, kind in story.files:
        (tmp_path / file).write_text(next(text for _, text in blocks(ROOT / name, kind)))
    said = Shell(tmp_path).run(wanted)
    for step, text in zip(wanted, said, strict=True):
        check_sample(step, text)
    for beginning, expected in story.says:
        texts = [text for step, text in zip(wanted, said, strict=True) if step.command.startswith(beginning)]
        assert texts, f"{name} has no command that begins with {beginning!r}"
        assert expected in texts[-1], f"{beginning}: {expected!r} is not in\n{texts[-1]}"
