"""experiments.lift: the pressure on the wing is its lift and drag, and all cells and pictures are there."""

import numpy as np
import pandas as pd
import pytest

from experiments import lift
from experiments.drawing.charts import draw
from tests.experiments.runs import one

SMALL = {"chord": 10.0, "chords_before": 0.5, "chords": 1.0, "blocks": 2, "cells": 8, "frames": 2}


@pytest.fixture(scope="module")
def case():
    return one(lift, angle=(20.0,), seed=1, steps_per_contact=8, **SMALL)


@pytest.fixture(scope="module")
def table(case):
    return pd.DataFrame(list(lift.measure(case)))


def test_the_pressure_on_the_surface_adds_up_to_lift_and_drag(case, table):
    blocks, segments = (table[table["what"] == what] for what in ("block", "segment"))
    normal = lift._simulation(case)[1].segments()[:, 4:6]
    push = segments["surface_pressure_coefficient"] * segments["length_d"]
    drag, rise = -(normal * push.to_numpy()[:, None]).sum(axis=0) / case.chord
    # at an edge a disc is pushed along the line to its centre, not along the normal of a segment
    assert rise == pytest.approx(blocks["lift_coefficient"].mean(), rel=0.01)
    assert drag == pytest.approx(blocks["drag_coefficient"].mean(), rel=0.01)
    assert push.abs().sum() > 0
    upper = segments["side"] == "upper"
    assert (normal[upper, 1] > 0).mean() > 0.9 > 0.1 > (normal[~upper, 1] > 0).mean()


def test_cells_and_pictures_cover_the_tunnel(table):
    cells, frames = (table[table["what"] == what] for what in ("cell", "frame"))
    assert len(cells) == 8 * 5
    assert frames.groupby("frame").size().tolist() == [4 * 2] * 2
    assert frames["time"].nunique() == 2
    assert sorted(cells["x_d"].unique()) == np.linspace(2.5, 37.5, 8).tolist()
    for _, seen in [*frames.groupby("frame"), (0, cells)]:
        assert seen["density_over_stream"].mean() == pytest.approx(1, abs=0.1)


def test_answer_and_figures_are_of_the_largest_angle(table, tmp_path):
    place = {"airfoil": "0012", "mach": 5.0, "filling_fraction": 0.1, "repeat": 0, "case": 0}
    two = pd.concat([table.assign(angle=angle, **place) for angle in (0.0, 20.0)])
    found = lift.answer(two)
    assert found.table.index.tolist() == ["angle 20", "angle 0"]
    mean = table["lift_coefficient"].mean()
    assert f"At 20 degrees and Mach 5 ({table['n'].iloc[0]} discs) the wing has a lift of {mean:.2f} +- " in (
        found.sentence
    )
    draw(lift.VIEWS, two, tmp_path)
    names = {path.name for path in tmp_path.iterdir()} - {"film.mp4"}
    maps = {f"map_0012_5_0p1_{angle}.png" for angle in (0, 20)}
    assert names == {"lift_and_drag.png", "surface.png", "summary.csv"} | maps
