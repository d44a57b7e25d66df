"""`check_curve` and `check_ordering` find planted faults, and refuse arguments of a wrong class."""

import numpy as np
import pytest

import sfc
from tests.strategies import CURVES
from tests.tiers import nightly

every_curve = pytest.mark.parametrize(("name", "dim"), CURVES)


def copied(curve: sfc.Curve) -> sfc.Curve:
    return sfc.Curve(curve.name, curve.dim, curve.base, curve.rank.copy(), curve.next.copy(), curve.start)


@pytest.mark.parametrize("all_states", [False, nightly(True)])
@every_curve
def test_one_wrong_table_entry_is_caught_by_check_curve(name, dim, all_states):
    sound = copied(sfc.curve(name, dim))
    sfc.testing.check_curve(sound, cells=256, samples=16)
    for table in ("rank", "next", "cell", "succ"):
        check_wrong_entries(sound, table, all_states)


def check_wrong_entries(sound: sfc.Curve, table: str, all_states: bool) -> None:
    """Put wrong entries in a table of a curve, one at a time; each must be found."""
    states, digits = sound.rank.shape
    if states == 1 and table in ("next", "succ"):
        assert not getattr(sound, table).any()
        return
    values = digits if table in ("rank", "cell") else states
    for state in range(states) if all_states else {0, states // 2, states - 1}:
        digit = state % digits
        broken = copied(sound)
        entries = getattr(broken, table).copy()
        entries[state, digit] = (entries[state, digit] + 1) % values
        setattr(broken, table, entries)
        with pytest.raises((AssertionError, ValueError)):
            sfc.testing.check_curve(broken, cells=4096, samples=64)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("hilbert",), {}, TypeError),
        ((None,), {}, TypeError),
        ((sfc.curve("hilbert", 2), 2.0), {}, TypeError),
        ((sfc.curve("hilbert", 2), -1), {}, ValueError),
        ((sfc.curve("hilbert", 2), 64, "9"), {}, TypeError),
        ((sfc.curve("hilbert", 2), 64, 2**60), {}, ValueError),
        ((sfc.curve("hilbert", 2), 64, 9, -1), {}, ValueError),
        ((sfc.curve("hilbert", 2), 64, 9), {"continuous": 1}, TypeError),
        ((sfc.curve("hilbert", 2), 64, 9), {"closed": "no"}, TypeError),
    ],
)
def test_a_check_of_no_curve_or_by_no_number_is_refused(arguments, options, error):
    with pytest.raises(error, match="; allowed: "):
        sfc.testing.check_curve(*arguments, **options)
    sfc.testing.check_curve(
        sfc.curve("hilbert", 2), np.int8(64), np.uint8(9), np.int16(0), continuous=np.True_, closed=np.False_
    )


@pytest.mark.parametrize("ordering", ["row", None, sfc.curve("hilbert", 2), (4, 4)])
def test_a_check_of_no_ordering_is_refused(ordering):
    with pytest.raises(
        TypeError, match=r"ordering = .*; allowed: an sfc.Ordering; make one with sfc.ordering"
    ):
        sfc.testing.check_ordering(ordering)


@pytest.mark.parametrize("key", [lambda c: c[:, 0], lambda c: c[:, 0] * 0 + 7], ids=["rows alike", "one"])
def test_check_ordering_catches_cells_that_share_a_rank(key):
    broken = sfc.Ordering("broken", (3, 4), lambda cells: key(cells).astype(np.uint64))
    with pytest.raises(AssertionError):
        sfc.testing.check_ordering(broken)


def test_check_ordering_catches_a_traversal_that_leaves_the_box(monkeypatch):
    path = sfc.ordering("row", (3, 4)).traversal()
    monkeypatch.setattr(sfc.Ordering, "traversal", lambda _: path + np.array([1, 0]))
    with pytest.raises(AssertionError, match="the traversal leaves the box"):
        sfc.testing.check_ordering(
            sfc.Ordering("broken", (3, 4), lambda cells: cells[:, 0].astype(np.uint64))
        )
