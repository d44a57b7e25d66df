"""The checks that particles alone need: numbers that a word may stand for."""

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
