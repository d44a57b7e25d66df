"""Fields and virial: against values by hand, with every search, in cells of few particles."""

import numpy as np
import pytest

import md
from md.observe import Fields, field, virial
from tests import tiers
from tests.md.search.test_contract import LAW, dense_cloud, separations

IDEAL = md.laws.SpringDashpot(0.0, 0.0)
OPEN = md.Box((8.0, 6.0), (False, True), (True, False))
WAYS = {name: {"search": name} for name in sorted(md.search.SEARCHES)} | {
    "reflexive in a shadow": {"search": md.search.Reflexive(data="shadow")},
    "linked in a shadow": {
        "search": "linked",
        "reorder": md.Reorder("hilbert", md.Every(1), mode="shadow"),
    },
}
KEPT = {"search": "linked", "dt": 1e-4, "backend": "cpu", "allow_overlap": True}
OF_CELLS = "particles", "number_density", "velocity", "temperature", "contact_pressure", "pressure"


def simulated(state, law=LAW, **options) -> md.Simulation:
    return md.Simulation(state, law, **KEPT | options)


def cloud(periodic=(True, False)) -> md.State:
    return dense_cloud(2, periodic)


def overlapping(box=OPEN, at=(1.0, 1.0)) -> md.State:
    """Make two discs that overlap by 0.2 d, along a slope of 3 to 4, and approach at a speed of 3."""
    slope = np.array([0.6, 0.8])
    return md.State([at, at + 0.8 * slope], [3.0 * slope, [0.0, 0.0]], box, id=[7, 3])


def by_id_of(virial, simulation) -> dict:
    return dict(zip(sorted(simulation.state.id.tolist()), virial.tolist(), strict=True))


def plain_virial(state: md.State) -> np.ndarray:
    """Compute half the sum of f . dr over the partners by the definition, in order of id."""
    difference = separations(state)
    r = np.linalg.norm(difference, axis=2)
    along = ((state.vel[:, None] - state.vel[None]) * difference).sum(axis=2)
    pairs = np.where((r < 1) & (r > 0), LAW.stiffness * (1 - r) * r - LAW.damping * along, 0)
    return pairs.sum(axis=1)[np.argsort(state.id)] / 2


def plain_field(state: md.State, cells: tuple[int, int]) -> dict:
    """Compute a field cell by cell."""
    which = np.minimum((state.pos * (np.array(cells) / state.box.lengths)).astype(int), np.array(cells) - 1)
    volume, rank = state.box.volume / np.prod(cells), np.argsort(np.argsort(state.id))
    virial = plain_virial(state)[rank]
    found = {name: np.zeros(cells) for name in OF_CELLS} | {"velocity": np.zeros((*cells, 2))}
    for cell in np.ndindex(cells):
        here = (which == cell).all(axis=1)
        v = state.vel[here]
        found["particles"][cell], found["number_density"][cell] = len(v), len(v) / volume
        found["velocity"][cell] = v.mean(axis=0) if len(v) else np.nan
        found["temperature"][cell] = v.var(axis=0).mean() if len(v) else np.nan
        found["contact_pressure"][cell] = virial[here].sum() / (2 * volume)
    motion = found["number_density"] * np.nan_to_num(found["temperature"])
    return found | {"pressure": motion + found["contact_pressure"]}


class TestVirial:
    @pytest.mark.quick
    @pytest.mark.parametrize("damping", [0.0, 2.0])
    def test_of_two_discs_is_that_computed_by_hand(self, damping, backend):
        run = simulated(overlapping(), md.laws.SpringDashpot(100.0, damping), backend=backend)
        virial = md.observe.virial(run)
        assert virial.dtype == np.float64
        assert virial == pytest.approx([(100.0 * 0.2 + damping * 3.0) * 0.8 / 2] * 2)

    def test_is_by_id_and_0_without_contacts(self, backend):
        state = overlapping()
        pos, vel = np.vstack([[[6.0, 4.0]], state.pos]), np.vstack([[[1.0, 1.0]], state.vel])
        run = simulated(md.State(pos, vel, OPEN, id=[5, 7, 3]), backend=backend)
        virial = by_id_of(md.observe.virial(run), run)
        assert virial[5] == 0
        assert virial[3] == pytest.approx(virial[7])
        assert virial[3] > 100

    def test_is_right_by_the_definition(self, backend):
        state = cloud()
        found = md.observe.virial(simulated(state, backend=backend))
        expected = plain_virial(state)
        assert np.count_nonzero(expected) > 100
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())

    @pytest.mark.parametrize(
        "way",
        tiers.by_default(
            [way for way in WAYS if way != "linked"],
            lambda way: way == "linked in a shadow",
            lambda way: (tiers.full if way in ("naive", *tiers.BY_DEFAULT) else tiers.nightly)(way),
        ),
    )
    def test_is_the_same_for_each_particle_and_cell_under_every_search(self, way, backend):
        """Compare with `linked` after two steps, when memory and copies are sorted."""
        runs = [simulated(cloud(), **options, backend=backend) for options in (WAYS["linked"], WAYS[way])]
        for run in runs:
            run.run(2)
        pressures = [field(run, (3, 4)).contact_pressure for run in runs]
        virials = [md.observe.virial(run) for run in runs]
        for expected, found in (virials, pressures):
            assert np.abs(expected).max() > 0
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


