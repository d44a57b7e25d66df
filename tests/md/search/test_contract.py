"""One contract for every neighbour search: the pairs and forces of all pairs, whatever lies where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from tests import tiers
from tests.strategies import clouds

LAW = md.laws.SpringDashpot(stiffness=1e4, damping=5.0)
DT = 1e-4
SEARCHES = sorted(md.search.SEARCHES)
KINDS = [(3, "float64"), (2, "float64"), (3, "float32"), (2, "float32")]  # dims and precisions
SOLID = st.just(3)
every_kind = pytest.mark.parametrize(  # one search in every kind, and every search in one
    ("search", "dim", "precision"),
    tiers.by_default(
        [
            *((search, *kind) for search in sorted({*SEARCHES} - {"lbvh", "verlet"}) for kind in KINDS),
            *tiers.by_default(
                [(search, *kind) for search in ("lbvh", "verlet") for kind in KINDS[:3]],
                lambda search, *kind: kind == KINDS[0],
                tiers.full,
            ),
            *((search, *KINDS[3]) for search in ("lbvh", "verlet")),
        ],
        lambda search, *kind: kind in (KINDS[:3] if search == "linked" else KINDS[:1]),
    ),
)
every_dim = pytest.mark.parametrize(
    ("search", "dim"),
    tiers.by_default(
        [(search, dim) for search in SEARCHES for dim in (3, 2)],
        lambda search, dim: dim == 3 or search == "linked",
        tiers.full,
    ),
)
every_precision = pytest.mark.parametrize(
    ("search", "precision"),
    tiers.by_default(
        [(search, precision) for search in SEARCHES for precision in ("float64", "float32")],
        lambda search, precision: precision == "float64" or search == "linked",
        tiers.full,
    ),
)


def simulated(state, search, backend, precision="float64", **options):
    return md.Simulation(state, LAW, search=search, dt=DT, precision=precision, backend=backend, **options)


def separations(state: md.State) -> np.ndarray:
    """(n, n, dim) vectors r_i - r_j between nearest images."""
    apart = state.pos[:, None] - state.pos[None]
    lengths = np.array(state.box.lengths)
    return apart - np.array(state.box.periodic) * lengths * np.round(apart / lengths)


def plain_pairs(state: md.State, distance: float = 1.0) -> np.ndarray:
    """Ids of the pairs closer than a distance, read off the definition."""
    close = np.linalg.norm(separations(state), axis=2) < distance
    i, j = np.nonzero(np.triu(close, 1))
    return np.array(sorted(map(sorted, zip(state.id[i].tolist(), state.id[j].tolist(), strict=True))))


def plain_forces(state: md.State) -> np.ndarray:
    """The law's force on each particle in order of id, read off the definition."""
    apart = separations(state)
    r = np.linalg.norm(apart, axis=2)
    touching = (r < 1) & (r > 0)
    n = apart / np.where(touching, r, 1)[..., None]
    approach = ((state.vel[:, None] - state.vel[None]) * n).sum(axis=2)
    push = np.where(touching, LAW.stiffness * (1 - r) - LAW.damping * approach, 0)
    return (push[..., None] * n).sum(axis=1)[np.argsort(state.id)]


def largest_difference(state: md.State, precision: str) -> float:
    """What the order of a sum may change: rounding of n pushes of the largest size."""
    speed = np.abs(state.vel).sum(axis=1).max(initial=0)
    largest = LAW.stiffness + 2 * LAW.damping * speed
    return 4 * len(state.pos) * largest * np.finfo(precision).eps


def shuffled(state: md.State, seed: int) -> md.State:
    return state.take(np.random.default_rng(seed).permutation(len(state.pos)))


def dense_cloud(dim: int, periodic=(True, False, True), n: int = 150, seed: int = 5) -> md.State:
    box = md.Box((4.3, 5.9, 3.1)[:dim], periodic[:dim])
    generator = np.random.default_rng(seed)
    pos = generator.random((n, dim)) * np.array(box.lengths)
    return md.State(pos, generator.normal(scale=4, size=(n, dim)), box, id=generator.permutation(n))


@pytest.mark.full  # pairs and forces are tested together below
@pytest.mark.split
@pytest.mark.parametrize(("search", "dim"), tiers.product(sorted(SEARCHES), [2, 3], every=2))
@tiers.examples(30)
@given(data=st.data())
def test_every_search_finds_the_pairs_that_naive_finds(search, dim, backend, data):
    state = data.draw(clouds(dims=st.just(dim)))
    found = simulated(state, search, backend).pairs()
    assert found.dtype == np.int32
    assert np.array_equal(found, simulated(state, "naive", backend).pairs())


