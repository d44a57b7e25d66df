"""experiments.flock_order: structure over time, and pictures of flocks."""

import numpy as np
import pandas as pd
import pytest

from experiments import flock_order
from experiments.drawing.film import can_film
from experiments.prediction.flocks import Flock
from tests.experiments.runs import one, run


def test_flocks_form_under_a_weak_separation_alone(tmp_path):
    folder = run(
        flock_order, tmp_path, "--quick", "--n", "1500", "--dim", "2", "--rules", "source", "weak_separation",
        "--steps", "120", "--looks", "4", "--pictures", "2", "--shown", "400", "--precision", "float64",
    )  # fmt: skip
    found = pd.read_csv(folder / "summary.csv").set_index("rules")
    assert found["is_aligned"].to_dict() == {"source": False, "weak_separation": True}
    assert found.loc["weak_separation", "clustering"] > 1.5 > 0.6 > found.loc["source", "clustering"]
    assert found.loc["weak_separation", "neighbours_mean"] > found.loc["source", "neighbours_mean"]
    assert found.loc["weak_separation", "aligned_from_step"] <= 120
    assert np.isnan(found.loc["source", "aligned_from_step"])
    table = pd.read_parquet(folder / "table.parquet")
    steps = table.groupby(["rules", "what"])["step"].unique().map(sorted)
    assert steps["source", "boid"] == [0, 120]
    assert steps["source", "structure"][0] == 0
    boids = table[table["what"] == "boid"]
    assert boids[["x", "y"]].ge(0).all(axis=None)
    assert (boids[["x", "y"]].max(axis=1) <= boids["window"]).all()
    assert boids.groupby(["rules", "step"]).size()["source"].between(300, 500).all()
    assert {path.name for path in folder.glob("*.png")} == {"still.png", "structure.png"}
    films = {path.name for path in folder.glob("*.mp4")}
    assert films == ({"film_source.mp4", "film_weak_separation.mp4"} if can_film() else set())


def test_a_slab_shows_the_densest_place():
    case = one(flock_order, n=(2000,), dim=(3,), rules=("source",), shown=300, precision="float64")
    state = Flock(2000, "clusters", seed=1).state()
    rows = pd.DataFrame(flock_order._picture(case, state, 7, 5.0))
    side, window = state.box.lengths[0], rows["window"].iloc[0]
    assert window < side
    assert len(rows) > 2 * 2000 * (window / side) ** 2 * 5 / side  # the mean of a slab
    middle = rows[["x", "y"]].sub(window / 2).abs().max(axis=1) < 5
    assert middle.mean() > 0.5
    assert (rows["step"] == 7).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": (4,)}, "--dim = 4; allowed"),
        ({"rules": ("none",)}, "unknown rules 'none'; allowed: one of source"),
        ({"pictures": -1}, "--pictures = -1; allowed"),
        ({"density": (0.0,)}, "--density = 0.0; allowed"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        flock_order.Config(backend="cpu", **change)
