"""Wrong inputs are refused with the value found, what is allowed and the remedy."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import md
import sfc

LAW = md.laws.SpringDashpot(stiffness=1e4, damping=5.0)
BOX = md.Box((5, 5, 5))
AT = [[1.0, 1, 1], [3.0, 3, 3]]
REST = np.zeros((2, 3))


def refused(message: str, error: type[Exception] = ValueError):
    return pytest.raises(error, match=message)


class TestBox:
    @pytest.mark.parametrize("lengths", [(5.0,), (5.0, 5.0, 5.0, 5.0)])
    def test_of_another_number_of_axes(self, lengths):
        with refused(r"lengths = \(5\.0,.*allowed: two or three axes"):
            md.Box(lengths)

    @pytest.mark.parametrize(("side", "shown"), [(0, "0"), (-2, "-2"), (np.inf, "inf"), (np.nan, "nan")])
    def test_with_a_side_that_is_not_positive_and_finite(self, side, shown):
        with refused(rf"lengths\[1\] = {shown}; allowed: a finite number above 0 \(particle diameters\)"):
            md.Box((5, side, 5))

    def test_with_flags_that_do_not_match(self):
        with refused(r"periodic = \(True, False\) for 3 axes; allowed: one flag, or one an axis"):
            md.Box((5, 5, 5), (True, False))

    @pytest.mark.parametrize("method", ["wrap", "nearest", "outside"])
    def test_vectors_that_are_no_real_numbers_are_refused(self, method):
        call = getattr(md.Box((2, 7)), method)
        for wrong in ("x", b"x", None, md, np.bool_, Fraction(1, 3)):
            with refused(r"(pos|apart) = .* of class .*; allowed: an array of real numbers", TypeError):
                call(wrong)
        for wrong in (1.0, np.True_, np.timedelta64("NaT", "s"), [np.True_], [[True, 1.0]],
                      [[1 + 2j, 3]], np.zeros((2, 2, 2)), np.zeros((1, 3)), [["1", "2"]]):  # fmt: skip
            with refused(r"(pos|apart) .*; allowed: "):
                call(wrong)

    def test_vectors_may_be_integers_of_any_width(self):
        box = md.Box((2.5, 7.25, 2.5), periodic=False, open=(True, True, False))
        for dtype in ("u1", "u2", "i8", ">u4", "f2", "f4", "f8"):
            assert box.outside(np.array([[0, 7, 7], [200, 7, 2]], dtype)).tolist() == [True, False]
        assert md.Box((5, 5)).nearest(np.array([[4, 1]], "u1")).tolist() == [[-1.0, 1.0]]


class TestState:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_with_a_position_or_velocity_that_is_not_finite(self, value):
        wrong = [[1, 1, 1], [1, value, 1]]
        with refused(rf"pos\[1, 1\] = {value}; allowed: finite numbers"):
            md.State(wrong, REST, BOX)
        with refused(rf"vel\[1, 1\] = {value}; allowed: finite numbers"):
            md.State(AT, wrong, BOX)

    @pytest.mark.parametrize("x", [5.5, 5.0, -1e-9])
    def test_with_a_particle_outside_a_periodic_box(self, x):
        with refused(
            rf"pos\[1\] = \[1\.0, 1\.0, {x}\] is outside the box; allowed: \(least, most\) = .*wrap"
        ):
            md.State([[1, 1, 1], [1, 1, x]], REST, BOX)

    @pytest.mark.parametrize("x", [5.5, -1e-9])
    def test_with_a_particle_behind_a_wall(self, x):
        with refused(rf"pos\[0\] = \[{x}, 1\.0, 1\.0\] is outside the box"):
            md.State([[x, 1, 1], [1, 1, 1]], REST, md.Box((5, 5, 5), False))

    def test_may_stand_on_a_wall(self):
        assert md.State([[0, 5, 1], [1, 1, 1]], REST, md.Box((5, 5, 5), False)).pos[0, 1] == 5

    def test_of_another_dimension_than_its_box(self):
        with refused(r"pos of shape \(2, 2\); allowed: \(n, 3\)"):
            md.State(np.ones((2, 2)), REST, BOX)

    def test_with_velocities_of_another_number(self):
        with refused(r"vel of shape \(2, 3\); allowed: that of pos, \(3, 3\)"):
            md.State(np.ones((3, 3)), REST, BOX)

    @pytest.mark.parametrize("dtype", [complex, "U1"])
    def test_of_another_dtype_than_real_numbers(self, dtype):
        with refused(r"pos of dtype .*; allowed: real numbers"):
            md.State(np.ones((2, 3)).astype(dtype), REST, BOX)

    @pytest.mark.parametrize(
        ("ids", "found"),
        [
            ([3, 3], r" holds a repeated value, 3; allowed: distinct integers, 0 \.\. 2147483647"),
            ([-1, 2], r"\[0\] = -1; allowed: values of at least 0, up to 2147483647"),
            ([2, 2**31], r"\[1\] = 2147483648; allowed: values of at least 0, up to 2147483647"),
            (np.array([2, 2**64 - 1], np.uint64), r"\[1\] = 18446744073709551615; allowed: values of at "),
            ([True, 2], r" = \[True, 2\] holds truth values; allowed: integers, one a particle"),
        ],
    )
    def test_with_ids_that_repeat_or_do_not_fit(self, ids, found):
        with refused(f"^id{found}"):
            md.State(AT, REST, BOX, id=ids)

    @pytest.mark.parametrize(
        "ids",
        [
            [1],
            [1.5, 2.0],
            [[1, 2]],
            [True, False],
            np.array([1, 2], "m8[s]"),
            np.ma.array([1, 2], mask=[0, 1]),
        ],
    )
    def test_with_ids_of_another_shape_or_dtype(self, ids):
        with refused(
            r"id (of (shape|dtype)|is a masked array).*; allowed: (integers|\(2,\)|an array without)"
        ):
            md.State(AT, REST, BOX, id=ids)

    @pytest.mark.parametrize("name", ["pos", "vel", "radius"])
    def test_of_times_or_masked_numbers(self, name):
        whole = {"pos": AT, "vel": REST, "radius": [0.5, 0.5]}
        times = np.full(np.shape(whole[name]), "NaT", "m8[s]")
        masked = np.ma.array(
            whole[name], mask=np.arange(np.size(whole[name])).reshape(np.shape(whole[name])) == 1
        )
        for wrong, said in (
            (times, r"of dtype timedelta64.*; allowed: real"),
            (masked, "is a masked array; .*fill"),
        ):
            with refused(rf"{name} {said}"):
                md.State(**(whole | {name: wrong}), box=BOX)

    @pytest.mark.parametrize(
        "order",
        [
            [0.5],
            [2],
            [-1],
            [0, 0],
            [[0]],
            [True],
            [True, 1, 0],
            [[1, 0], [1]],
            np.array([0], "m8[s]"),
            np.array([2**63], np.uint64),
        ],
    )
    def test_taken_in_an_order_that_is_none(self, order):
        with refused(r"order.* allowed: |id holds a repeated value"):
            md.State(AT, REST, BOX).take(order)

    def test_of_more_particles_than_can_be_is_refused_before_anything_is_copied(self):
        endless = np.broadcast_to(np.int64(0), (2**40, 3))
        for pos, vel, name in ((endless, REST, "pos"), (AT, endless, "vel")):
            with refused(rf"{name}: {24 * 2**40:,} bytes .* are needed; allowed: up to .*; give fewer"):
                md.State(pos, vel, BOX)

    def test_arrays_of_one_number_repeated_that_no_memory_holds_are_refused(self):
        endless = np.broadcast_to(np.uint8(1), (2**40, 3))
        for call in (BOX.wrap, BOX.nearest, BOX.outside):
            with refused(r"(pos|apart): .* are needed; allowed: up to .*; give fewer at a time"):
                call(endless)
        with refused("order: .* are needed; allowed: up to .*; give fewer at a time"):
            md.State(AT, REST, BOX).take(endless[:, 0])
        with refused("order of 5 entries; allowed: up to 2, distinct indices"):
            md.State(AT, REST, BOX).take([0, 1, 0, 1, 0])
        with refused(r"distance: .* are needed; allowed: up to .*; give fewer at a time"):
            LAW.potential(endless[:, 0])

    def test_taken_by_flags_or_indices(self):
        state = md.State(AT, REST, BOX, id=[7, 9])
        flags = [False, True], [np.False_, True], np.array([False, True])
        for order in ([1], np.array([1], np.uint8), *flags, range(1, 2)):
            assert state.take(order).id.tolist() == [9]
        assert len(state.take([])) == 0


class TestSimulation:
    def of(self, backend, box=BOX, law=LAW, **options):
        return md.Simulation(md.State(AT, REST, box), law, **({"backend": backend} | options))

    def test_with_an_unknown_search(self, backend):
        with refused(r"unknown search 'lnked'; allowed: one of .*coherent"):
            self.of(backend, search="lnked")

    def test_with_an_unknown_integrator(self, backend):
        with refused(r"unknown integrator 'verlt'; allowed: one of .*velocity_verlet"):
            self.of(backend, integrator="verlt")

    @pytest.mark.parametrize("dt", [0, -1e-3, np.nan, np.inf])
    def test_with_a_step_that_is_not_positive_and_finite(self, dt, backend):
        with refused(rf"dt = {dt}; allowed: a finite number above 0 \(time units\)"):
            self.of(backend, dt=dt)

    @pytest.mark.parametrize("precision", ["float16", "double", "int32"])
    def test_with_an_unknown_precision(self, precision, backend):
        with refused(rf"unknown precision '{precision}'; allowed: one of float32, float64"):
            self.of(backend, precision=precision)

    @pytest.mark.parametrize("search", sorted(md.search.SEARCHES))
    @pytest.mark.parametrize("lengths", [(1.5, 5, 5), (5, 5, 1.99)])
    def test_in_a_periodic_box_too_small_for_the_cutoff(self, lengths, search, backend):
        state = md.State([[1, 1, 1]], [[0, 0, 0]], md.Box(lengths))
        axis = int(np.argmin(lengths))
        expected = rf"length {min(lengths)} along axis {axis} with cutoff 1\.0; .*at least 2\.0.*enlarge"
        with refused(expected):
            md.Simulation(state, LAW, search=search, backend=backend)

    def test_in_a_narrow_box_between_walls_is_allowed(self, backend):
        state = md.State([[0.2, 1, 1], [0.2, 1.5, 1]], REST, md.Box((0.5, 5, 5), (False, True, True)))
        assert md.Simulation(state, LAW, backend=backend).pairs().tolist() == [[0, 1]]

    @pytest.mark.parametrize("law", [(0.0, 0.0), (1.0, 1000.0)], ids=["ideal gas", "overdamped"])
    def test_without_a_step_where_no_contact_time_gives_one(self, law, backend):
        with refused(r"dt = None.*give dt|overdamped.*allowed: damping < 1\.414"):
            self.of(backend, law=md.laws.SpringDashpot(*law))

    def test_with_a_reorder_for_a_search_that_sorts(self, backend):
        reorder = md.Reorder("hilbert", md.Every(5))
        with refused(r"'coherent' sorts the data itself.*'hilbert'.*cell_order='hilbert'"):
            self.of(backend, search="coherent", reorder=reorder)

    def test_with_an_unknown_ordering(self, backend):
        expected = r"ordering 'hilbrt'.*known in 3D: butz, .*hilbert, .*row, .*tiled, zigzag"
        with refused(expected):
            self.of(backend, reorder=md.Reorder("hilbrt", md.Every(5)))
        with refused(expected):
            self.of(backend, search=md.search.Coherent("hilbrt"))

    def test_with_an_ordering_of_another_dimension(self, backend):
        hilbert = sfc.curve("hilbert", 2)
        plane = sfc.Curve("plane", 2, 2, hilbert.rank, hilbert.next)
        with refused(r"curve 'plane' is 2D; the box .* is 3D; allowed: a curve in 3D, such as "):
            self.of(backend, reorder=md.Reorder(plane, md.Every(5)))

    @pytest.mark.parametrize("steps", [-1, 1.5, True, "3", None, np.timedelta64(3, "s")])
    def test_run_for_a_number_of_steps_that_is_none(self, steps, backend):
        error = ValueError if type(steps) is int else TypeError
        with refused(r"steps = .*; allowed: an integer of at least 0", error):
            self.of(backend).run(steps)

    @pytest.mark.parametrize("steps", [2**62 - 1, 10**30, np.uint64(2**64 - 1)])
    def test_run_to_a_step_that_no_file_holds(self, steps, backend):
        simulation = self.of(backend)
        simulation.run(1)
        with refused(rf"steps = .*; allowed: an integer of at least 0, up to {2**62 - 2}; run in parts"):
            simulation.run(steps)
        assert simulation.step == 1

    @pytest.mark.parametrize("distance", [0, -1.0, 1.01, np.nan])
    def test_asked_for_pairs_the_search_cannot_see(self, distance, backend):
        with refused(
            rf"distance = {distance}; allowed: a finite number above 0, up to 1 \(d\); .*law's cutoff"
        ):
            self.of(backend).pairs(distance)


class TestBackend:
    def test_unknown(self):
        with refused(r"unknown backend 'cdua'; allowed: one of auto, cpu, cuda"):
            md.backend.get("cdua")

    def test_cuda_where_there_is_none_says_why_and_what_helps(self):
        try:
            md.backend.get("cuda")
        except md.BackendUnavailableError:
            pass
        else:
            pytest.skip("there is a CUDA device here")
        with refused(r"'cuda' cannot run here: .*backend='cpu'", md.BackendUnavailableError):
            md.Simulation(md.State(AT, REST, BOX), LAW, backend="cuda")

    def test_auto_on_the_cpu_says_so_once(self, monkeypatch):
        monkeypatch.setattr(md.backend, "_warned", False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = [md.backend.get("auto").name for _ in range(3)]
        if found[0] == "cuda":
            assert not caught
        else:
            assert found == ["cpu"] * 3
            assert len(caught) == 1
            assert "running on the CPU" in str(caught[0].message)

    def test_more_cells_or_particles_than_int32_counts(self, monkeypatch):
        with refused(r"27000000000 cells of side 1.0 .*allowed: up to 2147482624 .*smaller box"):
            md.Simulation(md.State(AT, REST, md.Box((3000, 3000, 3000))), LAW, backend="cpu")
        monkeypatch.setattr(md.particles.state, "MAX_PARTICLES", 1)
        with refused(r"2 particles; allowed: up to 1 \(int32 slots\)"):
            md.State(AT, REST, BOX)


class TestReorder:
    def test_with_an_unknown_mode(self):
        with refused(r"unknown mode of Reorder 'thrds'; allowed: one of data"):
            md.Reorder("row", md.Every(5), mode="thrds")

    @pytest.mark.parametrize("interval", [0, -3, 2.5, True])
    def test_every_with_an_interval_below_one_or_no_integer(self, interval):
        error = ValueError if type(interval) is int else TypeError
        with refused(rf"interval of Every = {interval}.*; allowed: an integer of at least 1", error):
            md.Every(interval)


class TestLaw:
    @pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
    def test_with_a_constant_that_is_negative_or_not_finite(self, value):
        with refused(rf"stiffness = {value}; allowed: a finite number of at least 0, up to 1e\+302"):
            md.laws.SpringDashpot(value, 0.0)
        with refused(rf"damping = {value}; allowed: a finite number of at least 0, up to 1e\+154"):
            md.laws.SpringDashpot(1.0, value)

    @pytest.mark.parametrize("diameter", [0, -1, np.inf, np.nan])
    def test_with_a_diameter_that_is_not_positive_and_finite(self, diameter):
        with refused(rf"diameter = {diameter}; allowed: a finite number of at least 1e-300"):
            md.laws.SpringDashpot(1.0, 0.0, diameter=diameter)

    @pytest.mark.parametrize("restitution", [0, -0.5, 1.2, np.nan])
    def test_from_a_restitution_out_of_range(self, restitution):
        with refused(rf"restitution = {restitution}; allowed: a finite number of at least 0\.01, up to 1"):
            md.laws.SpringDashpot.from_restitution(restitution, contact_time=1.0)

    @pytest.mark.parametrize("contact_time", [0, -1.0, np.inf, np.nan])
    def test_from_a_contact_time_out_of_range(self, contact_time):
        with refused(rf"contact_time = {contact_time}; allowed: a finite number above 1e-150"):
            md.laws.SpringDashpot.from_restitution(0.5, contact_time=contact_time)

    @pytest.mark.parametrize(("stiffness", "diameter"), [(10**400, 1.0), (1e303, 1.0), (1e10, 1e-299)])
    def test_with_a_spring_that_is_no_number(self, stiffness, diameter):
        with refused("stiffness = 1.*; allowed: .*up to 1|diameter = 1e-299; allowed: large enough for a"):
            md.laws.SpringDashpot(stiffness, 0, diameter)

    @pytest.mark.parametrize("value", [True, "1", None, 1j, np.timedelta64(1, "s"), [1.0], Decimal(1)])
    def test_with_what_is_no_number(self, value):
        for name, values in (("stiffness", (value, 0)), ("damping", (1, value)), ("diameter", (1, 0, value))):
            with refused(rf"{name} = .* of class .*; allowed: a finite number", TypeError):
                md.laws.SpringDashpot(*values)
        for name, values in (("restitution", (value, 1)), ("contact_time", (0.5, value))):
            with refused(rf"{name} = .* of class .*; allowed: a finite number", TypeError):
                md.laws.SpringDashpot.from_restitution(*values)

    @pytest.mark.parametrize("kind", [np.float16, np.longdouble, np.uint8, Fraction, int])
    def test_with_narrow_or_wide_numbers(self, kind):
        law = md.laws.SpringDashpot(kind(200), kind(3), kind(1))
        assert {type(getattr(law, name)) for name in ("stiffness", "damping", "diameter")} == {float}
        assert law.contact_time == md.laws.SpringDashpot(200.0, 3.0).contact_time

    @pytest.mark.parametrize("name", ["contact_time", "restitution"])
    def test_overdamped_has_no_contact_time_or_restitution(self, name):
        law = md.laws.SpringDashpot(stiffness=1.0, damping=1000.0)
        with refused(r"damping = 1000\.0 .*overdamped.*allowed: damping < 1\.41421"):
            getattr(law, name)
