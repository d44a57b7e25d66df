"""The walk that meets pairs once or twice: all its variants find the pairs and the forces of all pairs."""

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.particles.cell_grid import CellGrid
from md.search.bvh import traversal as walks
from md.search.bvh.reflexive import CHOICES, Reflexive
from md.search.bvh.tree import Tree
from md.simulation import config as choices
from tests import tiers
from tests.md.search.test_contract import LAW, dense_cloud, largest_difference, shuffled, simulated
from tests.strategies import clouds

DIMS = [3, tiers.nightly(2)]
MEETINGS = ("once", "plain"), ("once", "aggregated"), ("twice", "none")
VARIANTS = [  # any two choices are together in one of them
    {"stack": CHOICES["stack"][a], "met": met, "atomics": atomics, "data": CHOICES["data"][(a + b) % 3]}
    for a, (b, (met, atomics)) in product(range(3), enumerate(MEETINGS))
] + [
    {"stack": stack, "met": "once", "atomics": "plain", "data": data, "contacts": "listed", "room": 2}
    for stack, data in zip(CHOICES["stack"], ("sorted", "shadow", "sorted"), strict=True)
]
EVERY_TIME = [  # to push, to push from lists, to gather: fused where it may be
    ("shared", "once", "plain", "shadow"),
    ("shared", "once", "plain", "shadow", "listed", 2),
    ("shared", "twice", "none", "sorted"),
]
EACH = pytest.mark.parametrize(
    "variant",
    tiers.by_default(VARIANTS, lambda variant: tuple(variant.values()) in EVERY_TIME),
    ids=lambda variant: "-".join(map(str, variant.values())),
)
LEAVES = pytest.mark.parametrize("data", CHOICES["data"])


def chosen(**variant) -> Reflexive:
    """A search; where pairs are met twice no atomics go with them."""
    return Reflexive(**({"atomics": "none"} if variant.get("met") == "twice" else {}) | variant)


def visits(simulation: md.Simulation) -> list[tuple[int, int]]:
    """(reader, read) of every access, by id; a row of a sorted copy by its particle."""
    stream, search = simulation.accesses(), simulation.search
    id = simulation.backend.download(search.particles.id)
    if search.data == "shadow":
        id = id[simulation.backend.download(search.tree.keys.order)]
    readers = np.repeat(id[stream.readers], np.diff(stream.offsets))
    return list(zip(readers.tolist(), id[stream.reads].tolist(), strict=True))


