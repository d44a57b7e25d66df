"""The check of the start; and the warning that a precision is too coarse for how slow the particles are."""

import warnings

import numpy as np
import pytest

import md
from md.backend import Cpu
from md.particles.state import pair_distances
from md.simulation.energy_monitor import least_stride
from tests import tiers
from tests.md.laws.alignment import Alignment

BENCHMARK = md.scenes.BENCHMARK_LAW
IDEAL = md.laws.SpringDashpot(0.0, 0.0)
BOX = md.Box((6.0, 300.0, 40.0))
DT = 1e-3


def flying(stride: float, backend: str, precision: str = "float32", law=IDEAL, **options) -> md.Simulation:
    """Particles far apart of which the typical one moves by so many d a step."""
    vel = np.zeros((3, 3))
    vel[0] = [2.0, 1.0, -2.0]  # one moves, two rest: the mean square is 3
    state = md.State([[1, 1, 1], [1, 100, 1], [1, 200, 20.5]], vel * (stride / DT / np.sqrt(3)), BOX)
    return md.Simulation(state, law, dt=DT, precision=precision, backend=backend, **options)


def steps_warned(run) -> list[int]:
    """Steps that the warnings of a run name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    assert all(w.category is md.FrozenPrecision for w in caught)
    return [int(str(w.message).split()[1].rstrip(":")) for w in caught]


@pytest.mark.parametrize(("precision", "ulp"), [("float32", 2.0**-15), ("float64", 2.0**-44)])
def test_the_limit_is_32_units_in_the_last_place_of_the_largest_side(precision, ulp):
    assert least_stride(BOX, np.dtype(precision)) == 32 * ulp
    assert least_stride(md.Box((300.0, 300.0)), np.dtype(precision)) == 32 * ulp


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("share", [1 - 1e-5, 0.5, 1e-6])
def test_slower_than_the_limit_warns(precision, share, backend):
    limit = least_stride(BOX, np.dtype(precision))
    simulation = flying(share * limit, backend, precision)
    with pytest.warns(md.FrozenPrecision) as caught:
        simulation.run(1)
    message = str(caught[0].message)
    assert f"{precision} freezes" in message
    assert f"{share * limit:.3g} d a step" in message
    assert f"allowed: at least {limit:.3g} d" in message
    assert "smaller box or a longer dt" in message
    assert ("precision='float64'" in message) == (precision == "float32")


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("share", [1 + 1e-5, 2.0, 100.0])
def test_faster_than_the_limit_does_not(precision, share, backend):
    simulation = flying(share * least_stride(BOX, np.dtype(precision)), backend, precision)
    assert steps_warned(lambda: simulation.run(20)) == []


def test_particles_at_rest_are_not_frozen(backend):
    assert steps_warned(lambda: flying(0.0, backend).run(20)) == []


def test_each_simulation_warns_once(backend):
    for _ in range(2):
        simulation = flying(1e-6, backend)

        def runs(simulation=simulation):
            simulation.run(200)
            simulation.run(200)
            simulation.state  # noqa: B018 - looking looks at the energy

        assert len(steps_warned(runs)) == 1


def test_one_that_slows_down_warns_where_it_first_is_too_slow(backend):
    """Two spheres that rub against each other until they hardly move: the dashpot alone, over and over."""
    law = md.laws.SpringDashpot(stiffness=1.0, damping=20.0)
    state = md.State([[1, 1, 1], [1.9, 1, 1]], [[6, 0, 0], [-6, 0, 0]], BOX)
    with pytest.warns(md.OverdampedContact):
        simulation = md.Simulation(state, law, dt=DT, precision="float32", backend=backend)
    step_times = []

    def runs():
        for _ in range(200):
            simulation.run(1)
            inside = simulation.device_view()  # reading the state measures the energy
            vel = inside.backend.download(inside.particles.vel).astype(float)
            step_times.append(np.sqrt((vel**2).sum(axis=1).mean()) * DT)

    limit = least_stride(BOX, np.dtype("float32"))
    warned = steps_warned(runs)
    slow = np.flatnonzero(np.array(step_times) < limit)
    assert warned == [slow[0] + 1]
    assert 1 < warned[0] < 200


def test_a_law_without_a_potential_is_looked_at_too(backend):
    law = Alignment(rate=0.0, push=0.0)
    assert not hasattr(law, "potential")
    limit = least_stride(BOX, np.dtype("float64"))
    assert steps_warned(lambda: flying(limit / 2, backend, "float64", law).run(1)) == [1]
    assert steps_warned(lambda: flying(2 * limit, backend, "float64", law).run(3)) == []


def test_velocities_that_move_no_particle_are_not_slow(backend):
    simulation = flying(1e-6, backend, integrator="steepest_descent")
    assert steps_warned(lambda: simulation.run(20)) == []


@pytest.mark.parametrize("driven", [{"gravity": (0.0, 0.0, -1e-12)}, {"walls": "shaken"}])
def test_a_driven_gas_is_looked_at_too(driven, backend):
    box = md.Box(BOX.lengths, (True, True, False))
    state = md.State([[1, 1, 1], [1, 100, 1]], [[1e-3, 0, 0], [0, 0, 0]], box)
    if "walls" in driven:
        driven = {"walls": md.ShakenWalls(amplitude=1e-9, frequency=1e-3, contact_time=1.0)}
    simulation = md.Simulation(state, IDEAL, dt=DT, precision="float32", backend=backend, **driven)
    assert steps_warned(lambda: simulation.run(1)) == [1]


GRAVITY = 10 * least_stride(BOX, np.dtype("float32")) / (100 * DT**2)  # ten times the bound in 100 steps


@pytest.mark.parametrize("share", [1.0, 0.11, 0.09])
@pytest.mark.parametrize("driven", ["gravity", "walls"])
def test_particles_that_are_set_in_motion_are_not_frozen(driven, share, backend):
    """From rest, as slow as any in the first steps; a tenth of the force is the bound."""
    box = md.Box(BOX.lengths, (True, True, False))
    state = md.State([[1, 1, 10], [1, 100, 20]], np.zeros((2, 3)), box)
    frequency = 0.5  # so that the walls hardly turn within 100 steps
    amplitude = GRAVITY * share / (2 * np.pi * frequency) ** 2
    options = {
        "gravity": {"gravity": (0.0, 0.0, -GRAVITY * share)},
        "walls": {"walls": md.ShakenWalls(amplitude=amplitude, frequency=frequency, contact_time=0.012)},
    }[driven]
    simulation = md.Simulation(state, IDEAL, dt=DT, precision="float32", backend=backend, **options)
    warned = steps_warned(lambda: [simulation.run(steps) for steps in (1, 19)])  # a device looks at the ends
    assert warned == ([] if share > 0.1 else [1])


def test_a_step_that_shrinks_is_judged_by_what_it_is(backend):
    """One is so fast that the step is short, and all others hardly move in it."""
    limit, n = least_stride(BOX, np.dtype("float32")), 10_000
    vel = np.zeros((n, 3))
    vel[0, 1] = 1.0
    pos = np.stack([np.full(n, 3.0), 0.01 + 299.98 * np.arange(n) / n, np.full(n, 20.0)], axis=1)
    state = md.State(pos, vel, BOX)
    options = {"precision": "float32", "backend": backend, "integrator": "adaptive_euler"}
    longest = 1000.0  # in which the typical one would move by 10 d
    short = md.Simulation(state, IDEAL, dt=longest, **options)
    assert limit < 0.5 / np.sqrt(n) < 1e3 * limit
    assert steps_warned(lambda: short.run(2)) == []
    far = md.State(state.pos, state.vel * 1e-2, md.Box((6.0, 1e5, 40.0)))
    assert steps_warned(lambda: md.Simulation(far, IDEAL, dt=longest, **options).run(1)) == [1]


def test_the_warning_points_at_the_caller_of_this_package():
    with pytest.warns(md.FrozenPrecision) as caught:
        flying(1e-6, "cpu").run(1)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "search", tiers.searches(set(md.search.SEARCHES) - {"naive", "tensor"}, others=tiers.full)
)
def test_the_check_of_a_start_without_contacts_copies_no_particles_to_the_host(search, monkeypatch):
    n, sizes = 1000, []

    def download(backend: Cpu, array: np.ndarray) -> np.ndarray:
        sizes.append(array.size)
        return array.copy()

    monkeypatch.setattr(Cpu, "download", download)
    simulation = md.Simulation(
        md.scenes.benchmark_gas(n, 0.2), BENCHMARK, search, dt=md.scenes.BENCHMARK_DT, backend="cpu"
    )
    overlap = simulation._energy.check_start(0)
    assert overlap is None
    assert sizes
    assert max(sizes) < n
    sizes.clear()
    assert len(simulation.pairs()) == 0
    assert max(sizes, default=0) < n


def test_a_few_contacts_among_many_particles_are_all_found():
    state = md.scenes.benchmark_gas(1000, 0.2)
    state.pos[[3, 500]] = state.pos[[7, 900]] + [[0.97, 0, 0], [0, -0.98, 0]]
    state.pos[:] = state.box.wrap(state.pos)
    simulation = md.Simulation(state, BENCHMARK, dt=md.scenes.BENCHMARK_DT, backend="cpu", allow_overlap=True)
    expected = {tuple(sorted(state.id[[a, b]].tolist())) for a, b in ((3, 7), (500, 900))}
    pairs = simulation.pairs()
    assert expected <= set(map(tuple, pairs.tolist()))
    assert pairs.tolist() == sorted(pairs.tolist())
    simulation._energy.check_start(0)
    distance = pair_distances(state.pos, state.id, state.box, pairs)
    at = [pairs.tolist().index(list(pair)) for pair in sorted(expected)]
    assert sorted(distance[at]) == pytest.approx([0.97, 0.98])
    contacts = BENCHMARK.potential(distance).sum()
    assert simulation._energy.start == pytest.approx(np.square(state.vel).sum() / 2 + contacts)
