"""experiments.prediction.half_life: where a curve crosses one half, and whether a law describes it."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.prediction import half_life
from tests.tiers import examples


class TestCrossing:
    @examples(15)
    @given(at=st.floats(2, 900), slope=st.floats(0.05, 0.4))
    def test_a_line_over_the_logarithm_of_steps_is_found_exactly(self, at, slope):
        steps = np.geomspace(1, 1000, 9)
        assert half_life.crossing(steps, 0.5 - slope * np.log(steps / at)) == pytest.approx(at)

    def test_a_curve_that_rises_again_crosses_where_it_first_falls(self):
        age = np.array([0.0, 10, 1000, 3000])
        assert half_life.crossing(age, np.array([1.0, 0.8, 0.2, 0.6])) == pytest.approx(100)

    def test_from_step_0_on_it_is_a_line_over_steps(self):
        assert half_life.crossing(np.array([0, 8]), np.array([1.0, 0.2]), level=0.8) == pytest.approx(2)

    @pytest.mark.parametrize("left", [[1.0, 0.9, 0.8], [math.nan] * 3, [0.4, 0.3, 0.2]])
    def test_without_a_crossing_there_is_no_step(self, left):
        assert math.isnan(half_life.crossing(np.array([1, 2, 3]), np.array(left)))


class TestFit:
    @given(half=st.floats(5, 500), b=st.floats(0.5, 2.0))
    def test_the_fit_finds_the_law_it_fits(self, half, b):
        steps = np.geomspace(1, 2000, 40)
        *found, residual = half_life.fit(steps, half_life.stretched_exponential(steps, half, b))
        assert found == pytest.approx((half, b), rel=1e-6)
        assert residual < 1e-6

    def test_one_observation_far_from_the_law_is_a_residual(self):
        steps = np.geomspace(1, 2000, 40)
        left = half_life.stretched_exponential(steps, 100, 1)
        left[-1] = 0.05  # not among the fitted: below it the law is at zero
        left[-2] = -0.03
        *law, residual = half_life.fit(steps, left)
        assert residual == pytest.approx(0.05, abs=0.01)
        assert np.isnan(law).all()

    @pytest.mark.parametrize("left", [[0.9, 0.8], [0.2, 0.5, 0.8, 0.9]])
    def test_too_few_observations_and_a_curve_that_grows_have_no_fit(self, left):
        found = half_life.fit(np.arange(1, len(left) + 1), np.array(left))
        assert np.isnan(found).all()


class TestWithRange:
    @pytest.mark.parametrize(
        ("halves", "ends"),
        [
            ([3.0, 1.0, 2.0], (2, 1, 3)),
            ([3.0, math.nan, 2.0], (3, 2, math.nan)),
            ([3.0, math.nan, math.nan], (math.nan, 3, math.nan)),
            ([], (math.nan,) * 3),
        ],
    )
    def test_half_lives_that_were_not_reached_are_later_than_all_others(self, halves, ends):
        found = half_life.with_range("half", np.array(halves))
        assert list(found) == ["half", "half_low", "half_high"]
        assert tuple(found.values()) == pytest.approx(ends, nan_ok=True)


@pytest.mark.parametrize(
    ("left", "half", "expected"),
    [
        (0.9, math.nan, "90 % is left after 650 steps"),
        (0.2, 80.0, "half is left after 80.0 (70.0 to later) steps, 20 % is left after 650 steps"),
        (math.nan, math.nan, "there is none to lose"),
    ],
)
def test_a_gain_lasts_or_halves_or_there_is_none(left, half, expected):
    row = {"left_last": left, "age": 650} | half_life.with_range(
        "half", np.array([half - 10, half, math.nan])
    )
    assert half_life.lasts(row, "half", "age") == expected


def test_a_range_is_told_if_it_has_two_ends():
    row = half_life.with_range("half", np.array([80.0, 80.0]))
    assert half_life.in_words(row, "half") == "80.0"
    assert half_life.in_words(half_life.with_range("half", np.array([math.nan])), "half") == "not reached"


def test_each_repeat_has_its_own_half_life():
    rows = pd.DataFrame({"run": [0, 0, 1, 1], "age": [0, 10, 0, 10], "left": [1.0, 0.0, 1.0, 0.8]})
    assert half_life.crossings(rows, "run", "age") == pytest.approx([5, math.nan], nan_ok=True)
