"""Ranks send border particles while the others move: the gas is the same, to the last bit."""

import numpy as np

import md
from md.domain.communicator import in_turn
from md.domain.division import Domain
from md.search.lists.list_search import ListSearch
from tests.md.domain.test_communicator import caught
from tests.md.domain.test_divided import course, farthest, gas, simulation

N, STEPS = 9000, 120
SLABS = {"division": md.Division("row", travel=0.4)}


def courses(state, early: bool) -> tuple[list, list[int]]:
    """Courses of two ranks, and how often each began to send before all its particles had moved."""
    counts = [0, 0]

    def work(ranks):
        sim = simulation(state, ranks, **SLABS)
        domain, real = sim.system.domain, Domain.border_moved

        def counted(pos, *others):
            counts[ranks.rank] += pos is not sim.system.particles.pos
            real(domain, pos, *others)

        domain.border_moved = counted
        shares = sim.search._border_shares
        sim.search._border_shares = shares if early else lambda count: count
        return course(sim, STEPS)

    return in_turn(2, work), counts


def test_ghosts_that_are_sent_early_change_no_bit():
    state = gas(N)
    late, none = courses(state, early=False)
    early, counts = courses(state, early=True)
    assert none == [0, 0]
    assert min(counts) > STEPS * 0.8  # all but those before a migration
    for one, other in zip(early, late, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one[0], other[0], strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


def test_particles_sent_before_they_move_are_seen(monkeypatch):
    state = gas(N)
    right = course(simulation(state), STEPS)
    assert max(farthest(state, one, right) for one in courses(state, early=True)[0]) < 1e-9
    real = ListSearch._border_shares

    def too_few(self, shares):
        return min(real(self, shares), 1)

    monkeypatch.setattr(ListSearch, "_border_shares", too_few)
    try:
        wrong = max(farthest(state, one, right) for one in courses(state, early=True)[0])
    except (md.SimulationFault, md.HaloOutrun):
        wrong = np.inf
    assert wrong > 1e-3


def test_phases_that_are_timed_follow_each_other():
    def work(ranks):
        sim = simulation(gas(N), ranks, **SLABS)
        sim.run(40)
        return sim.system.domain.sends_early

    assert in_turn(2, work) == [False, False]


def test_an_exchange_goes_on_beside_other_work():
    def work(ranks):
        other = 1 - ranks.rank
        sent, found = np.full(3, ranks.rank), np.full(3, -1)
        ranks.begin_exchange({other: sent}, {other: found})
        ranks.poke()
        ranks.end_exchange()
        return found.tolist(), ranks.all_of(ranks.rank)

    assert in_turn(2, work) == [([1, 1, 1], [0, 1]), ([0, 0, 0], [0, 1])]


def test_an_error_while_an_exchange_goes_on_ends_all_for_good():
    def work(ranks):
        def fail():
            other = 1 - ranks.rank
            ranks.begin_exchange({other: np.ones(1)}, {other: np.empty(1)})
            if ranks.rank == 0:
                raise MemoryError("full")
            ranks.end_exchange()
            ranks.all_of(None)

        return caught(ranks, fail), caught(ranks, lambda: ranks.all_of(ranks.rank))

    for rank, (first, then) in enumerate(in_turn(2, work)):
        assert first.startswith("MemoryError: full" if rank == 0 else "RankFailedError: rank 0 has ended")
        assert then.startswith("RankFailedError: rank 0 has ended: MemoryError: full")


def test_another_call_before_the_end_of_an_exchange_is_refused():
    def work(ranks):
        def call():
            other = 1 - ranks.rank
            ranks.begin_exchange({other: np.ones(1)}, {other: np.empty(1)})
            ranks.all_of(None)

        return caught(ranks, call)

    assert all("was stopped within a call" in then for then in in_turn(2, work))