@pytest.mark.split
@every_kind
@tiers.examples(12)
@given(data=st.data())
def test_every_search_finds_pairs_and_folds_forces_as_naive_does(search, dim, precision, backend, data):
    state = data.draw(clouds(dims=st.just(dim)))
    expected, found = (simulated(state, name, backend, precision) for name in ("naive", search))
    assert np.array_equal(found.pairs(), expected.pairs())
    forces = found.forces()
    assert forces.dtype == np.dtype(precision)
    assert np.isfinite(forces).all()
    assert np.abs(forces - expected.forces()).max(initial=0) <= largest_difference(state, precision)


@pytest.mark.split
@pytest.mark.parametrize("search", SEARCHES)
class TestEverySearch:
    @tiers.examples(10)
    @given(state=clouds(dims=SOLID), seed=st.integers(0, 99))
    def test_gives_the_same_whatever_the_memory_order(self, search, backend, state, seed):
        one = simulated(state, search, backend)
        other = simulated(shuffled(state, seed), search, backend)
        assert np.array_equal(one.pairs(), other.pairs())
        difference = np.abs(one.forces() - other.forces()).max(initial=0)
        assert difference <= largest_difference(state, "float64")

    @tiers.examples(10)
    @given(state=clouds(dims=SOLID), seed=st.integers(0, 99))
    def test_the_id_follows_its_particle(self, search, backend, state, seed):
        simulation = simulated(shuffled(state, seed), search, backend)
        simulation.forces()
        after = simulation.state.by_id()
        before = state.by_id()
        assert np.array_equal(after.id, before.id)
        assert np.array_equal(after.pos, before.pos)
        assert np.array_equal(after.vel, before.vel)

    @pytest.mark.parametrize("dim", [tiers.full(2), 3])
    @tiers.examples(10)
    @given(data=st.data())
    def test_reads_every_touching_partner_once_and_no_partner_twice(self, search, dim, backend, data):
        state = data.draw(clouds(dims=st.just(dim)))
        simulation = simulated(state, search, backend)
        stream = simulation.accesses()
        slots = {name: slot for slot, name in enumerate(simulation.state.id.tolist())}
        assert len(stream.offsets) == len(slots) + 1
        assert simulation.access_count() == len(stream.reads)
        visits = [
            stream.reads[start:end].tolist()
            for start, end in zip(stream.offsets, stream.offsets[1:], strict=False)
        ]
        for reader, row in enumerate(visits):
            assert len(set(row)) == len(row)
            assert reader not in row
            assert set(row) <= set(slots.values())
        for i, j in simulation.pairs().tolist():
            seen = (slots[j] in visits[slots[i]]) + (slots[i] in visits[slots[j]])
            assert seen == (1 if search == "reflexive" else 2)  # which pushes both of a pair

    def test_pairs_closer_than_a_smaller_distance(self, search, backend):
        state = dense_cloud(3, n=400)
        simulation = simulated(state, search, backend)
        for distance in (0.01, 0.3, 0.77):
            expected = plain_pairs(state, distance).reshape(-1, 2)
            assert np.array_equal(simulation.pairs(distance), expected), distance

    def test_pairs_of_unequal_spheres_are_by_their_centres(self, search, backend):
        equal = dense_cloud(3, n=400)
        radius = np.full(400, 0.1)
        radius[::20] = 0.45
        state = md.State(equal.pos, equal.vel, equal.box, equal.id, radius)
        simulation = simulated(state, search, backend)
        for distance in (0.3, 0.9):
            expected = plain_pairs(equal, distance).reshape(-1, 2)
            assert np.array_equal(simulation.pairs(distance), expected), distance

    def test_a_distance_of_exactly_one_diameter_is_no_contact(self, search, backend):
        below = np.nextafter(2.0, 0)
        pos = [[1.0, 1, 1], [2.0, 1, 1], [below, 3, 1], [1.0, 3, 1]]
        state = md.State(pos, np.zeros((4, 3)), md.Box((6, 6, 6)))
        simulation = simulated(state, search, backend)
        assert simulation.pairs().tolist() == [[2, 3]]
        assert not simulation.forces()[:2].any()

    @pytest.mark.quick
    def test_trajectories_agree_with_naive(self, search, backend):
        state = md.scenes.benchmark_gas(125, 0.3)
        runs = []
        for name in ("naive", search):
            simulation = simulated(state, name, backend)
            simulation.run(200)
            runs.append(simulation.state.by_id())
        assert np.abs(runs[0].pos - runs[1].pos).max() < 1e-9
        assert np.abs(runs[0].vel - runs[1].vel).max() < 1e-8
        assert np.abs(runs[0].vel - state.by_id().vel).max() > 1

    @pytest.mark.quick
    def test_an_empty_box_runs(self, search, backend):
        nothing = np.empty((0, 3))
        simulation = simulated(md.State(nothing, nothing, md.Box((5, 5, 5))), search, backend)
        simulation.run(3)
        assert simulation.step == 3
        assert simulation.pairs().shape == (0, 2)
        assert simulation.forces().shape == (0, 3)
        assert len(simulation.accesses().reads) == 0


