"""experiments.cache_map: maps of predicted hits."""

import numpy as np
import pandas as pd
import pytest

import md
import sfc
from experiments import cache_map
from experiments.core.settings import cases
from experiments.prediction.systems import GEOMETRIES
from tests.experiments.runs import run


class TestCacheMap:
    def test_its_tiles_add_up_to_the_whole(self, tmp_path):
        folder = run(cache_map, tmp_path, "--quick", "--size", "32", "--tiles", "8", "--cache", "40", "300")
        table = pd.read_parquet(folder / "table.parquet")
        assert len(table) == 3 * 2 * 64
        state = GEOMETRIES["squares"].gas(32, 1, 0.4, "ideal", 1.0, 0, "cpu")
        ordered = GEOMETRIES["squares"].in_order(state, "hilbert", 0)
        stream = md.Simulation(ordered, md.scenes.SHARED_LAW, backend="cpu").accesses()
        rows = table[(table["ordering"] == "hilbert") & (table["cache_particles"] == 40)]
        hits = (rows["hit_ratio"] * rows["reads"]).sum()
        assert hits == pytest.approx(sfc.cache.block(stream, 40).hits)
        assert rows["reads"].sum() == len(stream.reads)
        corner = (ordered.pos < 4).all(axis=1)
        reads = np.diff(stream.offsets)[corner].sum()
        assert rows[(rows["tile_x"] == 0) & (rows["tile_y"] == 0)]["reads"].iloc[0] == reads
        assert {"map.png", "summary.csv"} <= {path.name for path in folder.iterdir()}

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"tiles": 600},
                "--tiles = 600; allowed: an integer .* up to 512; at most as many as",
            ),
            ({"ordering": ("butz",)}, "unknown ordering 'butz'"),
            ({"cache": ()}, "no value"),
        ],
    )
    def test_what_cannot_be_mapped_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            cases(cache_map.Config(**fields))
