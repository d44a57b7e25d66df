"""Particles of different radius: the same pairs and forces by every search, walls, reorders, two bodies."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import md
from md.boundaries import ShakenWalls, Walls
from md.laws import FrictionalSpringDashpot, SpringDashpot
from md.reorder import MODES
from tests import tiers
from tests.md.search.test_contract import largest_difference, separations

LAW = SpringDashpot(stiffness=1e4, damping=5.0)
DT = 1e-4
DIMS = [3, tiers.nightly(2)]
SEARCHES = sorted(md.search.SEARCHES)
RADII = st.one_of(st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0]), st.floats(0.1, 2.0))


@st.composite
def clouds(draw, dim: int):
    """Draw radii from 0.1 to 2 in a just large enough or larger box: at random, on sites, on a line."""
    lengths = draw(hnp.arrays(float, dim, elements=st.sampled_from([8.0, 8.5, 13.0])))
    box = md.Box(tuple(lengths), tuple(draw(st.booleans()) for _ in range(dim)))
    n = draw(st.one_of(st.integers(0, 2), st.integers(3, 24)))
    fractions = draw(hnp.arrays(float, (n, dim), elements=st.floats(0, 1)))
    kind = draw(st.sampled_from(["anywhere", "places", "line"]))
    if kind == "places":  # coincident, and as far apart as two radii
        fractions = np.round(fractions * 16) / 16
    elif kind == "line":
        fractions[:, 1:] = 0.5
    pos = fractions * lengths
    pos = np.where(np.array(box.periodic) & (pos >= lengths), 0.0, pos)
    radius = draw(hnp.arrays(float, n, elements=RADII))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    return md.State(
        pos, generator.normal(scale=4, size=(n, dim)), box, generator.permutation(3 * n)[:n], radius
    )


def gas(n: int = 120, dim: int = 3, periodic=True, seed: int = 0, side: float = 9.0) -> md.State:
    """Make spheres at random positions, most of them small."""
    rng = np.random.default_rng(seed)
    pos, vel = rng.random((n, dim)) * side, rng.normal(size=(n, dim))
    radius = np.where(rng.random(n) < 0.9, rng.uniform(0.1, 0.4, n), rng.uniform(1, 2, n))
    return md.State(pos, vel, md.Box((side,) * dim, periodic), rng.permutation(n), radius)


def loose(n_side: int = 5, dim: int = 3, periodic=True) -> md.State:
    """Make spheres that do not overlap, on a lattice, in fast motion."""
    rng, spacing = np.random.default_rng(3), 1.7
    pos = (np.indices((n_side,) * dim).reshape(dim, -1).T + 0.5) * spacing
    radius = rng.uniform(0.2, 0.8, len(pos))
    box = md.Box((n_side * spacing,) * dim, periodic)
    return md.State(pos, rng.normal(0, 8, pos.shape), box, rng.permutation(len(pos)), radius)


def simulated(state, search, backend, law=LAW, dt=DT, **options) -> md.Simulation:
    options = {"allow_overlap": True} | options
    return md.Simulation(state, law, search=search, dt=dt, backend=backend, **options)


def sums(state: md.State) -> np.ndarray:
    return state.radius[:, None] + state.radius[None]


def plain_pairs(state: md.State) -> list:
    """Find the ids of touching pairs by the definition."""
    if not len(state):
        return []
    i, j = np.nonzero(np.triu(np.linalg.norm(separations(state), axis=2) < sums(state), 1))
    return sorted(map(sorted, zip(state.id[i].tolist(), state.id[j].tolist(), strict=True)))


def plain_forces(state: md.State) -> np.ndarray:
    """K (s - r) n - mu (v . n) n on each particle in order of id, read off the definition."""
    apart, s = separations(state), sums(state)
    r = np.linalg.norm(apart, axis=2)
    touching = (r < s) & (r > 0)
    n = apart / np.where(touching, r, 1)[..., None]
    approach = ((state.vel[:, None] - state.vel[None]) * n).sum(axis=2)
    push = np.where(touching, LAW.stiffness * (s - r) - LAW.damping * approach, 0)
    return (push[..., None] * n).sum(axis=1)[np.argsort(state.id)]


@pytest.mark.split
@pytest.mark.parametrize("search", tiers.searches(SEARCHES))
class TestEverySearch:
    @pytest.mark.parametrize("dim", DIMS)
    @tiers.examples(20)
    @given(data=st.data())
    def test_finds_and_folds_what_naive_does(self, search, backend, dim, data):
        state = data.draw(clouds(dim))
        expected, found = (simulated(state, name, backend) for name in ("naive", search))
        assert np.array_equal(found.pairs(), expected.pairs())
        limit = largest_difference(state, "float64")
        forces, reference = found.forces(), expected.forces()
        assert np.isfinite(forces).all()
        assert np.abs(forces - reference).max(initial=0) <= limit
        assert np.abs(forces.sum(axis=0)).max() <= 4 * limit
        assert np.array_equal(found.pairs(), expected.pairs())  # also after a call of forces()

    @pytest.mark.quick
    @pytest.mark.parametrize("dim", DIMS)
    @pytest.mark.parametrize("periodic", [True, False])
    def test_is_right_by_the_definition(self, search, backend, dim, periodic):
        state = gas(150, dim, periodic)
        found = simulated(state, search, backend)
        expected = plain_pairs(state)
        assert len(expected) > 30
        assert found.pairs().tolist() == expected
        assert np.abs(found.forces() - plain_forces(state)).max() < largest_difference(state, "float64")

    @pytest.mark.nightly
    def test_finds_in_float32_what_naive_does_then(self, search, backend):
        for seed in range(5):
            state = gas(150, 3, seed=seed)
            expected, found = (simulated(state, k, backend, precision="float32") for k in ("naive", search))
            assert np.array_equal(found.pairs(), expected.pairs())
            assert found.forces().dtype == np.float32
            assert found.forces() == pytest.approx(
                expected.forces(), abs=largest_difference(state, "float32")
            )

    def test_finds_centres_closer_than_a_distance_whatever_their_radii(self, search, backend):
        state = gas()
        distances = np.linalg.norm(separations(state), axis=2)
        found = simulated(state, search, backend)
        for distance in (0.3, 1.7, 3.7):
            i, j = np.nonzero(np.triu(distances < distance, 1))
            pairs = sorted(map(sorted, zip(state.id[i].tolist(), state.id[j].tolist(), strict=True)))
            assert found.pairs(distance).tolist() == pairs
        assert found.pairs().tolist() == plain_pairs(state)

    def test_reads_every_touching_partner_once(self, search, backend):
        found = simulated(gas(), search, backend)
        stream, names = found.accesses(), found.state.id
        readers = np.repeat(stream.readers, np.diff(stream.offsets))
        read = list(zip(names[readers].tolist(), names[stream.reads].tolist(), strict=True))
        assert len(set(read)) == len(read)
        either = {tuple(sorted(pair)) for pair in read}  # reflexive reads one of a pair alone
        assert {(i, j) for i, j in found.pairs().tolist()} <= (either if search == "reflexive" else set(read))

    def test_equal_radii_of_a_half_are_as_none(self, search, backend, start_energy):
        if backend not in md.search.SEARCHES[search].capabilities.bitwise_on:
            pytest.skip("sums round differently from run to run")
        ends, state = [], md.scenes.benchmark_gas(125, 0.3)
        for radius in (None, np.full(125, 0.5)):
            start = md.State(state.pos, state.vel, state.box, state.id, radius)
            run = simulated(start, search, backend, md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT)
            run.run(100)
            ends.append((run.state, run.pairs(), start_energy(run)))
        (one, pairs, energy), (other, their_pairs, their_energy) = ends
        assert np.array_equal(one.id, other.id)
        bits = 0 if backend == "cpu" else 1e-9  # compilers fuse a b + c as they like
        for name in ("pos", "vel"):
            assert np.abs(getattr(one, name) - getattr(other, name)).max() <= bits
        assert np.array_equal(pairs, their_pairs)
        assert energy == pytest.approx(their_energy, rel=1e-12)  # a device sums it in no fixed order


@pytest.mark.split
@pytest.mark.parametrize(
    ("search", "fused"),
    tiers.by_default(
        itertools.product(SEARCHES, (False, True)),
        lambda search, fused: search in tiers.BY_DEFAULT and fused == (search != "verlet"),
        lambda search, fused: (tiers.full if search in tiers.BY_DEFAULT else tiers.nightly)(search, fused),
    ),
)
def test_every_search_runs_as_naive_does(search, fused, backend):
    if fused and search == "reflexive":
        pytest.skip("its steps are not fused")
    ends = []
    for name in ("naive", search):
        run = simulated(loose(), name, backend, dt=2e-4, fused=fused, allow_overlap=False)
        run.run(250, phases=False)
        ends.append(run.state.by_id())
    assert np.array_equal(ends[0].radius, loose().by_id().radius)
    assert np.array_equal(ends[0].radius, ends[1].radius)
    assert ends[1].pos == pytest.approx(ends[0].pos, abs=1e-8)
    assert np.abs(ends[0].vel - loose().by_id().vel).max() > 1


def test_a_tree_reads_fewer_than_cells_as_wide_as_the_largest(backend):
    rng = np.random.default_rng(0)
    pos, radius = rng.random((2000, 3)) * 24, np.full(2000, 0.3)
    radius[:4] = 3.0
    state = md.State(pos, np.zeros((2000, 3)), md.Box((24.0,) * 3), radius=radius)
    reads = {name: len(simulated(state, name, backend).accesses().reads) for name in ("lbvh", "linked")}
    assert 30 * reads["lbvh"] < reads["linked"]


@pytest.mark.parametrize("dim", DIMS)
def test_an_old_tree_misses_nobody(dim, backend):
    state, searches = gas(400, dim, side=16.0), (md.search.Lbvh(rebuild_every=10**6), "linked")
    law = SpringDashpot(0.0, 0.0)
    old, new = (simulated(state, search, backend, law, dt=0.1, fused=True) for search in searches)
    for _ in range(4):
        old.run(20, phases=False)
        new.run(20, phases=False)
        assert np.array_equal(old.pairs(), new.pairs())
        assert np.array_equal(old.pairs(1.5), new.pairs(1.5))
    assert np.array_equal(old.state.by_id().pos, new.state.by_id().pos)
    law = SpringDashpot(100.0, 0.0)
    old, new = (simulated(state, search, backend, law, dt=0.02, fused=True) for search in searches)
    for _ in range(2):  # forces ask a leaf by another test than pairs
        old.run(20, phases=False)
        new.run(20, phases=False)
        assert np.abs(new.forces()).max() > 20
        assert old.forces() == pytest.approx(new.forces(), abs=1e-6)


@pytest.mark.parametrize(
    ("one", "other", "friction"),
    tiers.by_default(
        [(*pair, friction) for pair in ((0.2, 1.4), (0.1, 0.1), (0.9, 2.0)) for friction in (False, True)],
        lambda one, other, friction: not friction and one == 0.2,
        lambda one, *others: (tiers.full if not others[1] or one == 0.2 else tiers.nightly)(one, *others),
    ),
)
def test_two_bodies_part_as_the_closed_form_says(one, other, friction, backend):
    s, parts, dim = one + other, 8, 3
    law = SpringDashpot(2000.0, 12.0)
    dt = law.contact_time / 1000
    pos, vel = np.full((2 * parts, dim), 5.0), np.zeros((2 * parts, dim))
    pos[:, 0] = 10 * np.repeat(np.arange(parts), 2) + 5
    pos[1::2, 0] += s + np.arange(parts) / parts * dt  # contact at any moment of a step
    vel[1::2, 0] = -1.0
    if friction:  # without effect on a central collision
        law = FrictionalSpringDashpot(2000.0, 12.0, friction=0.5, tangential_damping=3.0)
    state = md.State(pos, vel, md.Box((10.0 * parts, 10.0, 10.0)), radius=np.tile([one, other], parts))
    run = simulated(state, "linked", backend, law, dt)
    run.run(1100)
    end = run.state.by_id().vel
    assert end[1::2, 0] - end[::2, 0] == pytest.approx(np.full(parts, law.restitution), abs=2e-3)
    assert end[:, 0].sum() == pytest.approx(-parts, abs=1e-12)
    touched = simulated(state, "linked", backend, law, dt)
    steps = next(
        k for k in itertools.count() if touched.run(1) is None and k > 5 and not len(touched.pairs())
    )
    assert steps == pytest.approx(1000, abs=3)


@pytest.mark.parametrize(
    ("mode", "via"),
    tiers.by_default(
        itertools.product(MODES, ("device", "host")),
        lambda mode, via: (mode, via) in (("data", "host"), ("threads", "device")),
        tiers.full,
    ),
)
def test_radii_follow_every_reorder(mode, via, backend):
    runs = []
    for reorder in (None, md.Reorder("hilbert", md.Every(7), mode=mode, via=via)):
        run = simulated(loose(), "linked", backend, dt=2e-4, reorder=reorder, allow_overlap=False)
        run.run(150)
        runs.append(run)
    plain, moved = (run.state.by_id() for run in runs)
    assert np.array_equal(moved.radius, loose().by_id().radius)
    assert moved.pos == pytest.approx(plain.pos, abs=1e-9)
    assert np.abs(moved.vel - loose().by_id().vel).max() > 1
    assert np.array_equal(runs[0].pairs(), runs[1].pairs())


class TestWalls:
    @pytest.mark.parametrize(
        ("fused", "restitution"), tiers.product([False, True], [1.0, 0.8], 2, tiers.full)
    )
    def test_a_sphere_meets_a_wall_at_its_own_radius(self, fused, restitution, backend):
        walls, radius = Walls(restitution=restitution, contact_time=1e-2), np.array([0.1, 0.5, 1.0, 2.0])
        pos = np.column_stack([[1.0, 4.0, 7.0, 11.0], 0.03 + radius, np.full(4, 5.0)])
        box = md.Box((14.0, 10.0, 10.0), (True, False, True))
        state = md.State(pos, [[0.0, -1.0, 0.0]] * 4, box, radius=radius)
        run = simulated(state, "naive", backend, dt=1e-5, walls=walls, fused=fused)
        run.run(2_000, phases=False)
        assert run.state.by_id().vel[:, 1] == pytest.approx(-1.0)  # 0.01 before they do
        run.run(4_000, phases=False)
        assert run.state.by_id().vel[:, 1] == pytest.approx(restitution, abs=2e-3)

    def test_too_little_room_for_the_largest_is_refused(self, backend):
        state = md.State([[4.0, 1.5]], [[0.0, 0.0]], md.Box((8.0, 3.0), (True, False)), radius=[2.0])
        with pytest.raises(ValueError, match=r"walls 3.0 d apart along axis 1; allowed: at least 4.0 d"):
            simulated(state, "linked", backend, walls=Walls())

    def test_walls_shaken_too_fast_for_the_smallest_are_refused(self, backend):
        walls = ShakenWalls(amplitude=0.5, frequency=5.0, contact_time=0.02)
        box = md.Box((8.0, 8.0), (True, False))
        state = md.State([[4.0, 4.0], [2.0, 2.0]], np.zeros((2, 2)), box, radius=[0.5, 0.5])
        simulated(state, "linked", backend, walls=walls)
        small = md.State(state.pos, state.vel, box, radius=[0.5, 0.3])
        with pytest.raises(ValueError, match=r"allowed: up to 0.09 d"):
            simulated(small, "linked", backend, walls=walls)
