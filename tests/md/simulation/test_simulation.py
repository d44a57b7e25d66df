"""The loop: the benchmark gas case, steps, timings, faults, and looking without touching."""

from contextlib import suppress
from itertools import product
from multiprocessing.connection import Connection

import numpy as np
import pytest

import md
import sfc
from tests import tiers
from tests.md.search.test_contract import every_precision
from tests.processes import all_heard, started

PHASES = {"reorder", "build", "force", "integrate"}
every_search = pytest.mark.parametrize("search", sorted(md.search.SEARCHES))


def gas_simulation(backend, search="linked", n=216, **options):
    options = {"dt": md.scenes.BENCHMARK_DT} | options
    state = md.scenes.benchmark_gas(n, 0.2, seed=2)
    return md.Simulation(state, md.scenes.BENCHMARK_LAW, search=search, backend=backend, **options)


def same_bits(one: md.State, other: md.State) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("pos", "vel", "id"))


def same_run(one: md.State, other: md.State, backend: str, search: str = "linked") -> bool:
    """Bit for bit where the search promises it, else up to the rounding of sums in another order."""
    if backend in md.search.SEARCHES[search].capabilities.bitwise_on:
        return same_bits(one, other)
    return np.array_equal(one.id, other.id) and all(
        np.allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-3) for name in ("pos", "vel")
    )


EVERY = tuple(md.search.SEARCHES)


@pytest.mark.parametrize(
    ("exactly", "roughly"),
    [(tiers.BY_DEFAULT, ("linked",)), tiers.full(EVERY, tiers.BY_DEFAULT), tiers.nightly(EVERY, EVERY)],
)
def test_the_benchmark_gas_cools_alike_in_every_search_and_precision(backend, exactly, roughly):
    state = md.scenes.benchmark_gas(4096, 0.2)
    assert md.observe.kinetic_energy(state) == pytest.approx(24, rel=1e-12)
    energy = {}
    for precision, searches in (("float64", exactly), ("float32", roughly)):
        for search in set(searches) - {"naive"}:  # which would take longer than all others
            simulation = md.Simulation(
                state,
                md.scenes.BENCHMARK_LAW,
                search=search,
                dt=md.scenes.BENCHMARK_DT,
                precision=precision,
                backend=backend,
            )
            simulation.run(200, phases=False)
            energy[precision, search] = md.observe.kinetic_energy(simulation.state)
    reference = energy["float64", "linked"]
    assert reference == pytest.approx(21.4, abs=0.1)
    for (precision, search), value in energy.items():
        allowed = 1e-10 if precision == "float64" else 1e-4
        assert value == pytest.approx(reference, rel=allowed), (precision, search)


