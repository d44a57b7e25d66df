"""Starts that overlap, energy that explodes, lists that cannot be."""

import pickle
from itertools import cycle

import numpy as np
import pytest

import md
from md.boundaries.external_field import ExternalField
from md.simulation import energy_monitor
from md.simulation.fault_monitor import FaultSnapshot
from tests import tiers
from tests.md.search.test_contract import every_precision

LAW = md.scenes.BENCHMARK_LAW
BOX = md.Box((5, 6, 7))
SEARCHES = sorted(md.search.SEARCHES)
CROSSED = [("float32", False), ("float64", True), ("float32", True), ("float64", False)]
both_precisions = pytest.mark.parametrize("precision", ["float32", "float64"])


def near(distance: float, **options) -> md.Simulation:
    """Particles 9 and 4 at a distance across a side of the box, 2 and 8 farther apart, all at rest."""
    pos = [[0.125, 1, 1], [3, 3, 3], [5.125 - distance, 1, 1], [3, 3, 3.75]]
    state = md.State(BOX.wrap(np.array(pos)), np.zeros((4, 3)), BOX, id=[9, 2, 4, 8])
    return md.Simulation(state, LAW, **options)


def too_long(factor: float, backend: str, **options) -> md.Simulation:
    """The benchmark gas with a time step of so many fiftieths of a contact."""
    dt = factor * LAW.contact_time / 50
    return md.Simulation(md.scenes.benchmark_gas(1000, 0.2), LAW, dt=dt, backend=backend, **options)


@pytest.fixture
def blind(monkeypatch):
    """The energy monitor measures at the start, and then only at a poll that waits."""
    check_start = energy_monitor.EnergyMonitor.check_start

    def once(self, step):
        overlap = check_start(self, step)
        self._next = 10**9
        return overlap

    monkeypatch.setattr(energy_monitor.EnergyMonitor, "check_start", once)


class TestOverlappingStart:
    @every_precision
    def test_is_refused_before_the_first_step_with_ids_and_distance(self, search, precision, backend):
        simulation = near(0.375, search=search, precision=precision, backend=backend)
        expected = r"step 0: particles 4 and 9 overlap deeply, at 0\.375 d.*1 in all.*0\.5 d.*granular_gas"
        for _ in range(2):
            with pytest.raises(md.OverlappingStart, match=expected) as fault:
                simulation.run(1)
        error = fault.value
        assert (error.step, error.particle, error.other, error.distance) == (0, 4, 9, 0.375)
        assert isinstance(error, md.SimulationFault)
        assert simulation.step == 0

    @pytest.mark.quick
    def test_of_coincident_centres_says_that_they_will_not_part(self, backend):
        with pytest.raises(
            md.OverlappingStart, match=r"4 and 9 coincide: .*no direction.*allow_overlap=True"
        ):
            near(0.0, backend=backend).run(1)

    @pytest.mark.parametrize(
        "driven",
        [
            {"gravity": (0.0, 0.0, -1e-9)},
            {"walls": md.ShakenWalls(amplitude=0.1, frequency=1.0), "gravity": (0.0, 0.0, -1.0)},
        ],
    )
    def test_is_refused_where_something_drives_the_gas_too(self, driven, backend):
        box = md.Box(BOX.lengths, (True, True, False))
        state = md.State([[1, 1, 1], [1, 1, 1.001]], np.zeros((2, 3)), box)
        simulation = md.Simulation(state, LAW, backend=backend, **driven)
        with pytest.raises(md.OverlappingStart, match="particles 0 and 1 overlap deeply"):
            simulation.run(1)

    @pytest.mark.quick
    def test_deep_in_a_wall_is_refused_too(self, backend):
        box = md.Box(BOX.lengths, (True, True, False))
        for z, depth in ((0.2, "0.2"), (6.9, "0.1")):
            state = md.State([[1, 1, 3], [1, 1, z]], np.zeros((2, 3)), box, id=[2, 8])
            simulation = md.Simulation(state, LAW, walls=md.Walls(), backend=backend)
            expected = rf"particle 8 is deep in a wall, at {depth} d, .*allowed: 0\.25 d"
            with pytest.raises(md.OverlappingStart, match=expected) as caught:
                simulation.run(1)
            assert caught.value.other is None

    def test_can_be_looked_at(self, backend):
        simulation = near(0.375, backend=backend)
        with pytest.raises(md.OverlappingStart):
            simulation.run(1)
        assert simulation.pairs().tolist() == [[2, 8], [4, 9]]
        assert simulation.state.id.tolist() == [9, 2, 4, 8]

    @pytest.mark.parametrize("distance", [0.5, 0.75, 1.5])
    def test_is_none_where_a_contact_may_be_as_deep(self, distance, backend):
        simulation = near(distance, backend=backend)
        simulation.run(1)
        assert simulation.step == 1

    def test_is_run_if_allowed(self, backend):
        simulation = near(0.375, backend=backend, allow_overlap=True)
        simulation.run(200)
        assert len(simulation.pairs()) == 0

    def test_is_no_fault_in_an_ideal_gas(self, backend):
        state = md.State(np.ones((2, 3)), np.eye(2, 3), BOX)
        simulation = md.Simulation(state, md.laws.SpringDashpot(0, 0), dt=0.1, backend=backend)
        simulation.run(3)
        assert len(simulation.pairs()) == 1

    def test_is_what_steepest_descent_is_for(self, backend):
        pos = [[2, 2, 2], [2.1, 2, 2], [2, 2.2, 2.1]]
        law = md.laws.SpringDashpot(stiffness=0.45, damping=0.0)
        state = md.State(pos, np.zeros((3, 3)), BOX)
        simulation = md.Simulation(state, law, integrator="steepest_descent", dt=1.0, backend=backend)
        simulation.run(100)
        end = md.Simulation(simulation.state, LAW, backend=backend)
        end.run(10)

    def test_that_no_step_is_taken_from_is_none(self, backend):
        near(0.375, backend=backend).run(0)


