"""A divided gas is the gas of one rank: contacts, positions, faults; ranks take turns in one process."""

import itertools

import numpy as np
import pytest

import md
from md.domain import halo as halos
from md.domain.communicator import in_turn
from md.domain.division import Domain
from tests import tiers

LAW = md.scenes.BENCHMARK_LAW
SEARCHES = "linked", "verlet", "coherent", md.search.Coherent("hilbert", division=2)
WAYS = tiers.product(list(SEARCHES), [False, True], 2, tiers.full)
EVERY_WAY = list(itertools.product(SEARCHES, (False, True)))
N = 2000


def gas(n=N, seed=3, speed=1.0, drift=(0.0, 0.0, 0.0), filling=0.2) -> md.State:
    state = md.scenes.benchmark_gas(n, filling, seed=seed)
    return md.State(state.pos, speed * state.vel + np.array(drift), state.box)


def simulation(state, ranks=None, search="verlet", fused=True, **more) -> md.Simulation:
    options = {"law": LAW, "dt": md.scenes.BENCHMARK_DT, "backend": "cpu"} | more
    return md.Simulation(state, search=search, fused=fused, communicator=ranks, **options)


def course(sim, steps, every=40):
    """Pairs that touch now and then, and the state at the end by id."""
    pairs = [sim.pairs()]
    for _ in range(steps // every):
        sim.run(every, phases=False)
        pairs.append(sim.pairs())
    state = sim.state
    order = np.argsort(state.id)
    return pairs, state.id[order], state.pos[order], state.vel[order]


def farthest(state, one, other) -> float:
    """Largest distance of particles of the same id."""
    apart = one[2] - other[2]
    lengths = np.array(state.box.lengths)
    return float(np.abs(apart - np.where(state.box.periodic, lengths * np.round(apart / lengths), 0)).max())


def check(state, size, steps=200, tolerance=1e-9, every=40, **options):
    """Compare a divided run with that of one rank; return the domains of the ranks."""
    right = course(simulation(state, **options), steps, every)
    found = []

    def work(ranks):
        sim = simulation(state, ranks, **options)
        found.append(sim.system.domain)
        return course(sim, steps, every)

    for one in in_turn(size, work):
        assert np.array_equal(one[1], right[1])
        for pairs, expected in zip(one[0], right[0], strict=True):
            assert np.array_equal(pairs, expected)
        assert farthest(state, one, right) < tolerance
        np.testing.assert_allclose(one[3], right[3], atol=tolerance)
    return found


@pytest.mark.parametrize(("search", "fused", "size"), tiers.product(EVERY_WAY, [2, 3], 2, tiers.full))
def test_a_divided_gas_has_the_contacts_and_positions_of_one_rank(search, fused, size):
    domains = check(gas(), size, search=search, fused=fused)
    assert all(domain.migrations > 1 for domain in domains)


@pytest.mark.parametrize("order", ["row", "hilbert", "morton", "gilbert"])
def test_any_ordering_divides(order):
    check(gas(), 3, division=md.Division(order, travel=0.5))


@pytest.mark.parametrize("direction", [d for d in itertools.product((-1, 0, 1), repeat=3) if d > (0, 0, 0)])
def test_pairs_across_every_face_edge_and_corner_are_found(direction, backend):
    """Two particles on both sides of a corner of the box, which is periodic, meet in each direction."""
    state = gas(500)
    half = 0.48 * np.array(direction) / np.linalg.norm(direction)
    middle = np.array(state.box.lengths) * (np.array(direction) == 0) / 2
    ends = np.mod(np.stack([middle + half, middle - half]), state.box.lengths)
    far = np.linalg.norm(
        state.pos - middle - np.array(state.box.lengths) * np.round((state.pos - middle) / state.box.lengths),
        axis=1,
    )  # fmt: skip
    pos = np.concatenate([ends, state.pos[far > 2.5]])
    state = md.State(pos, np.zeros_like(pos), state.box)

    def work(ranks):
        sim = simulation(state, ranks, backend=backend, division=md.Division("hilbert"))
        return sim.pairs(), sim.system.domain.partition

    (pairs, partition), *_ = in_turn(4, work)
    assert [0, 1] in pairs.tolist()
    assert np.array_equal(pairs, simulation(state).pairs())
    assert len(set(partition.owner)) == 4


def test_particles_that_drift_migrate_at_every_side():
    state = gas(drift=(40.0, -47.0, 30.0))
    check(state, 3, steps=240)

    def work(ranks):
        sim = simulation(state, ranks)
        ids = []
        for _ in range(8):
            sim.run(30)
            ids.append(sim.system.particles.id[: sim.system.n_owned].copy())
        return ids

    found = in_turn(3, work)
    for ids in zip(*found, strict=True):
        assert np.array_equal(np.sort(np.concatenate(ids)), np.arange(N))
    for ids in found:  # most have come from another rank
        assert len(np.setdiff1d(ids[-1], ids[0])) > len(ids[0]) / 4


def test_walls_gravity_and_two_dimensions():
    lengths = (30.0, 24.0)
    sites = np.stack(np.meshgrid(np.arange(1, 29, 1.3), np.arange(1, 23, 1.3)), axis=-1).reshape(-1, 2)
    vel = np.random.default_rng(0).normal(size=sites.shape)
    state = md.State(sites, vel, md.Box(lengths, (True, False)))
    check(state, 3, walls=md.Walls(), gravity=(0.0, -1.0), division=md.Division(travel=0.7))


def test_radii_travel_with_their_particles():
    state = gas(500, filling=0.1)
    radius = np.where(np.arange(500) % 3, 0.3, 0.5)
    check(md.State(state.pos, state.vel, state.box, radius=radius), 2)


def test_a_gas_that_gets_energy_migrates_sooner_and_misses_no_pair():
    """Gravity makes a gas at rest fast: the period that was planned at the start would be too long."""
    state = gas(speed=1e-3)
    domains = check(state, 3, steps=400, gravity=(600.0, 0.0, 0.0))
    assert all(domain.migrations > 3 for domain in domains)


@pytest.mark.parametrize("pull", [3e5, 1e6])
@pytest.mark.parametrize("search", ["linked", "coherent", "verlet"])
def test_a_particle_faster_than_ghosts_reach_ends_all_ranks(search, pull):
    before, ends = simulation(gas(2000, filling=0.3)), []
    before.run(100)
    slow = md.State(before.state.pos, 1e-3 * before.state.vel, before.state.box)

    def work(ranks):
        sim = simulation(slow, ranks, search, gravity=(pull, 0.0, 0.0))
        for _ in range(2):
            with pytest.raises((md.HaloOutrun, md.SimulationFault)) as found:
                sim.run(50)
        ends.append((sim.step, type(found.value)))
        return sim.pairs(), sim.state

    (pairs, state), *_ = in_turn(3, work)
    assert len(ends) == 3
    assert len(set(ends)) == 1
    assert len(pairs) > 20
    assert np.array_equal(pairs, simulation(state, search="naive", fused=False).pairs())


def test_a_fault_is_raised_on_all_ranks_with_step_and_id():
    state = gas(500)
    state.vel[123] = np.nan
    faults = []

    def work(ranks):
        with pytest.raises(md.NonFiniteState) as caught:
            simulation(state, ranks).run(200)
        faults.append((caught.value.step, caught.value.particle))

    in_turn(3, work)
    assert len(faults) == 3
    assert len(set(faults)) == 1
    assert faults[0][1] == 123


@pytest.mark.parametrize(("options", "message"), [
    ({"search": "naive"}, "several ranks with search 'naive'; allowed: 'linked', 'coherent', 'verlet'"),
    ({"reorder": md.Reorder("hilbert", md.Every(5)), "search": "linked"}, "several ranks with a reorder"),
    ({"integrator": "adaptive_euler", "fused": False}, "integrator 'adaptive_euler'"),
    ({"search": md.search.Verlet(skin="auto")}, "skin 'auto'"),
    ({"division": md.Division(travel=6.0)}, "ghosts within 13 d: the cutoff and twice the travel, 6"),
])  # fmt: skip
def test_what_cannot_be_divided_is_refused(options, message):
    state = gas(500)
    with pytest.raises(ValueError, match=message):
        in_turn(2, lambda ranks: simulation(state, ranks, **options))


@pytest.mark.parametrize("options", [{"dt": 3e-4}, {"fused": False}, {"division": md.Division("row")}])
def test_ranks_with_different_choices_are_refused(options):
    state = gas(500)
    with pytest.raises(ValueError, match="ranks 0 and 1 differ in"):
        in_turn(3, lambda ranks: simulation(state, ranks, **(options if ranks.rank == 1 else {})))


def test_ranks_with_different_states_are_refused():
    with pytest.raises(ValueError, match="ranks 0 and 2 differ in the state"):
        in_turn(3, lambda ranks: simulation(gas(500, seed=3 + (ranks.rank == 2)), ranks))


@pytest.mark.parametrize(("search", "fused"), tiers.first(EVERY_WAY[3:] + EVERY_WAY[:3]))
def test_ranks_without_particles(search, fused, tmp_path):
    """All particles are in a corner; they fly through the box, so that ranks fill and empty."""
    random = np.random.default_rng(1)
    sites = np.stack(np.meshgrid(*(np.arange(0.6, 4.0, 1.2),) * 3), axis=-1).reshape(-1, 3)
    vel = np.array([300.0, 200.0, 400.0]) + random.normal(size=sites.shape)
    state = md.State(sites, vel, md.Box((24.0,) * 3))
    check(state, 6, steps=200, search=search, fused=fused)
    few = md.State(sites[:2], vel[:2], md.Box((24.0,) * 3))
    check(few, 4, steps=80, search=search, fused=fused)

    def work(ranks):
        sim = simulation(few, ranks, search=search, fused=fused)
        sim.run(30)
        sim.save(tmp_path / "run.npz")
        return sim.system.n_owned

    assert min(in_turn(4, work)) == 0


@pytest.mark.parametrize("search", SEARCHES)
def test_a_rank_of_few_particles_beside_many(search):
    """All but three particles are in one cell; those are of the other rank, and within its reach."""
    random = np.random.default_rng(2)
    many = np.array([8.1, 3.2, 3.2]) + 2.4 * random.random((300, 3))
    few = np.array([[10.8, 4.0, 4.0], [10.9, 3.0, 3.5], [20.0, 9.0, 9.0]])
    pos = np.concatenate([many, few])
    state = md.State(pos, np.zeros_like(pos), md.Box((24.0, 12.0, 12.0)))
    options = {"fused": False, "allow_overlap": True}

    def work(ranks):
        sim = simulation(state, ranks, search=search, division=md.Division("row"), **options)
        return sim.pairs(), sim.forces(), sim.system.n_owned

    right = simulation(state, search="linked", **options)
    found = in_turn(2, work)
    assert min(owned for _, _, owned in found) == 3
    for pairs, forces, _ in found:
        assert np.array_equal(pairs, right.pairs())
        np.testing.assert_allclose(forces, right.forces(), atol=1e-9 * np.abs(right.forces()).max())


@pytest.mark.parametrize("skin", tiers.first([0.05, 0.02, 0.2]))
def test_a_thin_skin_on_many_ranks(skin):
    check(gas(4000, speed=2.0), 8, steps=120, search=md.search.Verlet(skin=skin), division=md.Division("row"))


def test_a_run_of_parts_is_loaded_whole(tmp_path):
    state, division = gas(), md.Division("row", is_part=True)

    def work(ranks):
        mine = np.arange(N) % 2 == ranks.rank
        part = md.State(state.pos[mine], state.vel[mine], state.box, np.flatnonzero(mine))
        sim = simulation(part, ranks, division=division)
        sim.run(20)
        sim.save(tmp_path / "run.npz")
        return len(md.Simulation.load(tmp_path / "run.npz", communicator=ranks, division=division))

    assert in_turn(2, work) == [N, N]
    with pytest.raises(ValueError, match=r"parts of 4000 particles have 2000 ids; allowed: each id once"):
        in_turn(2, lambda ranks: simulation(state, ranks, division=division))


@pytest.mark.parametrize("difference", [{"steps": 20}, {"reporters": [md.Observer(interval=5)]}])
def test_ranks_with_different_arguments_of_run_are_refused(difference):
    def work(ranks):
        sim = simulation(gas(500), ranks)
        sim.run(**({"steps": 10} | (difference if ranks.rank == 1 else {})))

    with pytest.raises(ValueError, match="ranks 0 and 1 differ in the arguments of run"):
        in_turn(2, work)


def test_the_closest_pair_at_the_start_is_that_of_all_ranks():
    state = gas(500)
    for near, far in ((0, 1), (2, 3), (4, 5)):
        state.pos[far] = np.mod(state.pos[near] + [0.0, 0.0, 0.3 - 0.05 * near], state.box.lengths)
    with pytest.raises(md.OverlappingStart) as right:
        simulation(state).run(1)
    faults = []

    def work(ranks):
        with pytest.raises(md.OverlappingStart) as found:
            simulation(state, ranks).run(1)
        faults.append(str(found.value))

    in_turn(3, work)
    assert faults == 3 * [str(right.value)]


def test_boxes_with_other_sides_are_refused():
    state = gas(500)
    other = md.State(state.pos, state.vel, md.Box(state.box.lengths, (True, True, False)))
    with pytest.raises(ValueError, match="ranks 0 and 1 differ in their choices"):
        in_turn(2, lambda ranks: simulation(other if ranks.rank else state, ranks))


def test_more_ranks_than_cells_are_refused():
    with pytest.raises(ValueError, match=r"65 ranks for 64 cells .* allowed: up to 64 ranks"):
        in_turn(65, lambda ranks: simulation(gas(500), ranks, division=md.Division(travel=0.6)))


# Faults planted on purpose: each must be seen by a comparison of the kind above.


def is_wrong(state, size=3, steps=240) -> bool:
    """Whether a divided run differs from that of one rank."""
    try:
        check(state, size, steps=steps, tolerance=1e-3)
    except (AssertionError, md.SimulationFault, md.HaloOutrun):
        return True
    return False


def test_a_missing_wait_is_seen(monkeypatch):
    """One rank does not store what it receives in one step of ten."""
    real, calls = halos.unpack, itertools.count()
    monkeypatch.setattr(halos, "unpack", lambda *rows: next(calls) % 10 and real(*rows))
    assert is_wrong(gas())


def test_ghosts_one_step_old_are_seen(monkeypatch):
    before = {}

    def old(rows, pos, vel, lines):
        is_row = rows != halos.HEAD
        now = np.concatenate([pos[rows], vel[rows]], axis=1)[is_row]
        then = before.get(id(lines), now)
        lines[is_row] = then if len(then) == len(now) else now
        before[id(lines)] = now

    monkeypatch.setattr(halos, "pack", old)
    assert is_wrong(gas())


def test_rows_that_the_halo_does_not_find_after_a_sort_are_seen(monkeypatch):
    monkeypatch.setattr(halos.Rows, "move", lambda self, moved: None)
    assert is_wrong(gas())


def test_a_border_too_thin_is_seen(monkeypatch):
    """Particles may travel 0.6 d farther than the ghosts reach."""
    real = Domain.__init__

    def thin(self, division, communicator, system):
        real(self, md.Division(travel=0.2), communicator, system)
        self._allowed += 0.6
        self._left = 500

    monkeypatch.setattr(Domain, "__init__", thin)
    monkeypatch.setattr("md.domain.division.PLANNED", 1.0)
    state = gas()
    state.vel[...] *= 8 / np.linalg.norm(state.vel, axis=1, keepdims=True)  # none is slower than others
    assert is_wrong(state, steps=640)


def test_observables_and_forces_are_those_of_all_ranks():
    state, cells = gas(), (4, 2, 1)
    one = simulation(state)
    one.run(100)
    profile = md.Profile(0, 7)
    right, forces = md.observe.look(one, profile, cells), one.forces()
    field, virial = md.observe.field(one, cells), md.observe.virial(one)

    def work(ranks):
        sim = simulation(state, ranks)
        sim.run(100)
        return md.observe.look(sim, profile, cells), sim.forces(), md.observe.field(sim, cells), \
            md.observe.virial(sim), len(sim)  # fmt: skip

    for found, found_forces, found_field, found_virial, n in in_turn(3, work):
        assert n == N
        for name, value in right._asdict().items():
            if name != "profiles":
                np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9, err_msg=name)
        for name, value in right.profiles[0]._asdict().items():
            np.testing.assert_allclose(getattr(found.profiles[0], name), value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found_forces, forces, atol=1e-6)
        np.testing.assert_allclose(found_field.pressure, field.pressure, rtol=1e-9)
        np.testing.assert_allclose(found_virial, virial, atol=1e-6)