@pytest.mark.split
class TestEveryVariant:
    @EACH
    @pytest.mark.parametrize("dim", DIMS)
    @tiers.examples(12)
    @given(data=st.data())
    def test_finds_pairs_and_forces_that_naive_finds(self, variant, dim, backend, data):
        state = data.draw(clouds(dims=st.just(dim)))
        expected, found = (simulated(state, s, backend) for s in ("naive", Reflexive(**variant)))
        assert np.array_equal(found.pairs(), expected.pairs())
        difference = np.abs(found.forces() - expected.forces()).max(initial=0)
        assert difference <= largest_difference(state, "float64")

    @EACH
    @pytest.mark.parametrize("dim", DIMS)
    def test_sees_each_touching_pair_as_often_as_it_says(self, variant, dim, backend):
        simulation = simulated(dense_cloud(dim), Reflexive(**variant), backend)
        seen, once = visits(simulation), variant["met"] == "once"
        assert len(set(seen)) == len(seen)
        for i, j in simulation.pairs().tolist():
            assert ((i, j) in seen) + ((j, i) in seen) == (1 if once else 2)
        if once:
            assert all((j, i) not in seen for i, j in seen)

    @EACH
    @pytest.mark.parametrize("dim", DIMS)
    def test_of_few_in_a_line_or_at_one_place(self, variant, dim, backend):
        for pos in ([], [1.0], [1.0, 1.0], [0.25, 4.75], [1.0, 1.6, 2.2, 2.8, 3.4]):
            line = np.zeros((len(pos), dim))
            line[:, 0] = pos
            state = md.State(line, np.arange(line.size).reshape(line.shape), md.Box((5.0,) * dim))
            expected, found = (simulated(state, s, backend) for s in ("naive", Reflexive(**variant)))
            assert np.array_equal(found.pairs(), expected.pairs())
            assert len(found.pairs()) == max(len(pos) - 1, 0)
            assert found.forces() == pytest.approx(expected.forces(), abs=1e-9), pos

    @pytest.mark.parametrize("side", [2.0, 2.5])
    @pytest.mark.parametrize(
        ("met", "stack"),
        [
            ("once", "local"),
            ("twice", "local"),
            tiers.nightly("once", "none"),
            tiers.nightly("twice", "none"),
        ],
    )
    def test_meets_images_once_in_a_box_of_two_cutoffs(self, side, met, stack, backend):
        rng = np.random.default_rng(7)
        gas = md.State(rng.random((40, 3)) * side, np.zeros((40, 3)), md.Box((side,) * 3))
        runs = [simulated(gas, s, backend) for s in ("naive", chosen(stack=stack, met=met))]
        assert np.array_equal(runs[0].pairs(), runs[1].pairs())
        assert runs[1].forces() == pytest.approx(runs[0].forces(), abs=1e-8)

    @pytest.mark.parametrize(
        ("dim", "layout", "met", "data", "precision"),
        [
            (3, "aos", "once", "unsorted", "float64"),
            tiers.full(2, "soa", "once", "unsorted", "float64"),
            tiers.nightly(2, "aos4", "twice", "shadow", "float32"),
        ],
    )
    def test_adds_to_rows_of_every_layout(self, dim, layout, met, data, precision, backend):
        state, search = dense_cloud(dim), chosen(met=met, data=data)
        expected = simulated(state, "naive", backend, precision).forces()
        found = simulated(state, search, backend, precision, layout=layout)
        for _ in range(2):  # what is left of the forces before is not added to
            difference = np.abs(found.forces() - expected).max()
            assert difference <= largest_difference(state, precision)

    @pytest.mark.parametrize(
        ("data", "met"),
        tiers.by_default(
            product(CHOICES["data"], CHOICES["met"]), lambda data, met: met == "once" or data != "shadow"
        ),
    )
    @pytest.mark.parametrize("rebuild_every", [1, 7])
    def test_an_old_tree_misses_no_pair(self, data, met, rebuild_every, backend):
        gas = md.scenes.benchmark_gas(300, 0.35)
        searches = "naive", chosen(met=met, data=data, rebuild_every=rebuild_every)
        runs = [simulated(gas, s, backend) for s in searches]
        sorts, build = [], runs[1].search.tree.build
        runs[1].search.tree.build = lambda pos: (sorts.append(runs[1].step), build(pos))
        for run in runs:
            run.run(40)
        assert sorts == list(range(0, 40, rebuild_every))
        assert np.array_equal(runs[0].pairs(), runs[1].pairs())
        one, other = (run.state.by_id() for run in runs)
        np.testing.assert_allclose(other.pos, one.pos, atol=1e-10)
        np.testing.assert_allclose(other.vel, one.vel, atol=1e-8)


@LEAVES
def test_particles_are_moved_where_the_data_is_to_be_sorted_alone(data, backend):
    state = shuffled(dense_cloud(3), 3)
    simulation = simulated(state, Reflexive(data=data), backend)
    simulation.forces()
    assert np.array_equal(simulation.state.id, state.id) == (data != "sorted")


def test_readers_come_in_the_order_of_their_leaves(backend):
    """Unsorted, the rows are of the particles; of a copy, they are in the order of leaves."""
    state, streams = shuffled(dense_cloud(3), 3), {}
    for data in CHOICES["data"]:
        simulation = simulated(state, chosen(met="twice", data=data), backend)
        streams[data] = simulation.accesses()
        if data == "unsorted":
            order = simulation.backend.download(simulation.search.tree.keys.order)
    assert np.array_equal(streams["unsorted"].readers, order)
    assert (order != np.arange(len(order))).any()
    for data in ("sorted", "shadow"):
        assert np.array_equal(streams[data].readers, np.arange(len(order)))
        assert np.array_equal(order[streams[data].reads], streams["unsorted"].reads)
        assert np.array_equal(streams[data].offsets, streams["unsorted"].offsets)


@pytest.mark.split
def test_the_cpu_repeats_bit_for_bit_and_keeps_the_momentum():
    ends = []
    for _ in range(2):
        run = simulated(md.scenes.benchmark_gas(700, 0.35), Reflexive(), "cpu")
        run.run(60)
        ends.append(run)
    assert np.array_equal(ends[0].state.pos, ends[1].state.pos)
    assert np.array_equal(ends[0].state.vel, ends[1].state.vel)
    force = ends[0].forces()
    assert np.abs(force).max() > 100
    assert np.abs(force.sum(axis=0)).max() <= 1e-12 * np.abs(force).sum()


@pytest.mark.parametrize(("met", "data"), tiers.first(product(CHOICES["met"], CHOICES["data"])))
def test_a_look_sees_pairs_from_both_sides(met, data, backend):
    run = simulated(dense_cloud(3), chosen(met=met, data=data), backend, allow_overlap=True)
    assert md.observe.look(run).touching_pairs == len(run.pairs()) > 100


