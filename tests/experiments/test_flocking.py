"""experiments.flocking: every search and memory order from the same aged flock; the rungs of B1."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import md
from experiments import flocking
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.peers.numpy_flock import numpy_flock_step
from experiments.prediction.flocks import Aging, Flock, Structure
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again
from tests.experiments.runs import run

FLAGS = (
    "--quick --n 2000 --precision float64 --steps 2 --rounds 2 --age 0 6 --order-age 4 --model block".split()
)
FLAGS += "--cache 64 --search scattered coherent --peers numpy".split()
PEER = ["numpy and cKDTree, hilbert", "numpy and cKDTree, shuffled"]
NAMES = ["scattered, shuffled", "scattered, hilbert fresh", "coherent", again("coherent"), *PEER]


def case(**options) -> flocking.Config:
    options = {
        "age": 0,
        "search": ("scattered", "coherent"),
        "ordering": ("shuffled",),
        "predicted_up_to": 0,
    } | options
    return flocking.Config(
        backend="cpu", n=1000, start="uniform", rules="source", precision="float64", rounds=2, steps=2,
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(flocking, tmp_path_factory.mktemp("flocking"), *FLAGS)


def test_every_round_has_each_search_in_each_memory_order(folder):
    table = pd.read_parquet(folder / "table.parquet")
    for (age, _), rows in table.groupby(["age", "round"]):
        assert sorted(rows["name"]) == sorted(NAMES + ["scattered, hilbert 4 steps old"] * (age == 6))
    steps = np.where(table["name"].isin(PEER), 1, 2)
    assert (table["sample_ms"] == steps * table["time_ms"]).all()
    assert (table["boids_that_differ"] == 0).all()
    aged = table.set_index("name")["order_age_steps"]
    assert aged["scattered, hilbert fresh"].unique().tolist() == [3]  # one step is not timed
    assert np.unique(aged["scattered, hilbert 4 steps old"]).tolist() == [7]
    assert aged["scattered, shuffled"].isna().all()


def test_all_searches_of_a_case_see_the_same_flock_which_ages(folder):
    table = pd.read_parquet(folder / "table.parquet")
    young, old = (rows for _, rows in table.groupby("age"))
    for rows in (young, old):
        for column in ("neighbours_mean", "neighbours_largest", "order_parameter", "clustering"):
            assert rows[column].nunique() == 1
    assert old["neighbours_mean"].iloc[0] != young["neighbours_mean"].iloc[0]


def test_sorted_memory_has_more_predicted_hits(folder):
    table = pd.read_parquet(folder / "table.parquet")
    hits = table[table["age"] == 6].groupby("name")["hit_ratio"].first()
    for name in ("scattered, hilbert fresh", "scattered, hilbert 4 steps old", "coherent"):
        assert hits[name] > 1.5 * hits["scattered, shuffled"]
    reads = table[~table["name"].isin(PEER)]["partners_read"]
    assert (reads > table["neighbours_mean"].iloc[0]).all()
    assert table[table["name"].isin(PEER)]["hit_ratio"].isna().all()


def test_rungs_are_ratios_of_times_of_a_round(folder):
    table = (
        pd.read_parquet(folder / "table.parquet").set_index(["age", "name", "round"])["time_ms"].sort_index()
    )
    found = pd.read_csv(folder / "summary.csv").set_index(["age", "name"])
    name, over = "coherent", "scattered, shuffled"
    assert found.loc[(6, name), "over"] == over
    ratio = (table.loc[6, over] / table.loc[6, name]).median()
    assert found.loc[(6, name), "gain_median_of_rounds"] == pytest.approx(ratio)
    assert {path.stem for path in folder.glob("*.png")} == {
        "times_float64", "rungs_float64", "memory_float64", "misses_float64",
    }  # fmt: skip


def test_gains_of_a_flock_with_far_more_neighbours_are_in_the_table_only(folder):
    table = pd.read_parquet(folder / "table.parquet")
    assert set(flocking.comparable(table)["left_out"]) == {""}
    dense = table[table["age"] == 0].assign(age=7, neighbours_mean=9 * table["neighbours_mean"].max())
    shown = flocking.comparable(pd.concat([table, dense]))
    (note,) = shown["left_out"].unique()
    assert sorted(shown["age"].unique()) == [0, 6]
    assert note == "among the times and in the table only, for its many neighbours: uniform, 7 steps"


@pytest.mark.nightly
def test_naive_and_tiles_are_rungs_and_have_no_predicted_hits_if_naive():
    rows = all_rows(flocking.measure(case(search=("naive", "tiles"), predicted_up_to=2000)))
    table = pd.DataFrame(rows).set_index("name")
    assert set(table.index) == {"naive", "tiles"}
    assert table.loc["naive", "partners_read"].isna().all()
    assert table.loc["tiles", "partners_read"].gt(0).all()


def test_samples_start_from_the_same_state(monkeypatch):
    seen = []
    timed = flocking.sample_of_steps

    def noted(simulation, steps):
        state = simulation.state.by_id()
        seen.append((simulation.search.name, state.pos))
        return timed(simulation, steps)

    monkeypatch.setattr(flocking, "sample_of_steps", noted)
    all_rows(flocking.measure(case()))
    assert len(seen) >= 3 * 3  # three simulations, and a round that is not timed
    for _, pos in seen:
        assert np.abs(pos - seen[0][1]).max() < 1e-12


def test_an_old_order_is_that_of_the_flock_as_it_was(monkeypatch):
    seen, sort = [], flocking.places

    def noted(state, *arguments, **options):
        seen.append(state.pos)
        return sort(state, *arguments, **options)

    monkeypatch.setattr(flocking, "places", noted)
    next(flocking.measure(case(age=6, order_age=4, ordering=("hilbert",), search=("scattered",))))
    aging = Aging(Flock(1000), "cpu", "float64")
    young, state = aging.at(2).pos, aging.at(6).pos
    np.testing.assert_array_equal(seen, [state, young])


def test_a_search_that_computes_other_increments_is_not_recorded(monkeypatch):
    right = md.Simulation.state.fget

    def wrong(simulation):
        state = right(simulation)
        if simulation.search.name == "scattered" and simulation.step:
            return md.State(state.pos, 1.001 * state.vel, state.box, state.id)
        return state

    monkeypatch.setattr(md.Simulation, "state", property(wrong))
    with pytest.raises(ValueError, match="scattered, shuffled after 10 steps in float64 differs"):
        next(flocking.measure(case()))


def test_a_peer_that_computes_other_steps_is_not_recorded(monkeypatch):
    def step(pos, vel, lengths, law, max_speed, dt):
        return numpy_flock_step(pos, vel, lengths, law, 1.0001 * max_speed, dt)

    monkeypatch.setattr(flocking, "numpy_flock_step", step)
    measured = flocking.measure(case(search=("coherent",), peers=["numpy"]))
    with pytest.raises(ValueError, match="numpy and cKDTree, shuffled after 10 steps in float64 differs"):
        next(measured)


def test_gains_over_a_peer_are_in_the_summary(folder):
    found = pd.read_csv(folder / "summary.csv").set_index("name")
    for memory, column in zip(PEER, ("hilbert", "shuffled"), strict=True):
        gain = found[f"gain_over_numpy_{column}_median_of_rounds"]
        assert np.isfinite(gain["coherent"]).all()
        assert gain[memory].isna().all()


TIMES = {  # milliseconds a step
    "scattered, shuffled": 4.0, "scattered, hilbert fresh": 2.0, "coherent": 1.0, "coherent again": 1.1,
}  # fmt: skip


def timed(times: dict, runs: int = 2, **flock) -> pd.DataFrame:
    """Make a table of times: two rounds of every run, in which all times double."""
    flock = {"n": 1000, "start": "uniform", "rules": "source", "precision": "float32", "age": 9} | flock
    structure = dict.fromkeys(Structure._fields, 0.5)
    return pd.DataFrame([
        flock | structure | {"run": one, "round": number, "name": name, "search": name.split(",")[0],
                             "time_ms": ms * (1 + number), "order_age_steps": 1.0}
        for one in range(runs) for number in range(2) for name, ms in times.items()
    ])  # fmt: skip


def test_figures_of_a_precision_hold_its_own_flocks_and_peers(tmp_path, monkeypatch):
    titles, legends = {}, {}

    def keep(figure, out, name, rows):
        titles[name] = figure.get_suptitle().replace("\n", " ")
        legends[name] = [label.get_text() for label in figure.axes[0].get_legend().get_texts()]
        plt.close(figure)

    monkeypatch.setattr(style, "save", keep)
    peers = {"numpy and cKDTree, shuffled": 20.0, "numpy and cKDTree, hilbert": 10.0}
    double = timed(TIMES | peers, precision="float64").assign(neighbours_mean=70.0)
    draw(flocking.VIEWS, pd.concat([timed(TIMES).assign(neighbours_mean=30.0), double]), tmp_path)
    assert "10.0 times as fast as numpy and cKDTree, hilbert (target: 5)" in titles["times_float64"]
    assert "numpy" not in titles["times_float32"]
    assert legends["times_float64"] == ["uniform, 9 steps\n70 neighbours, at most 0"]
    assert legends["times_float32"] == ["uniform, 9 steps\n30 neighbours, at most 0"]
    assert "grey: noise (one case measured twice)" in titles["memory_float64"]
    found = pd.read_csv(tmp_path / "summary.csv").set_index(["precision", "name"]).loc["float32"]
    assert found.loc["scattered, hilbert fresh", "gain"] == pytest.approx(2)
    assert found.loc["scattered, hilbert fresh", "noise_floor"] == pytest.approx(1.1)
    assert found["over"].dropna().to_dict() == {
        "scattered, hilbert fresh": "scattered, shuffled", "coherent": "scattered, shuffled",
    }  # fmt: skip


def test_a_search_without_tensor_cores_is_left_out_and_named(monkeypatch, capsys):
    monkeypatch.setattr(md.search.grid.scattered.ScatteredSearch, "uses_tensor_cores", False, raising=False)
    (first, *_) = all_rows(flocking.measure(case(search=("scattered", "coherent"))))
    assert first["search"].startswith("coherent")
    assert "scattered, shuffled is left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": ("tilles",)}, "unknown search 'tilles'; allowed: one of naive, .*tiles"),
        ({"ordering": ("hilbrt",)}, "unknown ordering 'hilbrt'; allowed: one of shuffled, .*hilbert"),
        ({"start": ("line",)}, "unknown start 'line'; allowed: one of uniform, clusters"),
        ({"n": (10,)}, "--n = 10; allowed: .*at least 1000"),
        ({"search": ("linked",), "division": (2,)}, "--division 2 beside --search linked; allowed: 0"),
        ({"search": ("coherent",), "division": (0, 9)}, "division of Coherent = 9; allowed"),
        (
            {"search": ("tensor",)},
            "--search tensor on a CPU, or in float64, .*allowed: in float32 on a GPU with tensor",
        ),
        ({"peers": ["lammps"]}, "unknown peers 'lammps'; allowed: one of numpy"),
        ({"peers": ["numpy"]}, "--peers are measured in float64; add --precision float64"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        flocking.Config(backend="cpu", **change)
