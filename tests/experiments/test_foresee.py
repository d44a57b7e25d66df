"""Forecasts for users: orders that fit their kernels, and the errors that the answer gives."""

import pandas as pd
import pytest

from experiments import foresee
from experiments.core.rerun import read_table_now
from experiments.forecasts.compared import ROOT, beside, errors, gains_over, kept, of_runs
from experiments.forecasts.on_cpu import foreseen_on_cpu
from experiments.prediction.drawn_gases import Gas
from sfc.cache.core.processor import FOLDER as CPU_FOLDER
from sfc.cache.machine import FOLDER
from tests.experiments.runs import one


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
        ({"machine": ("h100", "epyc_genoa")}, "--machine h100 epyc_genoa; allowed: GPUs or CPUs alone"),
        ({"machine": ("epyc_genoa",), "kernel": ("boids",)}, "--kernel boids on a CPU; allowed: linked"),
        (
            {"machine": ("epyc_genoa",), "kernel": ("verlet",), "ordering": ("shuffled",)},
            "--ordering shuffled of verlet on a CPU",
        ),
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


def test_gains_on_a_cpu_are_foreseen_with_the_errors_of_the_kept_runs():
    given = {"machine": ("epyc_genoa",), "n": (1024,), "ordering": ("row",), "precision": ("float64",)}
    case = one(foresee, **given)
    rows = pd.DataFrame(list(foresee.measure(case)))
    gas = Gas("linked", 1024, 0.2, "float64", ("shuffled", "row"))
    expected = list(foreseen_on_cpu(gas, ["epyc_genoa"], 0))
    assert rows["time_us"].tolist() == [row["time_us"] for row in expected]
    said = foresee.answer(rows.assign(kernel="linked", n=1024, filling_fraction=0.2, precision="float64"))
    assert "Gains on two CPUs that the model had not seen were wrong by 10.7 % in the median" in said.sentence
    tables = []
    for predicted, chip in (("cpu_predicted", "epyc_genoa"), ("cpu_predicted_xeon", "xeon_emerald_rapids")):
        timed = of_runs([ROOT / f"{chip}_timed"])
        tables.append(
            gains_over(beside(read_table_now(ROOT / predicted), timed, pd.DataFrame(), chip), "shuffled")
        )
    gains = pd.concat(tables)
    found = errors(gains["foreseen_gain"], gains["measured_gain"])
    assert foresee.ERRORS_ON_CPUS == (round(found["median"], 3), round(found["worst"], 3))


def test_a_file_tells_whether_it_is_of_a_cpu(tmp_path):
    for name, folder in (("epyc_genoa", CPU_FOLDER), ("h100", FOLDER)):
        (tmp_path / "machine.toml").write_text((folder / f"{name}.toml").read_text())
        assert (
            foresee.is_cpu(str(tmp_path / "machine.toml")) == foresee.is_cpu(name) == (name == "epyc_genoa")
        )
    assert not foresee.is_cpu("nonsense")