class TestSteps:
    def test_are_counted_over_runs(self, backend):
        simulation = gas_simulation(backend)
        assert simulation.step == 0
        simulation.run(3)
        simulation.run(0)
        simulation.run(4, phases=False)
        assert simulation.step == 7

    def test_no_steps_change_nothing(self, backend):
        simulation = gas_simulation(backend)
        before = simulation.state
        simulation.run(0)
        assert same_bits(simulation.state, before)

    @every_precision
    def test_two_runs_of_100_are_one_of_200(self, search, precision, backend):
        halves, whole = (gas_simulation(backend, search, precision=precision) for _ in range(2))
        halves.run(100)
        halves.run(100)
        whole.run(200)
        assert same_run(halves.state, whole.state, backend, search)
        assert not np.array_equal(whole.state.by_id().pos, gas_simulation(backend).state.by_id().pos)

    def test_two_runs_with_reorders_are_one(self, backend):
        reorder = md.Reorder("hilbert", md.Every(7))
        halves, whole = (gas_simulation(backend, reorder=reorder) for _ in range(2))
        halves.run(50)
        halves.run(50)
        whole.run(100)
        assert same_run(halves.state, whole.state, backend)

    def test_a_step_of_none_is_a_fiftieth_of_a_contact(self, backend):
        derived = gas_simulation(backend, dt=None)
        given = gas_simulation(backend, dt=md.scenes.BENCHMARK_LAW.contact_time / 50)
        derived.run(20)
        given.run(20)
        assert same_run(derived.state, given.state, backend)

    @every_search
    def test_looking_does_not_change_a_run(self, search, backend):
        watched, alone = (gas_simulation(backend, search) for _ in range(2))
        for _ in range(10):
            watched.run(6)
            for look in (watched.pairs, watched.forces, watched.accesses, lambda: watched.state):
                look()
                look()
        alone.run(60)
        assert same_run(watched.state.by_id(), alone.state.by_id(), backend, search)

    @every_search
    def test_looking_does_not_move_memory(self, search, backend):
        simulation = gas_simulation(backend, search)
        simulation.run(5)
        order = simulation.state.id
        simulation.pairs()
        simulation.forces()
        simulation.accesses()
        assert np.array_equal(simulation.state.id, order)

    def test_what_is_looked_at_is_a_copy(self, backend):
        simulation = gas_simulation(backend)
        before = simulation.state
        simulation.state.pos[:] = 0
        simulation.state.vel[:] = 0
        assert same_bits(simulation.state, before)

    def test_the_start_is_copied(self, backend):
        start = md.scenes.benchmark_gas(64, 0.1)
        kept = start.pos.copy()
        simulation = md.Simulation(start, md.scenes.BENCHMARK_LAW, backend=backend)
        simulation.run(10)
        assert np.array_equal(start.pos, kept)
        assert not np.array_equal(simulation.state.by_id().pos, start.by_id().pos)

    def test_precision_is_that_of_what_comes_back(self, backend):
        for precision in ("float32", "float64"):
            simulation = gas_simulation(backend, precision=precision)
            simulation.run(1)
            assert simulation.state.pos.dtype == precision
            assert simulation.state.vel.dtype == precision
            assert simulation.forces().dtype == precision

    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    def test_progress_shows_a_bar_and_the_same_result(self, backend, capsys):
        shown, hidden = (gas_simulation(backend) for _ in range(2))
        shown.run(20, progress=True)
        assert "20" in capsys.readouterr().err
        hidden.run(20)
        assert capsys.readouterr().err == ""
        assert same_run(shown.state, hidden.state, backend)


class TestTimings:
    def test_each_phase_is_timed_at_each_of_its_steps(self, backend):
        simulation = gas_simulation(backend, reorder=md.Reorder("row", md.Every(4)))
        simulation.run(6)
        simulation.run(4)
        timings = simulation.timings
        assert PHASES <= set(timings.milliseconds)
        for phase in PHASES - {"reorder"}:
            assert timings.steps[phase] == list(range(10))
        assert timings.steps["reorder"] == [0, 4, 8]
        for phase in PHASES:
            assert len(timings.milliseconds[phase]) == len(timings.steps[phase])
            assert min(timings.milliseconds[phase]) >= 0
            assert timings.median(phase) == np.median(timings.milliseconds[phase])

    def test_whole_runs_are_timed_with_and_without_phases(self, backend):
        simulation = gas_simulation(backend)
        simulation.run(3)
        simulation.run(5, phases=False)
        assert [steps for steps, _ in simulation.timings.total] == [3, 5]
        assert all(ms > 0 for _, ms in simulation.timings.total)
        assert simulation.timings.steps["force"] == [0, 1, 2]

    def test_clear_forgets_and_what_never_ran_has_no_median(self, backend):
        simulation = gas_simulation(backend)
        simulation.run(3)
        simulation.timings.clear()
        assert simulation.timings.total == []
        assert np.isnan(simulation.timings.median("force"))
        assert np.isnan(simulation.timings.median("reorder"))
        simulation.run(2)
        assert simulation.timings.steps["force"] == [3, 4]


