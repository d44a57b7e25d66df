"""Profiles and local means against those that numpy computes from the state, slice by slice."""

import math

import numpy as np
import pytest

import md
from md.observe import Observer, Profile, look
from tests import tiers
from tests.md.observe.test_observation import CASES, LAW, crowd, new_contacts, plain, simulated

pytestmark = pytest.mark.split

every_case = pytest.mark.parametrize(
    ("dim", "precision", "periodic"),
    tiers.by_default(CASES, lambda dim, precision, _: (dim, precision) != (2, "float32")),
)


def plain_profile(state: md.State, axis: int, bins: int) -> dict:
    """Compute a profile slice by slice."""
    box, dim = state.box, state.box.dim
    real = state.pos.dtype.type
    which = np.minimum((state.pos[:, axis] * real(bins / box.lengths[axis])).astype(int), bins - 1)
    members = [state.vel[which == k].astype(float) for k in range(bins)]
    means = [v.mean(axis=0) if len(v) else np.full(dim, np.nan) for v in members]
    count = np.array([len(v) for v in members])
    return {
        "centre": (np.arange(bins) + 0.5) * box.lengths[axis] / bins,
        "particles": count,
        "number_density": count / (box.volume / bins),
        "filling_fraction": count * {2: math.pi / 4, 3: math.pi / 6}[dim] / (box.volume / bins),
        "velocity": np.array(means),
        "temperature": np.array(
            [
                ((v - u) ** 2).sum(axis=1).mean() / dim if len(v) else np.nan
                for v, u in zip(members, means, strict=True)
            ]
        ),
    }


@pytest.mark.parametrize("mode", ["data", "threads", "shadow"])
def test_a_look_is_the_same_under_every_reorder(mode, backend):
    reorder = md.Reorder("hilbert", md.Every(3), mode=mode)
    profile = Profile(1, 7)
    simulation = simulated(crowd(3, (True,) * 3), backend, search="linked", reorder=reorder)
    simulation.run(4)
    new = new_contacts(simulation)
    seen, state = look(simulation, [profile]), simulation.state
    assert seen.contacts_begun == new > 0
    for name, value in plain(state, LAW).items():
        assert np.allclose(getattr(seen, name), value, rtol=1e-12), name
    for name, value in plain_profile(state, 1, 7).items():
        assert np.allclose(getattr(seen.profiles[0], name), value), name


