"""experiments.grid_limits: cells, memory and distances in memory, against a count by hand."""

import numpy as np
import pytest

import md
from experiments import grid_limits
from md.particles.cell_grid import CellGrid
from tests.experiments.runs import one


def row_of(**fields) -> dict:
    (row,) = grid_limits.measure(one(grid_limits, n=(1000,), **fields))
    return row


def test_the_table_grows_as_the_density_falls_and_a_tree_does_not():
    dilute, dense = (row_of(filling_fraction=(phi,), order=("row",)) for phi in (0.01, 0.4))
    assert dilute["grid_bytes"] > 10 * dense["grid_bytes"]
    assert dilute["tree_bytes"] == dense["tree_bytes"] > 4 * 16
    assert dilute["empty_share"] > 0.95 > 0.5 > dense["empty_share"] > 0
    assert dense["reads_per_particle"] > dilute["reads_per_particle"]


def test_cells_and_reads_are_those_of_a_count_by_hand():
    row = row_of(filling_fraction=(0.3,), order=("row",))
    state = md.scenes.granular_gas(0.3, md.scenes.box_for(1000, 0.3), seed=0, backend="cpu")
    side = state.box.lengths[0]
    cells = int(side)  # along an axis, at least a diameter wide
    assert row["cells_per_particle"] == cells**3 / 1000
    number = np.floor(state.pos / side * cells).astype(int)
    held = np.unique(number, axis=0, return_counts=True)[1]
    assert row["most_in_a_cell"] == held.max()
    assert row["empty_share"] == pytest.approx(1 - len(held) / cells**3)
    assert row["grid_bytes"] == pytest.approx(4 * (cells**3 + 1) / 1000)


def test_particles_in_two_cells_are_counted():
    box = md.Box((4.0, 4.0, 4.0))
    pos = np.array([[0.5, 0.5, 0.5], [0.6, 0.5, 0.5], [3.5, 3.5, 3.5]])
    grid = CellGrid(box, 1.0, np.dtype(np.float32), md.backend.get("cpu"))
    assert grid_limits.in_cells(md.State(pos, np.zeros_like(pos), box), grid).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"order": ("spiral",)}, "unknown order 'spiral'"),
        ({"filling_fraction": (0.6,)}, "--filling-fraction = 0.6"),
        ({"filling_fraction": (1e-12,)}, "at the least --filling-fraction: .* cells, at least 12 bytes each"),
    ],
)
def test_what_cannot_be_counted_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        grid_limits.Config(**fields)
