"""Neighbour lists used for several steps: rebuilt in time, as seldom as possible, with enough room."""

import re
from itertools import product
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

import md
import sfc
from md.boundaries.external_field import ExternalField
from md.laws.pair import kernel_law
from md.search.grid import naive
from md.search.lists import list_search
from md.search.lists.list_search import most_room
from md.search.lists.step_costs import StepCosts
from tests import tiers
from tests.strategies import clouds

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=1.0)
BOIDS = md.laws.Boids()
FREE = md.laws.SpringDashpot(stiffness=0.0, damping=0.0)
DT = 1e-2
CASES = [  # dim, periodic, fused, step in d: pairwise, but for fused steps in 2D
    (3, True, False, 0.09),
    (3, False, True, 0.09),
    (3, True, True, 0.4),
    (2, True, False, 0.145),
    (2, False, False, 0.4),
]


def simulated(state, search, backend, law=LAW, **options) -> md.Simulation:
    return md.Simulation(state, law, search=search, dt=DT, backend=backend, **options)


def builds(simulation: md.Simulation) -> int:
    return simulation.search.builds


def clump(n: int, dim: int, box: md.Box, seed: int = 3) -> np.ndarray:
    """Positions within half a diameter of the middle of the box, so that all particles touch each other."""
    around = np.random.default_rng(seed).uniform(-0.25, 0.25, (n, dim))
    return np.array(box.lengths) / 2 + around


def head_on(dim: int, step: float, periodic: bool) -> md.State:
    """A crowd at rest; two particles fly at each other along a free lane, a third into the crowd.

    They start at `step` diameters in a time step.
    """
    box = md.Box((12.0, 9.6, 6.0)[:dim], periodic)
    sites = np.meshgrid(*[0.6 + 1.2 * np.arange(round(length / 1.2)) for length in box.lengths])
    crowd = np.stack(sites, -1).reshape(-1, dim)
    middle = np.array(box.lengths)[1:] / 2
    crowd = crowd[np.linalg.norm(crowd[:, 1:] - middle, axis=1) > 1.1]
    pos = np.vstack([[1.0, *middle], [11.0, *middle], crowd])
    vel = np.zeros_like(pos)
    vel[:3, 0] = step / DT, -step / DT, step / DT
    return md.State(pos, vel, box)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("dim", "periodic", "fused", "step"),
    tiers.by_default(
        [
            *(case if case[0] == 3 else tiers.full(*case) for case in CASES),
            *(
                case
                for case in product((2, 3), (True, False), (False, True), (0.09, 0.145, 0.4))
                if case not in CASES
            ),
        ],
        lambda *case: case in CASES,
    ),
)
def test_no_pair_is_missed_at_any_step(backend, dim, periodic, fused, step):
    state = head_on(dim, step, periodic)
    expected = simulated(state, "naive", backend)
    found = simulated(state, md.search.Verlet(skin=0.3), backend, fused=fused)
    met = 0
    for _ in range(round(4.8 / step)):
        expected.run(1)
        found.run(1)
        pairs = found.pairs()
        assert np.array_equal(pairs, expected.pairs())
        met += [0, 1] in pairs.tolist()
        one, other = expected.state.by_id(), found.state.by_id()
        assert np.abs(one.pos - other.pos).max() < 1e-9
        assert np.abs(one.vel - other.vel).max() < 1e-7
    assert met
    assert builds(found) > 3


def energy(state: md.State, law: md.laws.SpringDashpot) -> float:
    """Kinetic and spring energy in a periodic box, with pairs searched for again, in double precision."""
    lengths, pos = np.array(state.box.lengths), state.pos.astype(float)
    pairs = cKDTree(pos % lengths, boxsize=lengths).query_pairs(1.0, output_type="ndarray")
    dr = pos[pairs[:, 0]] - pos[pairs[:, 1]]
    dr -= lengths * np.round(dr / lengths)
    kinetic = (state.vel.astype(float) ** 2).sum() / 2
    return kinetic + law.potential(np.linalg.norm(dr, axis=1)).sum()


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("skin", [0.1, 0.3, 0.75])
def test_a_gas_without_damping_keeps_its_energy_over_many_rebuilds(skin, precision, backend):
    """A list that is late gains energy: its pairs overlap before the law sees them.

    The bound is four times the deviation with pairs found at every step (`coherent`: 1.5e-4 in 10^5 steps).
    """
    law = md.laws.SpringDashpot(md.scenes.BENCHMARK_LAW.stiffness, 0.0)
    gas = md.scenes.benchmark_gas(4096, 0.2, backend=backend)
    simulation = md.Simulation(
        gas, law, search=md.search.Verlet(skin=skin), dt=md.scenes.BENCHMARK_DT, backend=backend,
        precision=precision, fused=True,
    )  # fmt: skip
    start = energy(simulation.state, law)
    for _ in range(10):
        simulation.run(10_000, phases=False)
        assert energy(simulation.state, law) == pytest.approx(start, rel=6e-4)
    assert builds(simulation) > 1000


