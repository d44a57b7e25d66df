"""Earlier models of memory on the cases of a forecast."""

import numpy as np
import pytest

from experiments.prediction.drawn_gases import Gas
from experiments.prediction.foreseen_systems import simulations
from experiments.prediction.model_ladder import MOST, model_ladder

GAS = Gas("linked", 2**10, 0.2, "float64", ("shuffled", "row"))


def test_numbers_are_those_of_the_reads_of_each_particle():
    rows = {row["ordering"]: row for row in model_ladder(GAS, 0)}
    for name, simulation in simulations(GAS, "cpu", 0):
        stream = simulation.accesses()
        reads = np.split(stream.reads, stream.offsets[1:-1])
        different = [len({slot * 32 // 32 for slot in one.tolist()}) for one in reads]
        assert rows[name]["reader_sectors"] == pytest.approx(np.mean(different))
        assert rows[name]["lru_l2"] == pytest.approx(len(set(stream.reads.tolist())) / len(stream.reads))
    assert rows["row"]["block"] < rows["shuffled"]["block"]


@pytest.mark.parametrize("gas", [GAS._replace(kernel="verlet"), GAS._replace(n=2 * MOST)])
def test_other_kernels_and_sizes_have_none(gas):
    assert not [*model_ladder(gas, 0)]
