"""Every experiment there is, one after the other in one process, on a case smaller than `--quick`."""

import importlib

import pandas as pd
import pytest

from experiments.__main__ import listing
from experiments.core import main

SMALLER = {
    "cache_hit": ["--size", "8", "--filling-fraction", "0.2", "--ordering", "hilbert", "row", "shuffled"],
    "cache_map": ["--size", "16", "--tiles", "8", "--cache", "40"],
    "cooling": ["--n", "256", "--decades", "0.3", "--observations", "8"],
    "counters": [
        "--n",
        "1024",
        "--samples",
        "2",
        "--ordering",
        "hilbert",
        "row",
        "morton",
        "zigzag",
        "shuffled",
    ],
    "curves": ["--ordering", "hilbert-2d", "morton-3d", "--size", "2", "8x8", "4x4x4"],
    "decay": ["--size", "6", "--steps", "40", "--looks", "5", "--model", "block"],
    "interval": ["--n", "512", "--interval", "2", "6", "20", "--samples", "1", "--least-steps", "20"],
    "ladder": [
        "--n",
        "500",
        "700",
        "--rung",
        "no reorder",
        "contacts in lists",
        "grid",
        "--samples",
        "2",
        "--steps",
        "2",
        "--warmup",
        "1",
    ],
    "lift": [
        "--chord",
        "12",
        "--angle",
        "10",
        "--chords-before",
        "0.2",
        "--chords",
        "0.4",
        "--blocks",
        "2",
        "--frames",
        "2",
    ],
    "mixture": ["--n", "300", "--widest", "2", "--search", "lbvh", "--samples", "2", "--steps", "2"],
    "reorder_cost": ["--n", "512", "1024", "--samples", "2"],
    "searches": ["--n", "1024", "--search", "linked", "verlet", "--samples", "2", "--steps", "5"],
    "shaken": ["--length", "6", "--amplitude", "1.8", "--shakes-before", "0", "--pictures", "3"],
    "speed_up": ["--length", "12", "--samples", "2", "--steps", "2"],
    "timing": ["--n", "1024", "--ordering", "hilbert", "shuffled", "--samples", "2"],
}


def test_all_experiments_run_in_one_process(tmp_path):
    assert set(SMALLER) == set(listing()), "a new experiment needs a case here"
    for name, smaller in SMALLER.items():
        module = importlib.import_module(f"experiments.{name}")
        assert "?" in listing()[name], f"{name}: which question does it answer?"
        arguments = ["--quick", "--backend", "cpu", "--results", str(tmp_path), *smaller]
        main(module.Config, module.measure, module.draw, module.QUICK, arguments)
        (folder,) = (tmp_path / name).iterdir()
        assert len(pd.read_parquet(folder / "table.parquet")) > 0, name
        assert list(folder.glob("*.png")), name
        pictures, prints = (sorted(p.stem for p in folder.glob(f"*.{kind}")) for kind in ("png", "pdf"))
        assert pictures == prints


@pytest.mark.parametrize("name", listing())
def test_its_help_says_which_question_it_answers(name, capsys):
    module = importlib.import_module(f"experiments.{name}")
    with pytest.raises(SystemExit) as ended:
        main(module.Config, module.measure, module.draw, module.QUICK, ["--help"])
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert listing()[name] in told
    assert "--quick" in told