class TestField:
    @pytest.mark.quick
    def test_equals_numpy(self, backend):
        state, cells = cloud(), (3, 20)
        seen = field(simulated(state, backend=backend), cells)
        expected = plain_field(state, cells)
        assert (expected["particles"] == 0).any()
        for name in OF_CELLS:
            np.testing.assert_allclose(
                getattr(seen, name), expected[name], rtol=1e-9, atol=1e-7, err_msg=name
            )
        for axis, side in enumerate(state.box.lengths):
            assert seen.centres[axis] == pytest.approx((np.arange(cells[axis]) + 0.5) * side / cells[axis])

    def test_excludes_particles_beyond_an_open_side(self, backend):
        states = [overlapping(at=at) for at in ((1.0, 1.0), (-2.0, 1.0), (8.2, 3.0), (4003.0, 1.0))]
        pos, vel = (np.concatenate([getattr(s, name) for s in states]) for name in ("pos", "vel"))
        both = simulated(md.State(pos, vel, OPEN), backend=backend)
        alone = simulated(states[0], backend=backend)
        seen, expected = (field(run, (4, 3)) for run in (both, alone))
        assert seen.particles.sum() == 2
        for name in OF_CELLS:
            np.testing.assert_allclose(getattr(seen, name), getattr(expected, name), rtol=1e-9, err_msg=name)

    @pytest.mark.parametrize("cells", [(0, 4), (4,), (4, 4, 4), (-1, 4), (2**13, 2**12), ()])
    def test_of_cells_that_do_not_fit_is_refused(self, cells):
        with pytest.raises(ValueError, match=r"cells.* = .*allowed: "):
            field(simulated(cloud()), cells)

    @pytest.mark.parametrize("cells", [(2.0, 4), (True, 4), "44", None, np.array([2, 3], "m8[s]")])
    def test_of_cells_that_are_no_integers_is_refused(self, cells):
        for make in (lambda: field(simulated(cloud()), cells), lambda: Fields(3, cells)):
            with pytest.raises(TypeError, match=r"cells.* = .*allowed: "):
                make()

    @pytest.mark.parametrize(
        "cells", [np.array([2**22, 2**22]), np.array([2**16] * 2, np.int32), (2**63, 2**63)]
    )
    def test_of_integers_whose_product_wraps_is_refused(self, cells):
        for make in (lambda: field(simulated(cloud()), cells), lambda: Fields(3, cells)):
            with pytest.raises(ValueError, match=r"cells.* = .*allowed: .*16777216"):
                make()

    @pytest.mark.parametrize("cells", [np.array([2**22] * 3), np.array([2048] * 3, np.int32)])
    def test_of_three_integers_whose_product_wraps_to_0_is_refused(self, cells):
        with np.errstate(over="ignore"):
            assert np.prod(cells, dtype=cells.dtype) == 0  # so that it passes any limit
        simulation = simulated(md.scenes.benchmark_gas(60, 0.1))
        for make in (lambda: field(simulation, cells), lambda: Fields(3, cells)):
            with pytest.raises(ValueError, match=r"cells.* = .*allowed: .*16777216"):
                make()

    def test_of_narrow_integers_is_that_of_pythons(self):
        seen, expected = (field(simulated(cloud()), cells) for cells in ((np.uint8(20),) * 2, (20, 20)))
        np.testing.assert_array_equal(seen.particles, expected.particles)
        assert seen.particles.shape == (20, 20)

    def test_of_no_simulation_is_refused(self):
        for see in (lambda: field(cloud(), (2, 2)), lambda: virial(None)):
            with pytest.raises(TypeError, match=r"simulation = .*allowed: an md\.Simulation"):
                see()

    def test_of_particles_of_given_radius_is_refused(self):
        state = md.State([[1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0]], md.Box((8.0,) * 3), radius=[0.4])
        with pytest.raises(ValueError, match=r"radius"):
            field(simulated(state), (2, 2, 2))


