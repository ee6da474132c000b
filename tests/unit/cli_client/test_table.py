"""Tables: what fits, what is cut, and what never is."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from pyoco_runtime.cli.client.moments import ago, clock, duration, size
from pyoco_runtime.cli.client.run_table import COLUMNS
from pyoco_runtime.cli.client.table import LEAST, Column, field, fitted, one_line, total
from pyoco_runtime.cli.client.terminal import Terminal, drawn

RUN_ID = "0b0c7c3e-9a53-4b35-8f6e-0d9f4fb7a0d1"


def run(**more: object) -> dict[str, object]:
    return {"run_id": RUN_ID, "status": "COMPLETED", "flow_name": "hello", "tag": "default", "updated_at": 0.0, **more}


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 200),
)
def test_a_table_fits_or_only_ids_are_left(shape: list[tuple[int, int, bool]], room: int) -> None:
    """Ids keep their width, nothing grows, and no stump is shown."""
    columns = [field(f"c{at}", weight=weight, is_id=is_id) for at, (_, weight, is_id) in enumerate(shape)]
    widths = [max(width, 2) for width, _, _ in shape]
    fit = fitted(widths, columns, room)
    ids = [after for after, column in zip(fit, columns, strict=True) if column.is_id]
    assert ids == [before for before, column in zip(widths, columns, strict=True) if column.is_id]
    assert all(after <= before for after, before in zip(fit, widths, strict=True))
    assert all(after == 0 or after >= min(LEAST, before) for after, before in zip(fit, widths, strict=True))
    assert total(fit) <= room or all(not width or column.is_id for width, column in zip(fit, columns, strict=True))


def test_what_fits_is_not_cut() -> None:
    """All of it is shown."""
    assert fitted([10, 5], [field("a"), field("b")], 17) == [10, 5]


def test_the_least_important_column_is_cut_first() -> None:
    """By weight."""
    columns = [field("a", weight=2), field("b", weight=1)]
    assert fitted([20, 20], columns, 32) == [20, 10]


def test_every_line_of_80_columns_fits_and_has_the_whole_id() -> None:
    """Also with Japanese, whose characters take two cells."""
    lines = drawn(COLUMNS, [run(flow_name="長い名前のフロー" * 9), run(status="CANCELLING")], 80)
    assert all(cell_len(line.plain) <= 80 for line in lines)
    assert all(RUN_ID in line.plain for line in lines[1:])
    assert "…" in lines[1].plain


def test_a_terminal_narrower_than_an_id_still_gets_it_whole() -> None:
    """Half an id is none."""
    assert [line.plain for line in drawn(COLUMNS, [run()], 20)] == ["run_id", RUN_ID]


def test_what_others_wrote_does_not_steer_the_terminal() -> None:
    """Escape sequences and line ends become blanks."""
    assert one_line("a\x1b[2Jb\nc") == "a [2Jb c"


def test_a_console_without_colours_gets_none() -> None:
    """As with NO_COLOR."""
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, no_color=True, highlight=False)
    Terminal(console).table(COLUMNS, [run()])
    assert "\x1b[3" not in out.getvalue()


def test_a_column_shows_people_something_else() -> None:
    """Raw for programs."""
    column = Column(name="x", raw=lambda item: "1.5", shown=lambda item: "one and a half")
    assert column.for_people({}) == "one and a half"


def test_times_and_sizes() -> None:
    """In the unit that reads well; a dash for what is none."""
    assert [duration(sec) for sec in (-1, 59, 60, 3600, 86400 * 3)] == ["0s", "59s", "1m", "1h", "3d"]
    assert (ago(None), ago(40.0, now=100.0), clock(None)) == ("-", "1m", "-")
    assert [size(count) for count in (None, 5, 2048, 5 * 2**20, 3 * 2**30)] == [
        "-",
        "5 B",
        "2.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]
