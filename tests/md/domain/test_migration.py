"""Rows of ranks on devices, and sort keys of cells: places that are the same on all ranks."""

import math

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.halo import Halo
from md.domain.on_device import migration
from md.domain.on_device.layout import LEAST, Layout
from md.domain.on_device.migration import Places, RowKeys, bins_of_absent
from md.domain.on_device.rank_arrays import COUNTS, LIVE, NO_PARTICLE, NO_ROOM
from tests.md.domain.test_ahead import device
from tests.md.domain.test_divided import gas, simulation
from tests.md.domain.test_partition import partition_of

SENT = [{1: 100, 2: 7}, {0: 0, 2: 250}, {0: 31, 1: 300}]


@pytest.mark.parametrize("more", [0.0, 0.1, 0.64])
def test_a_layout_is_the_same_on_all_ranks_and_has_room_for_all(more):
    def made(ranks):
        return Layout.of(ranks, 1000 + ranks.rank, 300, SENT[ranks.rank], more)

    layouts = in_turn(3, made)
    for one in layouts:
        for name in ("owned", "borders", "ghosts", "leaving"):
            assert np.array_equal(getattr(one, name), getattr(layouts[0], name))
    layout = layouts[0]
    counts = np.array([[SENT[a].get(b, -1) for b in range(3)] for a in range(3)])
    assert (layout.ghosts[counts >= 0] >= (1 + more) * counts[counts >= 0]).all()
    assert (layout.ghosts[counts < 0] == 0).all()
    assert (layout.borders <= 2 * 300 + 2 * LEAST).all()
    assert (layout.owned >= (1 + more) * np.arange(1000, 1003)).all()
    if more:
        assert (layout.ghosts[counts == 0] > 0).all()
        assert (layout.leaving[counts >= 0] > 0).all()
    else:
        assert layout.owned.tolist() == [1000, 1001, 1002]
        assert np.array_equal(layout.ghosts, np.maximum(counts, 0))
    for at in range(3):
        ends = [layout.first_ghost(owner, at) + layout.ghosts[owner, at] for owner in range(3)]
        firsts = [layout.first_ghost(owner, at) for owner in range(3)]
        assert firsts == [layout.owned[at], *ends[:-1]]
        assert ends[-1] == layout.rows(at)