@pytest.mark.split
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("room", [1, 3, 64])
def test_more_partners_than_a_list_has_room_for_are_all_found(room, dim, backend):
    state = dense_cloud(dim)
    expected = simulated(state, "naive", backend, allow_overlap=True).forces()
    listed = simulated(state, Reflexive(contacts="listed", room=room), backend, allow_overlap=True)
    difference = np.abs(listed.forces() - expected).max()
    assert difference <= largest_difference(state, "float64")
    met = np.diff(listed.accesses().offsets)  # boxes of leaves that a walk sees: those it meets, and more
    assert (listed.search.crowded == 0) == (room == 64)
    assert listed.search.crowded <= (met > room).sum()
    assert listed.search.backend.download(listed.search._contact_counts).sum() == len(listed.pairs(1.0)) > 100


@EACH
def test_a_step_is_fused_where_the_force_is_whole_and_in_its_place(variant, backend):
    search, gas = Reflexive(**variant), md.scenes.benchmark_gas(125, 0.3)
    assert search.capabilities.bitwise_on == (("cpu",) if variant["met"] == "once" else ("cpu", "cuda"))
    assert search.capabilities.fusable == (variant["met"] == "twice" and variant["data"] == "sorted")
    if not search.capabilities.fusable:
        with pytest.raises(ValueError, match=r"'reflexive' as chosen .*take fused=False, or .*met='twice'"):
            simulated(gas, search, backend, fused=True)
        return
    runs = [simulated(gas, search, backend, fused=fused) for fused in (False, True)]
    for run in runs:
        run.run(20, phases=False)
    one, other = (run.state.by_id() for run in runs)
    np.testing.assert_allclose(other.pos, one.pos, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stack": "global"}, r"unknown stack of Reflexive 'global'; allowed: one of local, shared, none"),
        ({"met": "never"}, r"unknown met of Reflexive 'never'; allowed: one of once, twice"),
        (
            {"atomics": "many"},
            r"unknown atomics of Reflexive 'many'; allowed: one of plain, aggregated, none",
        ),
        ({"data": "copy"}, r"unknown data of Reflexive 'copy'; allowed: one of sorted, shadow, unsorted"),
        ({"met": "twice"}, r"met='twice', atomics='plain'\); allowed: met='twice' with atomics='none'"),
        (
            {"atomics": "none"},
            r"met='once', atomics='none'\); allowed: .*'once' with 'plain' or 'aggregated'",
        ),
        ({"contacts": "few"}, r"unknown contacts of Reflexive 'few'; allowed: one of walked, listed"),
        (
            {"contacts": "listed", "data": "unsorted"},
            r"contacts='listed', .*data='unsorted'\); allowed: met='once', atomics='plain', data='sorted' or",
        ),
        ({"contacts": "listed", "atomics": "aggregated"}, "atomics='aggregated', .*allowed: met='once'"),
        ({"room": 0}, r"room of Reflexive = 0; allowed: an integer of at least 1"),
        ({"rebuild_every": 0}, r"rebuild_every of Reflexive = 0; allowed: an integer of at least 1"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Reflexive(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"stack": None},
            r"stack of Reflexive = None of class NoneType; allowed: one of local, shared, none",
        ),
        ({"room": 2.5}, r"room of Reflexive = 2\.5 of class float; allowed: an integer of at least 1"),
        ({"rebuild_every": True}, r"rebuild_every of Reflexive = True of class bool; allowed: an integer"),
    ],
)
def test_what_is_of_a_wrong_class_is_refused(options, message):
    with pytest.raises(TypeError, match=message):
        Reflexive(**options)


def test_a_variant_becomes_plain_data_and_is_made_again():
    for kind in ({"atomics": "aggregated"}, {"contacts": "listed", "room": 7}):
        search = Reflexive("hilbert", "none", data="shadow", rebuild_every=4, **kind)
        plain = json.loads(json.dumps(choices.to_plain("search", search)))
        assert vars(choices.from_plain("search", plain)) == vars(search)
        assert len(vars(search)) == 8 + 1  # and the capabilities that follow from them


def test_a_run_goes_on_from_its_file_as_it_did(tmp_path):
    options = {"met": "once", "data": "shadow", "stack": "shared", "rebuild_every": 5}
    run = simulated(md.scenes.benchmark_gas(216, 0.35), Reflexive(**options), "cpu")
    run.run(17)
    run.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    for one in (run, loaded):
        one.run(13)
    assert np.array_equal(run.state.pos, loaded.state.pos)
    assert np.array_equal(run.state.vel, loaded.state.vel)


