"""experiments.flock_decay: what is left of an order, measured and predicted, in a flock and in a gas."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import flock_decay
from tests.experiments.runs import run

FLAGS = (
    "--quick --n 1000 --predicted-n 3000 --precision float64 --age 4 --last 60 --looks 3 --steps 2".split()
)
FLAGS += "--rounds 2 --cache 64 512 --model block".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(flock_decay, tmp_path_factory.mktemp("flock_decay"), *FLAGS)


def test_every_round_has_each_age_and_shuffled_memory(folder):
    table = pd.read_parquet(folder / "table.parquet")
    timed = table[table["what"] != "predicted"]
    ages = [1.5, 3.5, 12.5, 61.5]  # means of two steps after one that is not timed
    for _, rows in timed.groupby(["system", "round"]):
        assert rows.loc[rows["what"] == "age", "age"].tolist() == ages
        assert (rows["what"] == "shuffled").sum() == 1
    assert set(timed["system"]) == {"flock", "gas"}
    guess = table[table["what"] == "predicted"]
    assert len(guess) == 2 * 4 * 2  # systems, ages, capacities


def test_an_order_loses_predicted_hits_as_particles_move(folder):
    table = pd.read_parquet(folder / "table.parquet")
    guess = table[(table["what"] == "predicted") & (table["cache_particles"] == 512)]
    first, last = (guess[guess["age"] == age].set_index("system") for age in (0, guess["age"].max()))
    assert (first["hit_ratio"] > 1.5 * first["hit_ratio_shuffled"]).all()
    assert (last["hit_ratio"] < first["hit_ratio"] - 0.01).all()
    assert (first["displacement_cutoffs"] == 0).all()
    assert (last["displacement_cutoffs"] > 0.1).all()
    halves = pd.read_csv(folder / "half_ages.csv")
    assert set(halves["kind"]) == {"measured", "block, 64 particles", "block, 512 particles"}
    assert (folder / "left.png").stat().st_size > 0


def test_what_is_left_is_one_when_fresh_and_zero_when_shuffled():
    place = {"n": 9, "ordering": "hilbert", "precision": "float32", "rules": "source", "run": 0, "round": 0}
    place |= {"system": "gas", "search": "linked"}
    rows = [place | {"what": "shuffled", "time_ms": 4.0}]
    rows += [
        place | {"what": "age", "age": age, "time_ms": ms}
        for age, ms in ((1.0, 1.0), (10.0, 2.5), (99.0, 4.0))
    ]
    rows += [
        place | {"what": "predicted", "model": "lru", "cache_particles": 64, "age": age, "hit_ratio": hits,
                 "hit_ratio_shuffled": 0.2, "displacement_cutoffs": age / 10}
        for age, hits in ((0.0, 0.6), (10.0, 0.4), (99.0, 0.2))
    ]  # fmt: skip
    found = flock_decay.left(pd.DataFrame(rows)).set_index(["kind", "age"])
    for kind, ages in (("measured", (1.0, 10.0, 99.0)), ("lru, 64 particles", (0.0, 10.0, 99.0))):
        assert found.loc[kind].loc[list(ages), "left"].tolist() == pytest.approx([1, 0.5, 0])
    assert found.loc[("measured", 1.0), "gain"] == 4
    assert found.loc[("measured", 10.0), "displacement_cutoffs"] == 1
    halves = flock_decay.half_ages(found.reset_index()).set_index("kind")
    assert halves.loc["measured", "gain_fresh"] == 4
    assert halves.loc["measured", "half_age_displacement_cutoffs"] == pytest.approx(1, abs=0.01)


def test_displacements_go_to_the_nearest_image():
    box = md.Box((10.0, 10.0))
    start = md.State([[1.0, 5], [9, 5]], np.zeros((2, 2)), box)
    later = md.State([[2.0, 5], [9, 5]], np.zeros((2, 2)), box, [1, 0])
    assert flock_decay.displacement(later, start) == pytest.approx(np.sqrt((9 + 4) / 2))


def test_the_age_at_which_a_curve_falls_below_a_level():
    age = np.array([0.0, 10, 20, 30])
    assert flock_decay.first_below(age, np.array([1.0, 0.8, 0.2, 0.6])) == pytest.approx(15)
    assert np.isnan(flock_decay.first_below(age, np.array([1.0, 0.9, 0.8, 0.7])))
    assert np.isnan(flock_decay.first_below(age, np.full(4, np.nan)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": ("coherent",)}, "unknown search 'coherent'; allowed: one of linked, scattered"),
        ({"system": ("swarm",)}, "unknown system 'swarm'; allowed: one of flock, gas"),
        ({"cache": (0,)}, "--cache = 0; allowed"),
        ({"looks": 0}, "--looks = 0; allowed: .*at least 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        flock_decay.Config(backend="cpu", **change)
