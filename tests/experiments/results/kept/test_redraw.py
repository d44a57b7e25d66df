"""A kept run is drawn again: its figures and tables are replaced, and nothing else is touched."""

import json
import sys

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from PIL import Image

from experiments import timing
from experiments.core.record import PROVENANCE, TABLE
from experiments.core.settings import UsageError
from experiments.drawing import style
from experiments.results.kept.redraw import redraw
from tests.experiments.results.kept.checkout import complete_run

NO_EXPERIMENTS = ["nonesuch", "core.cli", "report", "../../x", "__main__", "", "timing.py"]
ROWS = [{"run": number, "round": 0, "n": 64, "time_ms": 0.1 * number} for number in range(3)]


def draw(table, out):
    figure, panel = plt.subplots(figsize=(2, 1))
    panel.plot(table["run"], table["time_ms"])
    style.save(figure, out, "gain")
    table.mean(numeric_only=True).to_frame("mean").to_csv(out / "summary.csv")
    print("an answer")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run that is drawn by this test, with an old figure, an old table and a film."""
    monkeypatch.setattr(timing, "VIEWS", draw)
    made = complete_run(tmp_path / "runs", {"commit": "0123456789"}, ROWS)
    for name in ("old.png", "old.csv", "film.mp4", "notes.txt"):
        (made / name).write_bytes(b"before")
    yield made
    style.use()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_figures_and_tables_are_replaced_and_the_rest_stays(run, capsys):
    before = contents(run)
    drawn, removed = redraw(run)
    assert drawn == ["gain.png", "summary.csv"]
    assert removed == ["old.csv", "old.png"]
    after = contents(run)
    stay = {TABLE, "table.csv", PROVENANCE, "film.mp4", "notes.txt"}
    assert {name: after[name] for name in stay} == {name: before[name] for name in stay}
    assert set(after) == stay | set(drawn)
    assert capsys.readouterr().out == ""


def test_figures_name_the_run_and_warn_as_those_of_a_run_do(run, monkeypatch):
    seen = []
    monkeypatch.setattr(style, "use", lambda *given: seen.append(given))
    redraw(run)
    ((warnings, origin),) = seen
    assert f"run {run.parent.name}/{run.name} | commit 0123456" in origin.text
    assert warnings == ""


def test_the_pictures_name_their_run(run):
    redraw(run)
    with Image.open(run / "gain.png") as picture:
        assert f"run {run.parent.name}/{run.name}" in picture.text["Description"]


def test_a_table_that_differs_by_rounding_stays(run):
    redraw(run)
    table = pd.read_csv(run / "summary.csv")
    for factor, stays in ((1 + 1e-12, True), (1 + 1e-6, False)):
        table.assign(mean=factor * table["mean"]).to_csv(run / "summary.csv", index=False)
        before = (run / "summary.csv").read_bytes()
        redraw(run)
        assert ((run / "summary.csv").read_bytes() == before) == stays


def test_a_run_that_cannot_be_drawn_is_left_as_it_is(run, monkeypatch):
    def fail(table, out):
        (out / "gain.png").write_bytes(b"half")
        raise KeyError("a column")

    monkeypatch.setattr(timing, "VIEWS", fail)
    before = contents(run)
    with pytest.raises(UsageError, match=r"cannot be drawn: KeyError: 'a column'; allowed: .*old_names"):
        redraw(run)
    assert contents(run) == before


@pytest.mark.parametrize("name", NO_EXPERIMENTS)
def test_a_run_of_no_experiment_is_refused_and_nothing_is_imported(run, name):
    origin = json.loads((run / PROVENANCE).read_text())
    (run / PROVENANCE).write_text(json.dumps(origin | {"experiment": name}))
    before = contents(run)
    with pytest.raises(UsageError, match=r"names the experiment .*; allowed: one of advise, .*; restore"):
        redraw(run)
    assert contents(run) == before
    assert f"experiments.{name}" not in sys.modules or name in ("core.cli", "report", "__main__")


def test_a_table_with_the_name_of_a_file_elsewhere_draws_none(run, monkeypatch):
    def draw(table, out):
        style.save(plt.figure(figsize=(2, 1)), out, "../elsewhere")

    monkeypatch.setattr(timing, "VIEWS", draw)
    with pytest.raises(UsageError, match=r"name of a figure = '\.\./elsewhere'; allowed: a name without"):
        redraw(run)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no provenance.json of a run; allowed: reference/"):
        redraw(tmp_path)
