"""experiments.wear: kept runs of interval and decay, read together."""

import re
from pathlib import Path

import pandas as pd
import pytest

from experiments import decay, interval, wear
from experiments.core.settings import UsageError
from tests.experiments.runs import one, run

KEPT = Path(__file__).parents[2] / "results" / "reference"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    flags = "--quick --n 1000 --interval 3 30 --rounds 2 --least-steps 9 --precision float64"
    timed = run(interval, tmp_path_factory.mktemp("interval"), *flags.split())
    flags = "--quick --size 8 --filling-fraction 0.2 --interaction elastic --speed 0.008 --model block"
    flags += " --steps 40 --observations 6 --cache 64 --contact-steps 25"
    return timed, run(decay, tmp_path_factory.mktemp("decay"), *flags.split())


def test_the_curves_of_both_runs_are_in_one_table_and_compared(runs, tmp_path):
    timed, guessed = map(str, runs)
    folder = run(wear, tmp_path, "--measured", timed, "--predicted", guessed)
    table = pd.read_parquet(folder / "table.parquet")
    assert set(table["source"]) == {timed, guessed}
    measured = table[table["what"] == "measured"]
    assert set(measured["sample"]) == {"round 0", "round 1"}
    assert measured["cost_shuffled"].notna().all()
    (row,) = pd.read_csv(folder / "half_lives.csv").to_dict("records")
    assert (row["full_loss"], row["repeats"], row["cache_particles"]) == ("to shuffled memory", 2, 64)
    assert (row["predicted_at_speed"], row["speed"]) == (0.008, 0.008)
    assert row["contact_over_free"] > 0.1
    assert not row["are_spheres_hard"]
    assert (folder / "wear.png").is_file()


def test_a_run_of_another_experiment_is_refused(runs):
    guessed = str(runs[1])
    case = one(wear, measured=(guessed,), predicted=(guessed,))
    message = f"{re.escape(guessed)} is a run of decay; allowed: the folder of a run of interval"
    with pytest.raises(UsageError, match=message):
        next(wear.measure(case))
    with pytest.raises(UsageError, match="allowed: the folder of a run"):
        next(wear.measure(one(wear, measured=("no/such/run",), predicted=(guessed,))))
