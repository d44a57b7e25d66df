"""A run that goes on from a checkpoint is, to the last bit, the run that was saved."""

import numpy as np
import pytest

import md
from tests import tiers

LAW, DT = md.laws.SpringDashpot(stiffness=1e4, damping=5.0), 4.4e-4
PERIODIC = {2: (True, True), 3: (True, True, True)}
QUICK = [  # search, dim, precision, layout, fused, phases, reorder
    ("naive", 3, "float64", "aos", False, True, md.Reorder("row", md.Every(7))),
    ("scattered", 3, "float64", "aos", False, False, md.Reorder("row", md.Every(33), "shadow", "host")),
    ("verlet", 3, "float64", "aos", True, False, None),
    (md.search.Verlet("zigzag"), 3, "float64", "aos", False, True, None),
]
CASES = [  # pairwise but for what is slow to compile
    ("linked", 3, "float64", "aos", False, False, md.Reorder("hilbert", md.Moved(0.3), mode="shadow")),
    ("linked", 3, "float32", "aos", True, True, md.Reorder("morton", md.Moved(0.1), mode="threads")),
    ("linked", 2, "float64", "aos", False, False, md.Reorder("random", md.Every(40))),
    ("scattered", 3, "float64", "aos", True, False, md.Reorder("zigzag", md.Moved(0.2), via="host")),
    (md.search.Coherent("hilbert"), 3, "float64", "aos", True, True, None),
    (md.search.Tiles("morton", width=2), 3, "float64", "aos", True, True, None),
    (md.search.Tiles(), 3, "float64", "aos", False, False, None),
    (md.search.Verlet("hilbert", skin=0.05), 3, "float64", "aos4", True, True, None),
]
BY_NIGHT = [
    ("naive", 2, "float32", "aos", True, False, None),
    ("linked", 3, "float64", "aos4", False, False, md.Reorder("hilbert", md.Moved(0.3), mode="shadow")),
    ("linked", 2, "float64", "soa", True, False, md.Reorder("random", md.Every(40))),
    ("scattered", 3, "float32", "aos", True, False, md.Reorder("zigzag", md.Moved(0.2), via="host")),
    ("scattered", 2, "float32", "aos", False, True, md.Reorder("peano", md.Every(50), mode="threads")),
    (md.search.Coherent(), 2, "float32", "aos", False, False, None),
    (md.search.Tiles("morton", width=2), 3, "float32", "aos", True, True, None),
    (md.search.Verlet(skin=0.1), 2, "float64", "aos", True, False, None),
    (md.search.Verlet("hilbert", skin=0.05), 2, "float32", "aos", True, True, None),
]


def gas(dim: int, seed: int = 0) -> md.State:
    """Some hundred particles that move by a hundredth of their diameter in a step."""
    box = md.Box((8.4,) * 3 if dim == 3 else (24.0, 21.6), PERIODIC[dim])
    sites = np.meshgrid(*[0.6 + 1.2 * np.arange(round(length / 1.2)) for length in box.lengths])
    pos = np.stack(sites, -1).reshape(-1, dim)
    generator = np.random.default_rng(seed)
    pos += generator.uniform(-0.05, 0.05, pos.shape)
    order = generator.permutation(len(pos))
    return md.State(pos, generator.normal(size=pos.shape, scale=12), box).take(order)


def made(case, backend: str, state: md.State | None = None) -> md.Simulation:
    search, dim, precision, layout, fused, _, reorder = case
    return md.Simulation(
        gas(dim) if state is None else state, LAW, search=search, dt=DT, backend=backend, layout=layout,
        precision=precision, fused=fused, reorder=reorder,
    )  # fmt: skip


def bits(simulation: md.Simulation) -> list[bytes]:
    """All that moves, as it lies in memory."""
    assert simulation.time >= 0  # waits for the device, and takes halted steps back
    particles, down = simulation.system.particles, simulation.backend.download
    arrays = [particles.pos, particles.vel, particles.id, particles.work]
    memory = {} if simulation.reordering is None else simulation.reordering.state_dict()
    return [down(a).tobytes() for a in arrays] + [memory[name].tobytes() for name in sorted(memory)]


class Copies:
    """Saves into a file of its own each time."""

    def __init__(self, folder, interval):
        self.folder, self.interval = folder, interval

    def report(self, simulation):
        simulation.save(self.folder / f"{simulation.step}.npz")


class Looks:
    """Reads a run in every way there is."""

    interval = 30

    def report(self, simulation):
        simulation.state, simulation.pairs(), simulation.forces()
        if simulation.step:  # before the first one a reorder has not taken place yet
            simulation.accesses()