@pytest.mark.quick
def test_lists_are_rebuilt_when_two_particles_may_have_closed_the_skin(backend):
    state = md.State([[1.0, 1, 1]], [[0.05 / DT, 0, 0]], md.Box((9, 9, 9)))
    simulation = simulated(state, md.search.Verlet(skin=0.4), backend, FREE)
    assert builds(simulation) == 0
    counted = []
    for _ in range(17):
        simulation.run(1)
        counted.append(builds(simulation))
    assert counted == [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5]  # half the skin is four steps


def test_lists_of_particles_at_rest_are_made_once(backend):
    state = md.scenes.benchmark_gas(64, 0.2)
    still = md.State(state.pos, np.zeros_like(state.pos), state.box)
    simulation = simulated(still, "verlet", backend)
    simulation.run(30)
    simulation.pairs()
    assert builds(simulation) == 1


@pytest.mark.quick
def test_without_a_skin_lists_are_made_at_every_step(backend):
    state = head_on(3, 0.01, True)
    simulation = simulated(state, md.search.Verlet(skin=0), backend)
    simulation.run(7)
    assert builds(simulation) == 7


class TestTheSkin:
    BOX = md.Box((5.0, 6.0, 7.0), (True, True, False))

    def test_too_wide_for_the_box_is_refused(self, backend):
        state = md.State([[1.0, 1, 1]], [[0.0, 0, 0]], self.BOX)
        refusal = (
            r"skin = 1\.6 in a box of \(5\.0, 6\.0, 7\.0\); allowed: up to 1\.5, half the shortest periodic "
            r"axis less the cutoff 1\.0; enlarge the box or take skin=None"
        )
        with pytest.raises(ValueError, match=refusal):
            simulated(state, md.search.Verlet(skin=1.6), backend)

    @pytest.mark.parametrize("skin", [-0.1, np.nan, np.inf, "wide", True, [0.1]])
    def test_that_is_none_is_refused(self, skin):
        error = ValueError if isinstance(skin, float | str) else TypeError
        with pytest.raises(error, match=r"skin of Verlet = .*; allowed: .*'auto'.*None for"):
            md.search.Verlet(skin=skin)

    @pytest.mark.parametrize("skin", [1.5, None])
    def test_may_fill_the_box(self, backend, skin):
        pos = np.random.default_rng(1).random((80, 3)) * self.BOX.lengths
        state = md.State(pos, np.zeros_like(pos), self.BOX)
        found = simulated(state, md.search.Verlet(skin=skin), backend)
        assert np.array_equal(found.pairs(), simulated(state, "naive", backend).pairs())


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
@pytest.mark.parametrize("crowd", [0, 500])
def test_a_start_that_overlaps_makes_room(backend, dim, crowd):
    n = 40
    box = md.Box((30.0,) * dim)
    away = np.random.default_rng(0).uniform(0, 12, (crowd, dim))
    pos = np.vstack([clump(n, dim, box), away])
    state = md.State(pos, np.zeros_like(pos), box)
    found = simulated(state, "verlet", backend)
    pairs = found.pairs()
    assert np.array_equal(pairs, simulated(state, "naive", backend).pairs())
    assert (pairs < n).all(axis=1).sum() == n * (n - 1) // 2 > list_search.ROOM * n // 2
    stream = found.accesses()
    assert (np.diff(stream.offsets) < len(pos)).all()


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
@tiers.examples(8)
@given(data=st.data())
def test_any_cell_order_gives_the_same_pairs(dim, backend, data):
    state = data.draw(clouds(dims=st.just(dim)))
    expected = simulated(state, "naive", backend).pairs()
    for name in sfc.orderings(dim):
        assert np.array_equal(simulated(state, md.search.Verlet(name), backend).pairs(), expected), name


