"""The displacement guard of a device: when fused steps halt, how the host plans by it, captured steps."""

from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.integrate.fused import KickDrift
from md.laws.pair import kernel_law
from md.search.displacement_guard import unguarded
from md.search.lists.displacement_bound import DisplacementBound
from md.search.lists.list_search import ListSearch
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda

CUBE = md.Box((10.0, 10.0, 10.0))
NO_FAULT = np.uint64(2**64 - 1)


class Emulated(EmulatedCuda):
    """A device on the host that fills arrays by the byte, as a device does."""

    def fill(self, array, value):
        array.host.view(np.uint8)[:] = value & 0xFF


class Lone:
    """One particle on a device, which takes one fused step after another at the speeds given."""

    def __init__(self, device, limit=0.15, dt=0.01, rounding=0.0, inner_limit=None):
        self.device, self.limit, self.dt, self.steps = device, np.float32(limit), np.float32(dt), 0
        self.rounding, self.inner_limit = np.float32(rounding), np.float32(inner_limit or 0)
        self.bound = device.zeros(0 if inner_limit is None else 2, np.float32)
        self.fastest, self.travelled = device.zeros(2, np.uint64), device.zeros(6, np.float32)
        self.halted, self.clock = device.zeros(1, np.int32), device.zeros(2, np.int64)
        self.fault, self.id = device.upload(np.array([NO_FAULT])), device.zeros(1, np.int32)
        self.grid = md.particles.cell_grid.CellGrid(md.Box((50.0, 5, 5)), 1.0, np.float32, device)
        self.law = md.laws.SpringDashpot(0.0, 0.0)
        self.pos = device.upload_rows(np.array([[1.0, 1, 1]], np.float32))
        self.work = device.empty(0, np.int32)

    def step(self, speed: float, since: int, prunes: int = 0) -> bool:
        """Whether a step is taken; `since` = 0 is one of a structure just built."""
        if not since:
            self.device.fill(self.travelled, -1)
        vel = self.device.upload_rows(np.array([[speed, 0, 0]], np.float32))
        new_pos, new_vel = (self.device.rows(1, 3, np.float32) for _ in range(2))
        guard = unguarded(self.device)._replace(
            fastest=self.fastest, travelled=self.travelled, halted_steps=self.halted, limit=self.limit,
            rounding=self.rounding, bound=self.bound, inner_limit=self.inner_limit,
            prunes=prunes,
        )  # fmt: skip
        turn = self.steps % 2
        out = KickDrift(new_pos, new_vel, self.id, self.dt, self.dt, self.fault, self.clock, turn, *guard)
        self.device.kernels("md.search.grid.naive", self.law).force(
            1, self.pos, vel, self.work, self.grid.record, kernel_law(self.law, np.float32), out
        )
        before, after = (float(self.device.download(a)[0, 0]) for a in (self.pos, new_pos))
        self.steps, self.pos = self.steps + 1, new_pos
        return after != before


@pytest.mark.gpu
def test_steps_are_halted_once_the_fastest_may_have_moved_too_far_and_stay_halted(device):
    lone = Lone(device, limit=0.15)
    assert [lone.step(4.0, k) for k in range(6)] == [True, True, True, True, False, False]
    assert int(device.download(lone.halted)[0]) == 2
    assert 0.2 <= device.download(lone.travelled)[:2].max() <= 0.2 * (1 + 2e-6)  # never less: it rounds up
    assert device.download(lone.clock).tolist() == [4, 4]
    assert device.download(lone.pos)[0, 0] == pytest.approx(1.16)


@pytest.mark.parametrize("where", ["emulated", pytest.param("device", marks=pytest.mark.gpu)])
def test_steps_that_read_pruned_lists_halt_by_the_bound_of_these(where, request):
    device = Emulated() if where == "emulated" else request.getfixturevalue("device")
    lone = Lone(device, limit=0.35, inner_limit=0.1)
    taken = [lone.step(4.0, k, prunes=int(k % 4 == 0)) for k in range(14)]  # 0.04 k from the build
    assert taken == [True, True, True, False, True, True, True, False, True, *5 * [False]]


@pytest.mark.gpu
def test_a_slower_step_after_a_fast_one_adds_its_own_speed(device):
    lone = Lone(device, limit=10.0)
    for k, speed in enumerate([4.0, 1.0, 2.0, 0.5, 0.1]):
        assert lone.step(speed, k)
    shares = 4 + 4 * 0.8**0.5 + 4 * 0.8 + 4 * 0.8**1.5  # it falls by no more than a share at a step
    assert device.download(lone.travelled)[:2].max() == pytest.approx(0.01 * shares)