class TestEnergy:
    @pytest.mark.parametrize(
        ("search", "precision", "fused"),
        tiers.by_default(
            [(search, *case) for search, case in zip(SEARCHES, cycle(CROSSED), strict=False)]
            + [(search, "float64", True) for search in ("coherent", "tiles")]
            + [("reflexive", "float64", False)],
            lambda search, precision, _: precision == "float64" or search == "linked",
        ),
    )
    def test_that_a_long_time_step_makes_is_a_named_fault(self, search, precision, fused, backend):
        simulation = too_long(60, backend, search=search, precision=precision, fused=fused)
        with pytest.raises(
            md.EnergyExploded, match=r"step \d+: the energy explodes.*too long.*lower dt"
        ) as fault:
            simulation.run(200)
        error = fault.value
        assert error.energy > 4 * error.start
        assert error.start == pytest.approx(24, rel=1e-6)
        left = error.state
        speeds = np.linalg.norm(left.vel.astype(np.float64), axis=1)
        assert left.id[speeds.argmax()] == error.particle
        assert error.speed == pytest.approx(speeds.max() * simulation.dt, rel=1e-6)
        assert error.energy == pytest.approx(np.square(speeds).sum() / 2 / len(left.id), rel=1e-6)
        with pytest.raises(md.EnergyExploded):
            simulation.pairs()

    def test_a_fiftieth_of_a_contact_is_not_called_short_enough_for_strong_damping(self, backend):
        """Contacts last the longer the stronger the damping, which limits the step the more."""
        law = md.laws.SpringDashpot(stiffness=1e4, damping=141.4)
        state = md.State([[2, 3, 3], [2.99, 3, 3]], [[1, 0, 0], [-1, 0, 0]], BOX)
        simulation = md.Simulation(state, law, dt=law.contact_time / 50, backend=backend)
        with pytest.raises(
            md.EnergyExploded, match=r"contact_time / 50, less for strong damping; lower dt, or take dt=None"
        ):
            simulation.run(20)

    def test_is_found_by_a_poll_that_waits_where_the_monitor_does_not_measure(self, backend, blind):
        simulation = too_long(35, backend)
        simulation.run(13)
        with pytest.raises(md.EnergyExploded, match="step 13: "):
            simulation.forces()

    def test_is_the_cause_that_is_named_where_particles_escape_of_it(self, backend, blind):
        simulation = too_long(300, backend)
        with pytest.raises(md.EnergyExploded) as fault:
            simulation.run(100)
        assert fault.value.step < 10
        assert fault.value.speed > 10

    @pytest.mark.parametrize("law", [LAW, md.laws.SpringDashpot(1e4, 0.0)], ids=["dissipative", "elastic"])
    @both_precisions
    def test_does_not_grow_at_a_time_step_a_dozen_times_in_a_contact(self, law, precision, backend):
        state = md.scenes.benchmark_gas(512, 0.3)
        simulation = md.Simulation(state, law, dt=law.contact_time / 12, backend=backend, precision=precision)
        for _ in range(5):
            simulation.run(100)
            assert md.observe.kinetic_energy(simulation.state) < 1.4 * 24

    def test_of_a_start_in_contact_is_that_of_its_springs_too(self, backend, start_energy):
        state = md.State([[1, 1, 1], [1.75, 1, 1]], np.zeros((2, 3)), BOX)
        simulation = md.Simulation(state, md.laws.SpringDashpot(1e4, 0.0), backend=backend)
        simulation.run(300)
        assert md.observe.kinetic_energy(simulation.state) == pytest.approx(1e4 * 0.25**2 / 4, rel=1e-2)
        assert start_energy(simulation) == pytest.approx(1e4 * 0.25**2 / 2)

    @pytest.mark.parametrize("z", [0.3, 0.45])
    def test_of_a_start_in_a_wall_is_that_of_its_spring_too(self, z, backend, start_energy):
        box, walls = md.Box(BOX.lengths, (True, True, False)), md.Walls()
        state = md.State([[1, 1, z]], np.zeros((1, 3)), box)
        simulation = md.Simulation(state, LAW, walls=walls, backend=backend)
        simulation.run(100)
        stiffness, _ = walls.contact(LAW)
        start = start_energy(simulation)
        assert start == pytest.approx(stiffness * (0.5 - z) ** 2 / 2)
        assert md.observe.kinetic_energy(simulation.state) == pytest.approx(start, rel=1e-2)

    @pytest.mark.filterwarnings("ignore::md.FrozenPrecision")
    def test_of_rounding_is_none(self, backend):
        pos = [[2, 2, 2], [2.490445613861084, 2.8263497352600098, 2.2767837047576904]]
        assert np.linalg.norm(np.subtract(*pos)) >= 1  # they touch in float32 alone
        law = md.laws.SpringDashpot(1e8, 0.0)
        state = md.State(pos, np.zeros((2, 3)), BOX)
        simulation = md.Simulation(state, law, backend=backend, precision="float32")
        simulation.run(150)
        assert md.observe.kinetic_energy(simulation.state) < 1e-4

    def test_is_looked_at_seldom_and_costs_a_long_run_little(self, backend, monkeypatch):
        looks = []
        measure = energy_monitor.EnergyMonitor.measure

        def counted(self, step, now=False):
            looks.append(measure(self, step, now))
            return looks[-1]

        monkeypatch.setattr(energy_monitor.EnergyMonitor, "measure", counted)
        simulation = too_long(1, backend)
        simulation.run(1000)
        assert 3 <= sum(looks) <= 20

    def test_of_no_particles_is_not_watched(self, backend):
        nothing = np.zeros((0, 3))
        md.Simulation(md.State(nothing, nothing, BOX), LAW, backend=backend).run(3)


