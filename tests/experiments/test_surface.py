"""Gains over size and age: their settings, rows foreseen and timed, and forces that are wrong."""

import pandas as pd
import pytest

import md
from experiments import surface
from experiments.drawing.charts import draw
from experiments.forecasts import flown
from experiments.measurement.correctness import WrongResultError
from experiments.surface import Config, answer, measure
from sfc.cache import Machine
from tests.experiments.runs import one
from tests.tiers import full

SMALL = {"n": (1024,), "path": (0.0, 0.05), "steps": 2, "rounds": 2, "precision": ("float64",)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scene": ("sphere",)}, "unknown scene 'sphere'; allowed: one of cube, box"),
        ({"search": ("verlet",)}, "unknown search 'verlet'; allowed: one of linked, scattered"),
        ({"path": (1.0, 0.5)}, r"--path 1.0 0.5; allowed: paths in ascending order"),
        ({"path": (0.5, 0.5)}, r"--path 0.5 0.5; allowed: paths in ascending order"),
        ({"path": (-1.0,)}, "--path = -1.0"),
        ({"n": (1000,)}, "--n = 1000"),
        ({"what": "predicted", "occupied": (27.0,)}, "--occupied 27 MB, in each half, of the 52 MB of h100"),
        ({"what": "predicted", "machine": ("a100",)}, "machine 'a100'"),
        ({"occupied": (-1.0,)}, "--occupied = -1.0"),
        ({"blocks": 0}, "--blocks = 0; allowed: an integer of at least 1, up to 128"),
        ({"occupied": (2148.0,)}, "--occupied = 2148.0; allowed: .*2147"),
        (
            {"occupied": (0.0, 8.0), "backend": "cpu"},
            "--occupied 8 beside --backend cpu; allowed: 0, or a device",
        ),
    ],
)
def test_settings_out_of_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Config(**fields)


def foreseen_of(**fields) -> pd.DataFrame:
    (rows,) = measure(one(surface, what="predicted", machine=("h100",), **SMALL | fields))
    return pd.DataFrame(rows)


def test_a_gain_is_foreseen_for_each_age_and_share_of_the_cache_that_is_left():
    table = foreseen_of(n=(4096,), occupied=(0.0, 26.0))
    assert table[["path_d", "occupied_MB"]].to_numpy().tolist() == [[0, 0], [0, 26], [0.05, 0], [0.05, 26]]
    assert (table["gain"] == table["shuffled_ms"] / table["time_ms"]).all()
    assert (table["flown_d"] >= table["path_d"]).all()
    assert table["w"].tolist() == [3 * 4 * 8 * 4096 / Machine.read("h100").l2_bytes] * 4
    whole, left = table[table["path_d"] == 0]["bytes"]
    assert left > whole  # of a cache of half a MB


def test_a_surface_is_foreseen_in_one_run_and_round():
    config = Config(what="predicted", runs=3, rounds=5)
    assert (config.runs, config.rounds) == (1, 1)
    case = one(surface, what="predicted", **SMALL)
    assert list(measure(case, 1)) == []  # a round that was recorded


@pytest.mark.full
def test_memory_in_no_order_of_a_box_is_foreseen_at_each_age(monkeypatch):
    given = []

    def orders(scene, gas, ordering, **more):
        given.append((ordering, gas.steps))
        return flown.in_order(scene, gas, ordering, **more)

    monkeypatch.setattr(surface, "in_order", orders)
    foreseen_of()
    assert [name for name, _ in given] == ["shuffled", "hilbert", "hilbert"]
    given.clear()
    monkeypatch.setattr(flown, "SHAKES", 0)
    foreseen_of(scene=("box",))
    assert [name for name, _ in given] == ["shuffled", "hilbert"] * 2
    assert given[0][1] == given[1][1] == 0 < given[2][1] == given[3][1]


@pytest.mark.parametrize("scene", ["cube", full("box")])
def test_rows_of_each_age_have_force_and_step(scene, monkeypatch):
    monkeypatch.setattr(flown, "SHAKES", 0)
    steps = []
    monkeypatch.setattr(
        surface, "fly", lambda scene, gases, path: steps.append(len(gases)) or flown.fly(scene, gases, path)
    )
    rounds = list(measure(one(surface, **SMALL, scene=(scene,))))
    assert len(rounds) == 2
    table = pd.DataFrame([row for rows in rounds for row in rows])
    assert table["round"].tolist() == [0] * 4 + [1] * 4
    assert table["part"].tolist() == ["force", "step"] * 4
    assert table["path_d"].tolist() == [0, 0, 0.05, 0.05] * 2
    first = table[table["path_d"] == 0]
    assert set(first["steps_taken"]) == {0}
    each = flown.DT[scene] * 6.4 * (2 * 2 + 1) / 2  # half of the steps of a sample, at about that speed
    if scene == "cube":
        assert first["flown_d"].tolist() == pytest.approx([each] * 4, rel=0.1)
        assert table["steps_taken"].groupby(table["path_d"]).nunique().tolist() == [1, 1]
    assert (table["gain"] == table["shuffled_ms"] / table["time_ms"]).all()
    assert set(steps) == {2 if scene == "box" else 1}  # shuffled memory flies too in the box