def test_the_energy_balance_is_that_of_all_ranks():
    state = gas()
    tables = []

    def work(ranks):
        balance = md.observe.EnergyBalance(5)
        simulation(state, ranks).run(50, reporters=[balance])
        tables.append(balance.table())

    in_turn(1, work)
    in_turn(3, work)
    for table in tables[1:]:
        for name, column in tables[0].items():
            np.testing.assert_allclose(table[name], column, rtol=1e-9, atol=1e-7, err_msg=name)


def test_one_trajectory_has_all_particles_by_id(tmp_path):
    state = gas(500)
    one = simulation(state)
    one.run(40)
    one.write(tmp_path / "one.gsd", "double")

    def work(ranks):
        sim = simulation(state, ranks)
        sim.run(40)
        sim.write(tmp_path / "three.gsd", "double")
        with pytest.raises(ValueError, match="float64, and this frame is of float32"):  # on all ranks
            sim.write(tmp_path / "three.gsd")

    in_turn(3, work)
    found, right = (md.read(tmp_path / f"{name}.gsd") for name in ("three", "one"))
    order, right_order = np.argsort(found.id), np.argsort(right.id)
    np.testing.assert_allclose(found.pos[order], right.pos[right_order], atol=1e-9)


@pytest.mark.parametrize(("search", "fused"), tiers.first(EVERY_WAY[3:] + EVERY_WAY[:3]))
def test_a_run_that_is_loaded_goes_on_to_the_last_bit(tmp_path, search, fused):
    state = gas()

    def work(ranks):
        sim = simulation(state, ranks, search=search, fused=fused)
        sim.run(130)
        sim.save(tmp_path / "run.npz")
        sim.run(130)
        again = md.Simulation.load(tmp_path / "run.npz", communicator=ranks)
        again.run(130)
        return sim.step, again.step, sim.state, again.state

    for steps, steps_again, found, again in in_turn(3, work):
        assert steps == steps_again == 260
        for name in ("pos", "vel", "id"):
            assert np.array_equal(getattr(found, name), getattr(again, name)), name
    one = simulation(state, search=search, fused=fused)
    one.run(260)

    def on_two(ranks):
        sim = md.Simulation.load(tmp_path / "run.npz", communicator=ranks)
        sim.run(130)
        return course(sim, 0)

    (other, _) = in_turn(2, on_two)
    assert farthest(state, other, course(one, 0)) < 1e-9


