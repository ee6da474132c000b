"""The picture that `top` shows."""

from __future__ import annotations

import io

from rich.cells import cell_len
from rich.console import Console

from pyoco_runtime.cli.client import top
from pyoco_runtime.cli.client.board import KEPT, Board
from pyoco_runtime.client import Heartbeat, Interrupted, ListDropped, ListReady, RunGone, RunListed
from tests.unit.cli_client.support import asked, parsed, session


def picture(board: Board, width: int = 100, height: int = 20) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None, legacy_windows=False)
    with console.capture() as shown:
        console.print(board)
    return shown.get().splitlines()


def run(run_id: str, status: str, **more: object) -> dict[str, object]:
    return {"run_id": run_id, "status": status, "flow_name": "f", "updated_at": 1.0, **more}


def ids(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.startswith("r")][1:]


def test_what_runs_comes_first() -> None:
    """Then what waits, then what ended last."""
    board = Board("http://gateway")
    board.listed([run("r1", "COMPLETED", updated_at=2.0), run("r2", "PENDING"), run("r3", "COMPLETED", updated_at=3.0)])
    board.changed(run("r4", "RUNNING", start_time=1.0))
    board.gone("r2")
    assert ids(picture(board)) == ["r4", "r3", "r1"]


def test_it_never_is_larger_than_the_screen() -> None:
    """However many runs and workers there are, in any size."""
    board = Board("http://gateway")
    for number in range(3 * KEPT):
        board.changed(run(f"r{number:05d}", "COMPLETED", updated_at=float(number)))
    board.house(
        [{"worker_id": f"w{number}", "state": "IDLE", "tags": ["t"] * 9} for number in range(50)], {"RUNNING": 3}
    )
    board.trouble("x" * 500)
    for width, height in ((80, 24), (120, 40), (40, 10), (200, 60)):
        lines = picture(board, width, height)
        assert len(lines) <= height
        assert all(cell_len(line) <= width for line in lines)
    assert ids(picture(board))[0] == f"r{3 * KEPT - 1:05d}"


def test_events_change_the_picture() -> None:
    """The list is read at the beginning and when changes were lost; never else."""
    here = session(list_runs=[run("r1", "PENDING")])
    args = parsed("top", "--tag", "t")
    board = Board("http://gateway")
    for event in (
        ListReady(1, None, 1.0),
        RunListed({"run_id": "r2", "flow_name": "f", "status": "RUNNING"}),
        Heartbeat(1.0),
        RunGone("r1"),
    ):
        top._tell(board, event, args, here)
    assert ids(picture(board)) == ["r2"]
    assert len(asked(here)) == 1
    top._tell(board, ListDropped("too slow"), args, here)
    assert ids(picture(board)) == ["r1"]
    assert len(asked(here)) == 2


def test_a_lost_connection_is_on_show_until_it_is_back() -> None:
    """The picture may be old."""
    here, args, board = session(list_runs=[]), parsed("top"), Board("http://gateway")
    top._tell(board, Interrupted("refused", 2.0), args, here)
    assert any("the connection is lost" in line for line in picture(board))
    top._tell(board, Heartbeat(1.0), args, here)
    assert not any("the connection is lost" in line for line in picture(board))


def test_workers_and_figures_are_read() -> None:
    """And a failure is on show."""
    worker = {"worker_id": "w1", "state": "IDLE", "tags": ["default"]}
    board = Board("http://gateway")
    top._look(board, session(get_workers=[worker], get_metrics='pyoco_runs_total{status="FAILED"} 4.0\n'))
    lines = picture(board)
    assert any("FAILED 4" in line for line in lines)
    assert any(line.startswith("w1") for line in lines)