class TestStack:
    @pytest.mark.parametrize(("dim", "bits"), [(2, 31), (3, 21)])
    def test_of_a_thread_is_as_long_as_any_tree_is_deep(self, dim, bits):
        grid = CellGrid(md.Box((9.0,) * dim), 1.0, np.float64, md.backend.get("cpu"))
        tree = Tree(1, grid, md.backend.get("cpu"))
        tree._n, tree.keys.key_bits = 2**31 - 1024, dim * bits
        assert 64 < tree.depth + 1 <= walks.ROOM

    def test_is_as_long_on_a_device(self):
        text = Path(walks.__file__).with_suffix(".cuh").read_text()
        assert int(re.search(r"#define ROOM (\d+)", text)[1]) == walks.ROOM

    @tiers.examples(15)
    @given(state=clouds(dims=st.just(3)), exponent=st.integers(0, 60))
    def test_has_room_for_the_deepest_walk(self, state, exponent):
        """All is in reach, so that every node is taken up; keys that halve again and again make it deep."""
        n, dim = 40, state.box.dim
        pos = np.full((n, dim), 2.0**-exponent) ** (np.arange(n)[:, None] / 10)
        box = md.Box((2.0,) * dim, (False,) * dim)
        gas = md.State(pos, np.zeros((n, dim)), box)
        simulation = simulated(gas, Reflexive(met="twice", atomics="none"), "cpu", allow_overlap=True)
        search = simulation.search
        simulation.forces()
        ropes, stack, most = search.tree.ropes, [0], 1
        while stack:
            node = stack.pop()
            if node < n - 1:
                stack += [ropes[2 * node], ropes[2 * ropes[2 * node] + 1]]
                most = max(most, len(stack))
        assert most <= search.tree.depth < search._entries
        assert search._entries % 8 == 0


@pytest.mark.full
def test_a_law_is_pushed_back_as_hard(backend):
    state = dense_cloud(3)
    law = md.laws.FrictionalSpringDashpot(1e4, 5.0, friction=0.3, tangential_damping=2.0)
    options = {"dt": 1e-4, "backend": backend, "allow_overlap": True}
    runs = [md.Simulation(state, law, search=s, **options) for s in ("naive", Reflexive())]
    difference = np.abs(runs[1].forces() - runs[0].forces()).max()
    assert difference <= largest_difference(state, "float64")
    assert LAW.stiffness == law.stiffness


@pytest.mark.parametrize("n", [1, 3, 300])
def test_room_for_which_there_is_no_memory_is_refused_before_it_is_asked_for(n):
    state = md.State(np.random.default_rng(1).random((n, 3)) * 9, np.zeros((n, 3)), md.Box((9, 9, 9)))
    with pytest.raises(ValueError, match=r"room of Reflexive = 1099511627776; allowed: .*up to 2147483647"):
        Reflexive(contacts="listed", room=2**40)
    room, free = 2**31 - 1, 2**32
    search = Reflexive(contacts="listed", room=room)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(md.checks, "host_memory", lambda: free)
        message = rf"room = {room} for {n} particles: [\d,]+ bytes .*needed; allowed: up to .*take less room"
        with pytest.raises(ValueError, match=message):
            md.Simulation(state, md.scenes.BENCHMARK_LAW, search=search, backend="cpu")


@pytest.mark.parametrize(
    ("search", "found"),
    [(Reflexive(), "met='once' on cpu"), (Reflexive(met="twice", atomics="none"), "met='twice' on cpu")],
)
def test_additions_are_counted_on_a_device_alone(search, found):
    run = simulated(dense_cloud(3), search, "cpu")
    with pytest.raises(ValueError, match=rf"search = .*{found}.*; allowed: met='once' on a device"):
        run.search.additions(LAW)


@pytest.mark.gpu
@pytest.mark.parametrize("data", CHOICES["data"])
@pytest.mark.parametrize("stack", CHOICES["stack"])
def test_a_device_makes_an_addition_a_pair_or_fewer(device, stack, data):
    state = dense_cloud(2, n=5000)
    made = {}
    for atomics in ("plain", "aggregated"):
        run = simulated(state, Reflexive(stack=stack, atomics=atomics, data=data), device)
        before = run.forces()
        made[atomics] = run.search.additions(LAW) - len(state)
        assert np.abs(run.forces() - before).max() <= 1e-9 * np.abs(before).max()
    assert made["plain"] == len(run.pairs())
    assert 0 < made["aggregated"] < made["plain"]
