"""The checks that particles alone need: numbers that a word may stand for."""

import re
from pathlib import Path

import numpy as np
import pytest

from md import checks


@pytest.mark.parametrize(("value", "found"), [("auto", "auto"), (np.float32(0.5), 0.5), (3, 3.0)])
def test_a_number_or_a_word_is_taken_as_pythons(value, found):
    taken = checks.number_or_word("loss", value, ("auto",), above=0)
    assert (taken, type(taken)) == (found, type(found))


@pytest.mark.parametrize(
    ("value", "error"),
    [("often", ValueError), (0, ValueError), (np.inf, ValueError), (None, TypeError), (True, TypeError)],
)
def test_neither_a_number_nor_a_word_is_refused(value, error):
    with pytest.raises(error, match=r"loss = .*; allowed: a.* number.*or 'auto'; say so"):
        checks.number_or_word("loss", value, ("auto",), above=0, remedy="say so")


OWN = {  # files with such lines, and how many
    "cavity/strategies/reference.py": 1,  # fields after a step
    "cavity/strategies/staggered.py": 1,  # fields after a step
    "particles/box.py": 1,  # one flag for all axes or one for each
    "laws/pair.py": 1,  # annotations of a law's fields, which are classes and no values
    "observe/sums.py": 1,  # one integer for all axes or one for each, before the axes are known
    "particles/state.py": 1,  # flags or indices
    "reorder/base.py": 1,  # what a checkpoint holds
}


def test_no_other_file_of_md_asks_for_a_class_by_itself():
    """General checks stand in `sfc/checks.py` alone; `OWN` counts the lines of other files."""
    folder = Path(checks.__file__).parent
    pattern = re.compile(r"np\.integer\b|np\.bool_\b|issubdtype|is_integer\(|isfinite\(.*\.all")
    found = {}
    for path in sorted(folder.rglob("*.py")):
        lines = path.read_text().splitlines()
        lines = [line for line in lines if pattern.search(line) and not line.lstrip().startswith("def ")]
        if lines and path.name != "checks.py":
            found[path.relative_to(folder).as_posix()] = len(lines)
    assert found == OWN
