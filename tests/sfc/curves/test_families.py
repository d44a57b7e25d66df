"""Each curve of the registry against its own definition."""

import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfc
from sfc.automaton.lsystem import expand, walk
from sfc.curves.ar2w2 import ar2w2
from sfc.curves.betaomega import betaomega
from sfc.curves.butz import butz
from sfc.curves.compact import compact
from sfc.curves.grammars import HILBERT
from sfc.curves.gray import gray
from sfc.curves.harmonious import harmonious
from sfc.curves.haverkort_a26 import haverkort_a26
from sfc.curves.haverkort_f import haverkort_f
from sfc.curves.hilbert import hilbert
from sfc.curves.meander import meander
from sfc.curves.moore import moore
from sfc.curves.morton import morton
from sfc.curves.peano import peano
from sfc.curves.skilling import skilling
from tests.strategies import CURVES
from tests.tiers import nightly

# Whether it is continuous, whether closed, its states, and a digest of its traversal: as measured once, drawn
# and looked at (the figures of experiments.curves). The tests below derive many of them another way.
KNOWN = {
    ("ar2w2", 2): (False, False, 64, "91acc19fb3ea"),
    ("betaomega", 2): (True, False, 24, "68c2ddf727b9"),
    ("gray", 2): (False, False, 2, "fa6ea74886a9"),
    ("hilbert", 2): (True, False, 4, "bf8a09b8f7e3"),
    ("meander", 2): (True, False, 4, "c7bc5735298e"),
    ("moore", 2): (True, True, 5, "9d3fcb2c9525"),
    ("morton", 2): (False, False, 1, "9830cd357cff"),
    ("peano", 2): (True, False, 4, "e2552c1e931d"),
    ("butz", 3): (True, False, 12, "cb2d6f30a4dc"),
    ("compact", 3): (True, False, 48, "a58c22b7f6a4"),
    ("gray", 3): (False, False, 2, "4fcc1bc833ff"),
    ("harmonious", 3): (True, False, 24, "6acf06dd6605"),
    ("haverkort_a26", 3): (True, False, 48, "7d441bf9ce3f"),
    ("haverkort_f", 3): (True, False, 48, "cb1d00040b20"),
    ("hilbert", 3): (True, False, 16, "775e5add4fdf"),
    ("moore", 3): (True, True, 33, "2fea4acad4ed"),
    ("morton", 3): (False, False, 1, "7f54bdc75328"),
    ("peano", 3): (True, False, 4, "f0d07209c9b8"),
    ("skilling", 3): (True, False, 24, "c586a888e81e"),
    ("gray", 4): (False, False, 2, "19fd971d115a"),
    ("hilbert", 4): (True, False, 32, "622ca524b8b7"),
    ("morton", 4): (False, False, 1, "483a4738a9a9"),
    ("peano", 4): (True, False, 16, "7251179c64fd"),
    ("skilling", 4): (True, False, 192, "781894f52a06"),
}


DEEP = {"ar2w2": 8, "betaomega": 8, "haverkort_a26": 6, "haverkort_f": 6}  # orders that tell all states apart


def digest(curve: sfc.Curve) -> str:
    most = max(k for k in range(1, 6) if curve.base ** (curve.dim * k) <= 2**16)
    order = DEEP.get(curve.name, most)
    return hashlib.sha256(curve.traversal(order).astype("<i8").tobytes()).hexdigest()[:12]


@pytest.mark.quick
def test_every_curve_of_the_registry_is_known():
    assert set(KNOWN) == set(CURVES)


@pytest.mark.quick
@pytest.mark.parametrize(("name", "dim"), KNOWN)
def test_a_curve_is_what_it_was_found_to_be(name, dim):
    continuous, closed, states, cells = KNOWN[name, dim]
    curve = sfc.curve(name, dim)
    sfc.testing.check_curve(curve, cells=4096, samples=16, continuous=continuous, closed=closed)
    assert len(curve.rank) == states
    assert digest(curve) == cells


