"""What takes the new order is a choice of memory and work: in every mode the same particles do the same."""

from itertools import cycle, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from md.reorder import MODES
from tests import tiers
from tests.md.particles.test_layouts import CASES, start
from tests.md.reorder.test_reorder import STILL, cell_ranks, resting_gas
from tests.strategies import ORDERINGS, clouds

LAW = md.laws.SpringDashpot(stiffness=100.0, damping=1.0)
UNSORTED = sorted(name for name, kind in md.search.SEARCHES.items() if not kind.capabilities.moves_particles)
KEEPING = [mode for mode in MODES if mode != "data"]
every_search = pytest.mark.parametrize("search", UNSORTED)
every_mode = pytest.mark.parametrize("mode", KEEPING)


def simulated(
    state, mode, backend, search="linked", schedule=None, ordering="hilbert", via="device", **options
):
    """A simulation under a reorder of a mode; without one for None."""
    schedule = md.Every(1) if schedule is None else schedule
    reorder = None if mode is None else md.Reorder(ordering, schedule, mode=mode, via=via)
    options = {"law": LAW, "dt": 1e-3, "allow_overlap": True} | options
    return md.Simulation(state, search=search, reorder=reorder, backend=backend, **options)


def forces_of(simulation, law) -> np.ndarray:
    """(n, dim) forces of another law at the present positions, by id."""
    simulation.search.update()
    out, down = simulation.system.scratch("force"), simulation.backend.download
    simulation.search.force(law, out)
    return down(out)[np.argsort(down(simulation.system.particles.id))]


def shuffled(state: md.State) -> md.State:
    """The same particles in another memory order, under names that are not their slots."""
    order = np.random.default_rng(1).permutation(len(state))
    named = md.State(state.pos, state.vel, state.box, id=3 * np.arange(len(state)) + 1)
    return named.take(order)


def same_run(one, other, tolerance: float) -> None:
    """Whether two simulations hold the same particles, by name, within rounding, and find the same pairs."""
    ours, theirs = one.state.by_id(), other.state.by_id()
    assert np.array_equal(ours.id, theirs.id)
    np.testing.assert_allclose(ours.pos, theirs.pos, atol=tolerance, rtol=0)
    np.testing.assert_allclose(ours.vel, theirs.vel, atol=10 * tolerance, rtol=0)
    np.testing.assert_allclose(one.forces(), other.forces(), atol=1000 * tolerance, rtol=0)
    assert np.array_equal(one.pairs(), other.pairs())


def rows(stream) -> dict[int, list[int]]:
    """Reader -> what it reads, sorted: a linked list has any order on a device."""
    split = np.split(stream.reads, stream.offsets[1:-1])
    return {int(k): sorted(row.tolist()) for k, row in zip(stream.readers, split, strict=True)}


@every_mode
@pytest.mark.parametrize(
    ("search", "layout", "precision", "dim", "periodic"),
    [
        ("linked", "aos", "float64", 3, (True, True, False)),
        ("scattered", "aos", "float64", 3, (False, True, True)),
        ("naive", "aos", "float64", 3, (True, False, False)),
        tiers.full("naive", "aos", "float64", 2, (True, False)),
        *(tiers.nightly(search, *case) for search, case in zip(cycle(UNSORTED), CASES[1::2], strict=False)),
    ],
)
def test_every_mode_takes_the_particles_where_mode_data_does(
    search, mode, layout, precision, dim, periodic, backend
):
    state = shuffled(start(dim, periodic))
    options = {"search": search, "schedule": md.Every(6), "layout": layout, "precision": precision}
    kept, moved = (simulated(state, m, backend, **options) for m in (mode, "data"))
    for simulation in (kept, moved):
        simulation.run(20)
    same_run(kept, moved, 1e-4 if precision == "float32" else 1e-11)
    assert len(kept.pairs()) > 50
    assert np.array_equal(kept.state.id, state.id)
    assert not np.array_equal(moved.state.id, state.id)
    assert np.abs(kept.state.vel - state.vel).max() > 0.1


