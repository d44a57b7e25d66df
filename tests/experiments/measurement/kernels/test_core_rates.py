"""Loads of a CPU that wait for each other, in no order and in sequence: their sums, and wrong ones."""

import numba
import pytest

from experiments.measurement.correctness import WrongResultError
from experiments.measurement.kernels import core_rates
from experiments.measurement.kernels.core_rates import LINE, chain_time, line_times


@pytest.fixture(autouse=True)
def few_loads(monkeypatch):
    monkeypatch.setattr(core_rates, "STEPS", 1000)
    monkeypatch.setattr(core_rates, "LOADS", 1000)


@pytest.mark.parametrize("size", [2 * LINE, 5 * LINE + 3, 2**16])
def test_times_are_positive_and_threads_as_before(size):
    before = numba.get_num_threads()
    assert chain_time(size) > 0
    assert min(line_times(size)) > 0
    assert numba.get_num_threads() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain_time(LINE), "size = 64; allowed: an integer of at least 128"),
        (lambda: line_times(LINE), "size = 64; allowed: an integer of at least 128"),
        (lambda: line_times(2**12, 0), "threads = 0"),
        (lambda: line_times(2**12, 1000), "threads = 1000; allowed"),
    ],
)
def test_numbers_out_of_range_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("kernel", "call", "message"),
    [
        ("_chain", chain_time, "the end of a chain differs"),
        ("_in_no_order", line_times, "sums of lines in no order differ"),
        ("_in_sequence", line_times, "sums of lines in sequence differ"),
    ],
)
def test_no_time_of_wrong_sums_is_kept(kernel, call, message, monkeypatch):
    work = getattr(core_rates, kernel)

    def wrong(*arguments):
        work(*arguments)
        arguments[-1][0] += 1

    monkeypatch.setattr(core_rates, kernel, wrong)
    with pytest.raises(WrongResultError, match=message):
        call(2**12)
