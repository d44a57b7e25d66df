"""Sides that particles go out of: how far, who is met out there, what is kept and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.boundaries import Walls
from md.laws import SpringDashpot
from md.observe import Profile, look
from tests import tiers
from tests.md.search.test_contract import largest_difference

LAW, IDEAL = SpringDashpot(1e4, 5.0), SpringDashpot(0.0, 0.0)
OPEN = md.Box((6.0, 5.0), (False, True), (True, False))


def simulated(state, law=IDEAL, **options) -> md.Simulation:
    return md.Simulation(state, law, **{"dt": 0.01, "backend": "cpu"} | options)


@st.composite
def clouds(draw):
    """Particles in and around a box of any sides but closed ones, out to some lengths at either end.

    They are near a plane, where few are enough for many pairs.
    """
    is_open = np.array(draw(st.sampled_from([(True, True), (True, False), (False, True)])))
    lengths = np.array([draw(st.sampled_from([2.0, 3.5, 5.9])) for _ in range(2)])
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    reach = np.where(is_open, draw(st.sampled_from([0.3, 1.0, 4.0])), 0.0)
    n = draw(st.sampled_from([1, 2, 60, 200]))
    pos = generator.uniform(-reach * lengths, (1 + reach) * lengths, (n, 2))
    if draw(st.booleans()):
        pos[::2] = np.where(is_open, lengths + 0.4 * generator.random((len(pos[::2]), 2)), pos[::2])
    pos = np.column_stack([pos, generator.uniform(0, 0.3, n)])
    box = md.Box((*lengths, 2.0), (*~is_open, True), (*is_open, False))
    return md.State(pos, np.zeros((n, 3)), box, id=generator.permutation(n))


@pytest.mark.split
@pytest.mark.parametrize("search", tiers.searches(set(md.search.SEARCHES) - {"naive"}, others=tiers.full))
@tiers.examples(40)
@given(state=clouds())
def test_every_search_finds_pairs_beyond_an_open_side(search, backend, state):
    expected, found = (simulated(state, LAW, search=name, backend=backend) for name in ("naive", search))
    assert np.array_equal(found.pairs(), expected.pairs())


def test_those_out_there_collide(backend):
    """Two that touch at 30 lengths from the box part as two in the middle of it do."""
    pos = np.array([[3.0, 2.0], [3.9, 2.0], [183.0, 2.0], [183.9, 2.0], [-177.0, 2.0], [-176.1, 2.0]])
    run = simulated(md.State(pos, np.zeros((6, 2)), OPEN), LAW, dt=1e-4, search="lbvh", backend=backend)
    run.run(300, phases=False)
    at = run.state.by_id()
    assert np.abs(at.vel[:, 0]).min() > 1
    assert at.vel[2:] == pytest.approx(np.tile(at.vel[:2], (2, 1)), abs=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("overlap", [0.001, 0.1])
@pytest.mark.parametrize("at", [(6e4, 6e4), (-6e4, 6e4), (6e4, -6e4)])
def test_spheres_far_out_are_pushed_alike_in_float32(at, overlap, backend):
    """Within what the order of a sum may change, where places are 1 / 256 d apart and radii anything."""
    generator, n = np.random.default_rng(8), 200
    first = generator.integers(64, 192, n // 2) / 256
    apart = generator.integers(128, 256, n // 2) / 256
    pos = np.full((n, 3), 2.0)
    pos[::2, :2] = np.indices((10, 10)).reshape(2, -1).T * 3.0 + at + first[:, None]
    pos[1::2] = pos[::2]
    axis = generator.integers(0, 2, n // 2)
    pos[np.arange(1, n, 2), axis] += apart
    radius, share = np.empty(n), generator.uniform(0.3, 0.7, n // 2)
    radius[::2], radius[1::2] = share * (apart + overlap), (1 - share) * (apart + overlap)
    box = md.Box((100.0, 100.0, 4.0), (False, False, True), (True, True, False))
    state = md.State(pos, np.zeros((n, 3)), box, generator.permutation(n), radius)
    options = {"precision": "float32", "backend": backend, "allow_overlap": True, "dt": 1e-4}
    expected, found = (simulated(state, LAW, search=name, **options) for name in ("naive", "lbvh"))
    assert len(expected.pairs()) == n // 2
    assert np.array_equal(found.pairs(), expected.pairs())
    assert np.abs(expected.forces()).max(axis=1).min() > 5
    assert np.abs(found.forces() - expected.forces()).max() <= largest_difference(state, "float32") < 2


@pytest.mark.parametrize("search", ["linked", tiers.nightly("lbvh")])
def test_profiles_leave_out_particles_outside_the_box(search, backend):
    within = np.array([[0.5, 1.0], [2.5, 2.0], [5.5, 4.5], [5.6, 0.5]])
    beyond = [[-0.1, 1.0], [-300.0, 2.0], [6.1, 0.6], [5000.0, 4.0]]
    pos = np.concatenate([beyond[:2], within, beyond[2:]])
    vel = np.where((pos[:, :1] >= 0) & (pos[:, :1] <= 6), [1.0, 2.0], 1e3)
    run = simulated(md.State(pos, vel, OPEN), search=search, backend=backend)
    along, across = look(run, [Profile(0, 3), Profile(1, 5)]).profiles
    assert along.particles.tolist() == [1, 1, 2]
    assert across.particles.tolist() == [1, 1, 1, 0, 1]
    assert along.velocity == pytest.approx(np.tile([1.0, 2.0], (3, 1)))
    assert along.number_density == pytest.approx(np.array([1, 1, 2]) / 10)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("integrator", ["velocity_verlet", "adaptive_euler"])
def test_particles_fly_out_and_on(integrator, fused, backend):
    if fused and integrator == "adaptive_euler":
        pytest.skip("has no fused steps")
    box = md.Box((*OPEN.lengths, 4.0), (*OPEN.periodic, True), (*OPEN.open, False))
    state = md.State([[5.0, 4.0, 2.0], [1.0, 1.0, 3.0]], [[20.0, 3.0, 0.0], [-40.0, 0.0, 0.0]], box)
    run = simulated(state, integrator=integrator, fused=fused, backend=backend)
    run.run(300, phases=False)
    t, at = run.time, run.state.by_id()
    assert t > 2
    assert at.pos == pytest.approx(np.array([[5 + 20 * t, (4 + 3 * t) % 5, 2.0], [1 - 40 * t, 1.0, 3.0]]))


@pytest.mark.parametrize("fused", [tiers.full(True), False])
def test_walls_stand_at_the_other_axes_alone(fused, backend):
    box = md.Box((6.0, 4.0), False, (True, False))
    state = md.State([[3.0, 1.0], [0.2, 2.0]], [[2.0, -3.0], [-5.0, 0.0]], box)
    run = simulated(state, walls=Walls(contact_time=0.01), dt=1e-4, fused=fused, backend=backend)
    run.run(20_000, phases=False)
    at = run.state.by_id()
    assert at.pos[:, 0] == pytest.approx([7.0, -9.8])
    assert at.pos[1, 1] == pytest.approx(2.0)
    assert np.abs(at.vel[0]) == pytest.approx([2.0, 3.0], rel=1e-3)
    assert 0.4 < at.pos[0, 1] < 3.6
    gone = md.State([[3.0, 1.0]], [[0.0, -3.0]], box)
    with pytest.raises(md.ParticleEscaped):
        simulated(gone, backend=backend).run(50)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_particle_at_a_thousand_lengths_is_a_fault_with_a_file(side, backend, tmp_path):
    x = 6.0 * 1001 - 0.55 if side > 0 else -6000.0 + 0.55
    state = md.State([[x, 2.0], [3.0, 1.0]], [[10.0 * side, 0.0], [0.0, 0.0]], OPEN, id=[8, 2])
    run = simulated(state, backend=backend, post_mortem=tmp_path)
    with pytest.raises(md.ParticleEscaped) as caught:
        run.run(20)
    assert (caught.value.step, caught.value.particle) == (5, 8)
    assert caught.value.state.box == OPEN
    with np.load(caught.value.saved) as saved:
        assert saved["open"].tolist() == [True, False]
        assert saved["periodic"].tolist() == [False, True]
        assert saved["pos"][0, 0] == pytest.approx(x + 0.5 * side)


def test_a_checkpoint_keeps_the_open_sides(backend, tmp_path):
    state = md.State([[5.0, 4.0], [1.0, 1.0]], [[20.0, 3.0], [-40.0, 0.0]], OPEN)
    run = simulated(state, backend=backend)
    run.run(50)
    run.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    assert loaded.state.box == OPEN
    for one in (run, loaded):
        one.run(50)
    assert np.array_equal(run.state.pos, loaded.state.pos)
    assert run.state.pos.min() < -20


def test_a_state_may_reach_a_thousand_lengths_out_of_an_open_side_and_no_farther():
    ends = [[-6000.0, 0.0], [6006.0, 4.9]]
    assert len(md.State(ends, np.zeros((2, 2)), OPEN)) == 2
    for pos in ([-6000.1, 0.0], [6006.1, 0.0], [3.0, -0.1], [3.0, 5.0]):
        with pytest.raises(ValueError, match=r"pos\[0\] = .* is outside the box"):
            md.State([pos], np.zeros((1, 2)), OPEN)


def test_flags_are_one_for_all_or_one_an_axis():
    assert md.Box((3.0, 4.0)).open == (False, False)
    assert md.Box((3.0, 4.0, 5.0), False, True).open == (True, True, True)
    assert OPEN.ends == ((-6000.0, 6006.0), (0.0, 5.0))
    assert OPEN.wrap(np.array([[-7.0, -1.0]])).tolist() == [[-7.0, 4.0]]


@pytest.mark.parametrize(
    ("periodic", "flags", "said"),
    [
        (True, True, r"open = \(True, True\) where periodic = \(True, True\).*periodic=False"),
        ((True, False), (True, False), "an axis that is periodic, open or neither"),
        (False, (True, False, True), "open = .* for 2 axes; allowed: one flag, or one an axis"),
    ],
)
def test_sides_that_cannot_be_are_refused(periodic, flags, said):
    with pytest.raises(ValueError, match=said):
        md.Box((3.0, 4.0), periodic, flags)


def test_walls_at_no_axis_are_refused():
    state = md.State([[1.0, 1.0]], [[0.0, 0.0]], OPEN)
    with pytest.raises(ValueError, match=r"walls in a box with periodic = .* and open = \(True, False\)"):
        simulated(state, walls=Walls(contact_time=0.1))


def test_the_fault_of_a_particle_too_far_out_says_how_far_is_allowed():
    state = md.State([[5.0, 4.0]], [[1e6, 0.0]], OPEN)
    with pytest.raises(
        md.ParticleEscaped, match=r"on an open axis up to 1000 box lengths .*make the box longer"
    ):
        simulated(state, dt=1e-3).run(20)