def flight(vel, backend, search="linked", box=None, dt=0.125, **options):
    """Particles 40, 30, 20 at rest but for the second, which flies."""
    pos = [[1.0, 1, 1], [0.5, 3, 3], [3, 3, 1]]
    state = md.State(pos, [[0, 0, 0], vel, [0, 0, 0]], box or md.Box((5, 5, 5), False), id=[40, 30, 20])
    return md.Simulation(state, md.laws.SpringDashpot(0, 0), search=search, dt=dt, backend=backend, **options)


class TestFaults:
    @pytest.mark.quick
    @every_search
    def test_a_particle_through_a_wall_is_raised_with_step_and_id(self, search, backend):
        simulation = flight([-1.0, 0, 0], backend, search)
        simulation.run(4)
        assert simulation.state.by_id().pos[1, 0] == 0
        expected = r"step 4: particle 30 .*outside the box.*lower dt"
        with pytest.raises(md.ParticleEscaped, match=expected) as fault:
            simulation.run(50)
        assert (fault.value.step, fault.value.particle) == (4, 30)
        assert isinstance(fault.value, md.SimulationFault)

    def test_a_fault_is_raised_in_the_middle_of_a_run_too(self, backend):
        simulation = flight([0, 0, 1.0], backend)
        with pytest.raises(md.ParticleEscaped) as fault:
            simulation.run(10_000)
        assert (fault.value.step, fault.value.particle) == (16, 30)

    @pytest.mark.quick
    def test_a_run_ends_soon_after_a_fault(self, backend):
        simulation = flight([0, 0, 1.0], backend)
        with suppress(md.ParticleEscaped):
            simulation.run(10_000)
        assert 17 <= simulation.step <= 17 + 2 * md.backend.get(backend).check_interval

    def test_the_id_is_right_after_a_reorder(self, backend):
        simulation = flight([-1.0, 0, 0], backend, reorder=md.Reorder("hilbert", md.Every(1)))
        with pytest.raises(md.ParticleEscaped) as fault:
            simulation.run(50)
        assert (fault.value.step, fault.value.particle) == (4, 30)

    @pytest.mark.quick
    @every_search
    def test_a_position_that_is_not_finite_is_raised_with_step_and_id(self, search, backend):
        simulation = flight([1e308, 0, 0], backend, search, box=md.Box((5, 5, 5)), dt=100.0)
        with pytest.raises(md.NonFiniteState, match=r"step 0: particle 30") as fault:
            simulation.run(5)
        assert (fault.value.step, fault.value.particle) == (0, 30)
        assert isinstance(fault.value, md.SimulationFault)

    def test_a_particle_that_crosses_a_whole_periodic_box_is_raised(self, backend):
        simulation = flight([0, 90.0, 0], backend, box=md.Box((5, 5, 5)))
        with pytest.raises(md.ParticleEscaped, match=r"step 0: particle 30") as fault:
            simulation.run(1)
        assert fault.value.particle == 30

    def test_a_particle_over_a_periodic_side_comes_in_on_the_other(self, backend):
        simulation = flight([-16.0, 0, 0], backend, box=md.Box((5, 5, 5)))
        simulation.run(1)
        assert simulation.state.by_id().pos[1].tolist() == [3.5, 3, 3]

    @every_precision
    @pytest.mark.filterwarnings("ignore::md.FrozenPrecision")
    def test_a_step_to_just_below_zero_stays_in_the_box(self, search, precision, backend):
        state = md.State([[0, 1, 1], [3, 3, 0.0]], [[-1e-30, 0, 0], [0, 0, -1e-9]], md.Box((5, 5, 5)))
        simulation = md.Simulation(
            state, md.scenes.BENCHMARK_LAW, search=search, dt=1e-3, precision=precision, backend=backend
        )
        simulation.run(3)
        end = simulation.state.pos
        assert ((end >= 0) & (end < 5)).all()


def test_a_run_that_blows_up_leaves_every_particle_where_it_has_a_cell(backend):
    state = md.scenes.benchmark_gas(20_000, 0.2)
    simulation = md.Simulation(state, md.laws.SpringDashpot(1e30, 0.0), dt=1e10, backend=backend)
    with pytest.raises(md.SimulationFault) as fault:
        simulation.run(50)
    assert fault.value.step == 0
    with pytest.raises(md.SimulationFault):
        simulation.pairs()


