"""Kernels on a CPU that are foreseen and timed: their rows, and results that are wrong."""

import numba
import numpy as np
import pytest

import md
from experiments.forecasts import on_cpu
from experiments.forecasts.on_cpu import COPIES, LOAD, ROUNDS, foreseen_on_cpu, time_of, timed_on_cpu, works
from experiments.loads.cores import OF_SEARCH
from experiments.measurement.correctness import WrongResultError
from experiments.prediction.drawn_gases import ON_CPU, SEEN_ON_CPU, Gas
from experiments.prediction.index_cases import KINDS
from sfc.cache.core import Processor, lines
from tests.tiers import full

ORDERS = {"coherent": ("random", "row"), "verlet": ("random", "row")}
SEED = 2
FAST = "linked", "gather", "spmv", "scatter"
KERNELS = [name if name in FAST else full(name) for name in (*ON_CPU, "scatter")]


def gas_of(kernel: str, precision: str = "float64", n: int = 512) -> Gas:
    return Gas(kernel, n, 0.2, precision, ORDERS.get(kernel, ("shuffled", "hilbert", "window 64")))


@pytest.fixture(autouse=True)
def short_samples(monkeypatch):
    monkeypatch.setattr(on_cpu, "LEAST", 0.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_orders_are_timed_in_rounds_each_copy_once(kernel):
    gas = gas_of(kernel)
    rows = list(timed_on_cpu(gas, SEED))
    assert all(row["time_us"] > 0 for row in rows)
    for turn in range(ROUNDS):
        found = [(row["ordering"], row["copy"]) for row in rows if row["round"] == turn]
        assert sorted(found) == sorted((name, copy) for name in gas.orderings for copy in range(COPIES))
    assert len(rows) == ROUNDS * COPIES * len(gas.orderings)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_forecast_has_the_lines_of_the_stream(kernel):
    gas = gas_of(kernel)
    rows = list(foreseen_on_cpu(gas, ["epyc_genoa"], SEED))
    assert [row["ordering"] for row in rows] == list(gas.orderings)
    _, (work,) = next(works(gas, SEED))
    found = lines(work.stream(), Processor.read("epyc_genoa"))
    assert rows[0]["loads"] == found.loads
    assert rows[0]["memory"] == found.memory.mean
    assert rows[0]["last_random"] == found.last.random
    assert rows[0]["time_us"] * 1e3 >= gas.n * found.loads * LOAD[kernel]


@pytest.mark.parametrize("kernel", ["linked", full("verlet")])
def test_no_time_of_wrong_forces_is_kept(kernel, monkeypatch):
    force = md.search.base.Search.force

    def half(search, law, out):
        force(search, law, out)
        if search.name == kernel and isinstance(out, np.ndarray):  # no fused step
            out[np.unravel_index(np.abs(out).argmax(), out.shape)] *= 0.5

    monkeypatch.setattr(md.search.base.Search, "force", half)
    with pytest.raises(WrongResultError, match="the forces in float64 differ"):
        next(timed_on_cpu(gas_of(kernel), SEED))


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_time_of_work_that_was_not_done_is_kept(kernel, monkeypatch):
    made = on_cpu.works

    def wrong(gas, seed, copies):
        for name, found in made(gas, seed, copies):
            yield name, [work._replace(run=lambda: None) for work in found]

    monkeypatch.setattr(on_cpu, "works", wrong)
    with pytest.raises(
        WrongResultError, match=r"differs? from (th(at row by row|ose of another search)|numpy's)"
    ):
        next(timed_on_cpu(gas_of(kernel), SEED))


def test_each_kernel_has_its_time_of_a_load():
    assert set(LOAD) == {gas.kernel for gas in SEEN_ON_CPU}
    assert set(OF_SEARCH) | set(KINDS) == set(LOAD)


def test_runs_are_timed_on_their_threads_alone():
    before, seen = numba.get_num_threads(), []
    assert time_of(lambda: seen.append(numba.get_num_threads()), 3, threads=1) >= 0
    assert seen == [1] * 3
    assert numba.get_num_threads() == before
