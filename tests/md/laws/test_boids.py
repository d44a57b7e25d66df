"""Boids: each rule by hand, the same flock under every search, and what is refused or undefined."""

import itertools

import numpy as np
import pytest

import md
from md.search import Coherent, Lbvh, Reflexive, Scattered, Tiles, Verlet
from tests import tiers
from tests.md.flock_reference import differences, flown, increments

LAW = md.laws.Boids(2.0, 1.2, 1.6, cohesion=0.05, separation=0.1, alignment=0.2)  # three different radii
DT, STEPS = 0.2, 10
SEARCHES = {name: name for name in md.search.SEARCHES} | {
    "twice": Reflexive(met="twice", atomics="none"),
}
VARIANTS = {
    "long lists": Verlet(skin=1.2),  # kept for several steps
    "hilbert cells": Coherent("hilbert"),
    "rows": Coherent("row", division=2),
    "scattered rows": Scattered("hilbert", division=3),
    "wide tiles": Tiles("row", width=3),
    "tree, each step": Lbvh(rebuild_every=1),
    "tree, aggregated": Reflexive(atomics="aggregated", stack="none"),
    "tree, listed": Reflexive(contacts="listed", room=2),
    "tree, shadow": Reflexive(data="shadow", rebuild_every=3),
    "tree, unsorted": Reflexive(met="twice", atomics="none", data="unsorted"),
}
KEPT_SEARCHES = set(SEARCHES) - {
    "twice",
    "tiles",
    "wide_bvh",
}  # the kernels of the last two are slow to compile
every_search = pytest.mark.parametrize(
    "search", tiers.by_default(SEARCHES, lambda search: search in KEPT_SEARCHES, tiers.full)
)
FUSABLE = [
    name for name, search in (SEARCHES | VARIANTS).items() if md.search.search(search).capabilities.fusable
]
KEPT = [  # by default, besides most searches in 3D in the periodic box with steps that are not fused
    ("linked", 3, False, "open"), ("linked", 3, True, "walled"), ("long lists", 3, False, "walled"),
]  # fmt: skip
IN_FULL = [
    *((search, 3, False, "periodic") for search in ("tiles", "wide_bvh")),
    ("long lists", 3, True, "periodic"), ("long lists", 3, True, "walled"), ("verlet", 3, True, "walled"),
    ("twice", 3, True, "periodic"), ("rows", 3, False, "walled"), ("linked", 2, False, "open"),
    ("twice", 3, False, "periodic"),
]  # fmt: skip
LENGTHS = (9.1, 7.3, 8.2)
WALLS = md.Walls(restitution=0.8, contact_time=1.1)
PLACES = {  # periodic axes, open axes, options
    "periodic": ((True, True, True), (False,) * 3, {}),
    "open": ((False, True, False), (True, False, True), {}),
    "walled": ((True, True, False), (False,) * 3, {"walls": WALLS, "gravity": (0.02, 0.0, -0.05)}),
}
RADII = "cohesion_radius", "separation_radius", "alignment_radius"
RATES = "cohesion", "separation", "alignment"


def place(name: str, dim: int) -> tuple[md.Box, dict]:
    """A box, and options of a run in it; axes are taken from the last one."""
    periodic, is_open, options = PLACES[name]
    options = {k: v[-dim:] if isinstance(v, tuple) else v for k, v in options.items()}
    return md.Box(LENGTHS[-dim:], periodic[-dim:], is_open[-dim:]), options


def crowd(box: md.Box, n: int = 240, seed: int = 0) -> md.State:
    """Boids of speeds up to 2, in random memory order."""
    generator = np.random.default_rng(seed)
    pos = 0.6 + generator.random((n, box.dim)) * (np.array(box.lengths) - 1.2)
    return md.State(pos, generator.uniform(-1.2, 1.2, pos.shape), box, id=generator.permutation(n))


def simulated(state, backend, law=LAW, search="naive", integrator="flight", **options) -> md.Simulation:
    options = {"dt": DT} | options
    return md.Simulation(state, law, search, integrator, backend=backend, **options)


def same_end(run: md.Simulation, pos: np.ndarray, vel: np.ndarray, tolerance: float = 1e-10) -> None:
    end = run.state.by_id()
    assert np.abs(end.box.nearest(end.pos - pos)).max() < tolerance
    assert np.abs(end.vel - vel).max() < tolerance


