"""Scene of a flock: numbers, places, headings and clusters, in every kind of box; errors."""

import re
import sys

import numpy as np
import pytest

import md
from md.scenes import flock
from tests.tiers import by_default, full

BOXES = {
    "periodic": md.Box((30.0, 40.0, 50.0)),
    "closed": md.Box((30.0, 40.0, 50.0), False),
    "open": md.Box((30.0, 40.0, 50.0), (True, False, False), (False, False, True)),
    "2D": md.Box((60.0, 50.0), (True, False)),
}
in_every_box = pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
CLUSTERS = pytest.mark.parametrize("clusters", [0, 7])


def speeds(state: md.State) -> np.ndarray:
    return np.linalg.norm(state.vel, axis=1)


@pytest.mark.quick
class TestEveryFlock:
    @CLUSTERS
    @in_every_box
    def test_has_n_boids_inside_the_box_with_one_speed(self, box, clusters):
        state = flock(500, box, speed=2.5, clusters=clusters, seed=1)
        assert (len(state), state.box, state.radius) == (500, box, None)
        assert not box.outside(state.pos).any()
        assert ((state.pos >= 0) & (state.pos <= box.lengths)).all()
        np.testing.assert_allclose(speeds(state), 2.5, rtol=1e-14)
        assert sorted(state.id) == list(range(500))
        assert (state.pos.dtype, state.vel.dtype) == (np.float64, np.float64)

    @CLUSTERS
    @in_every_box
    def test_is_the_same_from_the_same_seed_and_another_from_another(self, box, clusters):
        one, again, other = (flock(40, box, clusters=clusters, seed=seed) for seed in (3, 3, 4))
        for name in ("pos", "vel", "id"):
            assert np.array_equal(getattr(one, name), getattr(again, name))
        assert not (one.pos == other.pos).all(axis=1).any()
        assert not (one.vel == other.vel).all(axis=1).any()

    @in_every_box
    @CLUSTERS
    @pytest.mark.parametrize("block", [1, 7, 100, 2**20])
    def test_parts_are_the_whole(self, box, clusters, block, monkeypatch):
        options = {"clusters": clusters, "cluster_radius": 4.0, "seed": 5}
        whole = flock(101, box, **options)
        monkeypatch.setattr(sys.modules["md.scenes.flock"], "BLOCK", block)
        parts = [flock(101, box, part=(number, 3), **options) for number in range(3)]
        assert [len(one) for one in parts] == [33, 34, 34]
        for name in ("pos", "vel", "id"):
            found = np.concatenate([getattr(one, name) for one in parts])
            assert np.array_equal(found, getattr(whole, name)), name

    @pytest.mark.parametrize("part", [(3, 3), (-1, 2), (0, 0), (0, 11)])
    def test_no_such_part(self, part):
        with pytest.raises(ValueError, match="number of"):
            flock(10, part=part)

    def test_has_one_boid_a_speed_of_1_and_a_speed_of_0(self):
        box = BOXES["2D"]
        assert flock(1, box).pos.shape == (1, 2)
        np.testing.assert_allclose(speeds(flock(20, box)), 1, rtol=1e-14)
        assert not flock(20, box, speed=0).vel.any()

    @pytest.mark.parametrize("n", [1000, 8000])
    def test_has_the_density_of_the_source_without_a_box(self, n):
        state = flock(n)
        assert state.box.lengths == pytest.approx((2 * n ** (1 / 3),) * 3)
        assert n / state.box.volume == pytest.approx(1 / 8)
        assert all(state.box.periodic)

    def test_has_the_box_of_the_source_for_its_number_of_boids(self):
        assert flock(10**6).box == md.Box((200.0, 200.0, 200.0))

    @pytest.mark.parametrize("name", by_default(BOXES, lambda name: name != "2D", full))
    def test_flies_under_the_law_in_every_box(self, name):
        walls = md.Walls(contact_time=0.1)  # stiff enough for crowds that start at a wall
        options = {} if name == "periodic" else {"walls": walls}
        state = flock(100, BOXES[name], clusters=3, seed=2)
        options |= {"search": "naive", "integrator": "flight", "dt": 0.2, "backend": "cpu"}
        run = md.Simulation(state, md.laws.Boids(), **options)
        run.run(20)
        assert speeds(run.state).max() <= 1 + 1e-14
        assert not np.array_equal(run.state.by_id().vel, state.by_id().vel)