@every_mode
@pytest.mark.parametrize("name", [name for name, dim in ORDERINGS if dim == 3])
def test_the_work_follows_the_ordering_of_the_cells(name, mode, backend):
    state = resting_gas(3)
    simulation = simulated(state, mode, backend, law=STILL, ordering=name)
    simulation.run(1)
    ranks = cell_ranks(state, name, backend)
    stream = simulation.accesses()
    order = np.argsort(ranks, kind="stable")
    if mode == "threads":
        assert np.array_equal(stream.readers, order)
    else:
        plain = rows(simulated(state, None, backend, law=STILL).accesses())
        place = np.argsort(order)
        assert rows(stream) == {k: sorted(place[plain[int(i)]].tolist()) for k, i in enumerate(order)}


@every_search
def test_threads_change_the_order_of_readers_but_not_their_reads(search, backend):
    state = resting_gas(3)
    worked, plain = (simulated(state, m, backend, search, law=STILL) for m in ("threads", None))
    worked.run(1)
    stream = worked.accesses()
    assert not np.array_equal(stream.readers, np.arange(len(state)))
    assert rows(stream) == rows(plain.accesses())


@every_search
def test_the_force_kernel_takes_the_slots_of_the_work_order_and_no_other(search, backend):
    simulation = simulated(resting_gas(3), "threads", backend, search, schedule=md.Never())
    simulation.search.build()
    slots = np.array([17, 4, 250], np.int32)
    simulation.system.particles.work[...] = simulation.backend.upload(np.resize(slots, len(simulation)))
    force = simulation.system.scratch("force")
    force[...] = np.nan
    simulation.search.force(LAW, force)
    written = np.isfinite(simulation.backend.download(force)).all(axis=1)
    assert np.flatnonzero(written).tolist() == sorted(slots)


@every_search
def test_the_shadow_is_read_as_the_sorted_particles_are(search, backend):
    state = resting_gas(3)
    streams = []
    for mode in ("shadow", "data"):
        simulation = simulated(state, mode, backend, search, law=STILL)
        simulation.run(3)
        streams.append(simulation.accesses())
    assert np.array_equal(streams[0].readers, np.arange(len(state)))
    assert rows(streams[0]) == rows(streams[1])


def order_of(simulation) -> list[int]:
    return simulation.reordering.state_dict()["order"].tolist()


@every_mode
def test_between_two_reorders_the_order_of_the_last_one_stays(mode, backend):
    state = shuffled(start(3, (True, True, True)))
    twice, once = (
        simulated(state, mode, backend, schedule=lambda step, last=last: step in (0, last))
        for last in (20, 0)
    )
    once.run(1)
    first = order_of(once)
    for simulation in (twice, once):
        simulation.run(20 - simulation.step)
        assert order_of(simulation) == first
    for simulation in (twice, once):
        simulation.run(1)
    assert order_of(once) == first != order_of(twice)
    same_run(twice, once, 1e-11)


@pytest.mark.quick
@every_mode
@pytest.mark.parametrize(
    "schedule",
    [md.Never(), md.Every(4), md.Moved(0.05, 1), md.Decayed(0.01, 2)],
    ids=lambda schedule: type(schedule).__name__,
)
def test_any_schedule_serves_any_mode(mode, schedule, backend):
    state = shuffled(start(3, (True, True, False)))
    kept, moved, plain = (simulated(state, m, backend, schedule=schedule) for m in (mode, "data", None))
    for simulation in (kept, moved, plain):
        simulation.run(30)
    same_run(kept, plain, 1e-11)
    if not isinstance(schedule, md.Decayed):  # goes by times
        assert kept.timings.steps.get("reorder", []) == moved.timings.steps.get("reorder", [])


@pytest.mark.parametrize(
    ("search", "precision"),
    tiers.by_default(
        product(UNSORTED, ("float64", "float32")),
        lambda search, precision: precision == "float64" or search == "linked",
    ),
)
def test_threads_take_a_fused_step(search, precision, backend):
    state = shuffled(start(3, (True, True, True)))
    options = {"search": search, "schedule": md.Every(6), "precision": precision}
    fused, plain = (simulated(state, "threads", backend, fused=f, **options) for f in (True, False))
    for simulation in (fused, plain):
        simulation.run(20)
    same_run(fused, plain, 1e-4 if precision == "float32" else 1e-11)
    assert np.array_equal(fused.state.id, state.id)


