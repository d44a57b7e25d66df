"""Errors of scenes: the value found, the allowed values and the remedy."""

import re

import numpy as np
import pytest

import md

BOX = md.Box((5, 5, 5))
AT = [[1.0, 1, 1], [3.0, 3, 3]]
REST = np.zeros((2, 3))


def refused(message: str, error: type[Exception] = ValueError):
    return pytest.raises(error, match=message)


class TestScenes:
    @pytest.mark.parametrize("phi", [0, -0.1, 0.61, 0.9, np.nan])
    def test_a_filling_fraction_out_of_range(self, phi, backend):
        with refused(rf"filling_fraction = {phi}; allowed: a finite number above 0, up to 0\.6 \(in 3D\)"):
            md.preparation.granular_gas(phi, BOX, backend=backend)

    @pytest.mark.parametrize("lengths", [(2.5, 2.5, 2.5), (2.2, 2.2, 2.2), (4.0, 4.0, 4.0)])
    def test_a_filling_fraction_that_this_box_cannot_pack(self, lengths, backend):
        with refused(
            r"filling_fraction = 0\.6 .*spacing of 0\.\d+ d; allowed: at least 1; lower.* or enlarge"
        ):
            md.preparation.granular_gas(0.6, md.Box(lengths), backend=backend)

    def test_a_filling_fraction_that_only_a_lattice_reaches_between_walls(self, backend):
        box = md.Box((20, 20, 6), (True, True, False))
        with refused(r"spacing of 1\.0000 d; allowed: at least 1\.002; lower .*, or take mixing = 0"):
            md.preparation.granular_gas(0.6, box, backend=backend)
        assert len(md.preparation.granular_gas(0.6, box, mixing=0, backend=backend)) == 2750

    def test_a_packing_that_does_not_relax(self, backend):
        with refused(r"28 spheres still overlap after 5000 relaxation steps.*0\.601.*lower.*mixing = 0"):
            md.preparation.granular_gas(0.6, md.Box((2.9, 2.9, 2.9)), backend=backend)

    @pytest.mark.parametrize(
        ("option", "value", "allowed"),
        [
            ("memory_order", "sorted", "one of lattice, shuffled"),
            ("temperature", -1, "a finite number of at least 0"),
            ("temperature", np.inf, "a finite number of at least 0"),
            ("mixing", -1, "a finite number of at least 0, up to 1000 .lattice spacings.; 1 is enough"),
            ("mixing", 2**64, "a finite number of at least 0, up to 1000 .lattice spacings.; 1 is enough"),
            ("mixing", 1e308, "a finite number of at least 0, up to 1000 .lattice spacings.; 1 is enough"),
            ("seed", -1, "an integer of at least 0; any other gives another state"),
        ],
    )
    def test_another_value_out_of_range(self, option, value, allowed, backend):
        shown = f"{option}( =)? {re.escape(repr(value))}; allowed: {allowed}"
        with refused(shown):
            md.preparation.granular_gas(0.2, BOX, **{option: value}, backend=backend)
        if option != "memory_order":
            with refused(shown):
                md.preparation.shaken_box(0.2, (8, 8, 8), **{option: value}, backend=backend)
        with refused(shown):
            md.preparation.cooling_gas(100, 0.2, **{option: value}, backend=backend)

    @pytest.mark.quick
    @pytest.mark.parametrize(
        ("copies", "periodic", "message"),
        [
            (2, True, "copies = 2 of 49 spheres; allowed: .* a multiple of 8, .*; take another number"),
            (
                2,
                (True, True, False),
                "copies = 2 in .*; allowed: 1 in a box with walls.*; take a box that is",
            ),
            (0, True, "copies = 0; allowed: an integer of at least 1, up to 1024"),
        ],
    )
    def test_copies_that_make_no_gas(self, copies, periodic, message, backend):
        box = md.scenes.box_for(49, 0.2, periodic=periodic)
        with refused(message):
            md.preparation.tiled_gas(0.2, box, copies, backend=backend)

    @pytest.mark.parametrize(
        ("part", "order", "message"),
        [
            ((2, 2), "lattice", "number of the part = 2; allowed: an integer of at least 0, up to 1"),
            ((0, 50), "lattice", "number of parts = 50; allowed: an integer of at least 1, up to 49"),
            ((0, 2), "shuffled", r"memory_order = 'shuffled' of part \(0, 2\); allowed: 'lattice'"),
        ],
    )
    def test_parts_that_make_no_gas(self, part, order, message, backend):
        with refused(message):
            md.preparation.tiled_gas(
                0.2, md.scenes.box_for(49, 0.2), 1, memory_order=order, backend=backend, part=part
            )

    @pytest.mark.parametrize(
        ("lengths", "periodic"), [((2.0, 5, 5), True), ((5, 5, 3.0), (True, True, False)), ((2.9, 9), False)]
    )
    def test_a_box_too_thin_to_randomise(self, lengths, periodic, backend):
        with refused(r"too thin.*allowed: at least 2\.004 d on a side, 3\.004 d between walls;.*mixing = 0"):
            md.preparation.granular_gas(0.2, md.Box(lengths, periodic), backend=backend)

    def test_too_few_to_randomise_a_cooling_gas(self, backend):
        with refused(r"n = 4 at filling_fraction = 0\.3 is too few.*at least 5 there;.*mixing = 0"):
            md.preparation.cooling_gas(4, 0.3, backend=backend)
        assert len(md.preparation.cooling_gas(5, 0.3, backend=backend)) == 5

    @pytest.mark.parametrize("phi", [0, 0.7, np.nan])
    def test_a_cooling_gas_or_shaken_box_of_another_filling_fraction(self, phi, backend):
        with refused(r"filling_fraction = 1e\+308; allowed: a finite number above 0, up to 0\.6 \(in 3D\)"):
            md.preparation.cooling_gas(17, 1e308, mixing=0.05, backend=backend)
        with refused(rf"filling_fraction = {phi}; allowed: a finite number above 0"):
            md.preparation.cooling_gas(100, phi, backend=backend)
        with refused(rf"filling_fraction = {phi}; allowed: a finite number above 0, up to 0\.6"):
            md.preparation.shaken_box(phi, (8, 8, 8), backend=backend)

    @pytest.mark.parametrize("lengths", [(8,), (8, 8, -1), (8, 8, 8, 8)])
    def test_a_shaken_box_of_other_lengths(self, lengths, backend):
        with refused(r"lengths.* = .*allowed: (two or three axes|a finite number above 0)"):
            md.preparation.shaken_box(0.2, lengths, backend=backend)

    def test_a_benchmark_gas_without_room_for_its_lattice(self):
        with refused(r"filling_fraction = 0\.6 with n = 100: .*allowed: more than 1; lower it"):
            md.scenes.benchmark_gas(100, 0.6)

    @pytest.mark.parametrize(
        ("n", "phi", "dim", "message"),
        [
            (0, 0.2, 3, "n = 0; allowed: an integer of at least 1, up to 2147482624"),
            (2**40, 0.2, 3, "n = 1099511627776; allowed"),
            (10, -0.2, 3, "filling_fraction = -0.2; allowed: a finite number above 0"),
            (10, 0.2, 4, "dim = 4; allowed: an integer of at least 2, up to 3"),
        ],
    )
    def test_a_box_for_values_out_of_range(self, n, phi, dim, message):
        with refused(message):
            md.scenes.box_for(n, phi, dim=dim)

    def test_more_particles_than_a_state_may_have(self):
        with refused(
            r"filling_fraction = 0\.2 in .* is 3\.82e\+17 spheres; allowed: up to 2147482624; lower"
        ):
            md.preparation.granular_gas(0.2, md.Box((1e6,) * 3))
        with refused("n = 2147483648; allowed: .* up to 2147482624"):
            md.scenes.lattice_sites(BOX, 2**31)

    @pytest.mark.parametrize(
        "scene",
        [
            lambda: md.scenes.benchmark_gas(10**8, 0.2, backend="cpu"),
            lambda: md.preparation.granular_gas(0.2, md.scenes.box_for(10**7, 0.2)),
            lambda: md.preparation.cooling_gas(10**7, 0.2),
            lambda: md.preparation.newtonian_lift(10**7),
            lambda: md.scenes.maxwell_velocities(10**7, 3, 1.0, np.random.default_rng(0)),
        ],
    )
    def test_more_particles_than_there_is_memory_for(self, scene, monkeypatch):
        for module in ("sfc.checks", "md.checks"):
            monkeypatch.setattr(f"{module}.host_memory", lambda: 2**30)
        with refused(r"a scene of [0-9]+ particles: .* bytes .* are needed; allowed: up to .*; take fewer"):
            scene()

    @pytest.mark.parametrize("n", [0, -1])
    def test_a_lattice_without_sites(self, n):
        with refused(f"n = {n}; allowed: an integer of at least 1"):
            md.scenes.lattice_sites(BOX, n)

    def test_a_seed_below_0(self):
        for scene in (
            lambda: md.scenes.benchmark_gas(10, 0.2, seed=-1),
            lambda: md.scenes.in_memory_order(md.State(AT, REST, BOX), "shuffled", -1),
            lambda: md.preparation.with_large_spheres(md.State(AT, REST, BOX), 0.5, 2.0, seed=-1),
            lambda: md.preparation.newtonian_lift(10, seed=-1),
        ):
            with refused("seed = -1; allowed: an integer of at least 0; any other"):
                scene()

    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("n", lambda: md.preparation.cooling_gas(2.5, 0.2)),
            ("n", lambda: md.scenes.box_for("10", 0.2)),
            ("n", lambda: md.scenes.benchmark_gas(True, 0.2)),
            ("n", lambda: md.preparation.newtonian_lift(10.0)),
            ("n", lambda: md.scenes.lattice_sites(BOX, 2.5)),
            ("n", lambda: md.scenes.maxwell_velocities(3.0, 3, 1.0, np.random.default_rng(0))),
            ("box", lambda: md.scenes.lattice_sites((5, 5, 5), 8)),
            ("box", lambda: md.preparation.granular_gas(0.2, (5, 5, 5))),
            ("box", lambda: md.preparation.wing_tunnel(0.2, None, None, (1, 0), 1.0)),
            ("wing", lambda: md.preparation.wing_tunnel(0.2, md.Box((9, 9)), None, (1, 0), 1.0)),
            ("airfoil", lambda: md.preparation.newtonian_lift(10, "2412")),
            ("state", lambda: md.scenes.in_memory_order(None, "lattice", 0)),
            ("state", lambda: md.preparation.with_large_spheres(None, 0.5, 2.0)),
            (
                "share of large spheres",
                lambda: md.preparation.with_large_spheres(md.State(AT, REST, BOX), "1", 2),
            ),
            (
                "diameter of large spheres",
                lambda: md.preparation.with_large_spheres(md.State(AT, REST, BOX), 1, True),
            ),
            ("seed", lambda: md.scenes.in_memory_order(md.State(AT, REST, BOX), "lattice", "x")),
            ("seed", lambda: md.scenes.benchmark_gas(10, 0.2, seed=1.5)),
            ("seed", lambda: md.preparation.granular_gas(0.2, BOX, seed=None)),
            ("filling_fraction", lambda: md.preparation.granular_gas("0.2", BOX)),
            ("temperature", lambda: md.preparation.granular_gas(0.2, BOX, temperature=True)),
            ("mixing", lambda: md.preparation.cooling_gas(10, 0.2, mixing="much")),
            ("memory_order", lambda: md.scenes.benchmark_gas(10, 0.2, memory_order=None)),
            ("dim", lambda: md.scenes.box_for(10, 0.2, dim=3.0)),
            ("lengths", lambda: md.preparation.shaken_box(0.2, 8)),
            ("generator", lambda: md.scenes.maxwell_velocities(3, 3, 1.0, 0)),
        ],
    )
    def test_an_argument_of_another_class(self, name, call):
        with refused(rf"{name} = .* of class .*; allowed: ", TypeError):
            call()

    @pytest.mark.parametrize("wrong", [b"cpu", np.zeros(3), np.datetime64("NaT", "s"), None, 5], ids=str)
    def test_a_backend_that_is_none_though_nothing_is_mixed(self, wrong):
        box = md.Box((6, 6, 6))
        for scene in (
            lambda: md.preparation.granular_gas(0.05, box, mixing=0.0, backend=wrong),
            lambda: md.preparation.cooling_gas(10, 0.05, mixing=0.0, backend=wrong),
            lambda: md.preparation.shaken_box(0.05, (6, 6, 6), mixing=0.0, backend=wrong),
        ):
            with refused(r"backend = .* of class .*; allowed: one of auto, cpu, cuda", TypeError):
                scene()
        with refused("unknown backend 'gpu'; allowed: one of auto, cpu, cuda"):
            md.preparation.granular_gas(0.05, box, mixing=0.0, backend="gpu")
        for name in ("cpu", "cuda", md.backend.Cpu()):
            assert len(md.preparation.granular_gas(0.05, box, mixing=0.0, backend=name)) == 21

    def test_narrow_numbers_are_as_good(self):
        """In float16 a filling fraction of 0.25 once gave 7464 spheres, not 7460."""
        box = md.Box((25.0,) * 3)
        gases = [md.preparation.granular_gas(phi, box, mixing=0) for phi in (0.25, np.float16(0.25))]
        assert [len(gas) for gas in gases] == [7460, 7460]
        assert np.array_equal(gases[0].vel, gases[1].vel)
        narrow = md.scenes.benchmark_gas(np.uint8(200), np.float16(0.25), seed=np.int8(3))
        assert np.array_equal(narrow.pos, md.scenes.benchmark_gas(200, 0.25, seed=3).pos)

    def test_large_spheres_among_spheres_that_have_radii(self):
        state = md.State(AT, REST, BOX, radius=[0.5, 0.25])
        with refused(r"state of radii 0\.25 to 0\.5 d; allowed: all of 0\.5"):
            md.preparation.with_large_spheres(state, 0.5, 2.0)

    def test_velocities_of_a_negative_temperature(self):
        with refused(r"temperature = -1; allowed: a finite number of at least 0"):
            md.scenes.maxwell_velocities(3, 3, -1, np.random.default_rng(0))


def test_a_temperature_whose_square_is_infinite_is_refused():
    with pytest.raises(ValueError, match=r"temperature = 1e\+308; allowed: .* up to 1e\+150"):
        md.preparation.granular_gas(0.1, md.Box((6, 6, 6)), temperature=1e308, backend="cpu")
