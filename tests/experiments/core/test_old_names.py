"""Settings and tables of older runs are read under the names of now."""

import importlib
from dataclasses import fields

import pandas as pd
import pytest

from experiments.core.old_names import NAMES, TIMED, OldNames, settings_now, table_now

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


@pytest.mark.parametrize("name", NAMES)
def test_what_is_renamed_is_in_the_config_now_and_its_old_name_is_not(name):
    config = importlib.import_module(f"experiments.{name}").Config
    known = {field.name for field in fields(config)}
    names = NAMES[name]
    assert {now for now in names.fields.values() if now} <= known
    assert set(names.values) <= known
    assert not known & names.fields.keys()
    assert {"rounds", "runs"} == set(TIMED.fields.values())