def entries(curve: sfc.Curve, each: str) -> list[tuple[int, int]]:
    """Rows and columns of a table's entries: all, or one of each state."""
    states, digits = curve.rank.shape
    if each == "every entry":
        return list(itertools.product(range(states), range(digits)))
    return [(state, state % digits) for state in range(states)]


# Curves whose every state is reached within the orders that are listed here.
LISTED = [place for place in KNOWN if place not in (("peano", 4), ("skilling", 4))]
each = pytest.mark.parametrize("each", ["every state", nightly("every entry")])


@each
@pytest.mark.parametrize(("name", "dim"), LISTED)
def test_any_one_wrong_entry_of_a_table_makes_another_curve(name, dim, each):
    curve = sfc.curve(name, dim)
    states, digits = curve.rank.shape
    for state, digit in entries(curve, each):
        if states > 1:
            wrong = curve.next.copy()
            wrong[state, digit] = (wrong[state, digit] + 1) % states
            assert (
                digest(sfc.Curve(name, dim, curve.base, curve.rank, wrong, curve.start))
                != KNOWN[name, dim][3]
            )
        wrong = curve.rank.copy()
        wrong[state, digit] = (wrong[state, digit] + 1) % digits
        with pytest.raises(ValueError, match="permutation"):
            sfc.Curve(name, dim, curve.base, wrong, curve.next, curve.start)


@each
@pytest.mark.parametrize(("name", "dim"), [place for place in LISTED if KNOWN[place][0]])
def test_a_wrong_successor_that_makes_it_jump_breaks_the_promise_to_be_continuous(name, dim, each):
    curve = sfc.curve(name, dim)
    states = len(curve.rank)
    refused = 0
    for state, digit in entries(curve, each):
        wrong = curve.next.copy()
        wrong[state, digit] = (wrong[state, digit] + 1) % states
        broken = sfc.Curve(name, dim, curve.base, curve.rank, wrong, curve.start)
        jumps = np.abs(np.diff(broken.traversal(3), axis=0)).sum(axis=1).max() > 1
        if jumps:
            refused += 1
            with pytest.raises(AssertionError, match="not continuous by its tables"):
                sfc.testing.check_curve(broken, continuous=True)
    assert refused > 0


@pytest.mark.parametrize(
    ("name", "worst"),
    [
        ("compact", (67.1, 13.9, 10.9)),
        nightly("hilbert", (78.9, 18.8, 18.1)),
        nightly("butz", (73.2, 18.2, 14.0)),
    ],
)
def test_compact_dilates_less_than_the_other_hilbert_curves(name, worst):
    """The figures of its docstring and of the catalogue's."""
    ordering = sfc.ordering(name, (16, 16, 16))
    found = [float(sfc.locality.dilation(ordering, norm).worst) for norm in (1, 2, np.inf)]
    assert found == pytest.approx(worst, abs=0.05)


