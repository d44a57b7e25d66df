"""The checks that particles alone need: memory judged in bytes, numbers that a word may stand for."""

from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from md import checks


def test_more_bytes_than_are_free_are_refused_with_both_and_the_remedy():
    checks.memory("lists", 2**30, 2**30, "take fewer")
    message = r"lists: 1,073,741,825 bytes \(1 GiB\) are needed; allowed: up to 1,073,741,824 .*; take fewer"
    with pytest.raises(ValueError, match=message):
        checks.memory("lists", 2**30 + 1, 2**30, "take fewer")
    with pytest.raises(ValueError, match=r"lists: \d[\d,]+ bytes"):
        checks.memory("lists", 2**400, 2**30, "take fewer")


class TestHostMemory:
    def test_is_at_most_what_is_free(self):
        assert 0 < checks.host_memory() <= psutil.virtual_memory().total

    def test_is_less_where_the_address_space_is_limited(self, monkeypatch):
        resource = pytest.importorskip("resource")
        used = psutil.Process().memory_info().vms
        monkeypatch.setattr(resource, "getrlimit", lambda which: (used + 2**24, used + 2**24))
        assert 0 <= checks.host_memory() <= 2**24 + 2**20
        monkeypatch.setattr(resource, "getrlimit", lambda which: (1, 1))
        assert checks.host_memory() == 0

    @pytest.mark.parametrize(("told", "most"), [("max\n", 2**60), ("{}\n", 2**24)])
    def test_is_less_where_the_group_of_processes_is_limited(self, told, most, tmp_path, monkeypatch):
        (tmp_path / "max").write_text(told.format(psutil.Process().memory_info().rss + 2**24))
        monkeypatch.setattr(checks, "LIMITS", (tmp_path / "max", tmp_path / "none"))
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**60))
        assert most - 2**22 <= checks.host_memory() <= most


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
