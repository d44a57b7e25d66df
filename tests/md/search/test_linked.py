"""Linked lists of a rank, which empties those of its particles alone where the box has far more cells."""

import pytest

from md.domain.communicator import in_turn
from md.search.grid import linked
from tests.md.domain.test_divided import check, gas, simulation


@pytest.mark.parametrize("fused", [False, True])
def test_a_rank_empties_the_lists_of_its_particles_alone(monkeypatch, fused):
    emptied, empty = [], linked._empty_lists

    def emptying(keys, head):
        empty(keys, head)
        emptied.append(int((head >= 0).sum()))

    monkeypatch.setattr(linked, "_empty_lists", emptying)
    state = gas(6000, filling=0.05)
    domains = check(state, 3, search="linked", fused=fused)
    assert all(domain.migrations > 1 for domain in domains)
    assert len(emptied) > 400  # of 3 times 200 steps
    assert set(emptied) == {0}


def test_one_process_fills_the_lists_of_all_cells(monkeypatch):
    monkeypatch.setattr(linked, "_empty_lists", None)
    check(gas(2000, filling=0.05), 1, steps=20, every=20, search="linked")


def test_lists_of_a_build_that_was_interrupted_are_all_emptied(monkeypatch):
    def work(ranks):
        search = simulation(gas(6000, filling=0.05), ranks, search="linked").search
        with monkeypatch.context() as patched:

            def interrupt(*_):
                raise KeyboardInterrupt

            patched.setattr(search.backend, "kernels", interrupt)
            with pytest.raises(KeyboardInterrupt):
                search.build()  # the first of these rows
        emptied = []
        monkeypatch.setattr(linked, "_empty_lists", lambda *_: emptied.append(1))
        search.build()
        return emptied

    assert in_turn(3, work) == [[], [], []]
