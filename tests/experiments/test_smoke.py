"""Every experiment there is, in one process, on a case smaller than `--quick`."""

import ast
import importlib
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.__main__ import listing
from experiments.advice import apart
from experiments.core import main
from experiments.core.terminal import COLUMNS, LINES, MOST_LINES
from experiments.measurement import memory_bandwidth
from tests.experiments.runs import views
from tests.tiers import nightly

# In double precision and by few searches, so that few kinds of kernels are compiled.
SMALLER = {
    "advise": "{points} --cutoff 1 --displacement 0.1 --rounds 1",
    "advised": "--data zipf_probes --n 1100 --rounds 2 --seconds 0.01",
    "cache_hit": "--geometry cubes --size 8 --filling-fraction 0.2 --ordering hilbert row shuffled",
    "cards": "--n 1000 --cards 2 --mode weak --rounds 1 --warmup 1 --steps 2 --samples 1 --precision float64",
    "cavity": "--n 9 --strategy numpy serial --layout arrays --order row hilbert --rounds 2 --updates 81",
    "cavity_flow": "--n 9 17 --drawn 17 --film-n 9 --film-time 0.1 --pictures 2 --settled 5e-2",
    "cooling": "--n 200 --decades 0.1 --observations 6 --softness 0.02 --steps-per-contact 10",
    "contacts": "--n 500 --curve morton --step 1 3 --room 4 8",
    "counters": "--n 1024 --rounds 2 --ordering hilbert row morton zigzag shuffled --precision float64",
    "curves": "--ordering hilbert-2d morton-3d --size 1 4x4 2x2x2",
    "decay": "--size 6 --steps 40 --observations 5 --model block",
    "encode": "--n 1000 --curve hilbert peano --bits 5 --rounds 2",
    "flock_order": "--n 1000 --dim 3 --steps 4 --observations 2 --pictures 2 --precision float64",
    "flocking": "--n 1000 --precision float64 --age 4 --order-age 2 --search scattered coherent --rounds 2",
    "foresee": "--n 1024 --precision float64 --ordering row hilbert --machine h100",
    "foreseen": "--gas 24 31 --machine h100",  # kernels without particles
    "interval": "--n 512 --interval 2 6 20 --rounds 1 --least-steps 20 --precision float64",
    "ladder": "--n 500 700 --rung grid --rounds 2 --steps 2 --warmup 1 --precision float64",
    "lift": "--chord 12 --angle 10 --chords-before 0.2 --chords 0.4 --blocks 2 --frames 1 --search linked",
    "machine": "--size 2**16 2**20 --loads 8",
    "mixture": "--n 300 --widest 2 --search linked --rounds 2 --steps 2 --precision float64",
    "pictures": "--steps 20",
    "reorder_cost": "--n 512 1024 --rounds 2 --place 'one thread'",
    "roofline": "--n 500 --filling-fraction 0.2 --precision float64 --rounds 2 --steps 5",
    "scaling": "--n 800 --ranks 1 2 --density uniform --division hilbert row --steps 2",
    "searches": "--n 1024 --search linked verlet --rounds 2 --steps 5",
    "shaken": "--length 6 --amplitude 1.8 --shakes-before 0 --pictures 2 --search linked",
    "surface": "--n 1024 --path 0 0.05 --rounds 2 --steps 2 --precision float64",
    "timing": "--n 1024 --ordering hilbert shuffled --rounds 2",
    "writes": "--n 512 1024 --ordering hilbert lattice --rounds 2 --precision float64",
}
PUBLISHED = SMALLER | {
    "cache_hit": "--size 8 16 --filling-fraction 0.2 --ordering hilbert row shuffled",
    "counters": "--n 1024 --rounds 2 --ordering hilbert row morton zigzag shuffled",
    "flock_order": "--n 1000 --dim 2 --steps 20 --observations 3 --pictures 3",
    "flocking": "--n 1000 --age 4 --order-age 2 --rounds 2",
    "interval": "--n 512 --interval 2 6 20 --rounds 1 --least-steps 20",
    "ladder": "--n 500 700 --rung 'no reorder' 'contacts in lists' grid --rounds 2 --steps 2 --warmup 1",
    "lift": "--chord 12 --angle 10 --chords-before 0.2 --chords 0.4 --blocks 2 --frames 2",
    "mixture": "--n 300 --widest 2 --search lbvh tiles --rounds 2 --steps 2",
    "reorder_cost": "--n 512 1024 --rounds 2",
    "roofline": "--n 500 --filling-fraction 0.05 0.4 --rounds 2 --steps 5",
    "shaken": "--length 6 --amplitude 1.8 --shakes-before 0 --pictures 2",
}


