"""The examples of docstrings and of the README."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np

import sfc
from sfc.automaton import registers

MODULES = [one.name for one in pkgutil.walk_packages(sfc.__path__, "sfc.")]
README = Path(sfc.__file__).parent / "README.md"
EXTENDING = README.with_name("EXTENDING.md")


def test_examples_of_docstrings_print_what_they_say():
    tried = 0
    for name in MODULES:
        found = doctest.testmod(importlib.import_module(name))
        assert found.failed == 0, name
        tried += found.attempted
    assert tried >= 8


def test_the_lines_of_the_readme_sort_points():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert sorted(names["order"]) == list(range(1000))
    np.testing.assert_array_equal(names["ids"], names["order"])
    keys = sfc.keys(names["points"])
    assert (keys[1:] >= keys[:-1]).all()
    assert sorted(names["rows"]) == list(range(1000))
    assert names["key"] == sfc.curve("hilbert", 3).encode([[3, 5, 1]], 10)[0]


def test_the_kernel_of_the_page_on_extensions_is_foreseen(capsys):
    (code,) = re.findall(r"```python\n(import numpy.*?)```", EXTENDING.read_text(), re.DOTALL)
    exec(code, {})
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["shuffled", "hilbert"]
    assert float(rows[0][1]) > 2 * float(rows[1][1])


def test_the_configuration_names_the_path(capsys, monkeypatch):
    for available in ("AVX2", None):
        monkeypatch.setattr(registers, "instructions", lambda given=available: given)
        sfc.show_config()
        shown = capsys.readouterr().out
        assert ("tables in registers (AVX2)" in shown) == ("hilbert 2D 3D" in shown) == bool(available)
        assert "tables in memory: all" in shown
