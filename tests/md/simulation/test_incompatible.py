"""Choices that do not go together: each row of the table is reached, and raised by `Simulation`."""

from types import SimpleNamespace

import pytest

import md
from md.integrate import INTEGRATORS, integrator
from md.search import search
from md.simulation.config import INCOMPATIBLE
from tests.md.laws.alignment import Alignment

BOX = md.Box((24.0, 16.0), (True, False))
STREAM = md.Inflow(velocity=(1.0, 0.0))
LAW = md.scenes.BENCHMARK_LAW
SHADOW = md.Reorder("row", md.Every(5), mode="shadow")
BOIDS = md.laws.Boids()
CASES = [  # one for each row, in the order of the table: choices, and what the message says
    (
        {"integrator": "flight"},
        "integrator 'flight' takes increments of velocity, and SpringDashpot.* gives forces; allowed: a law "
        "such as md.laws.Boids.*, or integrator='velocity_verlet'",
    ),
    (
        {"law": BOIDS},
        "Boids.* gives increments of velocity, and integrator 'velocity_verlet' takes forces; allowed: "
        "integrator='flight'",
    ),
    (
        {"integrator": "position_verlet", "fused": True},
        "integrator 'position_verlet' cannot be fused into the force kernel; take fused=False",
    ),
    ({"surroundings": (STREAM,), "fused": True}, "surroundings with fused=True; .*; take fused=False"),
    (
        {"surroundings": (STREAM,), "integrator": "position_verlet"},
        "surroundings with integrator 'position_verlet'; allowed: velocity_verlet, adaptive_euler",
    ),
    (
        {"surroundings": (STREAM,), "reorder": SHADOW},
        "surroundings with a reorder of mode 'shadow'.*; allowed: mode 'data' or 'threads', or none",
    ),
    ({"search": "reflexive", "fused": True}, "search 'reflexive' as chosen .*; take fused=False, or"),
    (
        {"search": md.search.Verlet(sorts=False), "reorder": md.Reorder("hilbert", md.Every(5))},
        "search 'verlet' with sorts=False leaves the particles where they are.*cell_order='hilbert'",
    ),
    (
        {"search": "tensor", "reorder": md.Reorder("hilbert", md.Every(5))},
        "search 'tensor' sorts the data itself, .* no reorder, or search 'coherent' with",
    ),
    (
        {"search": "coherent", "reorder": md.Reorder("hilbert", md.Every(5))},
        "search 'coherent' sorts the data itself, .* give it cell_order='hilbert' instead",
    ),
    (
        {"deterministic": True},
        "deterministic=True with search 'linked' .*; allowed: search 'verlet' on the CPU",
    ),
    ({"reorder": SHADOW, "fused": True}, "mode 'shadow' with fused=True .*; allowed: fused=False, or mode"),
]


def combined(search_name="linked", integrator_name="velocity_verlet", **choices) -> SimpleNamespace:
    given = {"reorder": None, "fused": False, "surroundings": (), "law": LAW, "deterministic": False,
             "backend": "cpu"} | choices  # fmt: skip
    return SimpleNamespace(search=search(search_name), integrator=integrator(integrator_name), **given)


def simulated(**choices) -> md.Simulation:
    state = md.State([[1.0, 8.0]], [[1.0, 0.0]], BOX)
    return md.Simulation(state, choices.pop("law", LAW), backend="cpu", **choices)


@pytest.mark.quick
@pytest.mark.parametrize("row", range(len(INCOMPATIBLE)))
def test_each_row_of_the_table_is_raised(row):
    choices, message = CASES[row]
    given = dict(choices)
    combination = combined(given.pop("search", "linked"), given.pop("integrator", "velocity_verlet"), **given)
    first = next(k for k, (condition, _) in enumerate(INCOMPATIBLE) if condition(combination))
    assert first == row
    with pytest.raises(ValueError, match=message):
        simulated(**choices)


def test_there_is_a_case_for_each_row_and_none_is_raised_for_the_defaults():
    assert len(CASES) == len(INCOMPATIBLE)
    assert not any(condition(combined()) for condition, _ in INCOMPATIBLE)
    for choices, _ in CASES:
        for name in choices:
            others = {k: v for k, v in choices.items() if k != name}
            if getattr(others.get("search"), "sorts", True):  # lists without a sort are those of a device
                assert simulated(**others).step == 0


@pytest.mark.parametrize("integrator_name", sorted(set(INTEGRATORS) - {"flight"}))
def test_no_other_integrator_takes_increments(integrator_name):
    with pytest.raises(
        ValueError, match=rf"integrator '{integrator_name}' takes forces; allowed: .*'flight'"
    ):
        simulated(law=BOIDS, integrator=integrator_name, dt=0.1)


@pytest.mark.parametrize(
    "law",
    [
        LAW,
        md.laws.FrictionalSpringDashpot(1e3, 1.0, friction=0.1, tangential_damping=1.0),
        Alignment(1.0, 2.0),
    ],
)
def test_flight_takes_no_law_of_forces(law):
    with pytest.raises(
        ValueError, match=rf"'flight' takes increments of velocity, and {type(law).__name__}\("
    ):
        simulated(law=law, integrator="flight", dt=0.1)


def test_a_flock_has_no_surroundings():
    with pytest.raises(ValueError, match="surroundings with integrator 'flight'; allowed: velocity_verlet"):
        simulated(law=BOIDS, integrator="flight", dt=0.1, surroundings=(STREAM,))
