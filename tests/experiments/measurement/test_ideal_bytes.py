"""Bytes that kernels must move: by hand for few particles, and from the arrays of a simulation."""

import math

import numpy as np
import pytest

import md
from experiments.measurement.ideal_bytes import Sizes, Traffic, entry_bytes, of_phase, sizes_of, traffic
from tests.tiers import full

PACKED = Sizes(n=10, cells=8, pos=160, rows=240, out=240, listed=320, ranked=0)


def simulation(
    search: str | md.search.Verlet, fused: bool = True, precision: str = "float64", steps: int = 1, **options
) -> md.Simulation:
    gas = md.scenes.benchmark_gas(300, 0.3, seed=1)
    state = md.State(gas.pos, gas.vel, gas.box)  # no kernel makes its arrays in a layout
    law, dt = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
    options |= {"backend": "cpu", "precision": precision, "fused": fused}
    sim = md.Simulation(state, law, search=search, dt=dt, **options)
    sim.run(steps)
    return sim


def test_the_bytes_of_lists_by_hand():
    moved = traffic("verlet", PACKED, runs_ahead=True)
    assert moved["force"] == Traffic("force", 240 + 320 + 240, True)  # rows and lists read, rows written
    # Positions, order, bytes, starts and lists; positions are kept on the CPU only.
    assert moved["list_partners"] == Traffic("build", 160 + 40 + 40 + 36 + 320, False)
    assert moved["store_bytes"] == Traffic("build", 40 + 160 + 40, False)
    assert moved["count_cells"].bytes == 160 + 40 + 40 + 32  # positions read; keys, ranks and counts written
    assert not {"cell_keys", "count"} & set(moved)
    assert moved["scan"].bytes == 32 + 36
    assert moved["place"].bytes == 3 * 40 + 36
    assert moved["sort_bins"].bytes == 40 + 36
    assert not {"farthest", "gather"} & set(moved)  # most builds move no particle in memory
    unfused = traffic("verlet", PACKED._replace(rows=320, out=160), runs_ahead=True)
    assert unfused["farthest"] == Traffic("build", 2 * 160, True)
    assert unfused["gather"].bytes == 40 + 2 * 320 + 2 * 40
    assert unfused["list_partners"].bytes - moved["list_partners"].bytes == 160  # positions are kept
    on_cpu = traffic("verlet", PACKED, runs_ahead=False)
    of_blocks = 2 * 40 / 64  # start and length of the lists of a block
    assert on_cpu["build_lists"].bytes == 160 + 160 + 36 + 320 + 80 + of_blocks  # a byte for each owner
    assert "store_bytes" not in on_cpu
    assert on_cpu["cell_keys"].bytes == 160 + 40
    assert on_cpu["count"].bytes == 40 + 40 + 32  # keys read; ranks and counts written
    assert on_cpu["force"].bytes - moved["force"].bytes == of_blocks + 80  # owners
    pruned = traffic("verlet", PACKED._replace(pruned=160), runs_ahead=False)
    assert pruned["force"].bytes == on_cpu["force"].bytes - 160 - 40
    assert pruned["force_and_prune"] == Traffic("force", on_cpu["force"].bytes + 160 + 40 + of_blocks, False)
    assert on_cpu["farthest"] == Traffic("build", 2 * 160, True)


def test_the_bytes_of_other_searches_by_hand():
    sizes = PACKED._replace(rows=320, out=160, ranked=32)  # not fused
    linked = traffic("linked", sizes, runs_ahead=True)
    assert set(linked) == {"link", "force", "kick_drift"}
    assert linked["link"].bytes == 160 + 40 + 2 * 32
    assert linked["force"].bytes == 320 + 40 + 32 + 160
    assert linked["kick_drift"] == Traffic("integrate", 2 * 320 + 160, True)
    coherent = traffic("coherent", sizes, runs_ahead=True)
    assert coherent["force"].bytes == 320 + 36 + 32 + 160
    assert coherent["count_cells"].bytes == 160 + 40 + 32 + 40 + 32
    assert traffic("lbvh", sizes, runs_ahead=True) == {}


def test_the_bytes_of_a_build_are_divided_among_steps():
    moved = {
        "a": Traffic("build", 100, False),
        "b": Traffic("build", 7, True),
        "c": Traffic("force", 5, True),
    }
    assert of_phase(moved, "build", 10.0) == 17
    assert of_phase(moved, "force", 10.0) == 5
    assert math.isnan(of_phase(moved, "integrate", 10.0))


@pytest.mark.parametrize("precision", [full("float32"), "float64"])
def test_sizes_are_those_of_the_arrays(precision):
    sim = simulation("verlet", precision=precision)
    sizes = sizes_of(sim)
    p = sim.system.particles
    assert sizes.pos == p.pos.nbytes
    assert sizes.rows == sizes.out == p.pos.nbytes + p.vel.nbytes
    assert (sizes.n, sizes.cells) == (300, np.prod(sim.search.grid.shape))
    count = sim.search._count
    assert sizes.listed == 4 * count.sum() > 0
    assert sizes.ranked == 0
    by_curve = sizes_of(simulation(md.search.Verlet("hilbert"), precision=precision))
    assert by_curve.ranked == 4 * by_curve.cells


def test_a_device_packs_rows_and_lists_partners_in_rows_of_three(monkeypatch):
    sim, lists = simulation("verlet", layout="aos4", steps=0), simulation("verlet", steps=0)
    stream = lists.accesses()  # of the lists that are built for it, in the layout that other tests compile
    monkeypatch.setattr(sim, "accesses", lambda: stream)
    monkeypatch.setattr(sim.search, "pairs", lists.search.pairs)
    count = np.diff(stream.offsets)
    rows = sum(max(1, math.ceil(one / 3)) for one in count)
    monkeypatch.setattr(sim.backend, "packs_rows_for", lambda law: True)
    monkeypatch.setattr(sim.backend, "runs_ahead", True)
    sizes = sizes_of(sim)
    assert sizes.rows == sizes.out == 300 * 6 * 8
    assert sizes.pos == 300 * 4 * 8
    assert sizes.listed == 8 * rows > 8 / 3 * count.sum()
    assert sizes.listed / entry_bytes(True) == pytest.approx(3 * rows)


def test_sizes_without_lists_and_without_a_fused_step():
    sim = simulation("coherent", fused=False, layout="aos4", steps=0)
    sizes = sizes_of(sim)
    assert sizes.listed == 0
    assert sizes.out == sizes.pos == 300 * 4 * 8
    assert sizes.rows == 2 * sizes.pos
    assert sizes.ranked == (0 if sim.search.config.cell_order == "row" else 4 * sizes.cells)


def test_steps_of_pruned_lists_read_these_and_one_that_prunes_reads_both():
    plain, pruned = (traffic("verlet", PACKED._replace(pruned=bytes), True) for bytes in (0, 160))
    assert set(pruned) - set(plain) == {"force_and_prune"}
    assert pruned["force"].bytes == plain["force"].bytes - PACKED.listed + 160
    assert pruned["force_and_prune"] == Traffic("force", plain["force"].bytes + 160, False)