@pytest.mark.parametrize(
    ("layout", "dim", "precision"),
    [
        ("aos", 2, "float64"),
        ("aos", 3, "float32"),
        ("soa", 3, "float64"),
        ("aos4", 3, "float64"),
        tiers.nightly("soa", 2, "float32"),
        tiers.nightly("aos4", 2, "float32"),
    ],
)
def test_energy_and_fastest_are_those_of_numpy(layout, dim, precision, backend):
    generator = np.random.default_rng(4)
    box = md.Box((9.0,) * dim)
    vel = generator.normal(size=(1000, dim)).astype(precision)
    ids = generator.choice(2**31 - 1, 1000, replace=False)
    state = md.State(9 * generator.random((1000, dim)), vel, box, id=ids)
    simulation = md.Simulation(state, LAW, backend=backend, layout=layout, precision=precision)
    field = ExternalField(None, None, LAW, simulation.system, others=False)
    stepper = simulation.config.integrator.build(simulation.system, field)
    monitor = energy_monitor.EnergyMonitor(
        simulation.system, LAW, stepper, field, simulation.config.search, allow_overlap=False
    )
    assert monitor.measure(step=1, now=True)
    status = simulation.system.status.poll()()
    energy, fastest = status.energy, int(status.fastest) & 0xFFFFFFFF
    speed = np.sqrt(np.uint32(int(status.fastest) >> 32).view(np.float32))
    squares = np.square(vel.astype(np.float64)).sum(axis=1)
    assert energy == pytest.approx(squares.sum() / 2, rel=1e-6)
    assert speed == pytest.approx(np.sqrt(squares.max()), rel=1e-6)
    assert fastest == state.id[squares.argmax()]