@pytest.mark.gpu
@pytest.mark.parametrize("speed", [1.8e-3, 1e-2, 9.2e-2])
def test_no_particle_goes_farther_than_is_counted_though_its_position_is_rounded(device, speed):
    box, limit = md.Box((512.0, 5, 5)), 0.01
    lone = Lone(device, limit=limit, rounding=np.sqrt(3) * np.finfo(np.float32).eps * 512)
    lone.grid = md.particles.cell_grid.CellGrid(box, 1.0, np.float32, device)
    lone.pos = device.upload_rows(np.array([[300.1, 1, 1]], np.float32))
    start = float(device.download(lone.pos)[0, 0])
    for k in range(2000):
        if not lone.step(speed, k):
            break
    travelled = float(device.download(lone.pos)[0, 0]) - start
    assert k > 3
    assert travelled < limit + 2 * 0.01 * speed


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_lists_of_a_run_ahead_still_hold_every_pair(device, precision):
    """The lists are compared as they are when the host stops, without a rebuild."""
    state = md.scenes.benchmark_gas(20_000, 0.2)
    simulation = md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search="verlet", dt=md.scenes.BENCHMARK_DT, backend=device,
        precision=precision, fused=True,
    )  # fmt: skip
    ages = set()
    for _ in range(12):
        simulation.run(37, phases=False)
        ages.add(simulation.search.policy._since)
        listed = simulation.search.pairs(1.0)
        particles = simulation.system.particles
        now = (device.download(a) for a in (particles.pos, particles.vel))
        plain = md.Simulation(
            md.State(*now, state.box, device.download(particles.id)),
            md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend=device, precision=precision,
        )  # fmt: skip
        if simulation.search.policy._since < simulation.search.policy._window:
            assert np.array_equal(listed, plain.pairs())
    assert len(ages) > 3


@pytest.mark.gpu
def test_the_fastest_of_many_is_found_at_any_slot(device):
    for fast in (0, 1, 1234, 4999):
        vel = np.random.default_rng(fast).normal(size=(5000, 3))
        vel[fast] *= 20 / np.linalg.norm(vel[fast])
        state = md.State(md.scenes.benchmark_gas(5000, 0.2).pos, vel, md.scenes.benchmark_gas(5000, 0.2).box)
        free = md.laws.SpringDashpot(0.0, 0.0)
        simulation = md.Simulation(
            state, free, search="verlet", dt=1e-4, backend=device, precision="float32", fused=True
        )
        simulation.run(7)
        word = int(device.download(simulation.system.status.guard[:2]).max())
        assert np.uint32(word & 0xFFFFFFFF).view(np.float32) == pytest.approx(400, rel=1e-5)


@pytest.mark.gpu
def test_a_rebuilt_structure_starts_from_no_distance_travelled(device):
    lone = Lone(device)
    assert all(lone.step(4.0, k % 3) for k in range(12))
    assert int(device.download(lone.halted)[0]) == 0


