"""Bytes of the arrays of a simulation with neighbour lists on the CPU."""

import gc
from types import FunctionType, ModuleType

import numpy as np
import pytest

import md
from md.scenes.benchmark import NARROWEST


def arrays_of(root: object) -> list[np.ndarray]:
    """The arrays with memory of their own that are reached from an object; functions are not entered."""
    met, waiting, found = set(), [root], []
    while waiting:
        one = waiting.pop()
        if id(one) in met or isinstance(one, type | ModuleType | FunctionType):
            continue
        met.add(id(one))
        if isinstance(one, np.ndarray) and one.base is None:
            found.append(one)
        else:
            waiting += [one.base] if isinstance(one, np.ndarray) else gc.get_referents(one)
    return found


@pytest.mark.parametrize("workers", [1, 8])
def test_arrays_of_the_gas_take_at_most_six_times_its_bytes(workers, monkeypatch):
    monkeypatch.setattr("md.backend.cpu.thread_count", lambda: workers)  # a sort counts in up to 8 parts
    n = 2**16
    simulation = md.Simulation(
        md.scenes.benchmark_gas(n, 0.2, backend="cpu"), md.scenes.BENCHMARK_LAW, search="verlet",
        dt=md.scenes.BENCHMARK_DT, backend="cpu", precision="float32", fused=True,
    )  # fmt: skip
    simulation.run(2, phases=False)
    arrays = arrays_of(simulation)
    assert any(array is simulation.search.structure()[0] for array in arrays)
    assert any(array is simulation.system.particles.spare[0] for array in arrays)
    assert 2 * NARROWEST * n < sum(array.nbytes for array in arrays) <= 6 * NARROWEST * n