def check_run(name: str, smaller: str, tmp_path, capsys) -> None:
    """A table with rows, every figure as PNG and as PDF, and an answer that fits the terminal."""
    module = importlib.import_module(f"experiments.{name}")
    smaller = smaller.format(points=points_in(tmp_path))
    arguments = ["--quick", "--pdf", "--backend", "cpu", "--results", str(tmp_path), *shlex.split(smaller)]
    given = keywords_of_main(module)
    limit = getattr(module, given["quick_limit"])
    options = {"answer": getattr(module, given["answer"]), "quick_limit": limit}
    main(module.Config, module.measure, views(module), module.QUICK, arguments, **options)
    (folder,) = (tmp_path / name).iterdir()
    check_answer(capsys.readouterr().out.splitlines(), folder, limit)
    assert len(pd.read_parquet(folder / "table.parquet")) > 0
    assert list(folder.glob("*.png"))
    pictures, prints = (sorted(p.stem for p in folder.glob(f"*.{kind}")) for kind in ("png", "pdf"))
    assert pictures == prints


def points_in(folder: Path) -> Path:
    """A file with 2,000 points in a cube of 10."""
    path = folder / "points.npy"
    np.save(path, 10 * np.random.default_rng(0).random((2000, 3)))
    return path


def keywords_of_main(module) -> dict[str, str]:
    """The names that an experiment gives to the keywords of `main`."""
    tree = ast.parse(Path(module.__file__).read_text())
    (call,) = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "main"
    ]  # fmt: skip
    return {word.arg: word.value.id for word in call.keywords if isinstance(word.value, ast.Name)}


def check_answer(lines: list[str], folder: Path, limit: str) -> None:
    """A table, unless nothing can be compared, whole sentences, what is too small, and the folder."""
    assert 3 <= len(lines) <= (MOST_LINES if folder.parent.name == "advise" else LINES), lines
    assert max(map(len, lines[:-1])) <= COLUMNS, lines
    assert lines[-1] == f"figures: {folder}"
    text = " ".join(lines)
    assert " ".join(limit.split()) in text
    assert limit.startswith("--quick: ")
    assert "..." not in text
    assert not re.search(r"\bnan\b|\binf\b|None|<|\d\.\d{6}", text), lines


@pytest.fixture
def small_copies(monkeypatch):
    """Small copies of memory, and no process for each sample of a user's code."""
    monkeypatch.setitem(memory_bandwidth.BYTES, "cpu", 2**20)
    monkeypatch.setattr(memory_bandwidth, "TIMES", 0)
    monkeypatch.setattr(apart, "_sample", lambda job: (next(apart.measure(job)), np.load(job.result)))


@pytest.mark.quick
@pytest.mark.usefixtures("small_copies")
@pytest.mark.parametrize("name", listing())
def test_it_runs_is_drawn_and_answers(name, tmp_path, capsys):
    assert name in SMALLER, "a new experiment needs a case here"
    check_run(name, SMALLER[name], tmp_path, capsys)


@pytest.mark.quick
def test_the_shaken_box_runs_is_drawn_and_answers(tmp_path, capsys):
    check_run("timing", "--scene box --length 12 --rounds 2 --steps 2 --precision float64", tmp_path, capsys)


@pytest.mark.quick
def test_an_order_that_ages_in_a_flock_runs_is_drawn_and_answers(tmp_path, capsys):
    flags = "--scene flock --n 1000 --predicted-n 1000 --cache 64 --precision float64 --age 2 --steps 10 "
    flags += "--observations 2 --search scattered --rounds 2"
    check_run("decay", flags, tmp_path, capsys)


@pytest.mark.full
@pytest.mark.usefixtures("small_copies", "with_contents")
@pytest.mark.parametrize("name", listing())
def test_it_is_drawn_with_all_contents(name, tmp_path, capsys):
    check_run(name, SMALLER[name], tmp_path, capsys)


@pytest.mark.nightly
@pytest.mark.parametrize("name", listing())
def test_it_runs_in_the_precision_and_is_drawn_with_the_layout_that_users_get(
    name, tmp_path, capsys, as_published
):
    check_run(name, PUBLISHED[name], tmp_path, capsys)


HELP = ("curves", "flocking")  # one of predictions, a timed one


@pytest.mark.quick
@pytest.mark.parametrize("name", [name if name in HELP else nightly(name) for name in listing()])
def test_its_help_says_which_question_it_answers(name, capsys):
    module = importlib.import_module(f"experiments.{name}")
    with pytest.raises(SystemExit) as ended:
        main(module.Config, module.measure, views(module), module.QUICK, ["--help"])
    assert ended.value.code == 0
    message = " ".join(capsys.readouterr().out.split())
    assert listing()[name] in message
    assert "--quick" in message


@pytest.mark.quick
def test_every_experiment_says_which_question_it_answers():
    assert [name for name, line in listing().items() if "?" not in line] == []
