"""Forecasts for users: orders that fit their kernels, and the errors that the answer gives."""

import pandas as pd
import pytest

from experiments import foresee
from experiments.core.rerun import read_table_now
from experiments.forecasts.compared import ROOT, beside, errors, gains_over, kept, of_runs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"kernel": ("boids",), "ordering": ("aged 100",)},
            "of boids; allowed: shuffled",
        ),
        ({"kernel": ("boids",), "ordering": ("lattice",)}, "ordering 'lattice' of boids"),
        (
            {"kernel": ("verlet",), "ordering": ("window 64",)},
            "ordering of verlet, which sorts",
        ),
        ({"kernel": ("wide_bvh",), "ordering": ("peano",)}, "ordering of wide_bvh"),
        ({"ordering": ("window 99999",), "n": (1024,)}, "allowed: windows of up to 256 particles"),
        ({"ordering": ("nonsense",)}, "ordering 'nonsense'; allowed: "),
        ({"kernel": ("boids",), "filling_fraction": (0.1,)}, "a flock of one density"),
        ({"machine": ("nonsense",)}, "machine 'nonsense': .*; allowed: h100, h200, or a TOML file"),
    ],
)
def test_what_a_kernel_cannot_have_is_told_before_anything_is_made(settings, message):
    with pytest.raises(ValueError, match=message):
        foresee.Config(**settings)


def test_the_errors_that_are_told_are_those_of_the_kept_runs():
    runs = [kept("second", "h100", what) for what in ("timed", "counted")]
    table = beside(read_table_now(ROOT / "second_predicted"), *map(of_runs, runs), "h100")
    for kernel, given in foresee.ERRORS.items():
        gains = gains_over(table[table["kernel"] == kernel], "shuffled")
        found = errors(gains["foreseen_gain"], gains["measured_gain"])
        assert given == (round(found["median"], 3), round(found["worst"], 3)), kernel


def test_a_kernel_without_judged_gains_says_so():
    row = {"ordering": "hilbert", "over": "morton", "kernel": "wide_bvh", "n": 1024, "filling_fraction": 0.2,
           "precision": "float32", "machine": "h200", "gain": 2.0}  # fmt: skip
    said = foresee.answer(pd.DataFrame([row])).sentence
    assert said.endswith("No gain of this kernel was judged.")
    assert "wrong by" in foresee.answer(pd.DataFrame([row | {"kernel": "linked"}])).sentence
