"""experiments.flock_order: structure over time, and pictures of flocks."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments import flock_order
from experiments.core import main
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.drawing.film import can_film
from experiments.prediction.flocks import Flock
from tests.experiments.runs import one, run


@pytest.mark.full
def test_boids_gather_under_a_weak_separation_alone(tmp_path, monkeypatch):
    whole = flock_order.measure

    def interrupted(case):
        if case.rules == "weak_separation":
            raise ValueError("interrupted")
        yield from whole(case)

    monkeypatch.setattr(flock_order, "measure", interrupted)
    with pytest.raises(SystemExit):
        run(
            flock_order, tmp_path, "--quick", "--n", "1500", "--dim", "3", "--steps", "80",
            "--observations", "3", "--rules", "source", "weak_separation", "--precision", "float64",
        )  # fmt: skip
    parts = flock_order.Config, whole, flock_order.VIEWS, {}
    (folder,) = (tmp_path / "flock_order").iterdir()
    main(*parts, ["--resume", str(folder)])
    found = pd.read_csv(folder / "summary.csv").set_index("rules")
    assert found["is_clustered"].to_dict() == {"source": False, "weak_separation": True}
    assert found.loc["weak_separation", "clustered_since_step"] == 80
    assert np.isnan(found.loc["source", "clustered_since_step"])
    assert (
        found.loc["weak_separation", "heading_correlation"] > 0.3 > found.loc["source", "heading_correlation"]
    )
    assert found.loc["weak_separation", "neighbours_mean"] > found.loc["source", "neighbours_mean"]
    figures = {"still.png", "structure.png"}
    assert {path.name for path in folder.glob("*.png")} == figures
    for name in figures:
        (folder / name).unlink()
    with pytest.raises(SystemExit) as ended:
        main(*parts, ["--replot", str(folder)])
    assert ended.value.code == 0
    assert {path.name for path in folder.glob("*.png")} == figures


@pytest.mark.nightly
def test_flocks_form_under_a_weak_separation_alone(tmp_path):
    folder = run(
        flock_order, tmp_path, "--quick", "--n", "1500", "--dim", "2", "--rules", "source", "weak_separation",
        "--steps", "120", "--observations", "4", "--pictures", "2", "--shown", "400",
        "--precision", "float64",
    )  # fmt: skip
    found = pd.read_csv(folder / "summary.csv").set_index("rules")
    assert found["is_aligned"].to_dict() == {"source": False, "weak_separation": True}
    assert found.loc["weak_separation", "clustering"] > 1.5 > 0.6 > found.loc["source", "clustering"]
    assert found.loc["weak_separation", "neighbours_mean"] > found.loc["source", "neighbours_mean"]
    assert found.loc["weak_separation", "aligned_since_step"] <= 120
    assert np.isnan(found.loc["source", "aligned_since_step"])
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


def seen(**measures) -> pd.DataFrame:
    """Make the observations of a flock at steps 0, 10, 20."""
    random = {"neighbours_mean": 9.0, "neighbours_largest": 20, "order_parameter": 0.1, "clustering": 1.0,
              "heading_correlation": 0.0, "nearest_over_random": 1.0, "speed_mean": 1.0}  # fmt: skip
    case = {"dim": 2, "rules": "source", "start": "clusters", "density": 0.125, "n": 1000, "repeat": 0}
    rows = pd.DataFrame([case | random | {"step": step} for step in (0, 10, 20)])
    return rows.assign(what="structure", **measures)


def test_flocks_last_from_a_step_on_only_if_they_are_there_at_the_end():
    (row,) = flock_order.summary(
        seen(heading_correlation=[1.0, 0.9, 0.1], clustering=[9.0, 1.0, 5.0], nearest_over_random=[0.2] * 3)
    ).to_dict("records")
    assert (row["is_aligned"], row["aligned_since_step"]) == (False, 20)
    assert (row["is_clustered"], row["clustered_since_step"]) == (True, 20)
    assert (row["is_clumped"], row["clumped_since_step"]) == (True, 0)
    (random,) = flock_order.summary(seen()).to_dict("records")
    assert (random["is_clumped"], random["clumped_since_step"]) == (False, None)


def test_titles_tell_clumps_from_clusters_and_one_repeat_from_several(tmp_path, monkeypatch):
    titles = {}

    def keep(figure, out, name, rows):
        titles[name] = figure.get_suptitle(), [panel.get_title() for panel in figure.axes]
        plt.close(figure)

    monkeypatch.setattr(style, "save", keep)
    boid = {"what": "boid", "step": 20, "window": 10.0, "x": 1.0, "y": 2.0, "heading": 90, "corner_x": 3.0,
            "corner_y": 4.0, "slab": 5.0, "speed_mean": 0.1}  # fmt: skip
    parts = []
    for dim, density in ((2, 0.1), (2, 0.2), (2, 0.3), (2, 0.4), (3, 0.1)):
        rows = seen(nearest_over_random=0.2).assign(dim=dim, density=density)
        parts += [rows, rows[:1].assign(**boid | ({} if dim == 3 else {"slab": np.nan}))]
    draw(flock_order.VIEWS, pd.concat(parts, ignore_index=True), tmp_path)
    assert set(titles) == {"structure_2", "structure_3", "still"}
    assert "one repeat" in titles["structure_2"][0]
    title, panels = titles["still"]
    assert "3D: a slab 5 thick" in title
    assert "cells of side 5 from 2" in title
    assert len(panels) == 6 + 1  # three rows of two, and the bar of colours
    words = "no clusters wider than the cutoff, clumps, not aligned, speed 0.10"
    assert " ".join(panels[0].splitlines()[1:]) == words


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