@every_mode
def test_the_order_found_on_the_host_is_the_same(mode, backend):
    state = shuffled(start(3, (True, False, True)))
    here, there = (simulated(state, mode, backend, via=via) for via in ("device", "host"))
    for simulation in (here, there):
        simulation.run(5)
    same_run(here, there, 1e-11)
    one, other = here.accesses(), there.accesses()
    assert np.array_equal(one.readers, other.readers)
    assert rows(one) == rows(other)


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
@every_mode
@every_search
@tiers.examples(20)
@given(data=st.data())
def test_any_cloud_has_the_forces_and_pairs_of_all_pairs(search, mode, dim, backend, data):
    state = data.draw(clouds(dims=st.just(dim)))
    ordering = data.draw(st.sampled_from([name for name, dim in ORDERINGS if dim == state.box.dim]))
    state = md.State(state.pos, np.zeros_like(state.vel), state.box, state.id)
    found = simulated(state, mode, backend, search, ordering=ordering, law=STILL)
    found.run(1)
    plain = simulated(found.state, None, backend, "naive")
    assert np.array_equal(found.pairs(), plain.pairs())
    np.testing.assert_allclose(forces_of(found, LAW), plain.forces(), atol=1e-9, rtol=0)
    assert np.array_equal(found.state.id, state.id)


@every_mode
def test_looking_changes_no_run(mode, backend):
    state = shuffled(start(3, (True, True, True)))
    watched, alone = (simulated(state, mode, backend, schedule=md.Every(4)) for _ in range(2))
    for _ in range(5):
        watched.run(3)
        for look in (watched.pairs, watched.forces, watched.accesses, lambda: watched.state):
            look()
    alone.run(15)
    same_run(watched, alone, 1e-11)


def test_one_reorder_serves_many_simulations_in_every_mode(backend):
    for mode in KEEPING:
        reorder = md.Reorder("hilbert", md.Every(2), mode=mode)
        states = [resting_gas(3), resting_gas(2, n=50)]
        simulations = [
            md.Simulation(s, LAW, dt=1e-3, reorder=reorder, backend=backend, allow_overlap=True)
            for s in states
        ]
        for simulation in simulations:
            simulation.run(3)
        for simulation, state in zip(simulations, states, strict=True):
            alone = simulated(state, "data", backend, schedule=md.Every(2))
            alone.run(3)
            same_run(simulation, alone, 1e-11)
            assert len(simulation.accesses().readers) == len(state)


def test_a_cache_finds_what_neighbouring_work_has_read(backend):
    state = md.scenes.in_memory_order(md.scenes.benchmark_gas(4096, 0.2), "shuffled", 0)
    streams = {}
    for mode in (None, *MODES):
        simulation = simulated(state, mode, backend, law=STILL, dt=1e-6)
        simulation.run(1)
        streams[mode] = simulation.accesses()
    recent = {mode: sfc.cache.lru(stream).hits(256).ratio for mode, stream in streams.items()}
    assert recent["threads"] > 0.8 > 0.3 > recent[None]
    blocks = {mode: sfc.cache.block(stream, 256).ratio for mode, stream in streams.items()}
    assert blocks["threads"] == blocks[None]
    assert blocks["shadow"] == blocks["data"] > 0.5


def test_an_unknown_mode_lists_those_known():
    with pytest.raises(
        ValueError, match="unknown mode of Reorder 'moon'; allowed: one of data, threads, shadow"
    ):
        md.Reorder("row", md.Never(), mode="moon")


def test_a_fused_step_on_a_shadow_is_refused(backend):
    with pytest.raises(
        ValueError, match=r"mode 'shadow' with fused=True .*allowed: fused=False, or mode 'data'"
    ):
        simulated(resting_gas(3), "shadow", backend, fused=True)


@every_mode
@pytest.mark.parametrize("search", sorted(set(md.search.SEARCHES) - set(UNSORTED)))
def test_a_search_that_sorts_refuses_every_mode(search, mode, backend):
    with pytest.raises(ValueError, match=rf"'{search}' sorts the data itself.*cell_order='hilbert'"):
        simulated(resting_gas(3), mode, backend, search)
