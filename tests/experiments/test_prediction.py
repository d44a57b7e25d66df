"""Predictions: the systems are those of the definition, the hits those that a count by hand finds."""

from dataclasses import replace

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from experiments import cache_hit, cache_map, decay, reorder_cost
from experiments.core.settings import cases
from experiments.prediction.cache_models import MODELS, predicted
from experiments.prediction.systems import GEOMETRIES, own_side
from experiments.processes.separate_run import all_rows
from tests.experiments.test_experiments import run

every_geometry = pytest.mark.parametrize("name", list(GEOMETRIES))


def partners_by_hand(cells: np.ndarray, shape) -> list[set[int]]:
    """Of each particle those in the same and in adjacent boxes, round the ends of the axes."""
    apart = np.abs(cells[:, None] - cells[None])
    near = (np.minimum(apart, np.array(shape) - apart) <= 1).all(axis=2)
    np.fill_diagonal(near, False)
    return [set(np.flatnonzero(row).tolist()) for row in near]


def hits_by_hand(partners: list[set[int]], capacity: int) -> tuple[int, int]:
    hits = sum(j // capacity == i // capacity for i, those in enumerate(partners) for j in those)
    return hits, sum(map(len, partners))


def one(module, **fields):
    return cases(module.Config(backend="cpu", **fields))[0].config


@every_geometry
@given(
    seed=st.integers(0, 99), side=st.integers(2, 5), phi=st.floats(0.02, 0.6), capacity=st.integers(1, 40),
    order=st.sampled_from(["hilbert", "peano", "row", "zigzag", "shuffled", "lattice"]),
)  # fmt: skip
def test_block_hits_are_those_that_a_count_finds(name, seed, side, phi, capacity, order):
    geometry = GEOMETRIES[name]
    state = geometry.gas(side, 3, phi, "ideal", 1.0, seed, "cpu")
    state = geometry.in_order(state, order, seed)
    seen = geometry.seen(state)
    stream = md.Simulation(seen, md.scenes.SHARED_LAW, search="linked", backend="cpu").accesses()
    partners = partners_by_hand(geometry.cells(state), geometry.boxes(state))
    rows = np.split(stream.reads, stream.offsets[1:-1])
    assert [set(row.tolist()) for row in rows] == partners
    hits, reads = hits_by_hand(partners, capacity)
    if reads:
        (row,) = predicted(stream, ("block",), (capacity,))
        assert row["hit_ratio"] == hits / reads
        assert row["speed_up"] == pytest.approx(100 / (hits / reads + 100 * (1 - hits / reads)))


@pytest.mark.parametrize(("name", "order"), [("squares", "hilbert"), ("cubes", "morton"), ("cubes", "peano")])
def test_the_memory_order_is_that_of_a_reorder(name, order):
    geometry = GEOMETRIES[name]
    state = geometry.gas(9, 3, 0.3, "ideal", 1.0, 4, "cpu")
    simulation = md.Simulation(
        state, md.laws.SpringDashpot(0.0, 0.0), dt=1e-9, backend="cpu", reorder=md.Reorder(order, md.Every(1))
    )
    simulation.run(1)
    assert np.array_equal(simulation.state.id, geometry.in_order(state, order, 0).id)


@every_geometry
def test_a_gas_has_the_filling_fraction_of_volume_and_no_overlaps(name):
    geometry = GEOMETRIES[name]
    state = geometry.gas(8, 5, 0.3, "granular", 1.0, 0, "cpu")
    volume = 8 * 8 * {"squares": 1, "cuboids": 5, "cubes": 8}[name]
    assert len(state) * np.pi / 6 == pytest.approx(0.3 * volume, rel=0.02)
    law = md.laws.SpringDashpot(1.0, 0.0)
    assert len(md.Simulation(state, law, backend="cpu").pairs()) == 0
    assert not np.array_equal(state.id, np.arange(len(state)))


@pytest.mark.parametrize(
    ("order", "side", "dim", "own"),
    [
        ("hilbert", 64, 2, 64),
        ("hilbert", 50, 2, 64),
        ("peano", 64, 2, 81),
        ("peano", 30, 3, 27),
        ("row", 50, 2, 50),
    ],
)
def test_a_curve_gets_a_power_of_its_base(order, side, dim, own):
    assert own_side(order, side, dim) == own


def test_every_model_and_capacity_has_a_row_and_lines_need_whole_sets():
    stream = sfc.cache.AccessStream([0, 2, 3], [1, 1, 0])
    rows = list(predicted(stream, MODELS, (1, 128, 200)))
    assert [(row["model"], row["cache_particles"]) for row in rows] == [
        ("block", 1), ("block", 128), ("block", 200), ("lru", 1), ("lru", 128), ("lru", 200),
        ("set_associative", 128),
    ]  # fmt: skip
    assert [row["hit_ratio"] for row in rows] == pytest.approx([0, 1, 1, 1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_hits_of_each_reader_add_up_to_those_of_all():
    state = GEOMETRIES["cubes"].gas(6, 3, 0.3, "ideal", 1.0, 0, "cpu")
    stream = md.Simulation(state, md.scenes.SHARED_LAW, backend="cpu").accesses()
    each = sfc.cache.block_hits(stream, 50)
    assert each.sum() == sfc.cache.block(stream, 50).hits > 0
    assert (each <= np.diff(stream.offsets)).all()


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
        assert names == {path.stem for path in folder.glob("*.pdf")}

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
        ("fields", "told"),
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
    def test_what_cannot_be_predicted_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            cache_hit.Config(**fields)


class TestDecay:
    @given(half=st.floats(5, 500), b=st.floats(0.5, 2.0))
    def test_the_fit_finds_the_law_it_fits(self, half, b):
        steps = np.geomspace(1, 2000, 40)
        found = decay.fit(steps, np.exp2(-((steps / half) ** b)))
        assert found == pytest.approx((half, b), rel=1e-6)

    def test_too_few_looks_have_no_half_life(self):
        assert np.isnan(decay.fit(np.array([1.0, 2.0]), np.array([0.9, 0.8]))).all()

    def test_particles_that_fly_at_a_speed_lose_their_order_in_time(self, tmp_path):
        folder = run(
            decay, tmp_path, "--quick", "--interaction", "ideal", "--speed", "0.02", "0.04", "--steps", "600",
            "--looks", "20", "--cache", "64",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet")
        assert table["speed_d_per_step"].to_numpy() == pytest.approx(table["speed"].to_numpy())
        first = table[table["step"] == 0]
        assert (first["hit_ratio"] > 2 * first["hit_ratio_shuffled"]).all()
        lives = pd.read_csv(folder / "half_lives.csv")
        lives = lives[lives["model"] == "block"].set_index("speed")["half_life_steps"]
        assert lives[0.02] / lives[0.04] == pytest.approx(2, rel=0.15)
        assert {"by_speed.png", "by_speed.pdf"} <= {path.name for path in folder.iterdir()}

    def test_interactions_hold_particles_and_losses_hold_them_more(self, tmp_path):
        folder = run(
            decay, tmp_path, "--quick", "--size", "8", "--cache", "64", "--steps", "800", "--model", "block"
        )
        table = pd.read_parquet(folder / "table.parquet")
        last = table[table["step"] == 800].set_index("interaction")
        assert (
            last.loc["ideal", "hit_ratio"]
            < last.loc["elastic", "hit_ratio"]
            < last.loc["inelastic", "hit_ratio"]
        )
        assert last.loc["elastic", "speed_d_per_step"] == pytest.approx(0.01, rel=0.05)
        assert last.loc["inelastic", "speed_d_per_step"] < 0.006

    def test_spheres_are_nearly_hard_however_dense(self):
        for geometry, phi, free in (("cubes", 0.25, 24.7), ("cubes", 0.5, 4.27), ("squares", 0.25, 39.05)):
            case = one(decay, geometry=(geometry,), size=(6,), filling_fraction=(phi,), speed=(0.01,),
                       interaction=("elastic",), model=("block",), cache=(20,), steps=1, looks=3)  # fmt: skip
            row = next(decay.measure(case))
            assert row["free_steps"] == pytest.approx(free, rel=0.01)
            assert row["contact_steps"] == pytest.approx(row["free_steps"] / 10)
            assert row["integrator_steps_per_step"] * row["contact_steps"] >= 20

    def test_what_is_left_is_seen_beside_the_same_particles_unordered(self):
        case = one(decay, size=(8,), filling_fraction=(0.2,), speed=(0.5,), interaction=("ideal",),
                   model=("block",), cache=(32,), steps=400, looks=8)  # fmt: skip
        rows = pd.DataFrame(decay.measure(case))
        assert rows["hit_ratio"].iloc[0] > 3 * rows["hit_ratio_shuffled"].iloc[0]
        assert rows["hit_ratio"].iloc[-1] == pytest.approx(rows["hit_ratio_shuffled"].iloc[-1], abs=0.03)
        assert rows["hit_ratio_shuffled"].nunique() > 2

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"speed": (1.5,)}, "--speed = 1.5; allowed: .* above 0, up to 1 .d per step"),
            ({"geometry": ("cuboids",)}, "unknown geometry 'cuboids'"),
            ({"looks": 2}, "--looks = 2; allowed: an integer of at least 3"),
            ({"restitution": 1.0}, "--restitution = 1.0; allowed: .* below 1"),
            ({"filling_fraction": (0.7,)}, "--filling-fraction = 0.7; .*; these are cubes"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            decay.Config(**fields)


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
        assert {"map.png", "map.pdf", "summary.csv"} <= {path.name for path in folder.iterdir()}

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            (
                {"tiles": 600},
                "--tiles = 600; allowed: an integer .* up to 512; at most as many as",
            ),
            ({"ordering": ("butz",)}, "unknown ordering 'butz'"),
            ({"cache": ()}, "no value"),
        ],
    )
    def test_what_cannot_be_mapped_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            cases(cache_map.Config(**fields))


class TestReorderCost:
    @pytest.mark.parametrize(
        "places",
        [("one thread",), pytest.param(("one thread", "all threads"), marks=pytest.mark.nightly)],
    )
    def test_every_place_that_is_here_has_its_times(self, places, tmp_path):
        flags = ["--n", "512", "1000", "--runs", "1", "--rounds", "2"]
        folder = run(reorder_cost, tmp_path, *flags, *(["--place", *places] if len(places) == 1 else []))
        table = pd.read_parquet(folder / "table.parquet")
        assert set(table["place"]) == {*places, "one thread again"}
        counts = table.groupby(["n", "place", "memory", "round"]).size()
        assert len(counts) == 2 * (len(places) + 1) * 3 * 2
        assert (counts == 1).all()
        assert (table["time_ms"] > 0).all()
        assert table.loc[table["place"] == "one thread", "threads"].eq(1).all()
        assert {"cost.png", "cost.pdf", "summary.csv"} <= {path.name for path in folder.iterdir()}

    def test_gains_of_places_are_of_one_memory_and_one_round(self, tmp_path):
        table = pd.DataFrame(
            {"ordering": "hilbert", "precision": "float64", "n": 512, "memory": memory, "place": place,
             "run": 0, "round": k, "time_ms": ms * (k + 1) * (2 if memory == "shuffled" else 1)}
            for memory in reorder_cost.MEMORY
            for place, ms in (("one thread", 4.0), ("one thread again", 5.0), ("all threads", 2.0))
            for k in range(3)
        )  # fmt: skip
        found = reorder_cost.summary(table).set_index(["memory", "place"])
        assert found["gain_over_one_thread_median_of_rounds"].dropna().to_dict() == {
            (memory, "all threads"): 2 for memory in reorder_cost.MEMORY
        }
        assert found["noise_floor_one_thread"].dropna().eq(1.25).all()
        assert found.loc[("shuffled", "one thread"), "time_ms_median_of_rounds"] == 16
        old = table[table["place"] != "one thread again"].rename(columns={"run": "repeat", "round": "sample"})
        old["memory"] = old["memory"].replace({"fresh": "ordered", "aged": "worn"})
        reorder_cost.draw(old, tmp_path)
        assert set(pd.read_csv(tmp_path / "summary.csv")["memory"]) == set(reorder_cost.MEMORY)

    def test_one_thread_leaves_the_others_to_the_next_sample(self):
        case = one(reorder_cost, n=(512,), rounds=1)
        threads = numba.get_num_threads()
        rows = pd.DataFrame(all_rows(reorder_cost.measure(replace(case, place=("one thread",)))))
        assert rows["threads"].eq(1).all()
        assert numba.get_num_threads() == threads

    def test_an_order_that_is_wrong_is_not_timed(self, monkeypatch):
        rows = reorder_cost.measure(one(reorder_cost, n=(512,)))
        monkeypatch.setattr("md.particles.cell_sort.CellSort.apply", lambda self, particles: None)
        with pytest.raises(
            ValueError,
            match=r"order under 'hilbert' differs .* of the particles; allowed: up to 0; not recorded",
        ):
            next(rows)

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"place": ("moon",)}, "unknown place 'moon'; allowed: one of one thread"),
            ({"memory": ("new",)}, "unknown memory 'new'"),
            ({"n": (10,)}, "--n = 10; allowed: an integer of at least 64"),
            ({"filling_fraction": 0.6}, "--filling-fraction = 0.6"),
        ],
    )
    def test_what_cannot_be_timed_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            reorder_cost.Config(**fields)