def thin_gas(n: int = 256, side: float = 32.0) -> md.State:
    rng = np.random.default_rng(4)
    pos, vel = rng.random((n, 2)) * side, rng.normal(0, 4.0, (n, 2))
    return md.State(pos, vel, md.Box((side, side)))


class EachReport:
    """A reporter that stores the field and the virial of each report."""

    def __init__(self, interval: int, cells: tuple[int, ...]):
        self.interval, self.cells, self.seen, self.virials = interval, cells, [], []

    def report(self, simulation: md.Simulation) -> None:
        self.seen.append(field(simulation, self.cells))
        self.virials.append(md.observe.virial(simulation))


class TestFields:
    @pytest.mark.parametrize("per_cell", [0.5, 1.0])
    def test_have_an_unbiased_mean_in_cells_of_less_than_a_particle(self, per_cell, backend):
        """Of 65 independent reports the remaining bias of the mean of a cell is 1 / (65 per_cell)."""
        state, cells = thin_gas(), {0.5: (16, 32), 1.0: (16, 16)}[per_cell]
        run = simulated(state, IDEAL, dt=0.1, backend=backend)
        fields, looks = Fields(20, cells), EachReport(20, cells)
        run.run(64 * 20, reporters=[fields, looks], phases=False)
        mean, expected = fields.mean(), len(state) / state.box.volume * state.vel.var(axis=0).mean()
        assert mean.number_density.mean() == pytest.approx(len(state) / state.box.volume)
        assert not mean.contact_pressure.any()
        assert mean.pressure.mean() == pytest.approx(expected, rel=0.05)
        assert all(found.pressure.mean() < 0.7 * expected for found in looks.seen)

    def test_have_the_mean_of_all_particles_of_a_cell(self, backend):
        state, cells = cloud((True, True)), (2, 5)
        fields, looks = Fields(5, cells), EachReport(5, cells)
        run = simulated(state, backend=backend)
        run.run(20, reporters=[fields, looks])
        assert len(looks.seen) >= 4
        counts, velocities = (
            np.array([getattr(seen, name) for seen in looks.seen]) for name in ("particles", "velocity")
        )
        mean, weighted = fields.mean(), counts[..., None] * np.nan_to_num(velocities)
        assert mean.time == looks.seen[-1].time
        assert mean.velocity == pytest.approx(weighted.sum(axis=0) / counts.sum(axis=0)[..., None])
        for name in ("number_density", "contact_pressure"):
            assert getattr(mean, name) == pytest.approx(
                np.mean([getattr(seen, name) for seen in looks.seen], axis=0)
            )
        volume = state.box.volume
        assert mean.contact_pressure.mean() == pytest.approx(
            np.mean([virial.sum() for virial in looks.virials]) / 2 / volume
        )

    def test_do_not_change_the_run(self, backend):
        state, search, ends = dense_cloud(3, (True,) * 3), md.search.WideBvh(rebuild_every=16), []
        for looks in (False, True):
            run = simulated(state, search=search, backend=backend)
            run.run(60, reporters=[Fields(7, (3, 3, 3))] if looks else [], phases=False)
            ends.append(run.state)
        assert np.array_equal(ends[0].id, ends[1].id)
        assert np.array_equal(ends[0].vel, ends[1].vel)

    def test_without_a_report_or_an_interval_are_refused(self):
        with pytest.raises(ValueError, match="no field was seen yet"):
            Fields(5, (2, 2)).mean()
        with pytest.raises(ValueError, match="interval"):
            Fields(0, (2, 2))


class TestNewtonianLift:
    def test_overlaps_equally_for_any_number_of_discs(self, backend):
        neighbours = []
        for n in (2**13, 2**15):
            case = md.preparation.newtonian_lift(n)
            run = md.Simulation(case.state, case.law, search="linked", backend=backend, **case.options)
            neighbours.append(2 * len(run.pairs()) / n)
            chord, box = case.wing.chord, case.state.box
            assert len(case.state) == n
            assert case.state.vel == pytest.approx(np.tile([2 * chord, 0.0], (n, 1)))
            assert box.lengths == pytest.approx((24 * chord, 4 * chord))
            assert np.ptp(case.state.pos, axis=0) == pytest.approx((5.5 * chord, 4 * chord), rel=1e-2)
            assert case.options["gravity"] == pytest.approx((chord, 0.0))
        assert neighbours == pytest.approx([19.0, 19.0], rel=0.1)
        assert neighbours[0] == pytest.approx(neighbours[1], rel=0.03)

    def test_runs_equally_by_tree_and_by_cells(self, backend):
        case, ends = md.preparation.newtonian_lift(2000), []
        for search in ("coherent", "lbvh"):
            run = md.Simulation(case.state, case.law, search=search, backend=backend, **case.options)
            run.run(20)
            ends.append(run.forces())
        largest = np.abs(ends[0]).max()
        assert largest > 1e3
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-8 * largest)

    def test_of_no_disc_is_refused(self):
        with pytest.raises(ValueError, match=r"n = 0; allowed: an integer of at least 1, .*discs"):
            md.preparation.newtonian_lift(0)