@pytest.mark.parametrize("fused", [False, True])
def test_lists_that_need_more_places_than_there_can_be_are_a_named_fault(fused, backend, monkeypatch):
    crowd = np.random.default_rng(5).uniform(2, 2.4, (200, 3))
    lone = np.array([[4.5, 4.5, 4.5]])
    state = md.State(np.vstack([lone, crowd]), np.zeros((201, 3)), BOX, id=np.arange(201) + 7)
    simulation = md.Simulation(state, LAW, search="verlet", backend=backend, fused=fused, allow_overlap=True)
    ahead = simulation.backend.runs_ahead
    monkeypatch.setattr(type(simulation.search), "_most_room", lambda self: 7000)
    places = 21000 if ahead else 7000  # a four of the pool of a device has three
    expected = rf"step 0: \d+ places are needed in lists, most around particle \d+; allowed: up to {places};"
    for look in (lambda: simulation.run(3), simulation.pairs):
        with pytest.raises(md.ListOverflow, match=expected) as fault:
            look()
        assert fault.value.particle != 7
        assert fault.value.needed > 200 * 199 // (4 if ahead else 1)
        assert len(fault.value.state.pos) == 201
    assert str(fault.value.at(12)).startswith("step 12: ")


FAULTS = (
    md.NonFiniteState(3, 7),
    md.ParticleEscaped(3, 7, 1000.0),
    md.OverlappingStart(7, 9, 0.25, 2, 0.5, by_radius=True),
    md.OverlappingStart(7, None, 0.25, 2, 0.5),
    md.EnergyExploded(3, 7, 1.5, 9.0, 2.0, 0.1),
    md.ListOverflow(7, 100, 20, 3),
    md.SimulationFault("step 3: something else", 3, 7),
)


def every_kind(kind: type) -> set[type]:
    return {kind}.union(*map(every_kind, kind.__subclasses__()))


@pytest.mark.quick
def test_every_kind_of_fault_is_pickled_below():
    ours = {kind for kind in every_kind(md.SimulationFault) if kind.__module__.startswith("md.")}
    assert set(map(type, FAULTS)) == ours


@pytest.mark.quick
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_fault_is_pickled_with_all_that_it_tells(fault, protocol, tmp_path):
    left = FaultSnapshot(np.eye(2, 3), np.zeros((2, 3)), np.array([7, 9], np.int32), BOX, 4, 0.1, np.ones(2))
    for kept in (fault, pickle.loads(pickle.dumps(fault)).keep(left, tmp_path)):
        copy = pickle.loads(pickle.dumps(kept, protocol))
        assert (type(copy), str(copy), copy.args) == (type(fault), str(kept), kept.args)
        assert copy.__dict__.keys() == kept.__dict__.keys()
        assert {k: v for k, v in vars(copy).items() if k != "state"} == {
            k: v for k, v in vars(kept).items() if k != "state"
        }
    assert copy.saved == tmp_path / f"fault-{fault.step}.npz"
    assert isinstance(copy.state, FaultSnapshot)
    assert all(map(np.array_equal, copy.state[:3], left[:3]))
    assert (copy.state.box.lengths, copy.state.step, copy.state.dt) == (BOX.lengths, 4, 0.1)


@pytest.mark.quick
def test_a_run_that_goes_on_at_once_is_not_polled_again_before_its_first_step(backend, monkeypatch):
    state, polls = md.scenes.benchmark_gas(125, 0.2), []
    simulation = md.Simulation(state, LAW, dt=md.scenes.BENCHMARK_DT, backend=backend)
    simulation.run(3)
    poll = type(simulation.system.status).poll
    monkeypatch.setattr(
        type(simulation.system.status), "poll", lambda self: polls.append(simulation.step) or poll(self)
    )
    simulation.run(0)
    assert polls == []
    simulation.run(4)
    assert polls[-1] == 7 > polls[0] > 3 or polls == [7]
    simulation._monitor.failed = md.NonFiniteState(7, 5)
    with pytest.raises(md.NonFiniteState):
        simulation.run(1)
    assert simulation._loop.step == 7


def test_a_run_that_tunes_a_skin_is_polled_first_so_that_no_pause_is_timed(monkeypatch):
    state, skin = md.scenes.benchmark_gas(300, 0.2), md.search.Verlet(skin="auto")
    simulation = md.Simulation(state, LAW, dt=md.scenes.BENCHMARK_DT, search=skin, backend="cpu")
    simulation.run(3)
    polls, poll = [], type(simulation.system.status).poll
    monkeypatch.setattr(
        type(simulation.system.status), "poll", lambda self: polls.append(simulation.step) or poll(self)
    )
    simulation.run(0)
    assert polls == [3]