def pair(apart: float, rates: dict, axis: int = 0, **radii) -> tuple[md.State, md.laws.Boids]:
    """Two boids along an axis, far from the sides, and a law of the given rates, the others 0."""
    law = md.laws.Boids(**{"cohesion": 0.0, "separation": 0.0, "alignment": 0.0} | rates, **radii)
    pos = np.full((2, 3), 8.0)
    pos[1, axis] += apart
    return md.State(pos, [[0.25, -0.5, 0.0], [0.5, 0.125, -0.25]], md.Box((20.0, 20.0, 20.0))), law


@pytest.mark.quick
class TestTwoBoids:
    @pytest.mark.parametrize("axis", [0, 1, 2])
    @pytest.mark.parametrize("apart", [2.0, -1.5])
    def test_each_rule_alone_gives_its_increment(self, axis, apart, backend):
        away, turn = np.zeros(3), np.array([0.25, 0.625, -0.25])  # x_1 - x_0 and v_1 - v_0
        away[axis] = apart
        for rates, expected in (
            ({"cohesion": 0.25}, 0.25 * away),
            ({"separation": 0.5}, -0.5 * away),
            ({"alignment": 0.125}, 0.125 * turn),
            (
                {"cohesion": 0.25, "separation": 0.5, "alignment": 0.125},
                0.25 * away - 0.5 * away + 0.125 * turn,
            ),
        ):
            state, law = pair(apart, rates, axis)
            found = simulated(state, backend, law).forces()
            np.testing.assert_allclose(found, [expected, -expected], rtol=0, atol=1e-15)

    @pytest.mark.parametrize("rule", RATES)
    def test_each_rule_has_its_own_radius_and_ends_there(self, rule, backend):
        radii = dict(zip(RADII, (3.0, 2.0, 4.0), strict=True))
        radius = radii[f"{rule}_radius"]
        for apart, acts in ((np.nextafter(radius, 0), True), (radius, False), (1.01 * radius, False)):
            state, law = pair(0.0, {rule: 0.5}, **radii)
            state = md.State([[0.0, 8, 8], [apart, 8, 8]], state.vel, state.box)
            assert simulated(state, backend, law).forces().any() == acts

    def test_the_nearest_image_counts_on_periodic_axes_alone(self, backend):
        pos = [[0.5, 4, 4], [19.5, 4, 4]]
        for periodic in (True, False):
            state = md.State(pos, np.zeros((2, 3)), md.Box((20, 20, 20), periodic))
            found = simulated(state, backend, md.laws.Boids(alignment=0.0)).forces()
            expected = np.zeros((2, 3))
            expected[:, 0] = [0.09, -0.09] if periodic else 0.0  # (0.1 - 0.01) * 1
            np.testing.assert_allclose(found, expected, atol=1e-15)

    def test_the_defaults_are_those_of_the_source(self):
        assert md.laws.Boids() == md.laws.Boids(5.0, 3.0, 5.0, 0.01, 0.1, 0.1)
        assert md.laws.Boids().cutoff == 5
        assert md.laws.Boids(1.0, 7.0, 2.0).cutoff == 7
        assert md.laws.Boids(1.0, 2.0, 7.0).cutoff == 7


