"""Boxes, states and what is observed of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.laws import SpringDashpot
from tests.strategies import boxes, clouds


def test_a_box_has_axes_and_a_volume():
    box = md.Box((4, 5, 2), periodic=(True, False, True))
    assert (box.dim, box.volume) == (3, 40)
    assert md.Box((4, 5)).volume == 20
    assert md.Box((4, 5)).periodic == (True, True)
    assert md.Box((4, 5), False).periodic == (False, False)


@pytest.mark.parametrize("dtype", [int, np.int64, np.uint64, ">i8", ">u8"])
def test_integers_that_a_float_rounds_are_no_lengths_positions_velocities_or_ids(dtype):
    wide, fair = 2**53 + 1, 2**60
    box, message = md.Box((fair, fair)), rf"\[0, 1\] = {wide}; allowed: numbers that a float64 holds"
    assert box.lengths == (2.0**60, 2.0**60)
    bad, good = (np.array([[3, x]], dtype) for x in (wide, fair // 2))
    nested = bad.tolist() if dtype is int else bad
    for refused in (
        lambda: md.State(nested, good, box), lambda: md.State(good, nested, box),
        lambda: box.wrap(nested), lambda: box.outside(nested), lambda: box.nearest(nested),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            refused()
    kept = md.State(good, good, box, id=np.array([2**31 - 1], dtype))
    assert (kept.pos.tolist(), kept.id.tolist()) == (good.tolist(), [2**31 - 1])
    with pytest.raises(ValueError, match=rf"lengths\[1\] = .*{wide}"):
        md.Box((3, wide if dtype is int else np.array([wide], dtype)[0]))
    for id in (2**31, wide):
        with pytest.raises(ValueError, match=rf"id\[0\] = {id}; allowed: .*up to 2147483647"):
            md.State(good, good, box, id=np.array([id], dtype))


@given(data=st.data(), box=st.sampled_from([2, 3]).flatmap(boxes))
def test_wrap_moves_periodic_axes_into_the_box_by_whole_lengths(data, box):
    far = st.one_of(st.floats(-50, 50), st.just(-1e-30), st.sampled_from(box.lengths))
    pos = np.array([[data.draw(far) for _ in range(box.dim)] for _ in range(4)])
    kept = pos.copy()
    wrapped = box.wrap(pos)
    assert np.array_equal(pos, kept)
    for axis, (length, periodic) in enumerate(zip(box.lengths, box.periodic, strict=True)):
        if not periodic:
            assert np.array_equal(wrapped[:, axis], pos[:, axis])
            continue
        assert ((wrapped[:, axis] >= 0) & (wrapped[:, axis] < length)).all()
        turns = (pos[:, axis] - wrapped[:, axis]) / length
        assert np.abs(turns - np.round(turns)).max() < 1e-12


def test_a_periodic_axis_is_half_open_and_a_walled_one_closed():
    box = md.Box((4, 4), (True, False))
    pos = np.array([[0, 0], [4, 1], [1, 4], [-1e-9, 1], [1, -1e-9], [1, 4.0001]])
    assert box.outside(pos).tolist() == [False, True, False, True, True, True]


@given(state=clouds(), seed=st.integers(0, 99))
def test_by_id_undoes_any_memory_order(state, seed):
    order = np.random.default_rng(seed).permutation(len(state.pos))
    moved = state.take(order)
    assert np.array_equal(moved.pos, state.pos[order])
    for name in ("pos", "vel", "id"):
        assert np.array_equal(getattr(moved.by_id(), name), getattr(state.by_id(), name))
    assert (np.diff(moved.by_id().id) > 0).all()


def test_ids_count_up_where_none_are_given():
    state = md.State(np.ones((3, 2)), np.zeros((3, 2)), md.Box((4, 4)))
    assert state.id.tolist() == [0, 1, 2]


def test_a_state_takes_any_start():
    state = md.State([[1, 2, 3]], [(0.5, 0, 0)], md.Box((4, 4, 4)))
    assert state.pos.tolist() == [[1, 2, 3]]
    assert state.filling_fraction == pytest.approx(np.pi / 6 / 64, rel=1e-14)
    flat = md.State([[1, 2], [3, 3]], np.zeros((2, 2)), md.Box((4, 4)))
    assert flat.filling_fraction == pytest.approx(2 * np.pi / 4 / 16, rel=1e-14)


def test_observables_are_those_of_the_definition():
    state = md.State([[1, 1, 1], [1.5, 1, 1]], [[3, 0, 4], [0, 1, 0]], md.Box((4, 4, 4)))
    assert md.observe.kinetic_energy(state) == pytest.approx(26 / 2 / 2)
    assert md.observe.temperature(state) == pytest.approx(26 / 2 / 3)
    assert md.observe.momentum(state).tolist() == [3, 1, 4]
    law, wide = SpringDashpot(100.0, 0.0), SpringDashpot(100.0, 0.0, diameter=1.5)
    pairs = np.array([[0, 1]])
    assert md.observe.contact_energy(state, pairs, law) == pytest.approx(100 * 0.25 / 2 / 2)
    assert md.observe.contact_energy(state, pairs, wide) == pytest.approx(100 / 1.5 / 2 / 2)
    assert md.observe.contact_energy(state, pairs[:0], law) == 0


def test_contact_energy_follows_ids_and_the_nearest_image():
    state = md.State([[3.9, 1], [2, 2], [0.4, 1]], np.zeros((3, 2)), md.Box((4, 4)), id=[9, 5, 2])
    stored = md.observe.contact_energy(state, np.array([[2, 9]]), SpringDashpot(8.0, 0.0))
    assert stored == pytest.approx(8 * 0.25 / 2 / 3)


def test_float32_energies_are_summed_in_float64():
    n = 100_000
    vel = np.full((n, 2), np.float32(0.1))
    state = md.State(np.zeros((n, 2), np.float32), vel, md.Box((4, 4)))
    assert md.observe.kinetic_energy(state) == pytest.approx(float(np.float32(0.1)) ** 2, rel=1e-12)
    assert md.observe.momentum(state).dtype == np.float64


def test_an_empty_state_has_no_mean_energy():
    nothing = np.empty((0, 3))
    state = md.State(nothing, nothing, md.Box((4, 4, 4)))
    assert np.isnan(md.observe.kinetic_energy(state))
    assert np.isnan(md.observe.contact_energy(state, np.empty((0, 2), np.int32), SpringDashpot(1.0, 0.0)))
    assert md.observe.momentum(state).tolist() == [0, 0, 0]
