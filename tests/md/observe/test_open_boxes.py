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


def apart(state: md.State) -> tuple[np.ndarray, np.ndarray]:
    """Differences r_i - r_j of nearest images, (n, n, dim), and sums of two radii, (n, n)."""
    lengths, radius = np.array(state.box.lengths), np.full(len(state), 0.5)
    difference = state.pos[:, None] - state.pos[None]
    difference -= np.where(state.box.periodic, lengths * np.round(difference / lengths), 0)
    radius = radius if state.radius is None else state.radius
    return difference, radius[:, None] + radius[None]


def touching(state: md.State) -> set[tuple[int, int]]:
    """Pairs of ids closer than the sum of their radii."""
    difference, size = apart(state)
    close = np.triu(np.linalg.norm(difference, axis=2) < size, 1)
    return {tuple(sorted(pair)) for pair in state.id[np.argwhere(close)].tolist()}


def in_cells(state: md.State, cells: tuple[int, ...]) -> dict[tuple[int, ...], np.ndarray]:
    """Rows of the particles in each cell of the box; a particle outside the box is in none."""
    lengths = np.array(state.box.lengths)
    inside = ((state.pos >= 0) & (state.pos <= lengths)).all(axis=1)
    at = np.minimum((state.pos * (np.array(cells) / lengths)).astype(int), np.array(cells) - 1)
    return {cell: np.flatnonzero(inside & (at == cell).all(axis=1)) for cell in np.ndindex(cells)}


def thermal(vel: np.ndarray) -> float:
    """Mean square of velocities about their mean, over the axes; NaN of none."""
    return vel.var(axis=0).mean() if len(vel) else math.nan


def close(found, expected, name=""):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9, err_msg=name)


def plain_sums(state: md.State, begun: int, cells: tuple[int, ...]) -> dict:
    """Compute each scalar of an observation from the state."""
    n, dim = state.pos.shape
    speed, pairs = np.linalg.norm(state.vel, axis=1), touching(state)
    held = [state.vel[rows] for rows in in_cells(state, cells).values() if len(rows)]
    about = sum(len(vel) * thermal(vel) for vel in held) / sum(map(len, held)) if held else math.nan
    rate = 2 * begun / (n * DT)
    by_touching = 2 * len(pairs) / (n * LAW.contact_time) if state.radius is None else math.nan
    return {
        "kinetic_energy_per_particle": (speed**2).sum() / 2 / n,
        "temperature": (speed**2).sum() / dim / n,
        "temperature_about_local_mean": about,
        "momentum": state.vel.sum(axis=0),
        "mean_speed": speed.sum() / n,
        "touching_pairs": len(pairs),
        "contacts_begun": begun,
        "collision_rate_per_particle": rate,
        "collision_rate_by_touching": by_touching,
        "mean_free_path_d": speed.sum() / n / rate if rate else math.inf,
    }


def plain_contact_energy(state: md.State) -> float:
    """Compute the energy of the springs per particle, of equal spheres."""
    difference, size = apart(state)
    overlap = np.maximum(size - np.linalg.norm(difference, axis=2), 0)[np.triu_indices(len(state), 1)]
    return LAW.stiffness * (overlap**2).sum() / 2 / len(state)


@pytest.mark.quick
def test_a_look_sums_over_all_particles_and_not_those_in_the_box_alone(backend):
    box = md.Box((10.0, 10.0), periodic=False, open=True)
    pos = [[5.0, 5.0], [15.0, 5.0], [25.0, 5.0], [35.0, 5.0]]
    run = simulated(md.State(pos, [[1.0, 0.0]] * 4, box), backend)
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
    for name, expected in plain_sums(state, 0, (1, 1)).items():
        if name in ("kinetic_energy_per_particle", "temperature", "mean_speed"):
            close(table[name], np.full(7, expected), name)
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
    state, table = run.state, observer.table()
    for row, (at, begun) in enumerate([(start, 0), (state, len(touching(state) - touching(start)))]):
        expected = plain_sums(at, begun, cells)
        if row == 0:  # no step was taken: the contacts begun are unknown
            unknown = "collision_rate_per_particle", "mean_free_path_d"
            expected |= dict.fromkeys(unknown, math.nan)
        momentum = expected.pop("momentum")
        close([table[f"momentum_{axis}"][row] for axis in "xyz"[: len(sides)]], momentum, "momentum")
        for name, value in expected.items():
            close(table[name][row], value, f"{name} of row {row}")
    energy = table["contact_energy_per_particle"]
    close(energy[1], md.observe.contact_energy(state, run.pairs(), LAW))
    if start.radius is None:
        close(energy, [plain_contact_energy(at) for at in (start, state)])
    check_profiles(observer.profile_table(), [start, state], profiles)