def look_after_a_fault(search: str, backend: str, axis: int, pipe: Connection) -> None:
    pos = 5 * np.random.default_rng(0).random((200, 3))
    vel = np.zeros((200, 3))
    vel[1::2, axis] = 1e308
    state = md.State(pos, vel, md.Box((5, 5, 5)))
    simulation = md.Simulation(state, md.laws.SpringDashpot(0, 0), search=search, dt=100.0, backend=backend)
    looks = (lambda: simulation.state, simulation.forces, simulation.pairs, simulation.accesses)
    for look in (lambda: simulation.run(1), *looks):
        try:
            look()
        except (md.SimulationFault, ValueError) as error:
            pipe.send(type(error).__name__)


@pytest.mark.parametrize(
    ("search", "axis", "threads"),
    tiers.by_default(
        product(sorted(md.search.SEARCHES), (0, 1), (1, 2)),
        lambda search, axis, threads: (axis, threads) == (0, 1) and search in tiers.BY_DEFAULT,
        lambda *case: (tiers.full if case[1:] == (0, 1) else tiers.nightly)(*case),
    ),
)
def test_looking_after_a_fault_does_not_end_the_process(search, axis, threads, backend):
    process, heard = started(look_after_a_fault, search, backend, axis, threads=threads)
    assert all_heard(heard)[0] == "NonFiniteState"
    process.join()
    assert process.exitcode == 0


@every_search
def test_the_access_stream_feeds_the_cache_model(search, backend):
    simulation = gas_simulation(backend, search, n=1000)
    stream = simulation.accesses()
    ratios = [sfc.cache.block(stream, capacity).ratio for capacity in (10, 100, 1000)]
    assert 0 < ratios[0] < ratios[1] < ratios[2] == 1


class TestFlags:
    @pytest.mark.parametrize("name", ["fused", "allow_overlap"])
    @pytest.mark.parametrize("value", [np.True_, np.False_, True, False])
    def test_of_numpy_are_saved_and_loaded(self, name, value, tmp_path):
        simulation = md.Simulation(
            md.scenes.benchmark_gas(60, 0.2),
            md.scenes.BENCHMARK_LAW,
            dt=4.4e-4,
            backend="cpu",
            **{name: value},
        )
        simulation.run(3)
        simulation.save(tmp_path / "a.npz")
        loaded = md.Simulation.load(tmp_path / "a.npz")
        simulation.run(3)
        loaded.run(3)
        np.testing.assert_array_equal(simulation.state.pos, loaded.state.pos)

    @pytest.mark.parametrize("name", ["fused", "allow_overlap"])
    @pytest.mark.parametrize("value", [1, 0, None, "no", np.int8(1), np.array(True)])
    def test_that_are_none_are_refused(self, name, value):
        with pytest.raises(TypeError, match=rf"{name} = .* of class \w+; allowed: True or False"):
            md.Simulation(
                md.scenes.benchmark_gas(8, 0.2),
                md.scenes.BENCHMARK_LAW,
                dt=4.4e-4,
                backend="cpu",
                **{name: value},
            )

    @pytest.mark.parametrize("name", ["phases", "progress"])
    @pytest.mark.parametrize("value", [1, None, "no"])
    def test_of_a_run_that_are_none_are_refused(self, name, value):
        simulation = md.Simulation(md.scenes.benchmark_gas(8, 0.2), md.scenes.BENCHMARK_LAW, backend="cpu")
        with pytest.raises(TypeError, match=rf"{name} = .* of class \w+; allowed: True or False"):
            simulation.run(1, **{name: value})
        assert simulation.step == 0


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.uint64])
def test_steps_of_few_bits_are_all_taken(kind):
    simulation = md.Simulation(
        md.scenes.benchmark_gas(8, 0.1), md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend="cpu"
    )
    for _ in range(3):
        simulation.run(kind(100), phases=False)
    assert (simulation.step, type(simulation.step)) == (300, int)
