"""Settings and tables of older runs are read under the names of now."""

import importlib
import json
import runpy
import sys
from dataclasses import dataclass, fields

import pandas as pd
import pytest

from experiments.core import main, rerun
from experiments.core.old_names import (
    NAMES,
    TIMED,
    OldNames,
    arguments_now,
    run_by_old_name,
    settings_now,
    table_now,
)
from experiments.core.record import read_provenance
from experiments.results.kept.redraw import redraw
from tests.experiments import toy

pytestmark = pytest.mark.quick


@pytest.fixture
def renamed(monkeypatch):
    """An experiment that has renamed a field, a word and a column, and lost a field."""
    names = OldNames(
        fields={"colour": "hue", "size": None},
        values={"hue": {"crimson": "red"}},
        columns={"colour": "hue", "ms": "time_ms"},
    )
    monkeypatch.setitem(NAMES, "toy", names)


def test_fields_and_words_of_older_settings_are_those_of_now(renamed):
    told = {"colour": ["crimson", "blue"], "size": 3, "seed": 1}
    assert settings_now(told, "toy", timed=False) == {"hue": ["red", "blue"], "seed": 1}
    assert settings_now({"colour": "crimson"}, "toy", timed=False) == {"hue": "red"}


def test_a_field_under_both_names_has_the_value_of_the_name_now(renamed):
    told = {"colour": "blue", "hue": "green"}
    assert settings_now(told, "toy", timed=False) == {"hue": "green"}
    assert settings_now({"repeats": 1, "runs": 3}, "toy", timed=True) == {"runs": 3}


def test_names_of_times_are_read_in_experiments_that_time_alone():
    told = {"samples": 4, "repeats": 2}
    assert settings_now(told, "another", timed=True) == {"rounds": 4, "runs": 2}
    assert settings_now(told, "another", timed=False) == told


def test_columns_and_words_of_older_tables_are_those_of_now(renamed):
    old = pd.DataFrame({"colour": ["crimson", "blue"], "ms": [1.0, 2.0], "note": ["crimson", ""]})
    found = table_now(old, "toy")
    assert found.to_dict("list") == {"hue": ["red", "blue"], "time_ms": [1.0, 2.0], "note": ["crimson", ""]}
    assert list(old) == ["colour", "ms", "note"]


def test_a_column_under_both_names_is_left_as_it_is(renamed):
    table = pd.DataFrame({"colour": ["crimson"], "hue": ["blue"]})
    assert table_now(table, "toy").to_dict("list") == {"colour": ["crimson"], "hue": ["blue"]}


def test_a_table_of_now_is_itself(renamed):
    table = pd.DataFrame({"hue": ["red"], "time_ms": [1.0]})
    pd.testing.assert_frame_equal(table_now(table, "toy"), table)
    assert table_now(table, "another") is not None


@dataclass(frozen=True)
class Config(toy.Config):
    """The toy, which took over `toy_of_old`: that had another word for the colour, and shares alone."""

    kind: tuple[str, ...] = ("area", "share")
    """What is measured of the toy."""


def measure(case):
    yield {"value": case.size}


def draw(table, out):
    """What the figure needs, in the name of its file."""
    (out / f"{'_'.join(sorted(set(table['kind']) | set(table['colour'])))}.png").write_text("")


def answer(table):
    raise LookupError


HERE = "test_old_names"
OLD = OldNames(
    fields={"hue": "colour", "gone": None},
    values={"colour": {"crimson": "red"}},
    columns={"hue": "colour"},
    now=HERE,
    adds={"kind": ["share"]},
)


def run(*arguments) -> int | None:
    """The command line of the experiment of today; its exit status."""
    try:
        main(Config, measure, draw, {"size": (7,)}, ["--backend", "cpu", *map(str, arguments)])
    except SystemExit as ended:
        return ended.code
    return 0


@pytest.fixture
def old_run(tmp_path, monkeypatch):
    """The folder of a run that was recorded under the old name of the experiment."""
    monkeypatch.setitem(NAMES, "toy_of_old", OLD)
    monkeypatch.setattr(rerun, "experiment_names", lambda: (HERE, "timing"))
    monkeypatch.setitem(sys.modules, f"experiments.{HERE}", sys.modules[__name__])
    folder = tmp_path / "toy_of_old" / "run"
    folder.mkdir(parents=True)
    config = {"backend": "cpu", "seed": 0, "repeats": 1, "size": [1, 2], "hue": ["crimson"], "gone": 3}
    origin = {"experiment": "toy_of_old", "config": config, "status": "complete"}
    (folder / "provenance.json").write_text(json.dumps(origin))
    table = pd.DataFrame({"case": [0, 1], "size": [1, 2], "hue": ["crimson"] * 2, "value": [1, 2]})
    table.to_parquet(folder / "table.parquet")
    return folder


def test_a_run_of_an_old_experiment_is_repeated_with_the_settings_that_it_had(old_run, tmp_path):
    assert run("--from", old_run, "--results", tmp_path, "--size", 5) == 0
    (folder,) = (tmp_path / HERE).iterdir()
    table = pd.read_parquet(folder / "table.parquet")
    assert table[["size", "colour", "kind"]].values.tolist() == [[5, "red", "share"]]
    assert read_provenance(folder)["experiment"] == HERE


def test_a_run_of_an_old_experiment_is_drawn_with_the_columns_of_now(old_run, tmp_path):
    assert run("--replot", old_run, "--out", tmp_path / "drawn") == 0
    assert [path.name for path in (tmp_path / "drawn").iterdir()] == ["red_share.png"]
    assert rerun.experiment_of(old_run, read_provenance(old_run)) == HERE
    assert rerun.read_table_now(old_run)["kind"].tolist() == ["share", "share"]
    assert redraw(old_run) == (["red_share.png"], [])


def test_a_run_of_an_old_experiment_is_not_resumed(old_run, capsys):
    assert run("--resume", old_run) == 2
    message = capsys.readouterr().err
    assert f"was started as toy_of_old, which is {HERE} now" in message
    assert "take --from to measure all of it again" in message


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--hue crimson blue --size 3", "--kind share --colour red blue --size 3"),
        ("--hue=crimson --quick", "--kind share --colour=red --quick"),
        ("--size crimson", "--kind share --size crimson"),
        ("--from crimson --kind area", "--from crimson --kind area"),
        ("--replot=x", "--replot=x"),
    ],
)
def test_a_command_of_an_old_experiment_is_that_of_now(words, expected, old_run, monkeypatch):
    assert arguments_now(words.split(), "toy_of_old") == expected.split()
    seen = []
    monkeypatch.setattr(runpy, "run_module", lambda name, **how: seen.append([name, *sys.argv[1:]]))
    monkeypatch.setattr(sys, "argv", ["toy_of_old", *words.split()])
    run_by_old_name("toy_of_old")
    assert seen == [[f"experiments.{HERE}", *expected.split()]]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_renamed_is_in_the_config_now_and_its_old_name_is_not(name):
    names = NAMES[name]
    config = importlib.import_module(f"experiments.{names.now or name}").Config
    known = {field.name for field in fields(config)}
    assert {now for now in names.fields.values() if now} <= known
    assert set(names.values) | set(names.adds) <= known
    renamed_again = set(names.fields) & set(names.fields.values())  # the word of another field today
    assert not known & names.fields.keys() - renamed_again - ({"repeats"} if names.now else set())
    assert {"rounds", "runs"} == set(TIMED.fields.values())
