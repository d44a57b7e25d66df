"""One contract for every boundary of the registries: plain data, a box that fits, resumed runs."""

import json

import numpy as np
import pytest

import md
from md.boundaries import BOUNDARIES, WALLS
from md.simulation.config import from_plain, to_plain
from tests.tiers import full

BOX = md.Box((30.0, 24.0), (True, False))
LAW = md.laws.SpringDashpot(1e4, 5.0)
PARAMETERS = {
    "wing": {"airfoil": md.naca("2412", 20), "chord": 10.0, "at": (12.0, 12.0), "angle": 8, "stiffness": 2e4},
    "inflow": {"velocity": (20.0, 0.0), "temperature": 1.0},
    "walls": {"restitution": 0.9, "contact_time": 0.02},
    "shaken_walls": {"amplitude": 0.2, "frequency": 3.0, "axis": 1, "contact_time": 0.02},
}
MISFITS = {  # a box that the boundary does not fit, and what the error says
    "wing": (md.Box((9.0, 9.0, 9.0)), "allowed: "),
    "inflow": (md.Box((30.0, 24.0), (False, True)), "allowed: a periodic axis"),
    "walls": (md.Box((30.0, 24.0)), r"they need an axis that is neither; take .*periodic=False"),
    "shaken_walls": (md.Box((30.0, 24.0)), r"they need an axis that is neither; take .*periodic=False"),
}


def boundary_of(name: str):
    return ({**BOUNDARIES, **WALLS})[name](**PARAMETERS[name])


def slot_of(name: str) -> str:
    return "surrounding" if name in BOUNDARIES else "walls"


def simulated(name: str, backend: str, box=BOX, search="linked") -> md.Simulation:
    wing = boundary_of("wing")
    start = (
        md.preparation.wing_tunnel(0.15, box, wing, (20.0, 0.0), 1.0, backend="cpu")
        if box is BOX
        else md.State(np.full((1, box.dim), 4.0), np.zeros((1, box.dim)), box)
    )
    options = {"walls": md.Walls(contact_time=0.02)} if box is BOX else {}
    if name in WALLS:
        options["walls"] = boundary_of(name)
    else:
        options["surroundings"] = (boundary_of(name),)
    return md.Simulation(start, LAW, search=search, dt=4e-4, backend=backend, **options)


def states_of(run: md.Simulation) -> dict[str, np.ndarray]:
    parts = enumerate(run.surroundings)
    return {f"{k}_{key}": array for k, part in parts for key, array in part.state_dict().items()}


def test_every_boundary_of_the_registries_is_tested_here():
    assert set(PARAMETERS) == set(MISFITS) == {*BOUNDARIES, *WALLS}


@pytest.mark.quick
@pytest.mark.parametrize("name", PARAMETERS)
class TestEveryBoundary:
    def test_is_made_again_from_plain_data(self, name):
        choice, slot = boundary_of(name), slot_of(name)
        plain = json.loads(json.dumps(to_plain(slot, choice)))
        assert plain["name"] == name
        again = from_plain(slot, plain)
        assert type(again) is type(choice)
        assert to_plain(slot, again) == plain
        with pytest.raises(AttributeError):
            choice.stiffness = 1.0

    def test_is_refused_in_a_box_that_it_does_not_fit(self, name, backend):
        box, message = MISFITS[name]
        with pytest.raises(ValueError, match=message):
            simulated(name, backend, box)

    def test_one_choice_serves_many_simulations(self, name, backend):
        one, other = simulated(name, backend), simulated(name, backend)
        one.run(20)
        other.run(20)
        assert np.array_equal(one.state.by_id().pos, other.state.by_id().pos)

    @pytest.mark.parametrize("search", ["lbvh", full("verlet")])
    def test_acts_alike_under_every_kind_of_search(self, search, name, backend):
        ends = []
        for kind in ("naive", search):
            run = simulated(name, backend, search=kind)
            run.run(60)
            ends.append(run.state.by_id().pos)
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-8)

    def test_resumes_from_a_file_to_the_last_bit(self, name, backend, tmp_path):
        run = simulated(name, backend)
        run.run(60)
        run.save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        for one in (run, loaded):
            one.run(60)
        assert np.array_equal(run.state.pos, loaded.state.pos)
        states = [states_of(one) for one in (run, loaded)]
        assert states[0].keys() == states[1].keys()
        assert all(np.array_equal(states[0][key], states[1][key]) for key in states[0])
        assert (len(states[0]) > 0) == (name in BOUNDARIES)