@pytest.mark.quick
class TestMeansAndSums:
    def test_cohesion_and_alignment_are_means_and_separation_is_a_sum(self, backend):
        pos = np.array([[8.0, 8, 8], [9.0, 8, 8], [8.0, 10, 8], [8.0, 8, 12]])  # at 1, 2 and 4 from the first
        vel = np.array([[0.0, 0, 0], [0.5, 0, 0], [0, 0.25, 0], [0, 0, 1.0]])
        state = md.State(pos, vel, md.Box((20, 20, 20)))
        for rates, expected in (
            ({"cohesion": 0.75}, [0.25, 0.5, 1.0]),
            ({"separation": 0.5}, [-0.5, -1.0, 0.0]),
            ({"alignment": 0.75}, [0.125, 0.0625, 0.25]),
        ):
            law = md.laws.Boids(**{"cohesion": 0.0, "separation": 0.0, "alignment": 0.0} | rates)
            found = simulated(state, backend, law).forces()[0]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)

    @every_search
    def test_without_neighbours_velocities_stay(self, search, backend):
        pos = np.array([[2.0, 2, 2], [8.0, 2, 2], [2.0, 8, 8]])
        vel = np.array([[0.25, 0.5, 0], [0, -0.125, 0], [0.5, 0, 0.5]])
        run = simulated(md.State(pos, vel, md.Box((12, 12, 12))), backend, md.laws.Boids(), SEARCHES[search])
        run.run(2)
        end = run.state.by_id()
        assert np.array_equal(end.vel, vel)
        np.testing.assert_allclose(end.pos, pos + 2 * DT * vel, rtol=0, atol=1e-14)
        assert not run.forces().any()

    @every_search
    def test_coincident_boids_are_neighbours_at_distance_0(self, search, backend):
        pos = [[4.0, 4, 4], [4.0, 4, 4], [4.0, 6, 4]]
        vel = [[0.0, 0, 0], [0.5, 0, 0], [0.0, 0, 0.25]]
        state = md.State(pos, vel, md.Box((12, 12, 12)))
        law = md.laws.Boids(cohesion=0.5, separation=0.25, alignment=0.5)
        found = simulated(state, backend, law, SEARCHES[search]).forces()
        expected = [
            [0.125, 0.5 * 1 - 0.25 * 2, 0.0625],  # means over two neighbours, one of them at distance 0
            [-0.25, 0.5 * 1 - 0.25 * 2, 0.0625],
            [0.125, -0.5 * 2 + 0.25 * 4, -0.125],
        ]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)

    @every_search
    def test_a_crowd_in_one_place_stays_finite(self, search, backend):
        vel = np.random.default_rng(3).normal(size=(60, 3))
        state = md.State(np.full((60, 3), 5.0), vel, md.Box((12, 12, 12)))
        run = simulated(state, backend, md.laws.Boids(), SEARCHES[search])
        run.run(5)
        assert np.isfinite(run.state.pos).all()
        assert np.isfinite(run.forces()).all()


def dyadic(n: int = 60, seed: int = 4) -> md.State:
    """Boids with coordinates and velocities of few binary digits: their sums and differences are exact."""
    generator = np.random.default_rng(seed)
    pos, vel = generator.integers(0, 8 * 128, (n, 3)) / 128, generator.integers(-128, 129, (n, 3)) / 256
    return md.State(pos, vel, md.Box((8.0, 8.0, 8.0), (True, False, True)))


@pytest.mark.quick
class TestSymmetries:
    def found(self, state, backend):
        return simulated(state, backend, LAW).forces()

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_a_mirrored_flock_has_mirrored_increments(self, axis, backend):
        state = dyadic()
        pos, vel, mirror = state.pos.copy(), state.vel.copy(), np.ones(3)
        mirror[axis] = -1
        pos[:, axis] = np.where(
            pos[:, axis] > 0, 8.0 - pos[:, axis], 0.0 if state.box.periodic[axis] else 8.0
        )
        expected = self.found(state, backend)
        assert np.abs(expected).max() > 0.1
        assert np.array_equal(self.found(md.State(pos, vel * mirror, state.box), backend), expected * mirror)

    def test_a_common_velocity_changes_nothing(self, backend):
        state = dyadic()
        moving = md.State(state.pos, state.vel + np.array([0.5, -0.25, 2.0]), state.box)
        assert np.array_equal(self.found(moving, backend), self.found(state, backend))

    def test_a_shift_along_periodic_axes_changes_nothing(self, backend):
        state = dyadic()
        shifted = md.State(state.box.wrap(state.pos + np.array([3.5, 0, 6.25])), state.vel, state.box)
        assert np.array_equal(self.found(shifted, backend), self.found(state, backend))

    def test_exchanged_axes_exchange_the_increments(self, backend):
        state = dyadic()
        box = md.Box(state.box.lengths, (True, True, False))
        turned = md.State(state.pos[:, [0, 2, 1]], state.vel[:, [0, 2, 1]], box)
        found = self.found(turned, backend)
        np.testing.assert_allclose(found[:, [0, 2, 1]], self.found(state, backend), rtol=0, atol=1e-15)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("dim", "fused", "where"),
    tiers.by_default(
        itertools.product((3, 2), (False, True), PLACES),
        lambda *case: case in [(3, False, "periodic"), (3, True, "walled")],
        lambda *case: (tiers.full if case == (2, False, "open") else tiers.nightly)(*case),
    ),
)
def test_ten_steps_of_naive_are_those_of_numpy(dim, fused, where, backend):
    box, options = place(where, dim)
    state = crowd(box, 240 if dim == 3 else 90)
    assert np.linalg.norm(state.vel, axis=1).max() > 1
    run = simulated(state, backend, fused=fused, **options)
    first = increments(state.by_id().pos, state.by_id().vel, box, LAW)
    if not options:
        np.testing.assert_allclose(run.forces(), first, rtol=0, atol=1e-13)
    run.run(STEPS)
    same_end(run, *flown(state, LAW, STEPS, DT, **options))