@pytest.mark.parametrize(
    "case",
    [*map(tiers.quick, QUICK), CASES[0], *map(tiers.full, CASES[1:]), *map(tiers.nightly, BY_NIGHT)],
    ids=lambda c: f"{getattr(c[0], 'name', c[0])}-{c[1:6]}",
)
def test_a_run_goes_on_from_every_checkpoint_as_it_did(case, backend, tmp_path):
    simulation, phases = made(case, backend), case[5]
    if backend not in simulation.search.capabilities.bitwise_on:
        pytest.skip(f"{simulation.search.name} does not repeat on {backend}")
    reporters = [Copies(tmp_path, 60)] if phases else [Looks(), Copies(tmp_path, 60), Looks()]
    simulation.run(250, phases=phases, reporters=reporters)
    steps = sorted(int(path.stem) for path in tmp_path.iterdir())
    assert steps == [0, 60, 120, 180, 240]
    for step in steps:
        loaded = md.Simulation.load(tmp_path / f"{step}.npz")
        assert loaded.step == step
        assert loaded.backend.name == backend
        loaded.run(250 - step, phases=phases, reporters=reporters)
        assert loaded.step == 250
        assert bits(loaded) == bits(simulation)
    assert bits(simulation)[0] != bits(made(case, backend))[0]


@pytest.mark.parametrize(
    ("integrator", "search", "fused"),
    [
        ("velocity_verlet", "linked", True),
        ("position_verlet", "linked", False),
        ("adaptive_euler", "linked", False),
        tiers.nightly("velocity_verlet", "verlet", True),
        tiers.nightly("position_verlet", "scattered", False),
        tiers.nightly("adaptive_euler", "coherent", False),
    ],
)
def test_a_driven_run_goes_on_as_it_did(integrator, search, fused, backend, tmp_path):
    box, law = md.Box((8.0, 8.0, 6.0), (True, True, False)), md.laws.SpringDashpot.from_restitution(0.8, 0.02)
    if integrator == "adaptive_euler":
        friction = {"friction": 0.3, "tangential_restitution": 0.7}
        law = md.laws.FrictionalSpringDashpot.from_restitution(0.8, 0.02, **friction)
    simulation = md.Simulation(
        md.preparation.granular_gas(0.2, box, temperature=4.0, mixing=0),
        law,
        search=search,
        integrator=integrator,
        walls=md.ShakenWalls(amplitude=0.4, frequency=5.0, restitution=0.9, wall_damping="absolute"),
        gravity=(0.0, 0.5, -2.0),
        fused=fused,
        backend=backend,
    )
    simulation.run(150, reporters=[Copies(tmp_path, 70)])
    wanted = bits(simulation), simulation.time, simulation.forces().tobytes()
    for step in (0, 70, 140):
        loaded = md.Simulation.load(tmp_path / f"{step}.npz")
        loaded.run(150 - step, reporters=[Copies(tmp_path, 70)])
        assert (bits(loaded), loaded.time, loaded.forces().tobytes()) == wanted
    assert wanted[1] > 0


@pytest.mark.gpu
@pytest.mark.parametrize("skin", [None, 0.02, 0.1])
@pytest.mark.parametrize("room", [None, 4])
def test_lists_that_grew_and_plans_that_were_halted_leave_nothing_behind(skin, room, tmp_path, monkeypatch):
    """More particles and steps, so that the room of the first lists runs out and plans come to an end."""
    try:
        device = md.backend.get("cuda")
    except md.BackendUnavailableError as reason:
        pytest.skip(str(reason))
    if room is not None:
        monkeypatch.setattr(md.search.lists.list_search, "ROOM", room)
    search, reporters = md.search.Verlet(skin=skin), [Looks(), Copies(tmp_path, 170)]
    simulation = md.Simulation(
        md.scenes.benchmark_gas(20_000, 0.3), md.scenes.BENCHMARK_LAW, search=search,
        dt=md.scenes.BENCHMARK_DT, backend=device, precision="float32", fused=True,
    )  # fmt: skip
    simulation.run(1000, phases=False, reporters=reporters)
    for step in (170, 680):
        loaded = md.Simulation.load(tmp_path / f"{step}.npz")
        loaded.run(1000 - step, phases=False, reporters=reporters)
        assert bits(loaded) == bits(simulation)


@pytest.mark.full
def test_lists_that_grew_take_the_room_of_the_first_again(monkeypatch, tmp_path):
    monkeypatch.setattr(md.search.lists.list_search, "ROOM", 1)
    simulation = made(("verlet", 3, "float64", None, False, True, None), "cpu")
    simulation.run(3)
    assert len(simulation.search.structure()[0]) > len(simulation)
    simulation.save(tmp_path / "run.npz")
    assert len(simulation.search.structure()[0]) == len(simulation)
    assert np.array_equal(simulation.pairs(), md.Simulation(simulation.state, LAW, backend="cpu").pairs())


