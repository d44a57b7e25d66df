"""Least bytes of a use are those of its arrays, and the headroom over them is a ratio of times."""

import numpy as np
import pytest
import scipy.sparse

from experiments.advice import headroom
from experiments.advice.headroom import Memory
from experiments.advice.uses import CELLS, CUTOFF, MATRIX, NEIGHBOURS, OWN, TRACE, Use

N = 500
SMALL = Memory(1e9, 0)  # a byte in 1 ns, without a cache


def use_of(kind: str, code: str, **options) -> Use:
    random = np.random.default_rng(2)
    made = {
        CUTOFF: lambda: {"points": random.random((N, 3)), "reach": 0.1},
        NEIGHBOURS: lambda: {"points": random.random((N, 3)), "reach": 6},
        CELLS: lambda: {"cells": random.integers(0, N, (800, 4)), "item_bytes": 24},
        MATRIX: lambda: {"matrix": scipy.sparse.random_array((N, N), density=0.02, rng=random)},
        TRACE: lambda: {"trace": np.arange(0, N, 2).repeat(3), "item_bytes": 40},
        OWN: lambda: {"function": len, "arrays": (np.arange(N),)},
    }[kind]()
    return Use(kind, code, N, **(made | options))


@pytest.mark.parametrize("kind", [NEIGHBOURS, CELLS, MATRIX])
def test_least_bytes_are_those_of_the_arrays_of_the_compiled_code(kind):
    use = use_of(kind, "compiled")
    unused = N - len(np.unique(use.cells)) if kind == CELLS else 0
    assert (
        headroom.least_bytes(use)
        == sum(one.nbytes for one in use.arrange(None).arrays) - use.item_bytes * unused
    )


def test_a_trace_needs_itself_and_each_item_that_it_reads_once():
    assert headroom.least_bytes(use_of(TRACE, "compiled")) == 8 * 750 + 40 * 250


def test_a_matrix_of_singles_is_smaller_in_scipy_alone():
    one = scipy.sparse.eye_array(N, dtype=np.float32)
    compiled, scipys = (
        headroom.least_bytes(use_of(MATRIX, code, matrix=one)) for code in ("compiled", "scipy")
    )
    assert compiled - scipys == 4 * N


@pytest.mark.parametrize(("kind", "code"), [
    (CUTOFF, "compiled"), (CUTOFF, "numpy"), (NEIGHBOURS, "scipy"), (OWN, "own"),
])  # fmt: skip
def test_the_bytes_of_a_search_and_of_ones_own_function_are_not_known(kind, code):
    assert headroom.least_bytes(use_of(kind, code)) is None
    assert headroom.least_ms(use_of(kind, code), SMALL) is None


def test_no_memory_is_measured_for_unknown_bytes(monkeypatch):
    monkeypatch.setattr(headroom, "memory", lambda *_: pytest.fail("measured"))
    assert headroom.least_ms(use_of(CUTOFF, "compiled")) is None


def test_the_least_time_is_that_of_the_bytes_beyond_the_cache():
    use = use_of(TRACE, "numpy")  # 16,000 bytes
    assert headroom.least_ms(use, Memory(1e6, 8000)) == pytest.approx(16.0)
    assert headroom.least_ms(use, Memory(1e6, 8001)) is None


@pytest.mark.parametrize("rate", [0.0, -1e9, np.nan])
def test_a_rate_that_is_not_positive_is_refused(rate):
    with pytest.raises(ValueError, match=r"rate = .*allowed: .*bytes/s.*memory\(\)"):
        headroom.least_ms(use_of(CELLS, "numpy"), Memory(rate, 0))


@pytest.mark.parametrize("times", [(0.0, 1.0), (1.0, 0.0), (np.inf, 1.0)])
def test_times_that_are_not_positive_are_refused(times):
    with pytest.raises(ValueError, match=r"allowed: a finite number"):
        headroom.headroom(*times)


def test_a_product_of_a_million_entries_has_the_headroom_of_its_bytes():
    matrix = scipy.sparse.random_array((100_000, 100_000), density=1e-4, rng=np.random.default_rng(0))
    assert matrix.nnz == 10**6
    least = headroom.least_ms(Use(MATRIX, "compiled", 100_000, matrix=matrix), SMALL)
    assert least == pytest.approx(14.0, rel=1e-5)  # of 12 bytes an entry, and 20 a row
    assert headroom.headroom(21.0, least) == pytest.approx(1.5, rel=1e-5)


@pytest.mark.parametrize(("time_ms", "words"), [
    (4.94, "at most about 2.60 times as fast as row."),
])  # fmt: skip
def test_the_sentence_has_the_headroom(time_ms, words):
    assert headroom.sentence("row", time_ms, 1.9) == f"Its bytes alone take 1.90 ms: {words}"
    assert not headroom.sentence("row", 1.9, 1.9)


def test_the_rate_is_of_arrays_beyond_the_last_cache_that_were_written(monkeypatch):
    copied = []
    monkeypatch.setattr(headroom.np, "copyto", lambda *arrays: copied.append(arrays))
    clock = iter(range(100))
    monkeypatch.setattr(headroom.time, "process_time", lambda: next(clock) ** 2)
    found = headroom.memory.__wrapped__()
    (target, source), *others = copied
    assert len(others) == headroom.SAMPLES - 1
    assert target.nbytes == source.nbytes >= max(headroom.LEAST, headroom.BEYOND * found.cache)
    assert source.all()
    assert target.all()
    assert found.rate == 2 * source.nbytes  # the first copy takes the least time, 1 s