@pytest.mark.gpu
def test_a_gas_faster_than_the_limit_allows_can_still_take_one_step_of_fresh_lists(device):
    lone = Lone(device)
    assert all(lone.step(100.0, 0) for _ in range(5))
    assert not lone.step(100.0, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("speed", [np.nan, np.inf])
def test_a_speed_that_is_no_number_halts(device, speed):
    lone = Lone(device)
    lone.step(1.0, 0)
    word = np.uint64(9 << 32 | int(np.float32(speed).view(np.uint32)))
    lone.fastest[...] = device.upload(np.array([word, word]))
    assert not lone.step(1.0, 1)


@pytest.mark.gpu
def test_steps_halted_before_the_skin_changes_are_taken_again(device):
    state = md.scenes.benchmark_gas(1000, 0.3)
    ends = []
    for search in (md.search.Verlet(skin="auto"), "linked"):
        simulation = md.Simulation(
            state,
            md.scenes.BENCHMARK_LAW,
            search=search,
            dt=md.scenes.BENCHMARK_DT,
            backend=device,
            fused=True,
        )
        simulation.run(1)
        if search != "linked":
            simulation.search.policy._window = 40  # so bold that most of the plan is halted
            simulation.search.skin._tuner.value = 0.25
            for _ in range(45):
                simulation._loop.advance(phases=True, most=1)
            assert simulation.search.skin.width == 0.25
            simulation.pairs()
        simulation.run(120 - simulation.step)
        ends.append(simulation.state.by_id().pos)
    np.testing.assert_allclose(*ends, atol=1e-9)


@pytest.fixture
def short_rows(monkeypatch):
    """One row of lists on a device, so that those of more than three partners need the pool."""
    monkeypatch.setattr(ListSearch, "_usual_rows", lambda self, reach: 1)


@pytest.mark.gpu
def test_lists_without_room_halt_and_get_it(device, short_rows):
    state = md.scenes.benchmark_gas(4000, 0.3)
    runs = []
    for search in (md.search.Verlet(skin=0.3), "linked"):
        simulation = md.Simulation(
            state,
            md.scenes.BENCHMARK_LAW,
            search=search,
            dt=md.scenes.BENCHMARK_DT,
            backend=device,
            fused=True,
        )
        simulation.run(1)
        if search != "linked":
            simulation.search._allocate_lists(0)
            simulation.search.policy._since = 10**6  # lists are rebuilt, and find little room
        simulation.run(40)
        runs.append(simulation)
    assert runs[0].search._room > 0
    assert runs[0].step == runs[1].step == 41
    np.testing.assert_allclose(runs[0].state.by_id().pos, runs[1].state.by_id().pos, atol=1e-9)


@pytest.mark.gpu
def test_lists_without_room_are_rebuilt_for_a_read_in_between(device, short_rows):
    state = md.scenes.benchmark_gas(4000, 0.3)
    simulation = md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search="verlet", dt=md.scenes.BENCHMARK_DT, backend=device, fused=True
    )
    simulation.run(30)
    simulation.search._allocate_lists(0)
    simulation.search.policy._has_lists = True  # so that the build is launched, and not waited for
    simulation.search.policy._since = 10**6
    simulation._loop.advance(phases=False, most=3)  # as by a run that is interrupted before the host looks
    fresh = md.Simulation(simulation.state, md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend="cpu")
    assert simulation.step == 30
    assert np.array_equal(simulation.pairs(), fresh.pairs())


def test_the_cpu_needs_no_guard():
    simulation = md.Simulation(
        md.scenes.benchmark_gas(125, 0.2),
        md.scenes.BENCHMARK_LAW,
        search="verlet",
        dt=1e-3,
        backend="cpu",
        fused=True,
    )
    assert len(simulation.search.policy.guard.fastest) == 0
    assert simulation.search.policy.process(simulation.system.status.guard, 1e-3) == 0


@pytest.mark.gpu
@pytest.mark.parametrize(
    "search", [name for name, kind in md.search.SEARCHES.items() if kind.capabilities.fusable]
)
def test_captured_steps_are_the_steps(device, search):
    runs = []
    for phases in (True, False):
        simulation = md.Simulation(
            md.scenes.benchmark_gas(3000, 0.3),
            md.scenes.BENCHMARK_LAW,
            search=search,
            dt=md.scenes.BENCHMARK_DT,
            backend=device,
            fused=True,
        )
        for steps in (1, 60, 33, 140):
            simulation.run(steps, phases=phases)
        runs.append(simulation)
    assert [len(run._loop.captured) > 0 for run in runs] == [False, True]
    one, other = (run.state.by_id() for run in runs)
    if "cuda" in runs[0].search.capabilities.bitwise_on:
        assert np.array_equal(one.pos, other.pos)
        assert np.array_equal(one.vel, other.vel)
    np.testing.assert_allclose(one.pos, other.pos, atol=1e-9)
    assert np.array_equal(runs[0].pairs(), runs[1].pairs())


@pytest.mark.gpu
def test_a_fault_in_captured_steps_has_its_step(device):
    box = md.Box((40.0, 5, 5), periodic=(False, True, True))
    state = md.State([[39.005, 2, 2], [5.0, 2, 2]], [[1.0, 0, 0], [0.0, 0, 0]], box, id=[7, 3])
    for phases in (True, False):
        simulation = md.Simulation(
            state, md.laws.SpringDashpot(0.0, 0.0), search="verlet", dt=0.01, backend=device, fused=True
        )
        simulation.run(20, phases=phases)
        with pytest.raises(md.ParticleEscaped) as caught:
            simulation.run(300, phases=phases)
        assert (caught.value.step, caught.value.particle) == (99, 7)


@pytest.mark.gpu
@pytest.mark.parametrize("skin", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_fused_run_ahead_is_the_run_that_checks_at_every_step(device, skin, precision):
    ends = []
    for fused in (False, True):
        simulation = md.Simulation(
            md.scenes.benchmark_gas(1000, 0.3),
            md.scenes.BENCHMARK_LAW,
            search=md.search.Verlet(skin=skin),
            dt=md.scenes.BENCHMARK_DT,
            backend=device,
            precision=precision,
            fused=fused,
        )
        simulation.run(230)
        assert simulation.step == 230
        ends.append(simulation.state.by_id())
    tolerance = 1e-3 if precision == "float32" else 1e-9
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=tolerance)