class TestAUniformFlock:
    @in_every_box
    def test_fills_the_box_evenly_in_space_and_in_memory(self, box):
        pos = flock(20_000, box, seed=5).pos / box.lengths
        for axis in range(box.dim):
            counts = np.histogram(pos[:, axis], bins=10, range=(0, 1))[0]
            assert (np.abs(counts - 2000) < 5 * np.sqrt(2000)).all()
        assert abs(np.corrcoef(np.arange(20_000), pos[:, 0])[0, 1]) < 5 / np.sqrt(20_000)

    @in_every_box
    def test_has_headings_of_every_direction(self, box):
        vel = flock(20_000, box, seed=5).vel
        assert np.linalg.norm(vel.mean(axis=0)) < 5 / np.sqrt(20_000)
        np.testing.assert_allclose((vel.T @ vel) / 20_000, np.eye(box.dim) / box.dim, atol=0.02)

    def test_takes_a_narrow_box_whatever_the_radius_of_clusters_is(self):
        assert len(flock(10, md.Box((3.0, 4.0)))) == 10
        assert len(flock(10)) == 10


def cluster_of(state: md.State) -> np.ndarray:
    """(n,) number of the cluster, by the heading, which all boids of a cluster have in common."""
    return np.unique(np.round(state.vel, 9), axis=0, return_inverse=True)[1].reshape(-1)


class TestClusters:
    @in_every_box
    def test_have_one_heading_and_lie_within_their_radius(self, box):
        state = flock(3000, box, clusters=6, cluster_radius=4.0, seed=8)
        number = cluster_of(state)
        sizes = np.bincount(number)
        assert len(sizes) == 6
        assert (np.abs(sizes - 500) < 5 * np.sqrt(500)).all()
        for k in range(6):
            pos = state.pos[number == k]
            apart = box.nearest((pos[:, None] - pos[None]).reshape(-1, box.dim))
            assert 4 < np.linalg.norm(apart, axis=1).max() < 8 + 1e-9

    def test_are_filled_evenly(self):
        for box in (BOXES["periodic"], BOXES["2D"]):
            box = md.Box(box.lengths)
            state = flock(20_000, box, clusters=1, cluster_radius=5.0, seed=9)
            centre = state.pos[0] + box.nearest(state.pos - state.pos[0]).mean(axis=0)
            r = np.linalg.norm(box.nearest(state.pos - centre), axis=1)
            shares = np.histogram((r / 5.0) ** box.dim, bins=5, range=(0, 1))[0] / 20_000
            np.testing.assert_allclose(shares, 0.2, atol=0.02)

    def test_are_mixed_in_memory(self):
        number = cluster_of(flock(2000, BOXES["periodic"], clusters=4, seed=8))
        assert (number[1:] != number[:-1]).mean() > 0.6

    def test_have_their_centres_anywhere(self):
        box = BOXES["periodic"]
        state = flock(3000, box, clusters=3000, cluster_radius=0.1, seed=1)
        assert (np.histogram(state.pos[:, 0], bins=5, range=(0, 30))[0] > 400).all()


@pytest.mark.quick
class TestErrors:
    @pytest.mark.parametrize(
        ("name", "wrong", "allowed"),
        [
            ("n", 0, "at least 1"),
            ("n", -5, "at least 1"),
            ("n", 2**40, "up to"),
            ("speed", -1.0, "at least 0"),
            ("speed", np.inf, "a finite number"),
            ("speed", np.nan, "a finite number"),
            ("speed", 1e151, "up to 1e+150"),
            ("clusters", -1, "at least 0"),
            ("cluster_radius", 0.0, "above 0"),
            ("cluster_radius", -1.0, "above 0"),
            ("cluster_radius", np.nan, "a finite number above 0"),
            ("cluster_radius", 15.01, "up to 15"),
            ("seed", -1, "at least 0"),
        ],
    )
    def test_a_value_out_of_range_is_named_with_its_range(self, name, wrong, allowed):
        given = {"n": 10, "box": BOXES["periodic"], "clusters": 2} | {name: wrong}
        with pytest.raises(ValueError, match=rf"^{name} = .*; allowed: .*{re.escape(allowed)}"):
            flock(**given)

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("n", 10.0),
            ("n", "10"),
            ("n", True),
            ("n", None),
            ("box", (5, 5, 5)),
            ("box", md.Box),
            ("speed", "1"),
            ("speed", None),
            ("clusters", 2.0),
            ("clusters", None),
            ("cluster_radius", "1"),
            ("cluster_radius", None),
            ("seed", 1.0),
            ("seed", None),
        ],
    )
    def test_a_value_of_a_wrong_class_is_named_with_its_class(self, name, wrong):
        given = {"n": 10, "box": BOXES["periodic"], "clusters": 2} | {name: wrong}
        with pytest.raises(TypeError, match=rf"^{name} = .* of class \w+; allowed: \S"):
            flock(**given)