CASES = [
    (search, dim, fused, where)
    for search in SEARCHES | VARIANTS
    for dim in (3, 2)
    for fused in (False, True)
    for where in PLACES
    if not fused or search in FUSABLE
]


@pytest.mark.split
@pytest.mark.parametrize(
    ("search", "dim", "fused", "where"),
    tiers.by_default(
        CASES,
        lambda *case: (case[0] in KEPT_SEARCHES and case[1:] == (3, False, "periodic")) or case in KEPT,
        lambda *case: (tiers.full if case in IN_FULL else tiers.nightly)(*case),
    ),
)
def test_ten_steps_of_every_search_are_those_of_naive(search, dim, fused, where, backend):
    box, options = place(where, dim)
    state = crowd(box, 240 if dim == 3 else 90)
    expected = simulated(state, backend, **options)
    expected.run(STEPS)
    chosen = (SEARCHES | VARIANTS)[search]
    run = simulated(state, backend, search=chosen, fused=fused, **options)
    run.run(STEPS)
    end = expected.state.by_id()
    same_end(run, end.pos, end.vel)
    assert np.abs(run.forces() - expected.forces()).max() < 1e-10
    assert np.array_equal(run.pairs(), expected.pairs())
    if search == "long lists" and backend == "cpu":  # a device plans builds ahead
        assert 2 <= run.builds < STEPS