class TestWingTunnel:
    def test_has_a_stream_without_contacts(self, backend):
        box, velocity, temperature = md.Box((60.0, 40.0)), np.array([5.0, -1.0]), 2.0
        wing = md.Wing(airfoil=md.naca("2412"), chord=20.0, at=(20.0, 20.0), angle=10.0, stiffness=1e4)
        state = md.preparation.wing_tunnel(0.3, box, wing, velocity, temperature, seed=1, backend=backend)
        n, full = len(state), 0.3 * box.volume / (np.pi / 4)
        assert 0.9 * full < n < full
        assert wing.distance(state.pos).min() > 0.5
        assert not len(simulated(state, backend=backend).pairs())
        assert state.vel.mean(axis=0) == pytest.approx(velocity, abs=4 * np.sqrt(temperature / n))
        assert state.vel.var(axis=0).mean() == pytest.approx(temperature, rel=5 / np.sqrt(n))

    def test_in_3d_is_refused(self):
        wing = md.Wing(airfoil=md.naca("2412"), chord=4.0, at=(5.0, 5.0), stiffness=1e4)
        with pytest.raises(ValueError, match=r"a wing in a box of 3 axes; allowed: 2"):
            md.preparation.wing_tunnel(0.1, md.Box((12.0,) * 3), wing, (5.0, 0.0), 1.0)


class TestWithLargeSpheres:
    @pytest.mark.parametrize(("share", "diameter"), [(0.05, 3.0), (0.6, 1.5), (1.0, 2.0)])
    def test_no_two_touch_and_kept_spheres_are_unchanged(self, share, diameter, backend):
        gas = md.scenes.benchmark_gas(1000, 0.2)
        gas = md.State(gas.pos, gas.vel, gas.box, 3 * gas.id + 1)
        mixed = md.preparation.with_large_spheres(gas, share, diameter, seed=2, backend=backend)
        rows = {name: row for row, name in enumerate(gas.id.tolist())}
        kept = np.array([rows[name] for name in mixed.id.tolist()])
        assert (np.diff(kept) > 0).all()
        assert np.array_equal(mixed.pos, gas.pos[kept])
        assert np.array_equal(mixed.vel, gas.vel[kept])
        large = mixed.radius == diameter / 2
        assert np.array_equal(large, mixed.radius != 0.5)
        assert large.sum() > 10
        assert not len(simulated(mixed, IDEAL, backend=backend).pairs())

    def test_only_overlapping_spheres_are_removed(self, backend):
        gas = md.scenes.benchmark_gas(1000, 0.2)
        mixed = md.preparation.with_large_spheres(gas, 0.05, 3.0, backend=backend)
        removed = gas.take(~np.isin(gas.id, mixed.id))
        difference = removed.pos[:, None] - mixed.pos[mixed.radius > 0.5]
        difference -= np.array(gas.box.lengths) * np.round(difference / gas.box.lengths)
        assert len(removed) > 100
        assert np.linalg.norm(difference, axis=2).min(axis=1).max() < 3.0

    def test_at_their_old_size_all_are_kept(self, backend):
        gas = md.scenes.benchmark_gas(125, 0.2)
        mixed = md.preparation.with_large_spheres(gas, 1.0, 1.0, backend=backend)
        assert np.array_equal(mixed.id, gas.id)
        assert np.array_equal(mixed.radius, np.full(125, 0.5))

    @pytest.mark.parametrize(
        ("share", "diameter", "said"),
        [
            (0.0, 2.0, r"share of large spheres = 0.0; allowed: a finite number above 0, up to 1"),
            (1.1, 2.0, r"share of large spheres = 1.1"),
            (np.nan, 2.0, r"share of large spheres = nan"),
            (0.1, 0.9, r"diameter of large spheres = 0.9; allowed: a finite number of at least 1"),
            (0.1, np.inf, r"diameter of large spheres = inf"),
            (0.5, 100.0, r"allowed"),
        ],
    )
    def test_values_out_of_range_are_refused(self, share, diameter, said):
        with pytest.raises(ValueError, match=said):
            md.preparation.with_large_spheres(
                md.scenes.benchmark_gas(125, 0.2), share, diameter, backend="cpu"
            )
