"""Layouts, precisions, fused steps and the route of a reorder change the data movement, never the result."""

import numpy as np
import pytest

import md
from md.backend import LAYOUTS
from tests import tiers

CASES = [  # layouts, precisions, dims and periodicities crossed pairwise
    ("soa", "float32", 3, (True, True, True)),
    ("soa", "float64", 2, (True, False)),
    ("aos", "float64", 3, (True, True, False)),
    ("aos", "float32", 2, (False, True)),
    ("aos4", "float32", 2, (True, True)),
    ("aos4", "float64", 3, (False, True, True)),
]
LAYOUT_OF_ONE = {"linked": "soa", "verlet": "aos4"}


def start(dim, periodic, n=400):
    """Make a dense cloud away from closed sides, slow enough that no particle escapes in a few steps."""
    box = md.Box((9.0, 8.0, 7.0)[:dim] if dim == 3 else (24.0, 21.0), periodic)
    generator = np.random.default_rng(3)
    pos = 0.5 + generator.random((n, dim)) * (np.array(box.lengths) - 1)
    return md.State(pos, generator.normal(size=(n, dim)), box)


def end_of(state, backend, layout, precision, search, fused, steps=20):
    law = md.laws.SpringDashpot(stiffness=100.0, damping=1.0)
    simulation = md.Simulation(
        state, law, search=search, dt=1e-3, precision=precision, backend=backend, layout=layout, fused=fused,
        allow_overlap=True,
    )  # fmt: skip
    simulation.run(steps)
    return simulation.state.by_id()


@pytest.mark.parametrize(
    ("search", "layout", "precision", "dim", "periodic"),
    tiers.by_default(
        [(search, *case) for k, search in enumerate(md.search.SEARCHES) for case in CASES[k % 3 :: 3]]
        + [(search, "aos", "float64", 3, (True, False, True)) for search in md.search.SEARCHES]
        + [("linked", "soa", "float64", 3, (True, True, False))],
        lambda search, layout, precision, dim, _: (
            (precision, dim) == ("float64", 3) and layout in ("aos", LAYOUT_OF_ONE.get(search))
        ),
    ),
)
def test_every_layout_and_the_fused_step_end_where_the_plain_one_does(
    backend, search, layout, precision, dim, periodic
):
    state = start(dim, periodic)
    plain = end_of(state, "cpu", "aos", precision, "naive", fused=False)
    tolerance = 1e-4 if precision == "float32" else 1e-11
    for fused in (False, True) if md.search.SEARCHES[search].capabilities.fusable else (False,):
        end = end_of(state, backend, layout, precision, search, fused)
        np.testing.assert_allclose(end.pos, plain.pos, atol=tolerance, rtol=0)
        np.testing.assert_allclose(end.vel, plain.vel, atol=10 * tolerance, rtol=0)
    assert np.abs(plain.vel - state.vel).max() > 0.1


def test_fusing_on_the_cpu_changes_no_bit():
    state = start(3, (True, True, True))
    plain, fused = (end_of(state, "cpu", "aos", "float64", "linked", fused) for fused in (False, True))
    assert np.array_equal(plain.pos, fused.pos)
    assert np.array_equal(plain.vel, fused.vel)


@pytest.mark.parametrize("fused", [False, True])
def test_a_fused_step_reports_a_fault_like_a_plain_one(backend, fused):
    state = md.State([[1, 1, 1], [2.9, 1, 1]], [[0, 0, 0], [400.0, 0, 0]], md.Box((3, 3, 3), periodic=False))
    simulation = md.Simulation(state, md.laws.SpringDashpot(1.0, 0.0), dt=1e-3, backend=backend, fused=fused)
    with pytest.raises(md.ParticleEscaped) as fault:
        simulation.run(200)
    assert (fault.value.step, fault.value.particle) == (0, 1)


def test_an_integrator_that_cannot_be_fused_is_refused(backend):
    state = start(3, (True, True, True))
    with pytest.raises(ValueError, match="'steepest_descent' cannot be fused"):
        md.Simulation(
            state,
            md.laws.SpringDashpot(1.0, 0.0),
            integrator="steepest_descent",
            dt=1.0,
            backend=backend,
            fused=True,
        )


@pytest.mark.quick
def test_an_unknown_layout_lists_those_known(backend):
    with pytest.raises(ValueError, match="unknown layout 'aso'; allowed: one of soa, aos, aos4"):
        md.backend.get(backend, "aso")
    assert LAYOUTS == ("soa", "aos", "aos4")


@pytest.mark.quick
def test_a_layout_beside_a_backend_is_checked_first():
    own = md.backend.Cpu("soa")
    assert md.backend.get(own, "soa") is own
    with pytest.raises(ValueError, match="layout 'aos' beside a backend of layout 'soa'; give one of them"):
        md.backend.get(own, "aos")
    with pytest.raises(ValueError, match="unknown layout 'aso'; allowed: one of soa, aos, aos4"):
        md.backend.get(own, "aso")
    for wrong in (np.zeros((3, 5)), 5, b"soa", ["soa"]):
        with pytest.raises(TypeError, match=r"layout = .* of class .*; allowed: one of soa, aos, aos4"):
            md.backend.get(own, wrong)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_reorder_through_the_host_is_the_same_permutation(backend, precision):
    ends = []
    for via in ("device", "host"):
        simulation = md.Simulation(
            md.scenes.benchmark_gas(1000, 0.3),
            md.scenes.BENCHMARK_LAW,
            reorder=md.Reorder("hilbert", md.Every(3), via=via),
            precision=precision,
            backend=backend,
        )
        simulation.run(4)
        ends.append(simulation.state)
    assert np.array_equal(ends[0].id, ends[1].id)
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=1e-6)
    assert not np.array_equal(ends[0].id, np.sort(ends[0].id))


def test_an_unknown_route_lists_those_known():
    with pytest.raises(ValueError, match="unknown via of Reorder 'moon'; allowed: one of device, host"):
        md.Reorder("row", md.Never(), via="moon")


def test_freed_memory_is_returned_before_rows_are_packed(monkeypatch):
    class Device(md.backend.Cpu):
        """Notes when memory is returned and when rows are allocated."""

        def release(self):
            done.append("release")

        def empty(self, shape, dtype):
            done.append("empty")
            return super().empty(shape, dtype)

    done, device = [], Device("aos4")
    state = md.State(np.ones((5, 3)), np.zeros((5, 3)), md.Box((4, 4, 4)))
    particles = md.particles.arrays.ParticleArrays(state, np.dtype(np.float32), device)
    done.clear()
    particles.pack()
    assert done == ["release", "empty", "empty"]
    particles.vel  # noqa: B018  # unpacks
    done.clear()
    particles.pack()
    assert "release" not in done
