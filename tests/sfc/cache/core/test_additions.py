"""Additions to numbers in memory: those of a plain program, and what they add to the time of an item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfc.cache.core import CoreFitted, CoreStream, foresee
from sfc.cache.core.additions import time_of_additions
from sfc.cache.core.forecast import time_of
from sfc.cache.core.lines import PART
from tests.sfc.cache.core.test_lines import SMALL
from tests.tiers import examples

ADDED, APART = 3.0, 0.5


def stream_of(numbers, adds: int | None = 1) -> CoreStream:
    """Items that load a number at one address by instruction 0 and add it to another by instruction 1."""
    numbers = np.asarray(numbers, np.int64)
    addresses = np.column_stack([np.zeros_like(numbers), 8 * numbers]).ravel()
    instructions = np.tile([0, 1], len(numbers))
    return CoreStream(
        len(numbers), lambda a, b: (addresses[2 * a : 2 * b], instructions[2 * a : 2 * b]), False, adds
    )


def plain(numbers, apart: float, added: float, depth: int) -> float:
    """End of the last addition; each waits for one of the same number and for a place among the others."""
    ends, left, begin = [], [], 0.0
    for i, number in enumerate(numbers):
        begin = max(begin + apart, left[i - depth] if i >= depth else 0.0)
        same = [ends[k] for k in range(max(0, i - depth), i) if numbers[k] == number]
        ends.append(max([begin, *same]) + added)
        left.append(max(ends))
    return left[-1]


@examples(40)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 20))
def test_additions_are_those_of_a_plain_program(seed, most, depth):
    numbers = np.random.default_rng(seed).integers(0, most, 60).tolist()
    found = time_of_additions(stream_of(numbers), 60, APART, ADDED, depth)
    assert found == pytest.approx(plain(numbers, APART, ADDED, depth))


def test_one_number_takes_a_whole_addition_each_time_and_others_none():
    n = 2 * PART + 3  # in parts
    assert time_of_additions(stream_of(np.zeros(n)), n, APART, ADDED, 9) == pytest.approx(n * ADDED + APART)
    apart = time_of_additions(stream_of(np.arange(n)), n, APART, ADDED, 9)
    assert apart == pytest.approx(n * APART + ADDED)
    two = time_of_additions(stream_of(np.arange(n) % 2), n, APART, ADDED, 9)
    assert two == pytest.approx(n * ADDED / 2, rel=1e-3)


def test_a_forecast_waits_for_sums_that_were_just_stored():
    fitted = CoreFitted(load=0.25, added=ADDED, depth=9)
    same, others = np.zeros(400), np.arange(400) % 100
    for numbers, waited in ((same, SMALL.l1_latency * (ADDED - 2 * 0.25)), (others, 0.0)):
        found = foresee(stream_of(numbers), SMALL, fitted)
        without = time_of(found.lines, False, SMALL, fitted)
        assert foresee(stream_of(numbers, None), SMALL, fitted).time == without
        assert found.time - without == pytest.approx(waited, abs=0.01)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"stream": stream_of([1], None)},
            "adds of the stream = None; allowed: the number of an instruction",
        ),
        ({"items": 2}, "items = 2; allowed: an integer of at least 0, up to 1"),
        ({"apart": -1.0}, "apart = -1.0"),
        ({"added": -1.0}, "added = -1.0"),
        ({"depth": 0}, "depth = 0"),
    ],
)
def test_what_cannot_be_followed_is_refused(changed, message):
    given = {"stream": stream_of([1]), "items": 1, "apart": APART, "added": ADDED, "depth": 9} | changed
    with pytest.raises(ValueError, match=message):
        time_of_additions(**given)


@pytest.mark.parametrize(
    ("fitted", "message"),
    [(CoreFitted(added=-1.0), "added of CoreFitted"), (CoreFitted(depth=0), "depth of CoreFitted")],
)
def test_numbers_out_of_range_are_refused(fitted, message):
    with pytest.raises(ValueError, match=message):
        foresee(stream_of([1]), SMALL, fitted)
    with pytest.raises(ValueError, match="adds = -1"):
        stream_of([1], -1)
