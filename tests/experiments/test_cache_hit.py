"""experiments.cache_hit: predicted hits of every ordering, cache and model, and their maps."""

import itertools

import numpy as np
import pandas as pd
import pytest

import md
import sfc
from experiments import cache_hit
from experiments.core.old_names import arguments_now
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.forecasts.predicted import forecasts
from experiments.loads import step_loads
from experiments.prediction.systems import GEOMETRIES
from experiments.results.answers import rounded
from experiments.results.charts import estimates, prepared
from sfc.cache import Machine
from tests.experiments.runs import one, run

MAP = {"average": "tiles", "geometry": ("squares",), "model": ("block",), "tiles": 64}


class TestCacheHit:
    @pytest.mark.parametrize(
        "geometries",
        [("squares", "cubes"), pytest.param(("squares", "cuboids", "cubes"), marks=pytest.mark.nightly)],
    )
    def test_a_table_has_numbers_and_words_alone_and_every_figure_is_drawn(self, geometries, tmp_path):
        folder = run(
            cache_hit, tmp_path, "--quick", "--size", "8", "16", "--repeats", "2", "--cache", "64", "128",
            "--ordering", "hilbert", "peano", "compact", "shuffled", "--geometry", *geometries,
            "--filling-fraction", "0.05", "0.1", "0.2",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet")
        assert {str(dtype) for dtype in table.dtypes} <= {"int64", "float64", "str", "object"}
        measured = table.groupby(["geometry", "ordering"])["nx"].unique().map(sorted).to_dict()
        assert measured["squares", "peano"] == [9, 27]
        assert measured["cubes", "compact"] == [8, 16]
        assert ("squares", "compact") not in measured
        assert (table.groupby("case")["model"].nunique() == 3).all()
        names = {path.stem for path in folder.glob("*.png")}
        kinds = ("filling", "orders", "cache")
        assert names == {f"{kind}_{name}" for kind in kinds for name in geometries} | {"systems"}

    def test_geometries_with_the_same_gas_are_compared_by_their_misses(self, tmp_path):
        folder = run(
            cache_hit, tmp_path, "--quick", "--size", "16", "--height", "4", "--cache", "128", "--ordering",
            "hilbert", "pancake", "shuffled", "--geometry", "cuboids", "cuboids_space", "cubes",
            "--filling-fraction", "0.2", "--model", "block",
        )  # fmt: skip
        assert {path.stem for path in folder.glob("misses*.png")} == {"misses_cuboids"}
        found = pd.read_csv(folder / "summary.csv").set_index(["geometry", "ordering"])
        misses = found["misses_per_particle_median"]
        assert ("cuboids", "pancake") not in misses
        table = pd.read_parquet(folder / "table.parquet").set_index(["geometry", "ordering"])
        by_hand = table["reads_per_particle"] * (1 - table["hit_ratio"])
        for key in misses.index:
            assert misses[key] == pytest.approx(by_hand[key])
        reads = table["reads_per_particle"]
        assert reads["cuboids", "hilbert"] > reads["cuboids_space", "hilbert"]  # whole columns

    def test_a_machine_says_what_its_warps_are_foreseen_to_lack(self, tmp_path, capsys):
        folder = run(
            cache_hit, tmp_path, "--size", "16", "--geometry", "cubes", "--filling-fraction", "0.2",
            "--cache", "320", "--model", "block", "--ordering", "hilbert", "shuffled", "--machine", "h100",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet").set_index("ordering")
        (gas,) = table["particles"].unique()
        for name, row in table.iterrows():
            assert row["machine"] == "h100"
            seed = 0
            state = GEOMETRIES["cubes"].gas(16, 10, 0.2, "granular", 1.0, seed, "cpu")
            state = GEOMETRIES["cubes"].in_order(state, name, seed)
            sim = md.Simulation(
                state, md.scenes.BENCHMARK_LAW, search="linked", dt=md.scenes.BENCHMARK_DT,
                precision="float32", backend="cpu", fused=True, allow_overlap=True,
            )  # fmt: skip
            chips = {"h100": Machine.read("h100")}
            ((_, found),) = forecasts(step_loads(sim), "linked", int(gas), chips, seed)
            assert row["machine_us"] == found["time_us"]
            assert row["machine_misses"] == found["missed"] / found["sectors"]
        gain = table["machine_us"]["shuffled"] / table["machine_us"]["hilbert"]
        said = " ".join(capsys.readouterr().out.split())
        assert f"along hilbert is foreseen to be {rounded(gain)} times as fast as in shuffled memory" in said

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"machine": "a100"}, "machine 'a100'"),
            (
                {"machine": "h100", "search": ("linked", "coherent")},
                "beside --search coherent; allowed: linked",
            ),
            ({"machine": "h100", **MAP}, "--machine h100 beside --average tiles"),
        ],
    )
    def test_a_machine_that_cannot_be_foreseen_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            cache_hit.Config(**fields)

    def test_tiles_add_up_to_the_whole(self, tmp_path):
        folder = run(
            cache_hit, tmp_path, "--quick", *arguments_now(["--tiles", "8"], "cache_map"), "--size", "32",
            "--cache", "40", "300",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet")
        assert len(table) == 3 * 2 * 64
        state = GEOMETRIES["squares"].gas(32, 1, 0.4, "ideal", 1.0, 0, "cpu")
        ordered = GEOMETRIES["squares"].in_order(state, "hilbert", 0)
        stream = md.Simulation(ordered, md.scenes.BENCHMARK_LAW, backend="cpu").accesses()
        rows = table[(table["ordering"] == "hilbert") & (table["cache_particles"] == 40)]
        hits = (rows["hit_ratio"] * rows["reads"]).sum()
        assert hits == pytest.approx(sfc.cache.block(stream, 40).hits)
        assert rows["reads"].sum() == len(stream.reads)
        beside = (ordered.pos // 4 == [1, 0]).all(axis=1)
        reads = np.diff(stream.offsets)[beside].sum()
        assert rows[(rows["tile_x"] == 1) & (rows["tile_y"] == 0)]["reads"].iloc[0] == reads
        assert [path.name for path in folder.glob("*.png")] == ["map.png"]
        summary = pd.read_csv(folder / "summary.csv").set_index(["ordering", "cache_particles"])
        assert summary.loc[("hilbert", 40), "hit_ratio_median"] == pytest.approx(hits / len(stream.reads))

    @pytest.mark.parametrize(
        ("sizes", "fillings", "names"),
        [
            ((8, 16, 32), (0.01, 0.05, 0.2), {"filling", "size", "size_hilbert"}),
            ((8, 16), (0.1, 0.2), {"orders"}),
            ((8,), (0.2,), {"orders"}),
            ((8, 16), (0.1, 0.2, 0.3), {"filling", "orders"}),
        ],
    )
    def test_lines_have_three_points_or_more(self, sizes, fillings, names, tmp_path):
        draw(cache_hit.VIEWS, self.hits(sizes, fillings), tmp_path)
        drawn = {path.stem.replace("_cubes", "") for path in tmp_path.glob("*.png")}
        assert drawn == names

    @staticmethod
    def hits(sizes, fillings, **more) -> pd.DataFrame:
        """Hits that miss 0.1 and 0.2 along Hilbert's curve in two gases, 0.12 and 0.28 along Peano's."""
        case = {"geometry": "cubes", "search": "linked", "model": "block", "cache_particles": 320}
        case |= {"ny": 1, "nz": 1, "reads_per_particle": 9.0}
        misses = {"hilbert": (0.1, 0.2), "peano": (0.12, 0.28), "row": (0.9, 0.9)} | more
        return pd.DataFrame([
            case | {"size": size, "nx": size, "particles": size**3, "filling_fraction": phi, "repeat": repeat,
                    "ordering": name, "hit_ratio": 1 - missed, "speed_up": 1 / missed}
            for size, phi in itertools.product(sizes, fillings) for name, of in misses.items()
            for repeat, missed in enumerate(of)
        ])  # fmt: skip

    def test_a_title_is_about_lines_that_are_drawn(self, monkeypatch, tmp_path):
        titles = []
        monkeypatch.setattr(style, "save", lambda figure, *others: titles.append(figure.get_suptitle()))
        many = {"moore": (0.05, 0.05)} | dict.fromkeys(("morton", "tiled", "shuffled", "gray"), (0.5, 0.5))
        draw(cache_hit.VIEWS[:1], self.hits((8,), (0.1, 0.2, 0.3), **many), tmp_path)
        (title,) = titles
        assert title.startswith(
            "At 30 % filled a share of 0.15 (0.10 to 0.20) of the reads misses in hilbert order, "
        )
        assert "in the table: moore, gray" in title

    def test_misses_of_near_orders_are_shown_over_those_of_hilbert(self):
        chart = cache_hit.VIEWS[0]
        rows = prepared(chart, self.hits((8, 16), (0.01, 0.1, 0.2)))
        assert set(rows["filling_fraction"]) == {0.1, 0.2}
        assert set(rows["size"]) == {16}
        found = estimates(rows, chart.points[1], chart.each).set_index(["ordering", "filling_fraction"])
        assert found.loc[("peano", 0.2), ["value", "value_low", "value_high"]].tolist() == pytest.approx(
            [1.3, 1.2, 1.4]
        )
        assert "row" not in found.index

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
                "--filling-fraction = 0.55; .*; these are squares without overlaps",
            ),
            ({"miss_cost": 0.0}, "--miss-cost = 0.0"),
            ({"average": "box"}, "unknown average 'box'; allowed: one of system, tiles"),
            (
                {"average": "tiles"},
                "--geometry squares cuboids cubes beside --average tiles; allowed: squares",
            ),
            (MAP | {"search": ("tiles",)}, "--search tiles beside --average tiles; allowed: linked"),
            (MAP | {"model": ("lru",)}, "--model lru beside --average tiles; allowed: block"),
            (MAP | {"tiles": 65}, "--tiles = 65; allowed: an integer .* up to 64; at most as many as --size"),
        ],
    )
    def test_what_cannot_be_predicted_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            cache_hit.Config(**fields)