def test_saving_rebuilds_lists_and_reading_does_not(backend, tmp_path):
    simulation = made(("verlet", 3, "float64", None, False, True, None), backend)
    simulation.run(2)
    builds = simulation.builds
    assert len(simulation.state) == len(simulation)
    assert simulation.builds == builds
    simulation.save(tmp_path / "run.npz")
    simulation.run(1)
    assert simulation.builds == builds + 1
    loaded = md.Simulation.load(tmp_path / "run.npz")
    loaded.run(1)
    assert loaded.builds == 1


def test_a_search_that_keeps_nothing_counts_its_builds_from_where_it_was_loaded(tmp_path):
    simulation = made(("linked", 3, "float64", None, False, True, None), "cpu")
    simulation.run(5)
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    loaded.run(2)
    assert (simulation.builds, loaded.builds, loaded.step) == (5, 2, 7)
    assert loaded.timings.total[0][0] == 2


def test_what_a_loaded_run_shows_is_what_the_saved_one_shows(backend, tmp_path):
    simulation = made((md.search.Coherent("hilbert"), 3, "float64", None, False, True, None), backend)
    simulation.run(40)
    simulation.save(str(tmp_path / "run.npz"))
    loaded = md.Simulation.load(str(tmp_path / "run.npz"))
    one, other = simulation.state, loaded.state
    for name in ("pos", "vel", "id"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.box == other.box
    assert np.array_equal(simulation.pairs(), loaded.pairs())
    assert (loaded.law, loaded.dt, len(loaded)) == (LAW, DT, len(simulation))


@pytest.mark.parametrize("other", ["position_verlet", "adaptive_euler"])
def test_another_integrator_cannot_go_on(other, tmp_path):
    simulation = md.Simulation(md.scenes.benchmark_gas(125, 0.2), LAW, backend="cpu")
    simulation.run(2)
    simulation.save(tmp_path / "run.npz")
    with pytest.raises(
        ValueError,
        match="velocities and time in the file are those of the saved integrator; allowed: the same",
    ):
        md.Simulation.load(tmp_path / "run.npz", integrator=other)
    assert md.Simulation.load(tmp_path / "run.npz", integrator="velocity_verlet").step == 2


def test_what_drives_the_gas_may_be_changed_and_its_energy_is_judged_again(backend, tmp_path, start_energy):
    """Shaken hot and then left alone it has more than at the start; left alone, it is monitored again."""
    box = md.Box((6.0, 6.0, 6.0), (True, True, False))
    cold = md.preparation.granular_gas(0.1, box, temperature=1e-4, mixing=0)
    still, shaken = md.Walls(), md.ShakenWalls(amplitude=0.5, frequency=10.0)
    law = md.laws.SpringDashpot.from_restitution(0.9, 1e-2)
    simulation = md.Simulation(cold, law, walls=still, backend=backend)
    simulation.run(10)
    cool = start_energy(simulation)
    simulation.save(tmp_path / "run.npz")
    simulation = md.Simulation.load(tmp_path / "run.npz", walls=shaken)
    simulation.run(1000)
    assert start_energy(simulation) is None
    simulation.save(tmp_path / "run.npz")
    simulation = md.Simulation.load(tmp_path / "run.npz", walls=still)
    simulation.run(200)
    assert start_energy(simulation) > 100 * cool
    simulation.save(tmp_path / "run.npz")
    assert start_energy(md.Simulation.load(tmp_path / "run.npz")) == start_energy(simulation)


@pytest.mark.quick
def test_a_schedule_that_goes_by_times_starts_with_a_reorder(backend, tmp_path):
    reorder = md.Reorder("hilbert", md.Decayed(loss=1e9))
    simulation = made(("scattered", 3, "float64", None, False, True, reorder), backend)
    simulation.run(3)
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    loaded.run(3)
    assert (simulation.timings.steps["reorder"], loaded.timings.steps["reorder"]) == ([0], [3])


@pytest.mark.quick
def test_a_schedule_that_looks_remembers_what_it_compares_with(backend, tmp_path):
    reorder = md.Reorder("hilbert", md.Moved(1.0))
    simulation = made(("scattered", 3, "float64", None, False, True, reorder), backend)
    simulation.run(3)
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    loaded.run(20)
    assert "reorder" not in loaded.timings.milliseconds


@pytest.mark.parametrize(("interval", "error"), [(0, ValueError), (2.5, TypeError), (True, TypeError)])
def test_a_checkpoint_without_a_proper_interval_is_refused(interval, error):
    with pytest.raises(error, match=r"interval of Checkpoint = .*; allowed: an integer of at least 1"):
        md.Checkpoint("run.npz", interval)


def test_an_interval_of_numpy_is_an_integer():
    assert type(md.Checkpoint("run.npz", np.uint8(100)).interval) is int