@every_search
@pytest.mark.parametrize(
    "box", [md.Box((4.0, 4.0, 4.0)), md.Box((1.9, 1.5, 1.8), False)], ids=["two cells a side", "one cell"]
)
def test_every_search_counts_each_boid_of_a_small_box_once(search, box, backend):
    state = crowd(box, 40)
    start = state.by_id()
    expected = increments(start.pos, start.vel, box, LAW)
    np.testing.assert_allclose(
        simulated(state, backend, search=SEARCHES[search]).forces(), expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("search", tiers.searches(SEARCHES, ("naive", "linked")))
@pytest.mark.parametrize("dim", [tiers.nightly(2), 3])
def test_increments_in_float32_are_those_of_float64_but_for_rounding(search, dim, backend):
    state = crowd(place("periodic", dim)[0])
    start = state.by_id()
    expected = increments(start.pos, start.vel, start.box, LAW)
    found = simulated(state, backend, search=SEARCHES[search], precision="float32").forces()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("mode", ["data", "threads", "shadow"])
@pytest.mark.parametrize("search", ["linked", tiers.nightly("scattered"), tiers.nightly("naive")])
def test_a_reorder_of_any_mode_leaves_the_flock_as_it_is(search, mode, backend):
    box, options = place("walled", 3)
    state = crowd(box)
    expected = simulated(state, backend, **options)
    run = simulated(
        state, backend, search=search, reorder=md.Reorder("hilbert", md.Every(3), mode=mode), **options
    )
    for one in (expected, run):
        one.run(STEPS)
    same_end(run, expected.state.by_id().pos, expected.state.by_id().vel)
    assert run.reordering.steps == [0, 3, 6, 9]


@pytest.mark.quick
class TestErrors:
    @pytest.mark.parametrize("name", [*RADII, *RATES])
    def test_a_parameter_out_of_range_is_named_with_its_range(self, name):
        least = "above 0" if name in RADII else "of at least 0"
        for value in (-1.0, float("nan"), float("inf"), 1.0000001e9, *([0] if name in RADII else [])):
            with pytest.raises(
                ValueError, match=rf"^{name} = .*; allowed: a finite number {least}, up to 1e"
            ):
                md.laws.Boids(**{name: value})
        for value in ("5", None, True, [5.0]):
            with pytest.raises(TypeError, match=rf"^{name} = .* of class \w+; allowed: a finite number"):
                md.laws.Boids(**{name: value})
        assert type(getattr(md.laws.Boids(**{name: np.float32(0.5)}), name)) is float

    def test_a_radius_of_more_than_half_a_periodic_side_is_refused(self, backend):
        state = md.State([[1.0, 1, 1]], [[0.0, 0, 0]], md.Box((12, 9.99, 12)))
        walled = md.State(state.pos, state.vel, md.Box((12, 9.99, 12), (True, False, True)))
        message = r"box length 9\.99 along axis 1 with cutoff 5\.0; allowed .*at least 10\.0.*enlarge the box"
        for search in SEARCHES.values():
            with pytest.raises(ValueError, match=message):
                simulated(state, backend, md.laws.Boids(), search)
            simulated(walled, backend, md.laws.Boids(), search)

    def test_no_time_step_is_refused_with_its_remedy(self, backend):
        with pytest.raises(
            ValueError, match=r"dt = None, but Boids\(.* has no contact time .*; give dt in time"
        ):
            simulated(crowd(place("periodic", 3)[0]), backend, dt=None)

    def test_a_state_with_radii_is_refused(self, backend):
        state = crowd(place("periodic", 3)[0])
        sized = md.State(state.pos, state.vel, state.box, state.id, np.full(len(state), 0.5))
        with pytest.raises(ValueError, match=r"radii under Boids\(.*no size; allowed: .* radius=None"):
            simulated(sized, backend)

    def test_walls_without_a_contact_time_are_refused(self, backend):
        box = place("walled", 3)[0]
        with pytest.raises(
            ValueError, match=r"contact_time = None of walls, but Boids\(.* has none; give it"
        ):
            simulated(crowd(box), backend, walls=md.Walls())


class TestObservables:
    def flown(self, backend) -> md.Simulation:
        run = simulated(crowd(place("periodic", 3)[0]), backend)
        run.run(3)
        return run

    def test_a_look_has_motion_and_neighbours_and_no_energy_of_contacts(self, backend):
        run = self.flown(backend)
        seen, state = md.observe.look(run), run.state
        assert seen.kinetic_energy_per_particle == pytest.approx(md.observe.kinetic_energy(state))
        np.testing.assert_allclose(seen.momentum, state.vel.sum(axis=0), atol=1e-12)
        close = np.linalg.norm(differences(state.pos, state.box), axis=-1) < LAW.cutoff
        before = set(map(tuple, run.pairs().tolist()))
        assert seen.touching_pairs == len(run.pairs()) == (close.sum() - len(state)) // 2 > 100
        run.run(1)
        entered = set(map(tuple, run.pairs().tolist())) - before
        assert md.observe.look(run).contacts_begun == len(entered) > 10
        assert np.isnan(seen.contact_energy_per_particle)
        assert np.isnan(seen.collision_rate_by_touching)

    def test_what_needs_forces_or_energies_of_contacts_is_refused_by_name(self, backend):
        run = self.flown(backend)
        for see in (md.observe.virial, lambda run: md.observe.field(run, 2)):
            with pytest.raises(ValueError, match=r"the virial under Boids\(.*; allowed: a law without"):
                see(run)
        with pytest.raises(ValueError, match=r"no energy balance of Boids\(.*; allowed: a SpringDashpot"):
            run.run(1, reporters=[md.observe.EnergyBalance()])

    def test_an_observer_follows_a_flock(self, backend):
        observer = md.Observer(2, profiles=md.Profile(axis=0, bins=3))
        run = simulated(crowd(place("periodic", 3)[0]), backend)
        run.run(4, reporters=[observer])
        assert observer.table()["step"].tolist() == [0, 2, 4]
        assert np.isfinite(observer.table()["kinetic_energy_per_particle"]).all()


@pytest.mark.parametrize(
    "search", tiers.searches(set(md.search.SEARCHES) - {"tensor"}, ("linked",), tiers.full)
)
def test_a_boid_just_within_a_radius_of_float32_is_met_in_every_search(search, backend):
    """At a distance of which the square is an ulp below that of the radius, as the law computes it."""
    radius = np.float32(1.35)
    generator, limit = np.random.default_rng(0), radius * radius
    while True:
        x = radius * np.float32(generator.uniform(0.1, 0.9))
        y = np.float32(np.sqrt(float(radius) ** 2 - float(x) ** 2))
        if np.nextafter(limit, np.float32(0)) == x * x + y * y:
            break
    pos, vel = np.array([[0, 0, 1], [x, y, 1]]), np.array([[1.0, 0, 0], [0, 1, 0]])
    law = md.laws.Boids(cohesion_radius=1.35, separation_radius=0.6, alignment_radius=0.6)
    options = {"dt": 0.01, "precision": "float32", "integrator": "flight", "backend": backend}
    run = md.Simulation(md.State(pos, vel, md.Box((20.0,) * 3, False)), law, search=search, **options)
    assert np.abs(run.forces()[:, :2]).min() > 1e-3
