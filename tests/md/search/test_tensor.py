"""The search `tensor` on either backend: increments of a flock, and what it does for other laws."""

from itertools import product

import numpy as np
import pytest

import md
from md.search.grid.tensor import CAPACITIES
from tests.tiers import by_default, full

LAW = md.laws.Boids()
BOXES = {
    "cube": md.Box((36.0,) * 3),
    "small": md.Box((10.0, 11.0, 14.0)),
    "open": md.Box((31.0, 22.0, 17.0), periodic=False, open=(True, False, True)),
    "flat": md.Box((41.0, 33.0)),
}


fused_or_not = pytest.mark.parametrize("fused", [False, full(True)])


def increments(state, search, backend, precision, law=LAW) -> np.ndarray:
    """Of each boid, by id."""
    run = md.Simulation(
        state, law, search=search, integrator="flight", dt=0.2, backend=backend, precision=precision
    )
    return run.forces()


def state_of(kind: str, clusters: int = 0) -> md.State:
    box = BOXES[kind]
    n = int(box.volume / 8) if box.dim == 3 else 800
    return md.scenes.flock(n, box, clusters=clusters, cluster_radius=3.0, seed=3)


@pytest.mark.parametrize(
    ("kind", "clusters"),
    by_default(
        product(BOXES, (0, 2)),
        lambda kind, clusters: kind != "flat" and clusters == 2 * (kind == "small"),
        full,
    ),
)
def test_increments_are_those_of_naive(kind, clusters, backend):
    """Clusters are beyond the capacity of a block. In float32 few boids have a pair at a radius."""
    state = state_of(kind, clusters)
    single = md.State(state.pos.astype(np.float32), state.vel.astype(np.float32), state.box)
    expected = increments(single, "naive", "cpu", "float64")
    error = np.abs(increments(single, "tensor", backend, "float32") - expected).max(axis=1)
    tolerance = 2e-5 * max(1.0, np.abs(expected).max())
    assert np.count_nonzero(error > tolerance) <= 2 + len(single) // 1000
    assert np.abs(expected).max() > 0.3


def flown(state: md.State, backend, steps: int, fused: bool) -> md.Simulation:
    run = md.Simulation(
        state,
        LAW,
        search="tensor",
        integrator="flight",
        dt=0.2,
        backend=backend,
        precision="float32",
        fused=fused,
    )
    run.run(steps)
    return run


@fused_or_not
def test_a_run_repeats_bit_for_bit(fused, backend):
    ends = [flown(state_of("cube"), backend, 5, fused).state for _ in range(2)]
    assert np.array_equal(ends[0].pos, ends[1].pos)
    assert np.array_equal(ends[0].vel, ends[1].vel)


def test_a_fused_step_is_one_that_is_not(backend):
    state = state_of("cube")
    ends = [flown(state, backend, 1, fused).state.by_id().vel for fused in (True, False)]
    assert np.abs(ends[0] - state.vel).max() > 0.3
    assert np.count_nonzero(np.abs(ends[0] - ends[1]) > 1e-5) <= 2


@pytest.mark.parametrize(
    ("speed", "fused"), [full(0.0, True), full(0.01, True), full(1.0, True), (1.0, False)]
)
def test_a_loaded_run_goes_on_with_the_same_bits(speed, fused, backend, tmp_path):
    state = state_of("cube")
    run = flown(md.State(state.pos, speed * state.vel, state.box), backend, 20, fused)
    run.save(tmp_path / "run.npz")
    again = md.Simulation.load(tmp_path / "run.npz")
    for simulation in (run, again):
        simulation.run(3)
    assert np.array_equal(run.state.vel, again.state.vel)
    assert np.array_equal(run.state.id, again.state.id)


def test_boids_without_neighbours_have_no_increment(backend):
    """Far apart; their velocities have more digits than half precision, and their cells are not empty."""
    side = np.arange(0.5, 60, 10)
    pos = np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3)
    vel = np.random.default_rng(0).uniform(-1, 1, pos.shape)
    assert not increments(md.State(pos, vel, md.Box((60.0,) * 3)), "tensor", backend, "float32").any()


def test_the_capacity_of_a_block_suits_the_density(monkeypatch):
    monkeypatch.setattr(md.backend.Cpu, "staging_memory", 227 * 1024)  # of a block on an H200
    for n, room in ((5400, CAPACITIES[0]), (8600, CAPACITIES[1]), (17000, CAPACITIES[2])):
        state = md.scenes.flock(n, md.Box((35.1,) * 3))
        for precision, expected in (("float32", room), ("float64", 0)):
            run = md.Simulation(
                state, LAW, search="tensor", integrator="flight", dt=0.2, backend="cpu", precision=precision
            )
            assert run.search._capacity == expected
            assert run.search.uses_tensor_cores == (precision == "float32")
            assert ("on tensor cores" in repr(run.search)) == (precision == "float32")


def test_a_window_wider_than_the_cutoff_is_refused(monkeypatch):
    monkeypatch.setattr(md.backend.Cpu, "staging_memory", 227 * 1024)
    monkeypatch.setattr(md.laws.Boids, "cutoff", LAW.cutoff)
    monkeypatch.setattr(md.laws.Boids, "windows", (5.0, 3.0, 6.0))
    run = md.Simulation(
        state_of("cube"),
        LAW,
        search="tensor",
        integrator="flight",
        dt=0.2,
        backend="cpu",
        precision="float32",
    )
    with pytest.raises(ValueError, match=r"window of the law = 6.*allowed: .*up to 5"):
        run.run(1)


def test_other_laws_and_float64_are_summed_as_by_coherent(backend):
    gas = md.scenes.benchmark_gas(600, 0.2)
    for precision in ("float32", "float64"):
        found = [
            md.Simulation(
                gas, md.scenes.BENCHMARK_LAW, search=search, dt=md.scenes.BENCHMARK_DT, backend=backend,
                precision=precision,
            ).forces()
            for search in ("tensor", "coherent")
        ]  # fmt: skip
        assert np.allclose(*found, rtol=1e-5, atol=1e-3 if precision == "float32" else 1e-9)
    flock = state_of("cube")
    assert np.array_equal(
        *(increments(flock, search, backend, "float64") for search in ("tensor", "coherent"))
    )