class TestProfiles:
    @every_case
    def test_equal_those_of_numpy(self, dim, precision, periodic, backend):
        simulation = simulated(crowd(dim, periodic), backend, search="linked", precision=precision)
        simulation.run(3)
        choices = [Profile(axis, bins) for axis in range(dim) for bins in (1, 2, 13, 1000)]
        seen, state = look(simulation, choices), simulation.state
        assert len(seen.profiles) == len(choices)
        for profile, given in zip(choices, seen.profiles, strict=True):
            assert given.axis == profile.axis
            for name, value in plain_profile(state, profile.axis, profile.bins).items():
                found = getattr(given, name)
                assert found.shape == value.shape
                assert np.allclose(found, value, rtol=1e-9, atol=1e-9, equal_nan=True), (profile, name)
            assert given.particles.sum() == len(state)

    @every_case
    def test_of_many_particles_too(self, dim, precision, periodic, backend):
        generator = np.random.default_rng(0)
        box = md.Box((300.0, 40.0, 30.0)[:dim], periodic)
        vel = generator.normal(3, 1, (40_000, dim))
        state = md.State(generator.random(vel.shape) * box.lengths, vel, box)
        ideal = md.laws.SpringDashpot(0.0, 0.0)
        simulation = simulated(state, backend, ideal, precision=precision, walls=None)
        seen = look(simulation, [Profile(0, 20)], cells=(10, 5, 2)[:dim])
        for name, value in plain_profile(simulation.state, 0, 20).items():
            assert np.allclose(getattr(seen.profiles[0], name), value, rtol=1e-9), name
        assert seen.mean_speed == pytest.approx(np.linalg.norm(state.vel, axis=1).mean(), rel=1e-6)

    def test_the_far_side_belongs_to_the_last_slice(self, backend):
        state = md.State([[0, 0.0], [4, 4], [2, 2]], np.zeros((3, 2)), md.Box((4, 4), periodic=False))
        (profile,) = look(simulated(state, backend, walls=None), [Profile(1, 4)]).profiles
        assert profile.particles.tolist() == [1, 0, 1, 1]

    def test_the_temperature_about_the_local_mean_leaves_out_a_shear(self, backend):
        state = crowd(3, (True,) * 3, n=400)
        cells = (1, 8, 1)
        which = (state.pos[:, 1] * 8 / state.box.lengths[1]).astype(int)
        vel = state.vel.copy()
        vel[:, 0] += 100.0 * which
        sheared = look(simulated(md.State(state.pos, vel, state.box), backend), cells=cells)
        alike = look(simulated(state, backend), cells=cells)
        local = sum(((v - v.mean(0)) ** 2).sum() for v in (state.vel[which == k] for k in range(8))) / 3 / 400
        assert alike.temperature_about_local_mean == pytest.approx(local, rel=1e-12)
        assert sheared.temperature_about_local_mean == pytest.approx(local, rel=1e-9)
        assert sheared.temperature > 1000 * local
        assert look(simulated(state, backend), cells=9).temperature_about_local_mean < local  # some are empty

    @pytest.mark.parametrize(
        ("axis", "error"), [(-1, ValueError), (3, ValueError), (True, TypeError), (0.0, TypeError)]
    )
    def test_an_axis_out_of_range_is_refused(self, axis, error):
        with pytest.raises(error, match=r"axis of Profile = .*allowed: an integer of at least 0, up to 2"):
            Profile(axis)

    @pytest.mark.parametrize(
        ("bins", "error"),
        [
            (0, ValueError),
            (1001, ValueError),
            (2.0, TypeError),
            (True, TypeError),
            (np.timedelta64(3, "s"), TypeError),
        ],
    )
    def test_a_number_of_slices_out_of_range_is_refused(self, bins, error):
        with pytest.raises(error, match=r"bins of Profile = .*allowed: an integer of at least 1, up to 1000"):
            Profile(0, bins)

    def test_narrow_integers_give_every_slice(self):
        simulation = simulated(crowd(3, (True,) * 3), "cpu", search="linked")
        profile = Profile(np.int8(0), np.uint8(200))
        assert (type(profile.axis), type(profile.bins)) == (int, int)
        seen, expected = (look(simulation, [p]).profiles[0] for p in (profile, Profile(0, 200)))
        np.testing.assert_array_equal(seen.particles, expected.particles)
        observer = Observer(np.int8(1), Profile(1, np.uint8(100)), cells=np.array([3, 5, 4], np.int8))
        simulation.run(1, reporters=[observer])
        assert len(observer.profile_table()["slice"]) == 200
        assert (type(observer.interval), observer.cells) == (int, (3, 5, 4))

    @pytest.mark.parametrize(
        "cells", [np.int16(256), np.array([2**22, 2**22]), np.array([2**16] * 2, np.int32)]
    )
    def test_narrow_integers_do_not_wrap_past_the_limit_of_cells(self, cells):
        simulation = simulated(crowd(2, (True, True)), "cpu")
        with pytest.raises(ValueError, match=r"cells.* = .*allowed: .*1000"):
            look(simulation, [], cells)
        if np.ndim(cells):
            with pytest.raises(ValueError, match=r"cells.* = .*allowed: .*1000"):
                Observer(1, cells=cells)

    def test_integers_whose_product_wraps_to_0_are_refused(self):
        with pytest.raises(ValueError, match=r"cells.* = .*allowed: .*1000"):
            look(simulated(md.scenes.benchmark_gas(60, 0.1), "cpu"), [], np.array([2**22] * 3))

    @pytest.mark.parametrize("profiles", [3, [Profile(0), "z"], {Profile(0): 1}, None])
    def test_other_objects_than_profiles_are_refused(self, profiles):
        with pytest.raises(TypeError, match=r"profiles.* = .*allowed: .*md\.Profile"):
            Observer(1, profiles)

    def test_what_does_not_fit_the_box_is_refused(self):
        simulation = simulated(crowd(2, (True, True)), "cpu")
        with pytest.raises(ValueError, match="axis = 2 of a profile in a box of 2 axes"):
            look(simulation, [Profile(2)])
        for cells in (0, (2, 2, 2), (2, 0), (1001, 1), 32, ()):
            with pytest.raises(ValueError, match=r"cells.* = .*allowed"):
                look(simulation, cells=cells)
        for cells in (1.5, "32", None, (2, True), {2: 2}, np.timedelta64(2, "s")):
            with pytest.raises(TypeError, match=r"cells.* = .*allowed"):
                look(simulation, cells=cells)
        for none in (simulation.state, None):
            with pytest.raises(TypeError, match=r"simulation = .*allowed: an md\.Simulation"):
                look(none)
