"""Dead letters that would be too large."""

from __future__ import annotations

from attrs import evolve

from pyoco_runtime.model.dead_letter import Reason, letter_about
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.letter_size import letter_within
from pyoco_runtime.model.wire import letter_from

JOB = Job(run_id="r", flow_name="f", tag="t", submitted_at=1.0, params={"x": "y" * 1000})
LETTER = letter_about(JOB, Reason.EXECUTION_ERROR, "boom", now=2.0, tag="t")


def test_a_letter_that_fits_is_stored_as_it_is() -> None:
    """With its job."""
    data = letter_within(LETTER)
    assert letter_from(data) == LETTER
    assert letter_within(LETTER, len(data)) == data


def test_the_job_is_left_out_first_and_the_error_is_cut_then() -> None:
    """What the letter is about stays readable."""
    assert letter_from(letter_within(LETTER, 1000)) == evolve(LETTER, job=None)
    wordy = evolve(LETTER, error="e" * 20_000)
    assert letter_from(letter_within(wordy, 10_000)) == evolve(LETTER, job=None, error="e" * 4096)
