"""The CUDA sources for packed rows, and for those of a rank, without a GPU: they compile."""

import numpy as np
import pytest

from tests.md.backend.kernels.test_source import MIGRATION, PRUNED, RANKS, source_of
from tests.nvrtc import compile_cubin
from tests.tiers import full
from tests.tiers import product as crossed


@pytest.mark.parametrize(
    ("stem", "kernel", "out", "case"),
    crossed(
        [
            ("md.search.lists.list_search", "force", "fused"),
            ("md.search.lists.pruned_lists", "force_and_prune", "fused"),
            ("md.search.lists.pruned_lists", "force", "fused"),
            ("md.search.lists.pruned_lists", "many_steps", "fused"),
            ("md.particles.arrays", "fastest", "store"),
            ("md.search.grid.coherent", "force", "fused"),
            ("md.search.grid.coherent", "force_rows", "fused"),
            ("md.search.grid.tiles", "force", "fused"),
            ("md.particles.arrays", "gather", "store"),
            *((RANKS, name, "store") for name in ("copy_out", "copy_in", "take")),
            *(
                (MIGRATION, name, "store")
                for name in ("leave_keys", "send_records", "take_rows", "list_border")
            ),
            *((PRUNED, name, "of_rank") for name in ("force", "force_and_prune")),
            ("md.domain.on_device.peers", "store_ghosts", "store"),
            ("md.simulation.energy_monitor", "motion", "store"),
        ],
        [(3, np.float32), (2, np.float64)],
        2,
        full,
    ),
)
def test_kernels_of_packed_rows_compile(stem, kernel, out, case):
    dim, real = case
    source = source_of(stem, kernel, dim, real, "aos4", "spring_dashpot", out)
    assert compile_cubin("#define PACKED 1\n" + source).startswith(b"\x7fELF")
    assert compile_cubin("#define PACKED 1\n#define GHOSTS 1\n" + source).startswith(b"\x7fELF")
