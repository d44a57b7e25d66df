"""The search `tensor` on either backend: increments of a flock, and what it does for other laws."""

import numpy as np
import pytest

import md

LAW = md.laws.Boids()
BOXES = {
    "cube": md.Box((36.0,) * 3),
    "small": md.Box((10.0, 11.0, 14.0)),
    "open": md.Box((31.0, 22.0, 17.0), periodic=False, open=(True, False, True)),
    "flat": md.Box((41.0, 33.0)),
}


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


@pytest.mark.parametrize("clusters", [0, 2])
@pytest.mark.parametrize("kind", BOXES)
def test_increments_are_those_of_naive(kind, clusters, backend):
    """Clusters are beyond the capacity of a block. In float32 few boids have a pair at a radius."""
    state = state_of(kind, clusters)
    single = md.State(state.pos.astype(np.float32), state.vel.astype(np.float32), state.box)
    expected = increments(single, "naive", "cpu", "float64")
    error = np.abs(increments(single, "tensor", backend, "float32") - expected).max(axis=1)
    tolerance = 2e-5 * max(1.0, np.abs(expected).max())
    assert np.count_nonzero(error > tolerance) <= 2 + len(single) // 1000
    assert np.abs(expected).max() > 0.3


def test_a_run_repeats_bit_for_bit_fused_and_not(backend):
    ends = []
    for fused in (True, True, False):
        run = md.Simulation(
            state_of("cube"), LAW, search="tensor", integrator="flight", dt=0.2, backend=backend,
            precision="float32", fused=fused,
        )  # fmt: skip
        run.run(5)
        ends.append(run.state)
    assert np.array_equal(ends[0].pos, ends[1].pos)
    fused, plain = (end.vel[np.argsort(end.id)] for end in ends[::2])
    assert np.median(np.abs(fused - plain)) < 1e-5


def test_other_laws_and_float64_are_summed_as_by_coherent(backend):
    gas = md.scenes.shared_gas(600, 0.2)
    for precision in ("float32", "float64"):
        found = [
            md.Simulation(
                gas, md.scenes.SHARED_LAW, search=search, dt=md.scenes.SHARED_DT, backend=backend,
                precision=precision,
            ).forces()
            for search in ("tensor", "coherent")
        ]  # fmt: skip
        assert np.allclose(*found, rtol=1e-5, atol=1e-3 if precision == "float32" else 1e-9)
    flock = state_of("cube")
    assert np.array_equal(
        *(increments(flock, search, backend, "float64") for search in ("tensor", "coherent"))
    )