@pytest.mark.parametrize("law", [
    md.laws.SpringDashpot(stiffness=0.0, damping=0.0), md.laws.SpringDashpot(stiffness=1e4, damping=0.0),
    md.laws.FrictionalSpringDashpot(stiffness=1e4, damping=1.0, friction=0.5, tangential_damping=5.0),
])  # fmt: skip
def test_other_laws_of_a_gas(law):
    check(gas(), 3, law=law, tolerance=1e-7)


def test_a_flock_in_two_dimensions():
    random = np.random.default_rng(0)
    state = md.State(random.random((1500, 2)) * 40, 0.3 * random.normal(size=(1500, 2)), md.Box((40.0, 40.0)))
    check(state, 3, steps=80, law=md.laws.Boids(), integrator="flight", dt=0.05, tolerance=1e-7,
          division=md.Division(travel=0.5))  # fmt: skip


def test_shaken_walls_are_in_step():
    state = gas()
    box = md.Box(state.box.lengths, (True, True, False))
    inside = (state.pos[:, 2] > 0.6) & (state.pos[:, 2] < box.lengths[2] - 0.6)
    state = md.State(state.pos[inside], state.vel[inside], box)
    check(state, 3, walls=md.ShakenWalls(amplitude=0.2, frequency=8.0, axis=2))


@pytest.mark.parametrize(
    ("size", "fused"), tiers.first([(3, True), (2, False), (2, True), (3, False), (4, False), (4, True)])
)
def test_sums_in_order_of_id_are_the_same_to_the_last_bit_on_any_number_of_ranks(size, fused):
    state = gas(filling=0.45)  # many pairs
    options = {"fused": fused, "deterministic": True}
    right = course(simulation(state, **options), 400)
    order = np.random.default_rng(0).permutation(N)
    other = md.State(state.pos[order], state.vel[order], state.box, np.arange(N)[order])
    for given, ranks in ((state, size), (other, size), (other, 1)):
        for found in in_turn(ranks, lambda r, given=given: course(simulation(given, r, **options), 400)):
            for one, expected in zip(found[1:], right[1:], strict=True):
                assert np.array_equal(one, expected)


def test_other_searches_do_not_sum_in_order_of_id():
    with pytest.raises(
        ValueError, match=r"deterministic=True with search 'linked'.* allowed: search 'verlet'"
    ):
        simulation(gas(500), search="linked", deterministic=True)
