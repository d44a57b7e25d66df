"""experiments.prediction.wear: the measured loss of a gain beside the decay of predicted hits."""

import numpy as np
import pandas as pd
import pytest

from experiments.prediction import wear

AGES = np.array([4.0, 20, 100, 500, 2500])


def timed(speed: float, ms, number: int = 0, shuffled: float | None = None, run: int = 0) -> list[dict]:
    """Make the rows of a round of `interval`: the time of a step at each age."""
    case = {"n": 1000, "filling_fraction": 0.2, "speed": speed, "ordering": "hilbert", "search": "linked"}
    case |= {"precision": "float32", "run": run, "round": number}
    rows = [case | {"what": "age", "age": age, "steps": 16, "time_ms": one}
            for age, one in zip(AGES, ms, strict=True)]  # fmt: skip
    return rows + ([] if shuffled is None else [case | {"what": "shuffled", "time_ms": shuffled}])


def hits(speed: float, ratios, shuffled: float = 0.1, gas: int = 0, **changes) -> list[dict]:
    """Make the rows of a gas of `decay`: hits at each age."""
    case = {"geometry": "cubes", "size": 9, "filling_fraction": 0.2, "interaction": "elastic", "speed": speed,
            "ordering": "hilbert", "model": "block", "cache_particles": 320, "repeat": gas,
            "contact_steps": 25, "free_steps": 100.0, "hit_ratio_shuffled": shuffled}  # fmt: skip
    case |= changes
    return [case | {"step": step, "hit_ratio": one} for step, one in zip((0, *AGES), ratios, strict=True)]


def curves(times: list[dict], guesses: list[dict]) -> pd.DataFrame:
    parts = [wear.measured_curves(pd.DataFrame(times))]
    parts += [wear.predicted_curves(pd.DataFrame(guesses))] if guesses else []
    return pd.concat(parts, ignore_index=True)