def symmetric_copies(path: np.ndarray, side: int):
    """A path under every rotation and mirror of its grid, forwards and backwards."""
    dim = path.shape[1]
    for axes in itertools.permutations(range(dim)):
        for far in itertools.product((False, True), repeat=dim):
            turned = np.where(far, side - 1 - path[:, axes], path[:, axes])
            yield turned
            yield turned[::-1]


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_gray_changes_one_interleaved_bit_at_a_step(dim):
    order = 3
    path = sfc.curve("gray", dim).traversal(order)
    weights = 1 << (np.arange(order)[:, None] * dim + np.arange(dim))
    bits = path[:, None, :] >> np.arange(order)[None, :, None] & 1
    interleaved = (bits * weights).sum(axis=(1, 2))
    number = np.arange(len(path))
    assert np.array_equal(interleaved, number ^ number >> 1)


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_peano_follows_his_arithmetic_definition(dim):
    """A digit of the index, mirrored if the digits before it of the other axes have an odd sum."""
    order = 3
    indices = range(0, 3 ** (dim * order), 7 ** (dim - 1))
    for index, found in zip(indices, peano(dim).decode(np.array(indices), order).tolist(), strict=True):
        digits = [index // 3**place % 3 for place in reversed(range(dim * order))]  # first to last
        axes = [dim - 1 - place % dim for place in range(dim * order)]
        cell = [0] * dim
        for place, (digit, axis) in enumerate(zip(digits, axes, strict=True)):
            others = sum(d for d, a in zip(digits[:place], axes[:place], strict=True) if a != axis)
            cell[axis] = 3 * cell[axis] + (2 - digit if others % 2 else digit)
        assert found == cell


@pytest.mark.quick
def test_a_curve_s_grammar_is_of_the_same_curve():
    described = [
        curve for dim in (2, 3, 4) for name in sfc.curves(dim) if (curve := sfc.curve(name, dim)).grammar
    ]
    assert {"hilbert", "moore", "peano"} <= {curve.name for curve in described if curve.dim == 2}
    for curve in described:
        grammar = sfc.curve_from_grammar(curve.name, curve.dim, *curve.grammar)
        assert np.array_equal(grammar.traversal(3), curve.traversal(3))


@pytest.mark.quick
def test_butz_in_2d_is_hilbert_s_curve_and_hilbert_in_4d_is_butz_s():
    assert np.array_equal(butz(2).traversal(5), sfc.curve("hilbert", 2).traversal(5))
    assert np.array_equal(butz(4).traversal(2), sfc.curve("hilbert", 4).traversal(2))


@pytest.mark.parametrize("dim", [2, 3, 4, 5])
def test_butz_follows_the_gray_code_whose_first_axis_is_1(dim):
    path = butz(dim).cell[0][:, None] >> np.arange(dim) & 1
    turning = [int(np.flatnonzero(step)[0]) for step in np.diff(path.astype(int), axis=0)]
    number = np.arange(1, 2**dim)
    assert turning == [(int(k & -k).bit_length() % dim) for k in number]
    assert butz(dim).is_continuous
    assert len(butz(dim).rank) == {2: 4, 3: 12, 4: 32, 5: 80}[dim]


def test_skilling_s_curve_is_hilbert_s_in_2d_and_another_than_butz_s_in_3d():
    """In 3D up to a rotation or mirror of the grid or a reversal."""
    assert np.array_equal(skilling(2).traversal(5), sfc.curve("hilbert", 2).traversal(5))
    own = butz(3).traversal(3)
    assert not any(np.array_equal(own, copy) for copy in symmetric_copies(skilling(3).traversal(3), 8))


def test_the_hilbert_curves_of_3d_are_inequivalent():
    names = ("hilbert", "butz", "compact", "harmonious", "haverkort_a26", "haverkort_f", "skilling")
    paths = {name: sfc.curve(name, 3).traversal(2) for name in names}
    for one, other in itertools.combinations(paths, 2):
        assert not any(np.array_equal(paths[one], copy) for copy in symmetric_copies(paths[other], 4))


@pytest.mark.parametrize(("dim", "axiom"), [(2, "A"), (2, "B"), (3, "A"), (3, "B"), (3, "C"), (3, "D")])
def test_each_symbol_of_the_grammar_can_be_the_axiom(dim, axiom):
    curve = sfc.curve("hilbert", dim, axiom=axiom)
    sfc.testing.check_curve(curve, cells=4096, samples=32)
    assert curve.is_continuous
    path = walk(expand(axiom, HILBERT[dim], 3), dim)
    path = np.where(path[0] > path.min(axis=0), path.max(axis=0) - path, path - path.min(axis=0))
    assert np.array_equal(curve.traversal(3), path)


def test_an_axiom_of_another_grammar_and_an_option_of_another_curve_are_refused():
    with pytest.raises(ValueError, match=r"axiom 'C' of hilbert in 2D; allowed: A, B"):
        sfc.curve("hilbert", 2, axiom="C")
    for name, dim in (("morton", 2), ("hilbert", 4)):
        message = rf"'{name}' in {dim}D does not take \['axiom'\]; allowed: axiom, for 'ar2w2' in 2D, 'hilb"
        with pytest.raises(ValueError, match=message):
            sfc.curve(name, dim, axiom="A")


@pytest.mark.parametrize("axiom", [["A"], {}, None, 1])
def test_an_axiom_that_is_no_text_is_refused(axiom):
    with pytest.raises(TypeError, match=r"axiom = .* of class .*; allowed: one of A, B$"):
        sfc.curve("hilbert", 2, axiom=axiom)


@pytest.mark.parametrize("dim", [3.0, "3", None, True])
def test_a_dim_that_is_no_integer_is_refused(dim):
    with pytest.raises(TypeError, match=rf"dim = {dim!r} of class .*; allowed: an integer"):
        sfc.curve("hilbert", dim)
    assert sfc.curve("hilbert", np.uint8(3)) is sfc.curve("hilbert", 3)


FACTORIES = {
    "ar2w2": (ar2w2, range(2, 3)),
    "betaomega": (betaomega, range(2, 3)),
    "butz": (butz, range(2, 65)),
    "compact": (compact, range(3, 4)),
    "gray": (gray, range(1, 65)),
    "harmonious": (harmonious, range(2, 5)),
    "haverkort_a26": (haverkort_a26, range(3, 4)),
    "haverkort_f": (haverkort_f, range(3, 4)),
    "hilbert": (hilbert, range(2, 4)),
    "meander": (meander, range(2, 3)),
    "moore": (moore, range(2, 4)),
    "morton": (morton, range(1, 65)),
    "peano": (peano, range(2, 8)),
    "skilling": (skilling, range(2, 65)),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_of_curves_takes_a_dim_in_its_range_alone(name):
    factory, dims = FACTORIES[name]
    for dim in (2.0, "3", None, True, [3], np.timedelta64(3)):
        with pytest.raises(TypeError, match=r"^dim = .* of class .*; allowed: an integer of at least "):
            factory(dim)
    for dim in (-1, 0, dims[0] - 1, dims[-1] + 1, 65, 10**30):
        with pytest.raises(ValueError, match=rf"^dim = {dim}; allowed: an integer of at least {dims[0]}, up"):
            factory(dim)
    narrow = factory(np.uint8(dims[0]))
    assert (narrow.dim, type(narrow.dim)) == (dims[0], int)
    assert np.array_equal(narrow.rank, factory(dims[0]).rank)


@pytest.mark.parametrize("axiom", [["A"], None, 1])
def test_an_axiom_of_the_factory_that_is_no_text_is_refused(axiom):
    with pytest.raises(TypeError, match=r"axiom = .* of class .*; allowed: one of A, B$"):
        hilbert(2, axiom)


@pytest.mark.parametrize("name", [None, 3, ["hilbert"], b"hilbert"])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(
        TypeError, match=r"name = .* of class .*; allowed: a name, one of ar2w2, betaomega, gray"
    ):
        sfc.curve(name, 2)


@pytest.mark.parametrize("dim", [2, 3])
def test_moore_s_curve_is_closed_and_made_of_hilbert_s(dim):
    curve, hilbert = sfc.curve("moore", dim), sfc.curve("hilbert", dim)
    assert curve.is_closed
    path = curve.traversal(4).reshape(2**dim, -1, dim)
    part = hilbert.traversal(3)
    for piece in path:
        local = piece - piece.min(axis=0)
        assert any(np.array_equal(local, copy) for copy in symmetric_copies(part, 8))


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_morton_interleaves_bits_with_axis_0_lowest(dim):
    curve = sfc.curve("morton", dim)
    cells = np.random.default_rng(1).integers(0, 2**curve.max_order, (200, dim))
    for cell, index in zip(cells.tolist(), curve.encode(cells, curve.max_order).tolist(), strict=True):
        bits = [(k, axis) for k in range(curve.max_order) for axis in range(dim)]
        assert index == sum((cell[axis] >> k & 1) << dim * k + axis for k, axis in bits)


def path_between_gates(first, last, corner, side, order: int) -> list[tuple[int, int]]:
    """Cells of a square that the beta-Omega curve visits between two points of its sides.

    Both points are a third of the side from a corner. The quarters follow one another around the centre, from
    the one with the first point to the one with the last. Where a quarter's two points lie on adjacent sides,
    one is 1/3 and the other 2/3 from their common corner; on opposite sides they lie opposite each other.
    """
    if order == 0:
        return [(int(corner[0]), int(corner[1]))]
    half = Fraction(side, 2)
    ring = [(0, 0), (0, 1), (1, 1), (1, 0)]
    quarters = [tuple(c + half * k for c, k in zip(corner, place, strict=True)) for place in ring]
    start, stop = (next(q for q in quarters if is_inside(point, q, half)) for point in (first, last))
    k = quarters.index(start)
    around = quarters[k:] + quarters[:k]
    around = around if around[-1] == stop else [start, *around[:0:-1]]
    cells, gate = [], first
    for here, there in itertools.pairwise([*around, None]):
        points = shared_thirds(here, there, half) if there else [last]
        (out,) = [point for point in points if fits(gate, point, here, half)]
        cells += path_between_gates(gate, out, here, half, order - 1)
        gate = out
    return cells


def is_inside(point, corner, side) -> bool:
    return all(low <= x <= low + side for x, low in zip(point, corner, strict=True))


def shared_thirds(one, other, side) -> list:
    """The two points at a third of the edge between two adjacent squares."""
    axis = 0 if one[0] != other[0] else 1
    points = []
    for third in (Fraction(1, 3), Fraction(2, 3)):
        point = [max(one[axis], other[axis])] * 2
        point[1 - axis] = one[1 - axis] + third * side
        points.append(tuple(point))
    return points


def fits(first, last, corner, side) -> bool:
    """Whether two points of the sides of a square are those of a beta or of an Omega."""
    a, b = ([(x - low) / side for x, low in zip(point, corner, strict=True)] for point in (first, last))
    if any(
        one in (0, 1) and other in (0, 1) for one, other in zip(a, b, strict=True)
    ):  # opposite, or the same
        return a != b and (a[0] == b[0] or a[1] == b[1])
    along_0, along_1 = (a, b) if a[1] in (0, 1) else (b, a)  # the first lies on a side along axis 0
    from_corner = {abs(along_0[0] - along_1[0]), abs(along_1[1] - along_0[1])}
    return from_corner == {Fraction(1, 3), Fraction(2, 3)}


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_beta_omega_is_the_curve_between_its_gates(order):
    third = Fraction(2**order, 3)
    path = path_between_gates((0, third), (2**order, third), (0, 0), 2**order, order)
    assert betaomega(2).traversal(order).tolist() == [list(cell) for cell in path]


def test_the_meander_grows_from_copies_of_itself():
    """Two copies to the right, three up, two back and down: as the R of the first order."""
    path, side = np.array([[0, 0]]), 1
    for _ in range(4):
        turned, opposite = path[:, ::-1], side - 1 - path
        copies = [turned, turned, path, path, path, opposite, opposite[:, ::-1], opposite[:, ::-1], path]
        corners = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (1, 1), (1, 0), (2, 0)]
        path = np.concatenate([copy + side * np.array(at) for copy, at in zip(copies, corners, strict=True)])
        side *= 3
    assert np.array_equal(meander(2).traversal(4), path)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_three_sections_of_ar2w2_cover_any_square_of_four_cells(order):
    """The property for which it was made; Hilbert's curve needs four."""
    worst = {
        name: sfc.locality.clusters(sfc.ordering(name, (2**order, 2**order)), 2).worst
        for name in ("ar2w2", "hilbert")
    }
    assert worst == {"ar2w2": 3, "hilbert": 4 if order > 2 else 3}


def test_the_orders_of_ar2w2_continue_each_other_if_its_start_alternates():
    from_a, from_d = ar2w2(2), ar2w2(2, "D")
    assert (from_a.name, from_d.name) == ("ar2w2", "ar2w2-D")
    for order in (2, 4, 6):
        assert np.array_equal(from_a.traversal(order + 1)[: 4**order], from_d.traversal(order))
        assert np.array_equal(from_d.traversal(order)[: 4 ** (order - 1)], from_a.traversal(order - 1))


@pytest.mark.parametrize("axiom", ["A", "D"])
def test_ar2w2_leads_to_the_opposite_corner_from_a_and_to_an_adjacent_one_from_d(axiom):
    for order in (1, 2, 5):
        ends = ar2w2(2, axiom).traversal(order)[[0, -1]]
        assert ends.tolist() == [[0, 0], [2**order - 1, (2**order - 1) * (axiom == "A")]]


@pytest.mark.parametrize(("axiom", "error"), [("B", ValueError), ("", ValueError), (None, TypeError)])
def test_another_start_of_ar2w2_is_refused(axiom, error):
    with pytest.raises(error, match=r"axiom.*allowed: one of A, D"):
        ar2w2(2, axiom)


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_the_harmonious_curve_orders_every_face_at_the_origin_as_that_of_fewer_dims(dim):
    """The property that defines it; Butz's curve, which has the same Gray code, lacks it in 3D."""
    assert faces_in_harmony(harmonious(dim), 2 if dim == 4 else 3)
    assert faces_in_harmony(butz(dim), 2) == (dim == 2)


def faces_in_harmony(curve: sfc.Curve, order: int) -> bool:
    path = curve.traversal(order)
    for count in range(1, curve.dim):
        for kept in itertools.combinations(range(curve.dim), count):
            others = [axis for axis in range(curve.dim) if axis not in kept]
            face = path[(path[:, others] == 0).all(axis=1)][:, kept]
            fewer = harmonious(count).traversal(order) if count > 1 else np.arange(2**order)[:, None]
            if not np.array_equal(face, fewer):
                return False
    return True


def test_the_harmonious_curve_in_2d_is_hilbert_s():
    assert np.array_equal(harmonious(2).traversal(5), hilbert(2).traversal(5))


@pytest.mark.parametrize("dim", [3, 4])
def test_all_rotations_of_the_harmonious_curve_are_as_frequent(dim):
    """Its orientation is neutral: in the limit a part lies along each permutation of the axes as often."""
    curve = harmonious(dim)
    share = np.full(len(curve.rank), 1 / len(curve.rank))
    first_steps = curve.cell[:, 1] ^ curve.cell[:, 0]
    for _ in range(200):
        share = sum(np.bincount(curve.succ[:, k], share, len(share)) for k in range(2**dim)) / 2**dim
    along = [share[first_steps == 1 << axis].sum() for axis in range(dim)]
    assert along == pytest.approx([1 / dim] * dim, abs=1e-6)


def test_curve_f_of_haverkort_leads_between_points_at_thirds_of_two_faces():
    for order in (1, 2, 3, 4, 5):
        side = 2**order
        first, last = haverkort_f(3).traversal(order)[[0, -1]]
        for cell, point in ((first, (0, 1, 1)), (last, (2, 1, 0))):
            assert (cell <= side * np.array(point) / 3).all()
            assert (side * np.array(point) / 3 <= cell + 1).all()


@pytest.mark.parametrize(
    ("name", "order", "rising", "falling"),
    [
        ("ar2w2", 3, [0, 3, 9, 10, 53, 55, 61, 63], [42, 41, 35, 32, 31, 29, 23, 21]),
        ("meander", 2, [0, 6, 4, 58, 60, 54, 36, 42, 40], None),
    ],
)
def test_the_diagonals_are_numbered_as_another_program_does(name, order, rising, falling):
    """Math::PlanePath by Ryde, manual pages of AR2W2Curve and WunderlichMeander (mirrored at x = y)."""
    number = np.arange(len(rising))
    assert sfc.curve(name, 2).encode(np.stack([number, number], 1), order).tolist() == rising
    if falling:
        assert sfc.curve(name, 2).encode(np.stack([number, number[::-1]], 1), order).tolist() == falling
