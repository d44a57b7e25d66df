"""Energy balance: the energy input of a shaken box is dissipated or stored."""

import numpy as np
import pytest

import md
from md.boundaries import ShakenWalls, Walls
from md.laws import FrictionalSpringDashpot, SpringDashpot

LAW = SpringDashpot.from_restitution(0.8, contact_time=2e-3)
BOX = md.Box((6.0, 6.0, 5.0), (True, True, False))


def shaken(backend, **options) -> md.Simulation:
    state = md.preparation.granular_gas(0.2, BOX, temperature=50.0, mixing=0)
    return md.Simulation(state, LAW, backend=backend, **options)


@pytest.mark.parametrize(
    ("search", "fused", "damping"),
    [("verlet", True, "relative"), ("linked", False, "relative"), ("linked", False, "absolute")],
)
def test_energy_that_comes_in_is_lost_or_stored(backend, search, fused, damping):
    balance = md.observe.EnergyBalance()
    walls = ShakenWalls(amplitude=0.5, frequency=20.0, restitution=0.9, wall_damping=damping)
    run = shaken(backend, search=search, fused=fused, walls=walls, gravity=(0.0, 3.0, -5.0))
    run.run(1500, reporters=[balance])
    table = balance.table()
    assert len(table["step"]) == 1501
    supplied = table["energy_in"]
    lost = table["energy_lost_in_pairs"], table["energy_lost_at_walls"]
    stored = table["kinetic_energy"] + table["contact_energy"] + table["wall_energy"]
    assert lost[0][-1] > 0.05 * supplied[-1]
    assert lost[1][-1] > 0.01 * supplied[-1]
    for flow in ("in", "lost_in_pairs", "lost_at_walls"):
        areas = np.trapezoid(table[f"power_{flow}"], table["time"])
        assert table[f"energy_{flow}"][[0, -1]] == pytest.approx([0, areas], rel=1e-9)
    missing = supplied - lost[0] - lost[1] - (stored - stored[0])
    np.testing.assert_allclose(table["energy_missing"], missing, atol=1e-9 * supplied[-1])
    assert np.abs(missing[-1]) < 1e-3 * supplied[-1]


def test_the_energies_are_those_of_the_state(backend):
    run = shaken(backend, search="linked", walls=Walls(restitution=0.7))
    for _ in range(200):
        run.run(20)
        if (run.state.pos[:, 2] < 0.499).any():
            break
    balance = md.observe.EnergyBalance(5)
    balance.report(run)
    row, state = balance.table(), run.state
    n = len(state)
    assert row["kinetic_energy"][0] == pytest.approx(n * md.observe.kinetic_energy(state))
    contact = n * md.observe.contact_energy(state, run.pairs(), LAW)
    assert row["contact_energy"][0] == pytest.approx(contact, rel=1e-9, abs=1e-9)
    stiffness, _ = Walls(restitution=0.7).contact(LAW)
    z = state.pos[:, 2]
    overlap = np.maximum(0.5 - z, 0) + np.maximum(0.5 - (5.0 - z), 0)
    assert row["wall_energy"][0] == pytest.approx(stiffness * np.square(overlap).sum() / 2)
    assert row["wall_energy"][0] > 0
    assert row["power_in"][0] == 0


def test_a_law_without_a_balance_is_refused():
    law = FrictionalSpringDashpot.from_restitution(0.8, 1e-2, friction=0.1, tangential_restitution=0.9)
    state = md.preparation.granular_gas(0.1, BOX, mixing=0)
    run = md.Simulation(state, law, walls=Walls(), backend="cpu")
    with pytest.raises(ValueError, match="no energy balance of Frictional"):
        md.observe.EnergyBalance().report(run)


@pytest.mark.parametrize("integrator", ["position_verlet", "adaptive_euler"])
def test_an_integrator_without_a_balance_is_refused(integrator):
    run = shaken("cpu", walls=Walls(), integrator=integrator)
    with pytest.raises(ValueError, match=f"no energy balance of '{integrator}' steps; allowed: velocity"):
        run.run(1, reporters=[md.observe.EnergyBalance()])


@pytest.mark.parametrize("kind", [md.Observer, md.observe.EnergyBalance])
def test_an_interval_of_0_is_refused_at_once(kind):
    with pytest.raises(ValueError, match=r"interval of \w+ = 0; allowed: an integer of at least 1"):
        kind(0)
