"""All that is observed in boxes of any sides, beside sums that numpy takes over all particles."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.observe import EnergyBalance, Fields, Observer, Profile, field, look
from tests import tiers
from tests.md.gas_reference import Gas, apart, contact_energy, in_cells, radii, touching
from tests.md.gas_reference import profile as of_slices

LAW, DT = md.laws.SpringDashpot(stiffness=500.0, damping=2.0), 1e-3
SIDES = ["".join(sides) for dim in (2, 3) for sides in itertools.product("pwo", repeat=dim)]
every_combination = pytest.mark.parametrize("sides", SIDES)
BINS = 4


def box_of(sides: str) -> md.Box:
    """Make a box with periodic (p), walled (w) and open (o) axes."""
    lengths = (3.1, 4.3, 2.7)[: len(sides)]
    return md.Box(lengths, tuple(s == "p" for s in sides), tuple(s == "o" for s in sides))


@st.composite
def crowds(draw, sides: str, is_sized: bool | None = None) -> md.State:
    """Overlapping particles inside the box, or on both sides of it along its open axes."""
    box, rng = box_of(sides), np.random.default_rng(draw(st.integers(0, 2**16)))
    n, reach = draw(st.sampled_from([1, 30, 120])), draw(st.sampled_from([0.0, 0.3, 2.0]))
    lengths, margin = np.array(box.lengths), np.where(box.open, -reach, np.where(box.periodic, 0, 0.02))
    pos = (margin + rng.random((n, box.dim)) * (1 - 2 * margin)) * lengths
    pos[: n // 8] = pos[n // 8 : 2 * (n // 8)] + rng.uniform(-0.01, 0.01, (n // 8, box.dim))  # deep overlaps
    pos = np.where(box.open, pos, np.clip(pos, 0.01, lengths - 0.01))
    if draw(st.booleans()):  # the lower and the upper side of an open axis are parts of the box
        pos = np.where(box.open & (rng.random(pos.shape) < 0.1), rng.integers(0, 2, pos.shape) * lengths, pos)
    sized = draw(st.booleans()) if is_sized is None else is_sized
    radius = rng.uniform(0.05, 0.6, n) if sized else None
    return md.State(pos, rng.normal(1.0, 3.0, pos.shape), box, rng.permutation(n), radius)


def simulated(state: md.State, backend: str, **options) -> md.Simulation:
    options = {"search": "linked", "dt": DT, "allow_overlap": True, "backend": backend} | options
    return md.Simulation(state, LAW, **options)


def close(found, expected, name=""):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9, err_msg=name)


@pytest.mark.quick
@pytest.mark.parametrize("layout", [None, *map(tiers.full, ("soa", "aos", "aos4"))])
def test_a_look_sums_over_all_particles_and_not_those_in_the_box_alone(layout, backend):
    box = md.Box((10.0, 10.0), periodic=False, open=True)
    pos = [[5.0, 5.0], [15.0, 5.0], [25.0, 5.0], [35.0, 5.0]]
    run = simulated(md.State(pos, [[1.0, 0.0]] * 4, box), backend, layout=layout)
    seen = look(run)
    assert seen.temperature == md.observe.temperature(run.state) == 0.5
    assert seen.kinetic_energy_per_particle == md.observe.kinetic_energy(run.state) == 0.5
    assert seen.mean_speed == 1.0
    assert seen.momentum.tolist() == md.observe.momentum(run.state).tolist() == [4.0, 0.0]
    assert seen.temperature_about_local_mean == 0  # of the one that is in the box


def test_a_gas_of_free_particles_that_leave_does_not_cool(backend):
    rng, box = np.random.default_rng(3), md.Box((4.0, 4.0), False, (True, True))
    state = md.State(rng.random((20, 2)) * 4, rng.normal(0, 8, (20, 2)), box)
    run = md.Simulation(state, md.laws.SpringDashpot(0.0, 0.0), search="linked", dt=0.1, backend=backend)
    observer = Observer(10, Profile(0, 3))
    run.run(60, reporters=[observer], phases=False)
    table, last = observer.table(), observer.observations[-1]
    expected = Gas(state, LAW, DT).looked_at()
    for name in ("kinetic_energy_per_particle", "temperature", "mean_speed"):
        close(table[name], np.full(7, expected[name]), name)
    close(table["momentum_x"], np.full(7, state.vel[:, 0].sum()))
    assert last.profiles[0].particles.sum() == 0
    assert math.isnan(last.temperature_about_local_mean)


@every_combination
@tiers.examples(4)
@given(data=st.data())
def test_every_column_is_that_of_plain_sums(sides, backend, data):
    start = data.draw(crowds(sides))
    cells = data.draw(st.sampled_from([(1,) * len(sides), (2, 3, 2)[: len(sides)]]))
    profiles = [Profile(axis, BINS) for axis in range(len(sides))]
    run, observer = simulated(start, backend), Observer(1, profiles, cells)
    run.run(1, reporters=[observer], phases=False)
    begun = len(touching(run.state) - touching(start))
    expected = [Gas(at, LAW, DT).looked_at(new, cells) for at, new in ((start, None), (run.state, begun))]
    table = observer.table()
    for name in expected[0].keys() - {"momentum"}:
        close(table[name], [row[name] for row in expected], name)
    momentum = np.column_stack([table[f"momentum_{axis}"] for axis in "xyz"[: len(sides)]])
    close(momentum, [row["momentum"] for row in expected], "momentum")
    check_profiles(observer.profile_table(), [start, run.state], profiles)


def check_profiles(table: dict, states: list[md.State], profiles: list[Profile]) -> None:
    """Compare a table of profiles with sums slice by slice."""
    dim = states[0].box.dim
    every = [(profile, of_slices(state, profile.axis, BINS)) for state in states for profile in profiles]
    close(table["axis"], np.repeat([profile.axis for profile, _ in every], BINS))
    close(table["slice"], np.tile(np.arange(BINS), len(every)))
    names = {"centre_d": "centre", f"number_density_per_d{dim}": "number_density"}
    for name in ("centre_d", "particles", f"number_density_per_d{dim}", "filling_fraction", "temperature"):
        close(table[name], np.concatenate([found[names.get(name, name)] for _, found in every]), name)
    for axis in range(dim):
        velocity = np.concatenate([found["velocity"][:, axis] for _, found in every])
        close(table[f"velocity_{'xyz'[axis]}"], velocity, "velocity")


def plain_virial(state: md.State) -> np.ndarray:
    """Compute half the sum of f . dr over the partners of each particle, in memory order."""
    difference, _ = apart(state)
    r = np.linalg.norm(difference, axis=2)
    along = ((state.vel[:, None] - state.vel[None]) * difference).sum(axis=2)
    pairs = np.where((r < 1) & (r > 0), LAW.stiffness * (1 - r) * r - LAW.damping * along, 0)
    return pairs.sum(axis=1) / 2


@every_combination
@tiers.examples(2)
@given(data=st.data())
def test_fields_count_the_particles_of_each_cell(sides, backend, data):
    state = data.draw(crowds(sides, False))
    cells, dim = (3, 2, 2)[: len(sides)], len(sides)
    run, fields = simulated(state, backend), Fields(1, cells)
    virial, volume = plain_virial(state), state.box.volume / math.prod(cells)
    close(md.observe.virial(run), virial[np.argsort(state.id)], "virial")
    for _ in range(2):
        fields.report(run)
    for seen in (field(run, cells), fields.mean()):
        for cell, rows in in_cells(state, cells).items():
            vel, density = state.vel[rows], len(rows) / volume
            mean = vel.mean(axis=0) if len(vel) else np.full(dim, math.nan)
            temperature = vel.var(axis=0).mean() if len(vel) else math.nan
            contact = virial[rows].sum() / dim / volume
            expected = {
                "particles": len(rows), "number_density": density, "velocity": mean,
                "temperature": temperature, "contact_pressure": contact,
                "pressure": contact + density * np.nan_to_num(temperature),
            }  # fmt: skip
            for name, value in expected.items():
                np.testing.assert_allclose(getattr(seen, name)[cell], value, 1e-9, 1e-7, err_msg=name)


@every_combination
@tiers.examples(3)
@given(data=st.data())
def test_an_energy_balance_and_the_energy_of_the_start_sum_over_all_particles(sides, backend, data):
    """With walls at the ends of open axes too, which pull particles back from outside."""
    start = data.draw(crowds(sides))
    axes = tuple(axis for axis, side in enumerate(sides) if side != "p")
    walls = md.Walls(contact_time=0.05, restitution=0.8, sides=axes) if axes else None
    pull = np.array([0.5, -2.0, 1.0][: len(sides)])
    run, balance = simulated(start, backend, walls=walls, gravity=tuple(pull)), EnergyBalance()
    balance.report(run)
    row = {name: column[0] for name, column in balance.table().items()}
    vel, lengths = start.vel, np.array(start.box.lengths)
    spring, damping = walls.contact(LAW) if walls else (0.0, 0.0)
    reach, walled = radii(start), np.isin(np.arange(len(sides)), axes)
    overlaps = [reach[:, None] - start.pos, reach[:, None] - (lengths - start.pos)]
    pressed = [np.where(walled, np.maximum(overlap, 0), 0) for overlap in overlaps]
    difference, size = apart(start)
    r = np.linalg.norm(difference, axis=2)
    approach = ((vel[:, None] - vel[None]) * difference).sum(axis=2) / np.where(r > 0, r, 1)
    lost = LAW.damping * approach[np.triu((r < size) & (r > 0), 1)] ** 2
    expected = {
        "kinetic_energy": (vel**2).sum() / 2,
        "contact_energy": contact_energy(start, LAW),
        "wall_energy": sum(spring * (one**2).sum() / 2 for one in pressed),
        "power_in": (vel * pull).sum(),
        "power_lost_in_pairs": lost.sum(),
        "power_lost_at_walls": sum((damping * vel**2)[one > 0].sum() for one in pressed),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, rtol=1e-9, atol=1e-7, err_msg=name)
    monitored = simulated(start, backend, walls=walls)
    monitored._energy.check_start(0)
    stored = sum(expected[name] for name in ("kinetic_energy", "contact_energy", "wall_energy"))
    np.testing.assert_allclose(monitored._energy.start, stored, rtol=1e-9)


@pytest.mark.parametrize("sides", [sides for sides in SIDES if len(sides) == 3])
@tiers.examples(2)
@given(data=st.data())
def test_a_section_cuts_all_spheres_near_its_plane(sides, data):
    state, axis = data.draw(crowds(sides)), data.draw(st.integers(0, 2))
    length = state.box.lengths[axis]
    at = data.draw(st.sampled_from([0.0, 0.4 * length, length]))
    away = state.pos[:, axis] - at
    if sides[axis] == "p":
        away = np.abs(away) - length * (np.abs(away) > length / 2)
    radius = radii(state)
    cut = md.observe.section(state, axis, at)
    expected = {int(k): (radius[k] ** 2 - away[k] ** 2) ** 0.5 for k in np.flatnonzero(np.abs(away) < radius)}
    assert cut.id.tolist() == sorted(state.id[list(expected)].tolist())
    close(cut.radius, [expected[int(np.flatnonzero(state.id == name)[0])] for name in cut.id])


@every_combination
@tiers.examples(2)
@given(data=st.data())
def test_the_filling_fraction_is_of_the_spheres_in_the_box(sides, data):
    state = data.draw(crowds(sides))
    (rows,) = in_cells(state, (1,) * len(sides)).values()
    radius = radii(state)
    sphere = {2: math.pi, 3: 4 * math.pi / 3}[len(sides)]
    close(state.filling_fraction, (sphere * radius[rows] ** len(sides)).sum() / state.box.volume)
