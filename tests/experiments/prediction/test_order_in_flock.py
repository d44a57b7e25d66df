"""experiments.prediction.order_in_flock: what is left of an order's gain, measured and predicted."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments import decay
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.prediction import order_in_flock

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
    found = order_in_flock.left(pd.DataFrame(rows)).set_index(["kind", "age"])
    for kind in ("measured", "lru, 64 particles"):
        assert found.loc[kind].loc[list(AGES), "left"].tolist() == pytest.approx([1, 0.5, 0])
    assert found.loc[("measured", 1), "gain"] == 4
    assert found.loc[("measured", 10), "displacement_cutoffs"] == 1
    halves = order_in_flock.half_ages(found.reset_index()).set_index("kind")
    assert halves.loc["measured", "gain_first"] == 4
    assert halves.loc["measured", "half_age_crossing_displacement_cutoffs"] == pytest.approx(1, abs=0.01)


def test_an_order_lasts_in_a_flock_that_becomes_slower_in_any_memory():
    rows = guessed("flock", (0.6, 0.6, 0.6), 0.2)
    for one in (0, 1):
        for number, speed in enumerate((1.0, 3.0)):  # of the machine, round by round
            rows += measured("flock", (1 / speed, 2 / speed, 4 / speed), (3 / speed, 6 / speed, 12 / speed),
                             one, number)  # fmt: skip
    found = order_in_flock.left(pd.DataFrame(rows))
    assert found.groupby(["kind", "repeat"]).size().tolist() == [3, 3, 3]
    assert found["left"].tolist() == pytest.approx([1] * 9)
    halves = order_in_flock.half_ages(found).set_index("kind")
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
    draw(decay.VIEWS, table, tmp_path)
    ((title, (low, high)),) = shown
    half = "flock: half is left after 3.16 steps, -600 % is left after 99 steps"
    assert f"linked, {half}; gas: there is none to lose\none run, no verdict" in title
    assert "lru, 64 particles predicts the largest gain" in title
    assert low < -6 < 1 < high
    found = order_in_flock.left(table)
    assert found[found["kind"] == "lru, 512 particles"][["gain", "left"]].isna().all(axis=None)


def test_a_run_that_is_interrupted_before_its_predictions_has_an_answer(tmp_path, monkeypatch):
    names = []

    def keep(figure, out, name, rows):
        names.append(name)
        plt.close(figure)

    monkeypatch.setattr(style, "save", keep)
    table = pd.DataFrame(measured("gas", (1.0, 2.5, 4.0), (4.0, 4.0, 4.0)))
    draw(decay.VIEWS, table, tmp_path)
    assert names == ["left"]
    assert "in the gas (linked, measured) half is left after" in decay.answer(table).sentence
    assert order_in_flock.left(table)["displacement_cutoffs"].isna().all()


def test_a_half_age_has_its_range_over_runs():
    rows = guessed("gas", (0.6, 0.4, 0.2), 0.2)
    for run_, middle in enumerate((3.0, 2.8, 1.9)):  # left: 1/3, 0.4, 0.7 after 10 steps
        rows += measured("gas", (1.0, middle, 4.0), (4.0, 4.0, 4.0), run_)
    found = order_in_flock.left(pd.DataFrame(rows))
    row = order_in_flock.half_ages(found).set_index("kind").loc["measured"]
    at = [10 ** (0.5 / (2 / 3)), 10 ** (0.5 / 0.6), 10 * 9.9 ** (0.2 / 0.7)]
    assert (row["runs"], row["runs_at_half"]) == (3, 3)
    names = [f"half_age_crossing_steps{end}" for end in ("_low", "", "_high")]
    assert [row[name] for name in names] == pytest.approx(at)
    assert (row["left_last_low"], row["left_last_high"]) == (0, 0)
    lasting = pd.DataFrame(rows + measured("gas", (1.0, 1.1, 1.2), (4.0, 4.0, 4.0), 3))
    row = order_in_flock.half_ages(order_in_flock.left(lasting)).set_index("kind").loc["measured"]
    assert (row["runs"], row["runs_at_half"]) == (4, 3)
    assert np.isnan(row["half_age_crossing_steps_high"])
    text = order_in_flock.halves_in_words(order_in_flock.left(lasting))
    assert "half is left after 13.0 (5.62 to later) steps" in text
