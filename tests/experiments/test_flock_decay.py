"""experiments.flock_decay: what is left of an order, measured and predicted, in a flock and in a gas."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import md
from experiments import flock_decay
from experiments.drawing import style
from experiments.drawing.charts import draw
from tests.experiments.runs import run

FLAGS = "--quick --n 1000 --predicted-n 1250 --precision float64 --age 4 --last 30 --ages 3 --steps 2".split()
FLAGS += "--rounds 2 --cache 64 256 --model block --search scattered".split()


def test_ages_are_in_growing_distances_of_at_least_a_sample():
    ages = flock_decay._ages(flock_decay.Config(steps=5, last=640, ages=9))
    assert ages[:2] == [0, 5]
    assert ages[-1] == 640
    assert (np.diff(ages) >= 5).all()
    assert (np.diff(ages, 2) >= 0).all()
    assert len(ages) > 6


@pytest.fixture(scope="module", params=["flock", pytest.param("flock gas", marks=pytest.mark.nightly)])
def systems(request):
    return request.param.split()


@pytest.fixture(scope="module")
def folder(systems, tmp_path_factory):
    return run(flock_decay, tmp_path_factory.mktemp("flock_decay"), *FLAGS, "--system", *systems)


def test_every_round_has_each_age_in_both_memories(folder, systems):
    table = pd.read_parquet(folder / "table.parquet")
    timed = table[table["what"] != "predicted"]
    ages = [1, 3, 9, 31]  # the first of two timed steps, after one that is not timed
    for _, rows in timed.groupby(["system", "round", "what"]):
        assert rows["age"].tolist() == ages
    assert timed.groupby(["system", "round"])["what"].unique().map(set).eq({"sorted", "shuffled"}).all()
    assert set(timed["system"]) == set(systems)
    guess = table[table["what"] == "predicted"]
    for _, rows in guess.groupby(["system", "cache_particles"]):
        assert rows["age"].tolist() == ages
    assert len(guess) == len(systems) * 4 * 2  # ages, capacities


def test_an_order_loses_predicted_hits_as_particles_move(folder):
    table = pd.read_parquet(folder / "table.parquet")
    guess = table[(table["what"] == "predicted") & (table["cache_particles"] == 256)]
    first, last = (guess[guess["age"] == age].set_index("system") for age in (1, guess["age"].max()))
    assert (first["hit_ratio"] > 1.5 * first["hit_ratio_shuffled"]).all()
    assert (last["hit_ratio"] < first["hit_ratio"] - 0.01).all()
    assert (first["displacement_cutoffs"] < 0.1).all()
    assert (last["displacement_cutoffs"] > 0.1).all()
    halves = pd.read_csv(folder / "half_ages.csv")
    assert set(halves["kind"]) == {"measured", "block, 64 particles", "block, 256 particles"}
    assert (halves["age_first"] == 1).all()
    assert (folder / "left.png").stat().st_size > 0


AGES = 1, 10, 99
PLACE = {"n": 9, "ordering": "hilbert", "precision": "float32", "rules": "source", "search": "linked"}


def measured(system: str, ordered: tuple, shuffled: tuple, run: int = 0, number: int = 0) -> list[dict]:
    """Make the rows of a round: milliseconds at each age in sorted and in shuffled memory."""
    place = PLACE | {"system": system, "run": run, "round": number}
    return [
        place | {"what": what, "age": age, "time_ms": ms}
        for what, times in (("sorted", ordered), ("shuffled", shuffled))
        for age, ms in zip(AGES, times, strict=True)
    ]


def guessed(system: str, hits: tuple, shuffled: float, cache: int = 64, run: int = 0) -> list[dict]:
    """Make the rows of a prediction: hits at each age."""
    place = PLACE | {"system": system, "run": run, "what": "predicted", "model": "lru"}
    return [
        place | {"cache_particles": cache, "age": age, "hit_ratio": ratio, "hit_ratio_shuffled": shuffled,
                 "displacement_cutoffs": age / 10}
        for age, ratio in zip(AGES, hits, strict=True)
    ]  # fmt: skip


def test_what_is_left_is_one_at_the_first_age_and_zero_when_shuffled():
    rows = measured("gas", (1.0, 2.5, 4.0), (4.0, 4.0, 4.0)) + guessed("gas", (0.6, 0.4, 0.2), 0.2)
    found = flock_decay.left(pd.DataFrame(rows)).set_index(["kind", "age"])
    for kind in ("measured", "lru, 64 particles"):
        assert found.loc[kind].loc[list(AGES), "left"].tolist() == pytest.approx([1, 0.5, 0])
    assert found.loc[("measured", 1), "gain"] == 4
    assert found.loc[("measured", 10), "displacement_cutoffs"] == 1
    halves = flock_decay.half_ages(found.reset_index()).set_index("kind")
    assert halves.loc["measured", "gain_first"] == 4
    assert halves.loc["measured", "half_age_crossing_displacement_cutoffs"] == pytest.approx(1, abs=0.01)


def test_an_order_lasts_in_a_flock_that_becomes_slower_in_any_memory():
    rows = guessed("flock", (0.6, 0.6, 0.6), 0.2)
    for one in (0, 1):
        for number, speed in enumerate((1.0, 3.0)):  # of the machine, round by round
            rows += measured("flock", (1 / speed, 2 / speed, 4 / speed), (3 / speed, 6 / speed, 12 / speed),
                             one, number)  # fmt: skip
    found = flock_decay.left(pd.DataFrame(rows))
    assert found.groupby(["kind", "repeat"]).size().tolist() == [3, 3, 3]
    assert found["left"].tolist() == pytest.approx([1] * 9)
    halves = flock_decay.half_ages(found).set_index("kind")
    assert halves.loc["measured", "runs"] == 2
    assert np.isnan(halves.loc["measured", "half_age_crossing_steps"])


def test_a_system_without_a_gain_is_named_and_every_point_is_in_the_frame(tmp_path, monkeypatch):
    rows = measured("flock", (1.0, 2.0, 8.0), (2.0, 2.0, 2.0)) + measured("gas", (4.0, 4.0, 4.0), (4.0,) * 3)
    rows += guessed("flock", (0.6, 0.4, 0.2), 0.2) + guessed("gas", (0.5, 0.3, 0.2), 0.2)
    rows += guessed("flock", (1.0, 1.0, 1.0), 1.0, 512) + guessed("gas", (1.0, 1.0, 1.0), 1.0, 512)
    shown = []

    def keep(figure, out, name, rows):
        shown.append((figure.get_suptitle(), figure.axes[0].get_ylim()))
        plt.close(figure)

    monkeypatch.setattr(style, "save", keep)
    table = pd.DataFrame(rows)
    draw(flock_decay.VIEWS, table, tmp_path)
    ((title, (low, high)),) = shown
    half = "flock -600% left at 99 steps (half is left after 3.16 steps)"
    assert f"linked: {half}; gas no gain at 1 steps\none run, no verdict" in title
    assert "lru, 64 particles predicts the largest gain" in title
    assert low < -6 < 1 < high
    found = flock_decay.left(table)
    assert found[found["kind"] == "lru, 512 particles"][["gain", "left"]].isna().all(axis=None)


def test_displacements_go_to_the_nearest_image():
    box = md.Box((10.0, 10.0))
    start = md.State([[1.0, 5], [9, 5]], np.zeros((2, 2)), box)
    later = md.State([[2.0, 5], [9, 5]], np.zeros((2, 2)), box, [1, 0])
    assert flock_decay.displacement(later, start) == pytest.approx(np.sqrt((9 + 4) / 2))


def test_a_half_age_has_its_range_over_runs():
    rows = guessed("gas", (0.6, 0.4, 0.2), 0.2)
    for run_, middle in enumerate((3.0, 2.8, 1.9)):  # left: 1/3, 0.4, 0.7 after 10 steps
        rows += measured("gas", (1.0, middle, 4.0), (4.0, 4.0, 4.0), run_)
    found = flock_decay.left(pd.DataFrame(rows))
    row = flock_decay.half_ages(found).set_index("kind").loc["measured"]
    at = [10 ** (0.5 / (2 / 3)), 10 ** (0.5 / 0.6), 10 * 9.9 ** (0.2 / 0.7)]
    assert (row["runs"], row["runs_at_half"]) == (3, 3)
    names = [f"half_age_crossing_steps{end}" for end in ("_low", "", "_high")]
    assert [row[name] for name in names] == pytest.approx(at)
    assert (row["left_last_low"], row["left_last_high"]) == (0, 0)
    lasting = pd.DataFrame(rows + measured("gas", (1.0, 1.1, 1.2), (4.0, 4.0, 4.0), 3))
    row = flock_decay.half_ages(flock_decay.left(lasting)).set_index("kind").loc["measured"]
    assert (row["runs"], row["runs_at_half"]) == (4, 3)
    assert np.isnan(row["half_age_crossing_steps_high"])
    text = flock_decay.halves_in_words(flock_decay.left(lasting))
    assert "(half is left after 13.0 (5.62 to later) steps)" in text


@pytest.mark.full
def test_an_order_wears_out_for_a_tree_too(tmp_path):
    flags = "--search tree --system flock gas --predicted-n 3000 --cache 64 512 --last 60".split()
    kept = run(flock_decay, tmp_path, *FLAGS, *flags)
    table = pd.read_parquet(kept / "table.parquet")
    assert set(table["search"]) == {"tree"}
    guess = table[(table["what"] == "predicted") & (table["cache_particles"] == 64)]
    more = guess.assign(more=guess["hit_ratio"] - guess["hit_ratio_shuffled"])
    assert (more["more"] > 0.1).all()
    gas = more[more["system"] == "gas"]
    assert gas["more"].iloc[-1] < gas["more"].iloc[0] - 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": ("coherent",)}, "unknown search 'coherent'; allowed: one of linked, scattered, tree"),
        ({"system": ("swarm",)}, "unknown system 'swarm'; allowed: one of flock, gas"),
        ({"cache": (0,)}, "--cache = 0; allowed"),
        ({"ages": 0}, "--ages = 0; allowed: .*at least 1"),
        ({"predicted_n": 4000}, "--cache 4096 beside --predicted-n 4000.*allowed: capacities below"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        flock_decay.Config(backend="cpu", **change)
