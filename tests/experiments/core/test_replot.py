"""Every run that is kept in `results/reference/` can be drawn again, and is left as it is."""

import hashlib
import importlib
import shutil
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest

from experiments.core import main
from experiments.core.old_names import experiment_now
from experiments.core.record import PROVENANCE, TABLE

pytestmark = pytest.mark.nightly

REFERENCE = Path(__file__).parents[3] / "results" / "reference"
KEPT = sorted(REFERENCE.glob("*/*/"))
DRAWN = (".png", ".mp4")
RECORDED = ("table.csv",)  # of the run itself; a replot writes none
LARGEST_DIFFERENCE = 1e-9  # relative, of a number in a table: it is computed by other versions of libraries


def contents(folder: Path) -> dict[str, str]:
    """The hash of every file in a folder by its path there."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module", autouse=True)
def the_reference_is_left_as_it_is():
    before = contents(REFERENCE)
    yield
    assert contents(REFERENCE) == before


def drawn_again(run: Path, folder: Path) -> Path:
    """A copy of a run without its figures and tables, in which its experiment has drawn them."""
    copy = folder / run.name
    copy.mkdir()
    for name in (TABLE, PROVENANCE):
        shutil.copy(run / name, copy)
    experiment = importlib.import_module(f"experiments.{experiment_now(run.parent.name)}")
    shown = getattr(experiment, "VIEWS", None) or experiment.draw
    parts = experiment.Config, experiment.measure, shown, {}
    with pytest.raises(SystemExit) as ended:
        main(*parts, ["--replot", str(copy)], answer=experiment.answer)
    assert ended.value.code == 0
    return copy


def test_there_are_runs_of_every_experiment():
    files = (REFERENCE.parents[1] / "experiments").glob("*.py")
    names = {path.stem for path in files if not path.stem.startswith("_")}
    assert names == {experiment_now(run.parent.name) for run in KEPT}


@pytest.mark.parametrize("run", KEPT, ids=lambda run: f"{run.parent.name}-{run.name}")
def test_a_run_that_is_kept_is_drawn_again_with_the_figures_and_the_numbers_that_it_has(run, tmp_path):
    kept, copy = contents(run), drawn_again(run, tmp_path)
    assert contents(run) == kept
    made = contents(copy)
    assert {name: made[name] for name in (TABLE, PROVENANCE)} == {
        name: kept[name] for name in (TABLE, PROVENANCE)
    }
    figures = {name for name in kept if name.endswith(DRAWN)}
    tables = {name for name in kept if name.endswith(".csv") and name not in RECORDED}
    assert figures
    assert any(name.endswith(".csv") for name in made)
    assert not any(name.endswith(".pdf") for name in (*kept, *made))
    assert figures | tables <= set(made)
    for path in copy.glob("*.png"):
        assert min(matplotlib.image.imread(path).shape[:2]) > 10
    for name in tables:
        one, other = (pd.read_csv(folder / name) for folder in (copy, run))
        pd.testing.assert_frame_equal(one, other, check_exact=False, rtol=LARGEST_DIFFERENCE)
