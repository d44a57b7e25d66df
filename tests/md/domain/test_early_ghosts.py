"""Ranks send border particles while the others move: the gas is the same, to the last bit."""

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.division import Domain
from md.search.lists import list_search
from md.search.lists.blocks import BLOCK, in_pieces, shares_of_first
from tests import tiers
from tests.md.domain.test_communicator import caught
from tests.md.domain.test_divided import course, farthest, gas, simulation

N, STEPS = 9000, 120
SLABS = {"division": md.Division("row", travel=0.4)}


def courses(state, early: bool, size: int = 2, phases: bool = False) -> tuple[list, list[int]]:
    """Courses of ranks, and how often each began to send before all its particles had moved."""
    counts = size * [0]

    def work(ranks):
        sim = simulation(state, ranks, **SLABS)
        domain, real = sim.system.domain, Domain.border_moved

        def counted(pos, *others):
            counts[ranks.rank] += pos is not sim.system.particles.pos
            real(domain, pos, *others)

        domain.border_moved = counted
        return course(sim, STEPS, phases=phases)

    with pytest.MonkeyPatch.context() as patched:
        if not early:
            patched.setattr(list_search, "shares_of_first", lambda first, n, shares: shares)
        return in_turn(size, work), counts


@pytest.mark.parametrize("size", [2, tiers.full(5)])  # five slabs: two neighbours tell what one says
def test_ghosts_that_are_sent_early_change_no_bit(size):
    state = gas(N if size == 2 else 60_000)
    late, none = courses(state, early=False, size=size)
    early, counts = courses(state, early=True, size=size)
    assert none == size * [0]
    assert min(counts) > STEPS * 0.8  # all but those before a migration
    for one, other in zip(early, late, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one[0], other[0], strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


def test_particles_sent_before_they_move_are_seen(monkeypatch):
    state = gas(N)
    right = course(simulation(state), STEPS)
    assert max(farthest(state, one, right) for one in courses(state, early=True)[0]) < 1e-9
    monkeypatch.setattr(list_search, "shares_of_first", lambda first, n, shares: 1)
    try:
        wrong = max(farthest(state, one, right) for one in courses(state, early=True)[0])
    except (md.SimulationFault, md.HaloOutrun):
        wrong = np.inf
    assert wrong > 1e-3


def test_shares_of_border_particles_and_pieces_of_the_others_are_whole():
    for n in (1, 64, 65, 640, 9000):
        blocks = -(-n // BLOCK)
        for border in (0, 1, 64, n // 3, n):
            for shares in (1, 4, 16):
                few = shares_of_first(border, n, shares)
                assert few == shares or few * blocks // shares * BLOCK >= border
                assert few == 1 or (few - 1) * blocks // shares * BLOCK < border
    for n in (0, 2**17, 2**30):
        for first in (3, 16):
            did = []

            def move(begin, end, did=did):
                did.append((begin, end))
                return 1, begin, 7 - begin

            def send(travelled, did=did):
                assert travelled == 0
                return lambda: did.append("look")

            assert in_pieces(move, send, first, n, 16) == [1, did[-1][0], 7]
            moved = [piece for piece in did if piece != "look"]
            assert [k for piece in moved for k in range(*piece)] == list(range(16))
            assert did.count("look") == len(moved) - 1 == (first < 16) * {0: 1, 2**17: 2, 2**30: 4}[n]


def test_phases_that_are_timed_follow_each_other():
    assert courses(gas(N), early=True, phases=True)[1] == [0, 0]


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
