"""experiments.cache_hit: predicted hits of every ordering, cache and model."""

import pandas as pd
import pytest

from experiments import cache_hit
from tests.experiments.runs import one, run


class TestCacheHit:
    @pytest.mark.parametrize(
        "geometries",
        [("squares", "cubes"), pytest.param(("squares", "cuboids", "cubes"), marks=pytest.mark.nightly)],
    )
    def test_a_table_has_numbers_and_words_alone_and_every_figure_is_drawn(self, geometries, tmp_path):
        folder = run(
            cache_hit, tmp_path, "--quick", "--size", "8", "16", "--repeats", "2", "--cache", "64", "128",
            "--ordering", "hilbert", "peano", "compact", "shuffled", "--geometry", *geometries,
            "--filling-fraction", "0.05", "0.2",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet")
        assert {str(dtype) for dtype in table.dtypes} <= {"int64", "float64", "str", "object"}
        measured = table.groupby(["geometry", "ordering"])["nx"].unique().map(sorted).to_dict()
        assert measured["squares", "peano"] == [9, 27]
        assert measured["cubes", "compact"] == [8, 16]
        assert ("squares", "compact") not in measured
        assert (table.groupby("case")["model"].nunique() == 3).all()
        names = {path.stem for path in folder.glob("*.png")}
        assert names == {f"{kind}_{name}" for kind in ("filling", "size", "cache") for name in geometries} | {
            "systems"
        }

    def test_geometries_with_the_same_gas_are_compared_by_their_misses(self, tmp_path):
        folder = run(
            cache_hit, tmp_path, "--quick", "--size", "16", "--height", "4", "--cache", "128", "--ordering",
            "hilbert", "pancake", "shuffled", "--geometry", "cuboids", "cuboids_space", "cubes",
            "--filling-fraction", "0.2", "--model", "block",
        )  # fmt: skip
        assert {path.stem for path in folder.glob("misses*.png")} == {"misses_cuboids"}
        found = pd.read_csv(folder / "misses_cuboids.csv").set_index(["geometry", "ordering"])
        misses = found["misses_per_particle_median"]
        assert ("cuboids", "pancake") not in misses
        table = pd.read_parquet(folder / "table.parquet").set_index(["geometry", "ordering"])
        by_hand = table["reads_per_particle"] * (1 - table["hit_ratio"])
        for key in misses.index:
            assert misses[key] == pytest.approx(by_hand[key])
        reads = table["reads_per_particle"]
        assert reads["cuboids", "hilbert"] > reads["cuboids_space", "hilbert"]  # whole columns

    @pytest.mark.parametrize(
        "search", ["scattered", "coherent", pytest.param("tiles", marks=pytest.mark.nightly), "verlet"]
    )
    def test_other_searches_read_too(self, search):
        (row,) = cache_hit.measure(
            one(
                cache_hit,
                geometry=("cubes",),
                size=(8,),
                filling_fraction=(0.3,),
                search=(search,),
                model=("block",),
                cache=(64,),
            )
        )
        assert 0 < row["hit_ratio"] <= 1

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"geometry": ("spheres",)}, "unknown geometry 'spheres'; allowed: one of squares"),
            ({"ordering": ("hilbrt",)}, "unknown ordering 'hilbrt'"),
            ({"search": ("naive",)}, "unknown search 'naive'"),
            ({"model": ("fifo",)}, "unknown model 'fifo'; allowed: one of block"),
            ({"cache": (0,)}, "--cache = 0; allowed: an integer of at least 1"),
            ({"size": (1,)}, "--size = 1"),
            (
                {"filling_fraction": (0.55,)},
                "--filling-fraction = 0.55; .*; this is granular squares",
            ),
            ({"miss_cost": 0.0}, "--miss-cost = 0.0"),
        ],
    )
    def test_what_cannot_be_predicted_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            cache_hit.Config(**fields)