@pytest.mark.parametrize("fused", [tiers.full(False), True])
def test_any_cell_order_gives_the_same_run(backend, fused):
    state, ends = md.scenes.benchmark_gas(216, 0.3), {}
    for name in ("naive", *sfc.orderings(3)):
        simulation = md.Simulation(
            state, md.scenes.BENCHMARK_LAW, search=name if name == "naive" else md.search.Verlet(name),
            dt=md.scenes.BENCHMARK_DT, backend=backend, fused=fused and name != "naive",
        )  # fmt: skip
        simulation.run(60)
        ends[name] = simulation.state.by_id()
    for name, end in ends.items():
        assert np.abs(end.pos - ends["naive"].pos).max() < 1e-9, name


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_position_that_is_none_ends_in_a_named_fault(backend, fused, value):
    simulation = simulated(md.scenes.benchmark_gas(125, 0.2), "verlet", backend, fused=fused)
    simulation.run(3)
    particle = int(simulation.backend.download(simulation.system.particles.id)[7])
    simulation.system.particles.vel[7] = value
    for _ in range(2):
        with pytest.raises(md.NonFiniteState, match=f"step 3: particle {particle} has"):
            simulation.run(20)
    pos = simulation.backend.download(simulation.system.particles.pos)
    assert np.isfinite(pos).all()  # what is in memory still has a cell


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_lists_that_found_no_memory_are_not_taken_for_lists(fails_at, backend, monkeypatch):
    state = md.scenes.benchmark_gas(1000, 0.3)
    simulation = simulated(state, "verlet", backend)
    expected = simulation.pairs()
    search, empty, calls = simulation.search, type(simulation.backend).empty, []
    search._allocate_lists(1000 // (8 if simulation.backend.runs_ahead else 1))

    def out_of_memory(self, shape, dtype):
        calls.append(shape)
        if len(calls) >= fails_at + 1:  # the first frees the lists
            raise MemoryError
        return empty(self, shape, dtype)

    monkeypatch.setattr(search, "_usual_room", lambda: 1000)
    with monkeypatch.context() as patch:
        patch.setattr(type(simulation.backend), "empty", out_of_memory)
        for _ in range(2):
            with pytest.raises(MemoryError):
                search._allocate_lists(5000)
    assert np.array_equal(simulation.pairs(), expected)
    search._free_lists()
    search._reference_pos[:] += 1.0  # all particles have moved far
    assert np.array_equal(simulation.pairs(), expected)


@pytest.mark.quick
def test_a_skin_whose_lists_have_no_memory_is_given_up(backend, monkeypatch):
    monkeypatch.setattr(StepCosts, "BUILD_LAUNCHES", 0.0)  # a default between the ends of the range
    simulation = simulated(md.scenes.benchmark_gas(1000, 0.3), md.search.Verlet(skin="auto"), backend)
    expected, search = simulation.pairs(), simulation.search
    width, allocate = search.skin.width, type(search)._allocate

    def none_for_a_wide_skin(self, lists=True):
        if self.skin.width > width:
            raise MemoryError
        allocate(self, lists)

    monkeypatch.setattr(type(search), "_allocate", none_for_a_wide_skin)
    search.skin._tuner.measured(1.0)
    assert search.skin.proposed > width
    search.update(force=True)
    assert search.skin.width == width
    assert search.skin.proposed < width
    assert np.array_equal(simulation.pairs(), expected)


@pytest.mark.quick
def test_more_lists_on_a_device_than_its_kernels_number_are_refused(monkeypatch):
    search = simulated(md.scenes.benchmark_gas(1000, 0.3), "verlet", "cpu").search
    monkeypatch.setattr(search.backend, "runs_ahead", True, raising=False)
    monkeypatch.setattr(search, "_rows", 2)
    most = most_room(2, search.particles.n)
    assert most == 2**32 - 2 * search.particles.n
    with pytest.raises(ValueError, match=rf"need 2 rows and a pool of {most + 1} rows; .* up to {most}"):
        search._allocate_lists(most + 1)
    assert most_room(2, 2**31 - 1) == 2


@pytest.mark.parametrize("precision", [tiers.full("float32"), "float64"])
@pytest.mark.parametrize("skin", [0.0, 1e-6, 0.3])
def test_pairs_that_touch_across_a_side_of_a_long_box_are_listed(precision, skin, backend):
    generator = np.random.default_rng(8)
    n, box = 2000, md.Box((512.0, 512.0, 4.0))
    one = np.column_stack([generator.uniform(0, 0.5, n), generator.permutation(n) * 512 / n, np.full(n, 2.0)])
    other = one.copy()
    other[:, 0] += 512 - 1 + generator.uniform(-3e-5, 3e-5, n)
    state = md.State(box.wrap(np.vstack([one, other])), np.zeros((2 * n, 3)), box)
    found = simulated(state, md.search.Verlet(skin=skin), backend, precision=precision)
    expected = simulated(state, "linked", backend, precision=precision)
    pairs = expected.pairs()
    assert 500 < len(pairs) < 20 * n
    assert np.array_equal(found.pairs(), pairs)


def fused_on_the_cpu(law, precision: str) -> md.Simulation:
    """A run of fused steps with lists, of spheres or of boids."""
    options = {"search": "verlet", "backend": "cpu", "precision": precision, "fused": True}
    if law is BOIDS:
        flock = md.scenes.flock(500, md.Box((40.0, 40.0, 40.0)))
        walled = md.State(flock.pos, flock.vel, md.Box((40.0, 40.0, 40.0), (True, True, False)))
        walls = md.Walls(contact_time=0.5)
        return md.Simulation(walled, law, integrator="flight", dt=0.01, walls=walls, **options)
    gas = md.scenes.benchmark_gas(2000, 0.2)
    return md.Simulation(gas, law, dt=md.scenes.BENCHMARK_DT, **options)


@pytest.mark.parametrize("precision", [tiers.full("float32"), "float64"])
@pytest.mark.parametrize("law", [md.scenes.BENCHMARK_LAW, tiers.full(BOIDS)], ids=["spheres", "boids"])
class TestFusedStepsOnTheCpu:
    def test_bound_the_displacement(self, law, precision):
        simulation = fused_on_the_cpu(law, precision)
        policy, bounds = simulation.search.policy, []
        for _ in range(80):
            simulation.run(1)
            assert simulation.search._largest_displacement() <= policy._displacement_bound
            bounds.append(policy._displacement_bound / policy._skin.limit)
        assert 0 < min(bounds)
        assert 0.5 < max(bounds) < 2

    def test_are_those_that_measure_it_each_time(self, law, precision):
        found, expected = fused_on_the_cpu(law, precision), fused_on_the_cpu(law, precision)
        expected.search.policy.is_bounded = False
        looks = {}
        for simulation in (found, expected):
            policy = simulation.search.policy
            looks[simulation] = watched = Mock(wraps=policy._farthest)
            policy._farthest = watched
            simulation.run(200)
        assert builds(found) == builds(expected) > 2
        assert np.array_equal(found.state.pos, expected.state.pos)
        assert looks[expected].call_count > 190
        assert looks[found].call_count < 60


@pytest.mark.parametrize("search", ["verlet", "verlet_tree"])
def test_a_fused_run_without_particles_takes_its_steps(search, backend):
    nothing = md.State(np.empty((0, 3)), np.empty((0, 3)), md.Box((5, 5, 5)))
    simulation = md.Simulation(
        nothing, md.scenes.BENCHMARK_LAW, search=search, fused=True, dt=1e-4, backend=backend
    )
    simulation.run(3)
    assert simulation.step == 3


@pytest.mark.full  # the only fused step of lists in float32
def test_lists_far_beyond_an_open_side_are_not_too_old():
    """There a step of half the spacing of float32 moves a particle by the whole spacing."""
    far, dt = 36_000.0, 1e-3
    step = 0.51 * float(np.spacing(np.float32(far)))
    box = md.Box((40.0, 40.0, 40.0), (False, True, True), open=(True, False, False))
    start = md.State([[far, 20, 20], [far + 1.4, 20, 20]], [[step / dt, 0, 0], [-step / dt, 0, 0]], box)
    search = md.search.Verlet(skin=0.3)
    simulation = md.Simulation(
        start, FREE, search=search, dt=dt, backend="cpu", precision="float32", fused=True
    )
    for _ in range(70):
        simulation.run(1)
        assert simulation.search.policy.is_due or (
            simulation.search._largest_displacement() < simulation.search.skin.limit
        )


def counted_references(assembly: str) -> list[str]:
    """Instructions that name the function by which Numba counts references; its definition is there too."""
    return [line for line in assembly.splitlines() if re.search(r"^\s+[^.\s].*NRT_incref", line)]


def test_the_fused_step_counts_no_references_to_arrays():
    simulation = simulated(md.scenes.benchmark_gas(64, 0.2), "verlet", "cpu", fused=True)
    simulation.search.build()
    p, search = simulation.system.particles, simulation.search
    field = ExternalField(None, None, LAW, simulation.system, others=False)
    stepper = simulation.config.integrator.build(simulation.system, field)
    # Compiled here: a kernel from the cache comes without its assembly. Serial: a parallel one counts once a
    # call, for the largest speed.
    fresh = numba.njit(nogil=True, error_model="numpy")(naive.force.py_func)
    fresh(
        p.n, p.pos, p.vel, p.work, search.grid.record, kernel_law(LAW, search.grid.precision),
        stepper.fused_output(0, simulation.system.status.fault, search.policy.guard),
    )  # fmt: skip
    (assembly,) = fresh.inspect_asm().values()
    assert not counted_references(assembly)


def test_sums_of_boids_count_no_references_to_arrays():
    flock = md.scenes.flock(8, md.Box((12.0,) * 3))
    simulation = md.Simulation(flock, BOIDS, search="naive", integrator="flight", dt=0.2, backend="cpu")
    p, grid = simulation.system.particles, simulation.search.grid
    fresh = numba.njit(nogil=True, error_model="numpy")(naive.force.py_func)
    fresh(p.n, p.pos, p.vel, p.work, grid.record, kernel_law(BOIDS, grid.precision), np.empty_like(p.pos))
    (assembly,) = fresh.inspect_asm().values()
    assert not counted_references(assembly)