class TestCompare:
    def test_both_half_lives_are_of_the_loss_to_the_oldest_age_if_nothing_else_was_timed(self):
        times = timed(0.01, [1.0, 1.0, 1.2, 1.4, 1.8])  # half, 0.4 ms, at the age of 500
        guesses = hits(0.01, [0.9, 0.9, 0.9, 0.8, 0.7, 0.7])  # of 0.2 that are lost, half at 100
        (row,) = wear.compare(curves(times, guesses)).to_dict("records")
        assert row["full_loss"] == "to the age of 2500 steps"
        assert row["full_loss_over_fresh"] == pytest.approx(0.8)
        assert row["half_wear_steps"] == pytest.approx(500)
        assert row["half_wear_path_d"] == pytest.approx(5)
        assert row["half_decay_steps"] == pytest.approx(100)
        assert row["half_wear_over_half_decay"] == pytest.approx(5)
        assert row["predicted_lost_at_end"] == pytest.approx(0.2 / 0.8)

    def test_shuffled_memory_makes_both_half_lives_those_of_the_whole_gain(self):
        times = timed(0.01, [1.0, 1.0, 1.2, 1.4, 1.8], shuffled=1.4 + 1.0)  # half, 0.7 ms, not before 500
        guesses = hits(0.01, [0.9, 0.9, 0.9, 0.5, 0.2, 0.1])
        (row,) = wear.compare(curves(times, guesses)).to_dict("records")
        assert row["full_loss"] == "to shuffled memory"
        assert row["half_wear_steps"] == pytest.approx(500 * 5**0.75)
        assert row["half_decay_steps"] == pytest.approx(100)
        never = timed(0.01, [1.0, 1.0, 1.2, 1.4, 1.8], shuffled=4.0)
        (row,) = wear.compare(curves(never, guesses)).to_dict("records")
        assert np.isnan(row["half_wear_steps"])

    def test_a_prediction_of_another_speed_is_scaled_to_the_path(self):
        times = timed(0.01, [1.0, 1.0, 1.2, 1.4, 1.8])
        guesses = hits(0.02, [0.9, 0.9, 0.9, 0.8, 0.7, 0.7]) + hits(0.5, [0.9, 0.1, 0.1, 0.1, 0.1, 0.1])
        (row,) = wear.compare(curves(times, guesses)).to_dict("records")
        assert row["predicted_at_speed"] == 0.02
        assert row["half_decay_steps"] == pytest.approx(200)
        assert row["half_decay_path_d"] == pytest.approx(2)

    def test_a_prediction_counts_up_to_the_oldest_age_that_was_timed(self):
        times = [row for row in timed(0.01, [1.0, 1.0, 1.2, 1.4, 1.8]) if row["age"] < 2500]
        guesses = hits(0.01, [0.9, 0.9, 0.9, 0.8, 0.7, 0.1])  # what is lost after 500 does not count
        (row,) = wear.compare(curves(times, guesses)).to_dict("records")
        assert row["half_decay_steps"] == pytest.approx(100)

    def test_a_loss_as_small_as_noise_has_no_half_life(self):
        times = timed(0.01, [1.0, 1.0, 1.01, 1.02, 1.04])
        (row,) = wear.compare(curves(times, hits(0.01, [0.9, 0.9, 0.9, 0.8, 0.7, 0.7]))).to_dict("records")
        assert row["full_loss_over_fresh"] == pytest.approx(0.04)
        assert np.isnan(row["half_wear_steps"])
        assert np.isnan(row["half_decay_steps"])

    def test_first_steps_that_hold_other_work_are_not_the_fresh_order(self):
        times = timed(0.01, [1.7, 1.0, 1.2, 1.4, 1.8])
        (row,) = wear.compare(curves(times, [])).to_dict("records")
        assert row["time_ms_fresh"] == 1.0
        assert row["half_wear_steps"] == pytest.approx(500)

    def test_half_lives_have_their_range_over_rounds_of_one_run_or_over_runs(self):
        lasting, short = [1.0, 1.0, 1.2, 1.4, 1.8], [1.0, 1.0, 1.4, 1.8, 1.8]
        times = timed(0.01, lasting, 0) + timed(0.01, short, 1)
        (row,) = wear.compare(curves(times, [])).to_dict("records")
        assert (row["repeats"], row["spread_over"]) == (2, "rounds of one run")
        assert [row[f"half_wear_steps{end}"] for end in ("_low", "_high")] == pytest.approx([100, 500])
        times += timed(0.01, short, 0, run=1)
        (row,) = wear.compare(curves(times, [])).to_dict("records")
        assert (row["repeats"], row["spread_over"]) == (2, "runs")

    def test_soft_spheres_and_gases_of_other_kinds_are_told_apart(self):
        times = timed(0.01, [1.0, 1.0, 1.2, 1.4, 1.8])
        some = [0.9, 0.9, 0.9, 0.8, 0.7, 0.7]
        guesses = hits(0.01, some) + hits(0.01, some, cache_particles=64, free_steps=250.0)
        guesses += hits(0.01, some, gas=1, interaction="ideal")
        guesses += hits(0.01, some, gas=2, geometry="squares")
        guesses += hits(0.01, [1.0] * 6, shuffled=1.0, cache_particles=9999)  # all fit: nothing to lose
        found = wear.compare(curves(times, guesses)).set_index("cache_particles")
        assert found["gases"].to_dict() == {320: 1, 64: 1}
        assert found["are_spheres_hard"].to_dict() == {320: False, 64: True}


class TestSlope:
    def test_a_line_is_found_up_to_an_age(self):
        ages = pd.DataFrame({"age": AGES, "steps": 16, "time_ms": 1 + 0.01 * AGES})
        assert wear.slope(ages) == pytest.approx(0.01)
        ages.loc[4, "time_ms"] = 9.0
        assert wear.slope(ages, 500) == pytest.approx(0.01)
        assert wear.slope(ages) < 0.009
        assert np.isnan(wear.slope(ages, 10))

    def test_the_interval_is_that_at_which_wear_costs_as_much_as_reorders(self):
        assert wear.interval_of_linear_loss(2.0, 0.01) == pytest.approx(20)
        assert np.isnan(wear.interval_of_linear_loss(2.0, -0.01))