def check_profiles(table: dict, states: list[md.State], profiles: list[Profile]) -> None:
    """Compare a table of profiles with sums slice by slice."""
    row, box = 0, states[0].box
    width, volume = np.array(box.lengths) / BINS, box.volume / BINS
    filled = math.nan if states[0].radius is not None else {2: math.pi / 4, 3: math.pi / 6}[box.dim] / volume
    for state, profile in itertools.product(states, profiles):
        along = tuple(BINS if axis == profile.axis else 1 for axis in range(box.dim))
        for k, rows in enumerate(in_cells(state, along).values()):
            vel = state.vel[rows]
            mean = vel.mean(axis=0) if len(vel) else np.full(box.dim, math.nan)
            expected = {
                "axis": profile.axis, "slice": k, "centre_d": (k + 0.5) * width[profile.axis],
                "particles": len(rows), f"number_density_per_d{box.dim}": len(rows) / volume,
                "filling_fraction": len(rows) * filled, "temperature": thermal(vel),
            } | {f"velocity_{'xyz'[a]}": mean[a] for a in range(box.dim)}  # fmt: skip
            for name, value in expected.items():
                close(table[name][row], value, f"{name} of row {row}")
            row += 1
    assert len(table["slice"]) == row


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
            vel = state.vel[rows]
            mean = vel.mean(axis=0) if len(vel) else np.full(dim, math.nan)
            contact = virial[rows].sum() / dim / volume
            motion = len(rows) / volume * thermal(vel) if len(vel) else 0
            expected = {
                "particles": len(rows), "number_density": len(rows) / volume, "velocity": mean,
                "temperature": thermal(vel), "contact_pressure": contact, "pressure": contact + motion,
            }  # fmt: skip
            for name, value in expected.items():
                np.testing.assert_allclose(getattr(seen, name)[cell], value, 1e-9, 1e-7, err_msg=name)


@every_combination
@tiers.examples(3)
@given(data=st.data())
def test_an_energy_balance_sums_over_all_particles(sides, backend, data):
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
    reach = np.full(len(start), 0.5) if start.radius is None else start.radius
    walled = np.isin(np.arange(len(sides)), axes)
    overlaps = [reach[:, None] - start.pos, reach[:, None] - (lengths - start.pos)]
    pressed = [np.where(walled, np.maximum(overlap, 0), 0) for overlap in overlaps]
    difference, size = apart(start)
    r = np.linalg.norm(difference, axis=2)
    approach = ((vel[:, None] - vel[None]) * difference).sum(axis=2) / np.where(r > 0, r, 1)
    lost = LAW.damping * approach[np.triu((r < size) & (r > 0), 1)] ** 2
    expected = {
        "kinetic_energy": (vel**2).sum() / 2,
        "contact_energy": md.observe.contact_energy(start, run.pairs(), LAW) * len(start),
        "wall_energy": sum(spring * (one**2).sum() / 2 for one in pressed),
        "power_in": (vel * pull).sum(),
        "power_lost_in_pairs": lost.sum(),
        "power_lost_at_walls": sum((damping * vel**2)[one > 0].sum() for one in pressed),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, rtol=1e-9, atol=1e-7, err_msg=name)


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
    radius = np.full(len(state), 0.5) if state.radius is None else state.radius
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
    radius = np.full(len(state), 0.5) if state.radius is None else state.radius
    sphere = {2: math.pi, 3: 4 * math.pi / 3}[len(sides)]
    close(state.filling_fraction, (sphere * radius[rows] ** len(sides)).sum() / state.box.volume)
