"""`repr` of the public objects: one line that says what each is, with its parameters."""

import pytest

import md
from md.integrate import INTEGRATORS
from md.particles.system import System
from md.search import SEARCHES

BOX = "Box(lengths=(4.0, 6.0), periodic=(True, True), open=(False, False))"
FOIL = md.naca("2412", 12)
WING = md.Wing(airfoil=FOIL, chord=8, at=(9, 8), stiffness=100)
INFLOW = md.Inflow(velocity=(1, 0))
SHOWN = [
    (md.Box((4, 6)), BOX),
    (md.State([[1, 1]], [[0, 0]], md.Box((4, 6))), f"<State of 1 particles in {BOX}>"),
    (md.laws.SpringDashpot(100, 2), "SpringDashpot(stiffness=100.0, damping=2.0, diameter=1.0)"),
    (
        md.laws.Boids(alignment=1),
        "Boids(cohesion_radius=5.0, separation_radius=3.0, alignment_radius=5.0, cohesion=0.01, "
        "separation=0.1, alignment=1.0)",
    ),
    (md.integrate.Flight(2), "Flight(max_speed=2.0)"),
    (md.search.Linked(), "Linked()"),
    (
        md.search.Verlet("hilbert", skin=0.2),
        "Verlet(cell_order='hilbert', skin=0.2, inner_skin=None, sorts=True)",
    ),
    (md.search.Lbvh(), "Lbvh(cell_order='morton', rebuild_every=16)"),
    (md.Every(5), "Every(interval=5)"),
    (md.Never(), "Never()"),
    (md.Moved(0.25), "Moved(fraction=0.25, interval=10)"),
    (md.Decayed(), "Decayed(loss='auto', window=10)"),
    (
        md.Reorder("row", md.Every(5)),
        "Reorder(ordering='row', schedule=Every(interval=5), mode='data', via='device')",
    ),
    (FOIL, "<Airfoil 'NACA 2412' of 22 points>"),
    (
        WING,
        "Wing(airfoil=<Airfoil 'NACA 2412' of 22 points>, chord=8.0, at=(9.0, 8.0), angle=0.0, "
        "stiffness=100.0, damping=0.0, depth=2.0)",
    ),
    (INFLOW, "Inflow(velocity=(1.0, 0.0), temperature=0.0, axis=0, seed=0)"),
    (md.Walls(restitution=0.5), "Walls(restitution=0.5, contact_time=None, sides=None)"),
    (
        md.ShakenWalls(amplitude=1.5, frequency=2.0),
        "ShakenWalls(restitution=1.0, contact_time=None, sides=None, amplitude=1.5, frequency=2.0, axis=-1, "
        "wall_damping='relative')",
    ),
    (md.Profile(axis=1, bins=4), "Profile(axis=1, bins=4)"),
    (
        md.Observer(10, profiles=md.Profile(axis=1, bins=4)),
        "<Observer(interval=10, profiles=(Profile(axis=1, bins=4),), cells=1), 0 observations>",
    ),
    (md.observe.EnergyBalance(3), "<EnergyBalance(interval=3), 0 rows>"),
    (md.observe.Fields(3, 4), "<Fields(interval=3, cells=4), 0 added>"),
    (md.Checkpoint("run.npz", 5), "Checkpoint('run.npz', interval=5)"),
    (md.backend.Cpu("soa"), "Cpu(layout='soa')"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("thing", "expected"), SHOWN, ids=[type(thing).__name__ for thing, _ in SHOWN])
def test_a_choice_shows_its_parameters(thing, expected):
    assert repr(thing) == expected


def test_a_trajectory_shows_its_file(tmp_path):
    trajectory = md.Trajectory(tmp_path / "run.gsd", 4)
    options = "interval=4, append=False, precision='single'"
    assert repr(trajectory) == f"Trajectory('{tmp_path}/run.gsd', {options})"


@pytest.mark.parametrize("kind", [*SEARCHES.values(), *INTEGRATORS.values()])
def test_every_search_and_integrator_shows_its_parameters(kind):
    assert repr(kind()).startswith(f"{kind.__name__}(")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("reorder", "shown"),
    [
        (None, "none"),
        (md.Reorder("hilbert", md.Every(500)), "hilbert every 500"),
        (md.Reorder("row", md.Moved(0.5)), "row Moved(fraction=0.5, interval=10)"),
    ],
)
def test_a_simulation_shows_what_it_computes_with(reorder, shown):
    gas = md.scenes.benchmark_gas(125, 0.2)
    run = md.Simulation(
        gas, md.scenes.BENCHMARK_LAW, search="linked", reorder=reorder, backend="cpu", precision="float32"
    )
    run.run(2)
    expected = f"Simulation(n=125, step=2, search=linked, reorder={shown}, backend=cpu float32)"
    assert repr(run) == expected


def test_the_parts_of_a_simulation_show_what_they_are():
    tunnel = md.State([[1.0, 8.0], [2.0, 3.0]], [[1.0, 0.0]] * 2, md.Box((24.0, 16.0), (True, False)))
    reorder = md.Reorder("row", md.Decayed("auto"))
    run = md.Simulation(
        tunnel, md.scenes.BENCHMARK_LAW, walls=md.Walls(), surroundings=(WING, INFLOW), reorder=reorder,
        dt=1e-3, backend="cpu",
    )  # fmt: skip
    assert repr(run.reordering.trigger) == "<TunedTrigger, no reorder yet, interval 64>"
    run.run(3)
    assert type(run.system) is System
    assert repr(run.system) == "System(n=2, grid=(24, 16), dt=0.001, backend=cpu)"
    assert repr(run.search) == "<LinkedSearch of Linked() on 2 particles>"
    assert repr(run.search.policy) == "<EveryStep, 3 builds>"
    assert repr(run.reordering) == f"<ActiveReorder of {reorder!r}, 1 times so far>"
    assert repr(run.reordering.trigger) == "<TunedTrigger, last reorder before step 0, interval 64>"
    assert [repr(part) for part in run.surroundings] == [
        f"<WingContact of {WING!r}>",
        f"<Inlet of {INFLOW!r}>",
    ]
    assert repr(run.device_view()) == "<DeviceView of 2 particles at step 3, search linked>"
    assert repr(run.system.status) == "<StatusBlock of 10 words in Cpu(layout='aos')>"
    assert repr(run.config).startswith("SimulationConfig(law=SpringDashpot(")
    assert repr(run.timings) == "<Timings of 1 runs, 3 steps; reorder, build, force, integrate>"