@pytest.mark.parametrize("order", ["row", "hilbert"])
@pytest.mark.parametrize("nearby", [False, True])
def test_places_are_own_cells_by_peers_then_those_of_each_rank(order, nearby):
    size = 4
    partition, parts = partition_of(size, order), 8
    cells = np.arange(partition.grid.size)

    def check(ranks):
        me, halo = ranks.rank, Halo(partition, ranks)
        places = Places(partition, halo, me, size, nearby=nearby)
        own = partition.owner == me
        assert sorted(places.table[own]) == list(range(own.sum()))
        assert places.own == parts * own.sum()
        borders, sent = places.usual(1000)
        assert borders == math.ceil(1000 * halo.borders / own.sum())
        assert (places.table[~own] >= own.sum()).all()
        for rank in range(size):
            first, last = places.first[rank : rank + 2]
            there = cells[(parts * places.table >= first) & (parts * places.table < last)]
            assert (partition.owner[there] == rank).all()
            assert me not in partition.owner[there]
            beside = halo._borders.get(rank)
            assert (beside is None) == (rank not in sent)
            if beside is None:
                continue
            assert sent[rank] == math.ceil(1000 * beside.sum() / own.sum())
            assert len(there) or not nearby
            listed = np.concatenate([np.arange(*run) for run in places.runs[rank].T])
            assert np.array_equal(np.unique(listed // parts), np.sort(places.table[beside]))
            assert listed.max() < places.border
        far = places.table == places.bins // parts - 1
        return int(far.sum()), sum(run.shape[1] for run in places.runs.values())

    found = in_turn(size, check)
    assert all(far == 1 for far, _ in found) or nearby
    assert max(runs for _, runs in found) < 12  # what a peer gets is in few pieces


def test_cells_have_fewer_keys_where_there_are_few_particles():
    partition = partition_of(2, "row")

    def parts_of(most):
        return in_turn(2, lambda ranks: Places(partition, Halo(partition, ranks), ranks.rank, 2, most).parts)

    assert parts_of(8 * partition.grid.size) == [2, 2]
    assert parts_of(8 * partition.grid.size - 1) == [1, 1]
    assert parts_of(0) == [1, 1]


def test_keys_that_cannot_be_numbered_are_an_error(monkeypatch):
    partition = partition_of(2, "row")
    monkeypatch.setattr(migration, "MOST_KEYS", partition.grid.size)

    def check(ranks):
        with pytest.raises(
            ValueError, match=rf"cells of a divided box.*less than {partition.grid.size}; take a longer"
        ):
            Places(partition, Halo(partition, ranks), ranks.rank, 2)

    in_turn(2, check)


@pytest.mark.parametrize("where", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_rows_without_a_particle_are_behind_all_cells(where):
    def check(ranks):
        sim = simulation(gas(600), ranks, backend=device(where))
        sim.run(30, phases=False)
        p, keys_of = sim.system.particles, sim.system.particles.row_keys
        assert isinstance(keys_of, RowKeys)
        assert keys_of.more == bins_of_absent(p.rows)
        grid, backend = sim.system.grid, sim.backend
        keys = backend.empty(p.rows, np.int32)
        keys_of.find(p.pos, backend.empty(0, np.int32), grid.record, grid.size, keys)
        found, id, words = (backend.download(one) for one in (keys, p.id, p.words))
        live = id[: p.n] >= 0
        assert live.sum() == words[0]
        assert not words[NO_ROOM]
        assert np.array_equal(found[: p.n] < grid.size, live)
        ghosts = words[COUNTS + ranks.size :].sum()
        assert (found[p.n :] < grid.size).sum() == ghosts > 0
        absent = found[found >= grid.size]
        assert absent.max() < grid.size + keys_of.more
        assert np.bincount(absent - grid.size).max() <= 32
        return words[0]

    assert sum(in_turn(3, check)) == 600


@pytest.mark.parametrize("transport", ["host", "peer"])
def test_packed_rows_begin_where_a_device_loads_four_numbers_at_once(transport):
    def check(ranks):
        division = md.Division(transport=transport)
        sim = simulation(gas(603), ranks, backend=device("emulated"), division=division, precision="float32")
        sim.run(3, phases=False)
        p = sim.system.particles
        assert [sim.backend.address_of(pos) % 16 for pos, _ in p.sets] == [0, 0]
        return p.rows

    rows = in_turn(2, check)
    assert transport == "peer" or any(count % 2 for count in rows)


def test_runs_of_a_system_are_read_as_if_rows_had_never_been_laid_out():
    def check(ranks):
        sim = simulation(gas(600), ranks, backend=device("emulated"))
        sim.run(30, phases=False)
        p = sim.system.particles
        assert p.layout is not None
        assert p.rows > 600
        state = sim.state
        assert p.layout is None
        assert p.row_keys is None
        assert p.n <= p.rows
        sim.run(30, phases=False)
        assert p.layout is not None
        with pytest.raises(RuntimeError, match="packed by `lay_out` alone"):
            sim.state and p.pack()
        return np.sort(state.id)

    for id in in_turn(2, check):
        assert np.array_equal(id, np.arange(600))


@pytest.mark.parametrize("where", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("turn", [0, 1])
def test_a_copy_is_stored_in_the_same_rows_again(where, turn):
    def check(ranks):
        sim = simulation(gas(600), ranks, backend=device(where))
        sim.run(30, phases=False)
        p, down = sim.system.particles, sim.backend.download
        p.keep_copy(turn)
        numbers, ids = map(down, p.copy_out())
        live = int(down(p.words)[LIVE])
        for rows in p.sets:
            rows[0][...] = 7.0
        p.restore(turn)
        found = [down(one) for one in p.copy_out()]
        assert np.array_equal(found[0][: p.each * live], numbers[: p.each * live])
        assert not found[0][p.each * live :].any()  # no ghosts, and nothing in rows without a particle
        assert np.array_equal(found[1][: p.n], ids[: p.n])
        assert ((ids[: p.n] != NO_PARTICLE) == (np.arange(p.n) < live)).all()
        assert down(p.words)[:COUNTS].tolist() == [live, live, 0, 0]
        return live

    assert sum(in_turn(2, check)) == 600


def test_md_division_has_three_transports():
    assert [md.Division(transport=name).transport for name in ("peer", "nccl", "host")] == [
        "peer",
        "nccl",
        "host",
    ]
