"""A reorder sorts memory by the rank of the cell, when its trigger says so, and changes nothing else."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from tests import tiers
from tests.strategies import ORDERINGS, clouds

STILL = md.laws.SpringDashpot(0.0, 0.0)
ORDERED = pytest.mark.parametrize(("name", "dim"), [place for place in ORDERINGS if place[1] in (2, 3)])


def cell_ranks(state: md.State, name: str, backend: str) -> np.ndarray:
    """Rank of the cell of each particle, in memory order."""
    grid = md.particles.cell_grid.CellGrid(state.box, 1.0, np.dtype(float), md.backend.get(backend))
    shape, lengths = np.array(grid.shape), np.array(state.box.lengths)
    cells = np.minimum((state.pos / lengths * shape).astype(int), shape - 1)
    return sfc.covering(name, grid.shape).rank(cells)


def resting_gas(dim: int, n: int = 300, periodic: bool = True) -> md.State:
    box = md.Box((11.7, 6.2, 4.9)[:dim], periodic)
    generator = np.random.default_rng(dim)
    pos = generator.random((n, dim)) * np.array(box.lengths)
    return md.State(pos, np.zeros((n, dim)), box, id=generator.permutation(n))


def reordered(state, name, backend, schedule=None, **options):
    reorder = md.Reorder(name, schedule or md.Every(1))
    options = {"law": STILL, "search": "linked", "dt": 1e-3} | options
    return md.Simulation(state, reorder=reorder, backend=backend, **options)


@pytest.mark.parametrize("lengths", [(5, 6.99, 2), (1.0, 9.5, 3.2), (0.4, 2.0, 100.0), (2.5, 7.2)])
def test_cells_are_no_narrower_than_the_cutoff(lengths, backend):
    box = md.Box(lengths, False)
    for cutoff in (1.0, 0.8):
        shape = md.particles.cell_grid.CellGrid(box, cutoff, np.dtype(float), md.backend.get(backend)).shape
        for length, cells in zip(lengths, shape, strict=True):
            assert cells == 1 or length / cells >= cutoff
            assert cells >= np.floor(length / cutoff) - 1


@ORDERED
@pytest.mark.parametrize("periodic", [True, False])
def test_memory_follows_the_ordering_of_the_cells(name, dim, periodic, backend):
    state = resting_gas(dim, periodic=periodic)
    assert (np.diff(cell_ranks(state, name, backend).astype(int)) < 0).any()
    simulation = reordered(state, name, backend)
    simulation.run(1)
    assert (np.diff(cell_ranks(simulation.state, name, backend).astype(int)) >= 0).all()


@ORDERED
def test_coherent_lays_memory_along_its_cell_order(name, dim, backend):
    state = resting_gas(dim)
    simulation = md.Simulation(state, STILL, search=md.search.Coherent(name), dt=1e-3, backend=backend)
    simulation.run(1)
    assert (np.diff(cell_ranks(simulation.state, name, backend).astype(int)) >= 0).all()


@pytest.mark.quick
@pytest.mark.parametrize("dim", [2, 3])
def test_particles_of_one_cell_keep_their_order(dim, backend):
    state = resting_gas(dim)
    simulation = reordered(state, "row", backend)
    simulation.run(1)
    ranks = cell_ranks(state, "row", backend)
    assert np.array_equal(simulation.state.id, state.id[np.argsort(ranks, kind="stable")])


@pytest.mark.quick
@tiers.examples(30)
@given(state=clouds(), name=st.sampled_from([name for name in sfc.orderings(2) if name in sfc.orderings(3)]))
def test_every_particle_keeps_its_place_speed_and_id(backend, state, name):
    simulation = reordered(md.State(state.pos, np.zeros_like(state.vel), state.box, state.id), name, backend)
    simulation.run(2)
    after = simulation.state.by_id()
    assert np.array_equal(after.id, np.sort(state.id))
    assert np.array_equal(after.pos, state.by_id().pos)


@pytest.mark.parametrize(
    ("search", "precision"),
    tiers.by_default(
        product(
            sorted(s for s, kind in md.search.SEARCHES.items() if not kind.capabilities.moves_particles),
            ("float64", "float32"),
        ),
        lambda search, precision: precision == "float64" or search == "linked",
    ),
)
def test_a_reorder_changes_no_physics(search, precision, backend):
    state = md.scenes.benchmark_gas(216, 0.3)
    law = md.scenes.BENCHMARK_LAW
    moved = reordered(state, "hilbert", backend, md.Every(7), law=law, search=search, precision=precision)
    still = md.Simulation(state, law, search=search, dt=1e-3, precision=precision, backend=backend)
    moved.run(60)
    still.run(60)
    assert not np.array_equal(moved.state.id, still.state.id)
    tolerance = 1e-11 if precision == "float64" else 1e-3
    assert np.abs(moved.state.by_id().pos - still.state.by_id().pos).max() < tolerance
    assert np.abs(still.state.by_id().pos - state.by_id().pos).max() > 0.1


@pytest.mark.quick
@pytest.mark.parametrize("interval", [1, 3, 10])
def test_every_reorders_at_step_0_and_each_interval_after(interval, backend):
    simulation = reordered(resting_gas(3), "hilbert", backend, md.Every(interval))
    simulation.run(5)
    simulation.run(8)
    assert simulation.timings.steps["reorder"] == list(range(0, 13, interval))


@pytest.mark.quick
def test_never_leaves_memory_as_it_is(backend):
    state = resting_gas(3)
    simulation = reordered(state, "hilbert", backend, md.Never())
    simulation.run(5)
    assert np.array_equal(simulation.state.id, state.id)
    assert len(simulation.timings.steps.get("reorder", [])) == 0


def test_a_schedule_is_any_function_of_the_step(backend):
    simulation = reordered(resting_gas(3), "hilbert", backend, lambda step: step in (2, 5))
    simulation.run(8)
    assert simulation.timings.steps["reorder"] == [2, 5]


def test_without_a_reorder_memory_stays(backend):
    state = resting_gas(2)
    simulation = md.Simulation(state, STILL, search="linked", dt=1e-3, backend=backend)
    simulation.run(5)
    assert np.array_equal(simulation.state.id, state.id)


def test_a_curve_of_one_s_own_orders_memory(backend):
    state = resting_gas(2)
    simulation = reordered(state, sfc.curve("peano", 2), backend)
    simulation.run(1)
    assert (np.diff(cell_ranks(simulation.state, "peano", backend).astype(int)) >= 0).all()


def test_one_reorder_serves_many_simulations(backend):
    reorder = md.Reorder("hilbert", md.Every(1))
    states = [resting_gas(3), resting_gas(2, n=50)]
    simulations = [
        md.Simulation(s, STILL, search="linked", dt=1e-3, reorder=reorder, backend=backend) for s in states
    ]
    for simulation in simulations:
        simulation.run(1)
    for simulation in simulations:
        assert (np.diff(cell_ranks(simulation.state, "hilbert", backend).astype(int)) >= 0).all()


def test_a_hilbert_reorder_raises_the_predicted_hits_of_shuffled_memory(backend):
    state = md.scenes.benchmark_gas(4096, 0.2)
    shuffled = md.Simulation(state, STILL, search="linked", dt=1e-6, backend=backend)
    ordered = reordered(state, "hilbert", backend, dt=1e-6)
    ordered.run(1)
    before, after = (sfc.cache.block(s.accesses(), 256).ratio for s in (shuffled, ordered))
    assert before < 0.1
    assert after > 0.5


class TestAtOnce:
    """`Simulation.reorder`."""

    def simulated(self, backend, mode="data", schedule=None, ordering="hilbert", n=1000, **options):
        state = md.scenes.benchmark_gas(n, 0.2, seed=3)
        state = state.take(np.random.default_rng(5).permutation(len(state)))
        schedule = md.Never() if schedule is None else schedule
        options = {"search": "linked", "dt": md.scenes.BENCHMARK_DT} | options
        reorder = None if mode is None else md.Reorder(ordering, schedule, mode=mode)
        return md.Simulation(state, md.scenes.BENCHMARK_LAW, reorder=reorder, backend=backend, **options)

    def hits(self, simulation) -> float:
        return sfc.cache.lru(simulation.accesses()).hits(64).ratio

    @pytest.mark.parametrize("mode", md.reorder.MODES)
    @pytest.mark.parametrize("schedule", [md.Every(10), md.Never(), md.Moved(0.5), md.Decayed()], ids=repr)
    def test_predicted_hits_are_those_of_the_order(self, mode, schedule, backend):
        simulation, unordered = (self.simulated(backend, m, schedule) for m in (mode, None))
        simulation.run(0)
        with pytest.warns(
            md.NotYetReordered, match=r"step 0: no reorder along 'hilbert' .*call sim\.reorder\(\)"
        ):
            before = self.hits(simulation)
        assert before == self.hits(unordered)
        simulation.reorder()
        assert self.hits(simulation) > before + 0.4
        assert simulation.timings.steps == {"reorder": [0]}
        step_taken = self.simulated(backend, mode, md.Every(10))
        step_taken.run(1)
        assert self.hits(simulation) == pytest.approx(self.hits(step_taken), abs=0.02)

    @pytest.mark.parametrize("mode", md.reorder.MODES)
    @pytest.mark.parametrize("search", ["naive", "linked", "scattered"])
    @pytest.mark.parametrize(
        ("integrator", "fused"),
        [("velocity_verlet", False), ("velocity_verlet", True), tiers.full("position_verlet", False)],
    )
    def test_changes_the_order_of_sums_and_nothing_else(self, mode, search, fused, integrator, backend):
        if fused and mode == "shadow":
            pytest.skip("is not fused")
        options = {"search": search, "fused": fused, "integrator": integrator}
        ordered, plain = (self.simulated(backend, m, n=200, **options) for m in (mode, None))
        for steps in (0, 1, 17, 30):
            for run in (ordered, plain):
                run.run(steps, phases=False)
            ordered.reorder()
            ends = [run.state.by_id() for run in (ordered, plain)]
            np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=1e-11)
            np.testing.assert_allclose(ends[0].vel, ends[1].vel, atol=1e-8)
            assert np.array_equal(ordered.pairs(), plain.pairs())
        assert ordered.timings.steps["reorder"] == [0, 1, 18, 48]

    def test_sorts_by_the_rank_of_the_cell(self, backend):
        simulation = self.simulated(backend, ordering="row")
        simulation.run(3)
        simulation.reorder()
        state = simulation.state
        assert (np.diff(cell_ranks(state, "row", backend)) >= 0).all()
        before = state.id
        simulation.reorder()
        assert np.array_equal(simulation.state.id, before)  # it is stable

    def test_is_seen_by_the_schedule(self, backend):
        class DueTrigger(md.reorder.ActiveTrigger):
            def is_due(self, step):
                return step >= self._last + 5

        class Due(md.reorder.RunTrigger):
            def build(self, system):
                return DueTrigger(system)

        simulation = self.simulated(backend, schedule=Due())
        simulation.run(3)
        simulation.reorder()
        simulation.run(10)
        assert simulation.timings.steps["reorder"] == [0, 3, 8]
        auto = self.simulated(backend, schedule=md.Decayed("auto"))
        for _ in range(5):
            auto.reorder()
        assert auto.reordering.trigger.interval == 64
        auto.run(5)
        assert auto.timings.steps["reorder"] == [0]

    def test_goes_with_the_run_that_is_saved(self, backend, tmp_path):
        simulation = self.simulated(backend, "threads", search="scattered")
        simulation.run(4)
        simulation.reorder()
        simulation.save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        assert self.hits(loaded) == self.hits(simulation)
        for run in (simulation, loaded):
            run.run(6)
        assert np.array_equal(simulation.state.pos, loaded.state.pos)
        another = md.Simulation.load(tmp_path / "run.npz", reorder=md.Reorder("row", md.Never()))
        with pytest.warns(md.NotYetReordered, match="step 4: no reorder along 'row'"):
            another.accesses()

    @pytest.mark.parametrize("mode", md.reorder.MODES)
    def test_a_loaded_run_knows_whether_it_was_reordered(self, backend, mode, tmp_path):
        simulation = self.simulated(backend, mode, md.Never())
        simulation.run(3)
        simulation.save(tmp_path / "before.npz")
        with pytest.warns(md.NotYetReordered, match="step 3: no reorder along 'hilbert'"):
            md.Simulation.load(tmp_path / "before.npz", backend).accesses()
        simulation.reorder()
        simulation.save(tmp_path / "after.npz")
        md.Simulation.load(tmp_path / "after.npz", backend).accesses()

    def test_without_a_reorder_is_refused(self, backend):
        message = r'reorder = None; allowed: an md\.Reorder.*reorder=md\.Reorder\("hilbert", '
        with pytest.raises(ValueError, match=message):
            self.simulated(backend, None).reorder()
        with pytest.raises(ValueError, match=r"reorder = None; .*give search 'verlet' its cell_order"):
            self.simulated(backend, None, search="verlet").reorder()

    def test_after_a_fault_raises_it_again(self, backend):
        state = md.State([[1.0, 1, 1]], [[50.0, 0, 0]], md.Box((5, 5, 5), False))
        reorder = md.Reorder("row", md.Never())
        simulation = md.Simulation(state, STILL, dt=0.01, reorder=reorder, backend=backend)
        for act in (lambda: simulation.run(100), simulation.reorder):
            with pytest.raises(md.ParticleEscaped):
                act()
