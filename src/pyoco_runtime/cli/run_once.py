"""`--run-once`: when a worker that takes one run at most is done."""

from __future__ import annotations

import anyio

from pyoco_runtime.cli import house as view
from pyoco_runtime.errors import NatsUnavailable, UserError
from pyoco_runtime.single_run import SingleRun
from pyoco_runtime.tree import Tree

NATS_SEC = 10.0  # somebody waits for this program to end: a NATS that stays away is an error, not a state


class RunOnce:
    """Make it before the tree starts: it must hear when the tree begins to look for jobs."""

    def __init__(self, tree: Tree, single: SingleRun, poll_sec: float) -> None:
        """`poll_sec` is how long to look for a job once every tag is looked for."""
        self.problem: UserError | None = None
        """Why it ended before it could look, once it has."""
        self._tree = tree
        self._single = single
        self._poll_sec = poll_sec
        self._looking = anyio.Event()
        assert tree.pulling is not None  # there is a worker
        tree.pulling.tell(self._note)

    async def done(self) -> None:
        """Wait until the run is over, no job has come, or NATS is away for too long."""
        link = self._tree.link
        with anyio.move_on_after(NATS_SEC) as patience:
            await link.wait_up()
        if patience.cancelled_caught:
            self.problem = view.unreachable(self._tree.nats_urls(), NatsUnavailable(link.problem))
            return
        await self._looking.wait()
        await self._single.wait(self._poll_sec)

    def _note(self, is_looking: bool) -> None:
        if is_looking:
            self._looking.set()