def test_a_gas_without_forces_is_refused(monkeypatch):
    monkeypatch.setattr(surface, "TOUCHING", 0)
    with pytest.raises(WrongResultError, match="no forces of the gas to be compared"):
        next(measure(one(surface, **SMALL)))


def test_each_size_that_another_kernel_reads_is_timed_beside_it(monkeypatch):
    class Taker:
        def __init__(self, backend, size, blocks):
            self.size, self.rate = size, size / 1e6
            assert blocks == 48

        def __enter__(self):
            beside.append(self.size)

        def __exit__(self, *error):
            beside.append(0)

    beside, timed = [], []
    times = surface._times
    monkeypatch.setattr(surface, "Occupier", Taker)
    monkeypatch.setattr(surface, "_times", lambda *given: timed.append(beside[-1:]) or times(*given))
    monkeypatch.setattr(Config, "_check_occupied", lambda self: None)
    case = one(surface, **SMALL | {"path": (0.0,), "rounds": 1, "occupied": (0.5, 8.0)})
    (rows,) = measure(case)
    assert [row["occupied_MB"] for row in rows] == [0.5, 0.5, 8.0, 8.0]
    assert [row["lines_read_G_per_s"] for row in rows] == [0.5, 0.5, 8.0, 8.0]
    assert timed[:2] == [[], []]  # each once before, alone
    assert timed[-4:] == [[500_000], [500_000], [8_000_000], [8_000_000]]


def test_no_time_of_wrong_forces_is_kept(monkeypatch):
    right = flown.flying

    def wrong(scene, state, search, *args, ordering=None, **more):
        moved = md.State(state.box.wrap(state.pos * 1.001), state.vel, state.box) if ordering else state
        return right(scene, moved, search, *args, ordering=ordering, **more)

    monkeypatch.setattr(surface, "flying", wrong)
    with pytest.raises(WrongResultError):
        next(measure(one(surface, **SMALL)))


def rows_of(**changes) -> pd.DataFrame:
    common = {"part": "force", "scene": "cube", "search": "linked", "precision": "float32",
              "filling_fraction": 0.2, "occupied_MB": 0.0, "machine": "h100", "ordering": "row"}  # fmt: skip
    return pd.DataFrame([
        common | {"w": w, "particles": 1e6 * w, "path_d": path, "gain": 1 + w + path} | changes
        for w in (0.05, 2.0) for path in (0.0, 4.0)
    ])  # fmt: skip


def test_the_answer_names_gains_of_small_and_large_gases_of_one_case():
    others = [{"ordering": "hilbert"}, {"scene": "box"}, {"machine": "h200"}, {"part": "step"},
              {"occupied_MB": 8.0}, {"filling_fraction": 0.4}, {"precision": "float64"}]  # fmt: skip
    table = pd.concat([rows_of(), *(rows_of(**one).assign(gain=99.0) for one in others)])
    assert answer(table).sentence == (
        "row makes the force 1.05 times as fast as shuffled memory with a working set of 0.05 of the last "
        "cache, 3.00 with 2; after 4 d 5.05 and 7.00 (h100)."
    )


def test_sizes_of_an_unknown_cache_are_particles():
    found = answer(rows_of(w=None))
    assert "with a working set of 50,000 particles, 3.00 with 2,000,000" in found.sentence
    assert list(found.table.index) == ["50,000", "2,000,000"]


def test_figures_have_one_chip_and_as_much_of_the_cache(tmp_path):
    table = pd.concat([rows_of(), rows_of(machine="h200"), rows_of(occupied_MB=8.0)])
    draw(surface.VIEWS, table.assign(run=0, round=0), tmp_path)
    assert sorted(file.name for file in tmp_path.glob("*.png")) == [
        "capacity_cube_row_linked_force_h100.png", "gain_cube_row_linked_force_h100.png",
        "gain_cube_row_linked_force_h200.png",
    ]  # fmt: skip
    shown = surface._by_chip(table)
    assert shown[shown["is_whole"]].groupby("chip").size().to_dict() == {"h100": 4, "h200": 4}