@pytest.mark.gpu
def test_a_plan_that_was_too_bold_halts_and_loses_no_step(device):
    simulation = md.Simulation(
        md.scenes.benchmark_gas(1000, 0.3),
        md.scenes.BENCHMARK_LAW,
        search=md.search.Verlet(skin=0.05),
        dt=md.scenes.BENCHMARK_DT,
        backend=device,
        fused=True,
    )
    plain = md.Simulation(
        md.scenes.benchmark_gas(1000, 0.3), md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend="cpu"
    )
    simulation.run(1)
    simulation.search.policy._window = 1000
    simulation.run(119)
    assert simulation.search.policy._window < 1000
    plain.run(120)
    assert simulation.step == 120
    np.testing.assert_allclose(simulation.state.by_id().pos, plain.state.by_id().pos, atol=1e-6)


@pytest.mark.gpu
def test_the_counter_of_the_words_restarts_before_it_overflows(device):
    ends = []
    for late in (False, True):
        simulation = md.Simulation(
            md.scenes.benchmark_gas(1000, 0.3), md.scenes.BENCHMARK_LAW, search="verlet",
            dt=md.scenes.BENCHMARK_DT, backend=device, fused=True,
        )  # fmt: skip
        simulation.run(60)
        if late:
            simulation.system.status.guard[:2] += np.uint64(2**63)
        for _ in range(2):  # the words are reset at the first poll, which may be the last of a run
            simulation.run(300)
        counters = device.download(simulation.system.status.guard[:2]) >> np.uint64(32)
        assert (0 < counters).all()
        assert (counters < 700).all()
        ends.append(simulation.state.by_id())
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=1e-9)


class Words:
    """A device with nothing but the words of a guard."""

    runs_ahead = True

    def empty(self, n, dtype):
        return np.empty(n, dtype)

    def download(self, array):
        return array.copy()

    def fill(self, array, value):
        array.fill(value)


def guarded(travelled, speeds, counters=(7, 8), limit=0.15) -> DisplacementBound:
    """A policy of fused steps of 0.01 with these words and complete lists."""
    words = np.zeros(7, np.uint64)
    bits = np.array(speeds, np.float32) ** 2
    words[:2] = np.array(counters, np.uint64) << np.uint64(32) | bits.view(np.uint32)
    words[2:3].view(np.float32)[:] = travelled
    skin = SimpleNamespace(
        limit=limit, inner_limit=limit, width=1, inner=1, step_rounding=0.0, tunes=False, proposed=None
    )
    system = SimpleNamespace(
        backend=Words(),
        dt=0.01,
        status=SimpleNamespace(guard=words),
        particles=SimpleNamespace(box=CUBE, n=10),
        n_usual=10,
    )
    policy = DisplacementBound(system, skin, farthest=lambda: 1 / 0, grow=lambda: False)
    policy.expect_fused()
    policy.built()
    return policy


@pytest.mark.parametrize(
    ("travelled", "speeds", "counters", "bound"),
    [
        ((0.06, 0.11), (4.0, 5.0), (7, 8), 0.16),  # the newer word, and its stride
        ((0.11, 0.06), (5.0, 4.0), (8, 7), 0.16),
        ((0.0, 0.02), (4.0, 3.0), (1, 2), 0.05),
        ((np.inf, np.inf), (4.0, 5.0), (7, 8), np.inf),  # lists that were cut
    ],
)
def test_a_read_between_fused_steps_knows_how_far_particles_may_be(travelled, speeds, counters, bound):
    policy = guarded(travelled, speeds, counters)
    assert policy._bound() == pytest.approx(bound, rel=1e-4)
    assert policy.is_due == (bound >= 0.15)


def test_a_read_just_after_a_build_needs_no_other():
    policy = guarded((0.06, 0.11), (4.0, 5.0))
    policy.travelled.view(np.int32).fill(-1)
    assert not policy.is_due
    policy.lists_freed()
    assert policy.is_due


def test_a_read_after_the_counters_restarted_is_of_new_lists():
    policy = guarded((0.02, 0.03), (4.0, 5.0), counters=(2**31, 2**31 + 1))
    assert not policy.is_due
    policy.process(policy._words.copy(), 0.01)
    assert not policy._words[:2].any()
    assert policy.is_due


def test_steps_that_are_not_fused_are_measured():
    policy = guarded((0.02, 0.03), (4.0, 5.0))
    policy.is_guarded = False
    with pytest.raises(ZeroDivisionError):
        policy.is_due  # noqa: B018
