"""The 24 data sets, by name: what each is, how it is used and made."""

from collections.abc import Callable
from typing import NamedTuple

from experiments.advice.sets import clouds, images, matrices, meshes, particles, traces
from experiments.advice.sets.codes import Code, code_of
from experiments.advice.sets.data import SetData
from sfc import checks

KINDS = ("particles", "cloud", "mesh", "matrix", "image", "trace")
LEAST = 64  # items


class DataSet(NamedTuple):
    """A data set, before it is made.

    Attributes:
        name: of it.
        kind: one of `KINDS`.
        is_partly_ordered: whether the order given has some locality, but not that of a good order.
        generate: makes it of n and a seed.
        n: number of items by default, at most.
        use: "cutoff", "neighbours", "edges", "cells", "matrix" or "trace".
        library: of its user's code: "compiled", "numpy" or "scipy".
        file: ending of the file in which its users have it.
    """

    name: str
    kind: str
    is_partly_ordered: bool
    generate: Callable[[int, int], SetData]
    n: int
    use: str
    library: str
    file: str

    @property
    def code(self) -> Code:
        """Its user's code."""
        return code_of(self.use, self.library)


PARTLY, NOT = True, False
_TABLE: tuple[tuple, ...] = (
    ("random_gas", "particles", NOT, particles.random_gas, 2_000_000, "cutoff", "compiled", "gsd"),
    ("clustered_gas", "particles", NOT, particles.clustered_gas, 500_000, "cutoff", "scipy", "gsd"),
    ("lattice_gas", "particles", PARTLY, particles.lattice_gas, 2_000_000, "cutoff", "compiled", "npy"),
    ("two_sizes", "particles", NOT, particles.two_sizes, 1_000_000, "cutoff", "compiled", "csv"),
    ("aged_gas", "particles", PARTLY, particles.aged_gas, 2_000_000, "cutoff", "compiled", "gsd"),
    ("terrain_lines", "cloud", PARTLY, clouds.terrain_in_lines, 1_000_000, "neighbours", "scipy", "csv"),
    ("terrain_shuffled", "cloud", NOT, clouds.terrain_shuffled, 1_000_000, "neighbours", "scipy", "npy"),
    ("city_tiles", "cloud", PARTLY, clouds.city_in_tiles, 2_000_000, "cutoff", "compiled", "npy"),
    ("clusters", "cloud", NOT, clouds.clusters, 1_000_000, "neighbours", "scipy", "csv"),
    ("tetrahedra", "mesh", PARTLY, meshes.tetrahedra, 1_000_000, "cells", "compiled", "npz"),
    ("hexahedra_shuffled", "mesh", NOT, meshes.hexahedra_shuffled, 1_000_000, "cells", "numpy", "npz"),
    ("icosphere", "mesh", PARTLY, meshes.icosphere, 2_621_442, "edges", "compiled", "ply"),
    ("delaunay", "mesh", NOT, meshes.delaunay, 600_000, "edges", "numpy", "ply"),
    ("laplacian_27", "matrix", NOT, matrices.laplacian_27, 500_000, "matrix", "scipy", "mtx"),
    ("laplacian_shuffled", "matrix", NOT, matrices.laplacian_shuffled, 2_000_000, "matrix", "scipy", "npz"),
    ("random_graph", "matrix", NOT, matrices.random_graph, 1_000_000, "matrix", "compiled", "npz"),
    ("band_moved", "matrix", PARTLY, matrices.band_moved, 1_000_000, "matrix", "scipy", "npz"),
    ("power_law", "matrix", NOT, matrices.power_law, 1_000_000, "matrix", "compiled", "mtx"),
    ("image_columns", "image", NOT, images.image_in_columns, 3_000_000, "trace", "numpy", "npz"),
    ("grid_walk", "image", PARTLY, images.walk_on_grid, 3_000_000, "trace", "compiled", "npz"),
    ("hash_probes", "trace", NOT, traces.hash_probes, 3_000_000, "trace", "compiled", "npy"),
    ("zipf_probes", "trace", NOT, traces.zipf_probes, 3_000_000, "trace", "numpy", "npy"),
    ("tree_search", "trace", NOT, traces.tree_search, 3_000_000, "trace", "compiled", "npy"),
    ("merged_streams", "trace", NOT, traces.merged_streams, 3_000_000, "trace", "numpy", "npy"),
)  # fmt: skip
SETS: dict[str, DataSet] = {row[0]: DataSet(*row) for row in _TABLE}


def make(name: str, n: int | None = None, seed: int = 0) -> SetData:
    """Make a data set: equal arrays for equal arguments.

    Args:
        name: of `SETS`.
        n: number of items, 64 or more; None for that of the table. Sets that come in certain sizes only, such
            as grids, have fewer.
        seed: of all random numbers, 0 or above.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: an unknown name, or a number out of range.
    """
    data_set = SETS[checks.word("name", name, SETS)]
    count = data_set.n if n is None else checks.integer("n", n, LEAST, 2**31 - 1, unit="items")
    return data_set.generate(count, checks.integer("seed", seed, 0))
