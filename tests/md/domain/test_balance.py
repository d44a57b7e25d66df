"""Ranks with even work: by the time that each measures, which no test asserts, and by planted times."""

import itertools

import numpy as np
import pytest

import md
from md.domain import division as divisions
from md.domain.communicator import in_turn
from md.domain.division import Domain
from tests.md.domain.test_divided import check, gas, simulation

BY_TIME = md.Division("row", weights="time")


def owned_costs(domain: Domain) -> np.ndarray:
    """Planted time of each owned particle in a step: those of the lower half cost more."""
    system = domain._system
    is_lower = system.particles.pos[: system.n_owned, -1] < system.box.lengths[-1] / 2
    return np.where(is_lower, 5.0, 1.0)


def test_the_cuts_follow_the_time_that_ranks_measure(monkeypatch):
    def pause(domain):
        domain._worked += owned_costs(domain).sum()

    monkeypatch.setattr(Domain, "pause", pause)
    state = gas(8000)

    def work(division):
        def of_rank(ranks):
            sim = simulation(state, ranks, division=division)
            sim.run(400, phases=False)
            assert sim.system.domain.migrations > 4
            return float(owned_costs(sim.system.domain).sum())

        found = in_turn(2, of_rank)
        return max(found) / np.mean(found)

    assert work(md.Division("row")) > 1.6
    assert work(BY_TIME) < 1.15


def test_a_rank_that_was_stopped_for_a_while_does_not_move_the_box(monkeypatch):
    def pause(domain):
        is_stopped = domain.migrations == 4 and domain._steps == 0 and domain.communicator.rank == 1
        domain._worked += domain._system.n_owned + 1e9 * is_stopped

    monkeypatch.setattr(Domain, "pause", pause)
    state = gas(4000)

    def work(ranks):
        sim, most = simulation(state, ranks, division=md.Division("row", weights="time")), 0.0
        while sim.system.domain.migrations < 8:
            sim.run(10, phases=False)
            most = max(most, sim.system.n_owned * ranks.size / len(sim))
        return most

    assert 1.1 < max(in_turn(3, work)) < 1.8


def shares_of_the_first(monkeypatch, rate, migrations, size=2, saves=None):
    """Particles of the first rank over all, from migration to migration; each rank has a planted rate."""

    def pause(domain):
        domain._worked += domain._system.n_owned * rate(domain.migrations, domain.communicator.rank)

    monkeypatch.setattr(Domain, "pause", pause)
    state = gas(8000)

    def work(ranks):
        sim, shares = simulation(state, ranks, division=BY_TIME), {}
        domain = sim.system.domain
        if saves is not None:
            sim.run(3, phases=False)
            sim.save(saves)
        while domain.migrations < migrations:
            sim.run(1, phases=False)
            shares[domain.migrations] = sim.system.n_owned / len(sim)
        return shares

    return in_turn(size, work)[0]


def test_times_that_vary_do_not_move_the_box(monkeypatch):
    def noisy(period, rank):
        return 1 + 0.06 * np.random.default_rng([period, rank]).normal()

    found = list(shares_of_the_first(monkeypatch, noisy, 40, size=3).values())
    moved = np.abs(np.diff(found)) > 0.01  # particles that migrate move less
    assert moved.sum() <= 3


def test_a_period_alone_is_unsure(monkeypatch):
    found = shares_of_the_first(monkeypatch, lambda period, rank: 1.16 if (period, rank) == (2, 0) else 1, 8)
    assert max(abs(share - 0.5) for share in found.values()) < 0.01


def test_times_before_a_cut_do_not_count(monkeypatch):
    found = shares_of_the_first(monkeypatch, lambda period, rank: 3 if rank and period > 6 else 1, 12)
    assert abs(found[6] - 0.5) < 0.01
    assert abs(found[12] - 0.75) < 0.02


def test_times_of_long_ago_are_forgotten(monkeypatch):
    found = shares_of_the_first(monkeypatch, lambda period, rank: 1.5 if rank and period > 40 else 1, 44)
    assert abs(found[41] - 0.5) < 0.01
    assert found[44] > 0.55


def test_a_checkpoint_begins_another_measurement(monkeypatch, tmp_path):
    def only_at_first(period, rank):
        return 100 if (period, rank) == (1, 1) else 1

    found = shares_of_the_first(monkeypatch, only_at_first, 6, saves=tmp_path / "run.npz")
    assert max(abs(share - 0.5) for share in found.values()) < 0.01


def test_ranks_stay_even_while_a_gas_falls():
    lengths = (16.0, 16.0, 48.0)
    sites = np.stack(np.meshgrid(*(np.arange(0.8, side - 0.8, 1.6) for side in lengths)), axis=-1).reshape(
        -1, 3
    )
    vel = np.random.default_rng(0).normal(size=sites.shape)
    state = md.State(sites, vel, md.Box(lengths, (True, True, False)))

    def work(ranks):
        sim = simulation(state, ranks, walls=md.Walls(restitution=0.5), gravity=(0, 0, -200.0))
        shares = []
        for _ in range(12):
            sim.run(100, phases=False)
            shares.append(sim.system.n_owned * ranks.size / len(sim))
        return shares, sim.state.pos[:, 2].mean()

    found = in_turn(3, work)
    assert found[0][1] < 0.6 * sites[:, 2].mean()  # it has fallen
    assert max(max(shares) for shares, _ in found) < 1.15


def test_waiting_for_other_ranks_is_no_work(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(divisions.time, "perf_counter", lambda: next(ticks))

    def work(ranks):
        sim = simulation(gas(), ranks, division=BY_TIME)
        sim.run(1, phases=False)
        domain = sim.system.domain
        return domain._worked, domain._steps

    assert in_turn(3, work) == 3 * [(1, 1)]


def test_a_gas_divided_by_time_is_that_of_one_rank():
    for domain in check(gas(), 3, division=BY_TIME):
        assert domain.migrations > 1


def test_other_weights_are_refused():
    with pytest.raises(
        ValueError, match="unknown weights of Division 'pairs'; allowed: one of particles, time"
    ):
        md.Division(weights="pairs")