@pytest.mark.split
class TestEverySearchInItsDimsAndPrecisions:
    @pytest.mark.quick
    @every_dim
    @pytest.mark.parametrize("periodic", [(True,) * 3, (False,) * 3, (True, False, True)])
    def test_pairs_and_forces_are_those_of_the_definition(self, search, backend, dim, periodic):
        state = dense_cloud(dim, periodic)
        simulation = simulated(state, search, backend)
        expected = plain_pairs(state)
        assert len(expected) > len(state.pos) / 2
        assert np.array_equal(simulation.pairs(), expected)
        assert np.abs(simulation.forces() - plain_forces(state)).max() < largest_difference(state, "float64")

    @every_dim
    def test_forces_sum_to_zero(self, search, backend, dim):
        state = dense_cloud(dim)
        forces = simulated(state, search, backend).forces()
        assert np.abs(forces).max() > 100
        assert np.abs(forces.sum(axis=0)).max() <= 1e-12 * np.abs(forces).sum()

    @every_kind
    def test_coincident_particles_give_finite_forces(self, search, backend, dim, precision):
        generator = np.random.default_rng(0)
        pos = np.repeat([[0.0] * dim, [2.0] * dim], 4, axis=0)
        state = md.State(pos, generator.normal(size=pos.shape), md.Box((5,) * dim))
        simulation = simulated(state, search, backend, precision, allow_overlap=True)
        assert np.isfinite(simulation.forces()).all()
        assert len(simulation.pairs()) == 12
        simulation.run(3)
        assert np.isfinite(simulation.state.pos).all()

    @every_precision
    def test_particles_almost_at_one_place_are_pushed_as_the_law_says(self, search, backend, precision):
        for exponent in (1, 4, 8, 15, 19, 22, 23, 30, 44):
            gap = 10.0**-exponent
            state = md.State([[0, 1, 1], [gap, 1, 1]], np.zeros((2, 3)), md.Box((4, 4, 4)))
            forces = simulated(state, search, backend, precision).forces()
            assert np.isfinite(forces).all(), gap
            assert np.array_equal(forces[0], -forces[1])
            assert forces[1, 0] <= 1.5 * LAW.stiffness

    @every_precision
    def test_a_particle_an_ulp_before_the_far_side_touches_one_at_zero(self, search, backend, precision):
        x = np.nextafter(5.0, 0)
        state = md.State([[x, 1, 1], [0, 1, 1], [2, 2, x], [2, x, x]], np.zeros((4, 3)), md.Box((5, 5, 5)))
        simulation = simulated(state, search, backend, precision)
        assert simulation.pairs().tolist() == [[0, 1]]
        assert (simulation.state.pos < 5).all()


def test_the_searches_of_cells_and_lists_are_registered():
    assert {"naive", "linked", "scattered", "coherent", "tiles", "verlet"} <= set(md.search.SEARCHES)


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
def test_naive_reads_every_other_particle(backend, dim):
    state = dense_cloud(dim, n=20)
    stream = simulated(state, "naive", backend).accesses()
    assert stream.reads.reshape(20, 19).tolist() == [[j for j in range(20) if j != i] for i in range(20)]


@pytest.mark.parametrize("search", sorted(set(md.search.SEARCHES) - {"naive"}))
def test_a_cell_search_reads_far_fewer_than_all(search, backend):
    state = md.scenes.benchmark_gas(1000, 0.2)
    stream = simulated(state, search, backend).accesses()
    assert len(stream.reads) < 1000 * 27 * 3


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
@tiers.examples(8)
@given(data=st.data())
def test_coherent_finds_the_same_pairs_and_forces_in_any_cell_order(dim, backend, data):
    state = data.draw(clouds(dims=st.just(dim)))
    expected = simulated(state, "naive", backend)
    for name in sfc.orderings(dim):
        found = simulated(state, md.search.Coherent(name), backend)
        assert np.array_equal(found.pairs(), expected.pairs()), name
        difference = np.abs(found.forces() - expected.forces()).max(initial=0)
        assert difference <= largest_difference(state, "float64"), name


def test_coherent_takes_a_curve_of_one_s_own(backend):
    state = dense_cloud(3)
    found = simulated(state, md.search.Coherent(sfc.curve("peano", 3)), backend)
    assert np.array_equal(found.pairs(), plain_pairs(state))
