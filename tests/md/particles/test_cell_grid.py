"""Cell grid: the largest number of cells for a cutoff, and errors for too many cells or too little memory."""

import math
import re

import numpy as np
import pytest

import md
from md.particles.cell_grid import MAX_CELLS, CellGrid, _cells_along
from tests import tiers

LAW = md.laws.SpringDashpot(1e4, 5.0)
SINGLE, DOUBLE = np.dtype("float32"), np.dtype("float64")


def walked(length: float, cutoff: float, precision: np.dtype) -> int:
    """Find the number of cells along an axis by trying all from the largest down."""
    count = max(1, math.floor(length / cutoff))
    exact = math.frexp(cutoff)[0] == 0.5 and count * cutoff == length
    rounding = 4 * np.finfo(precision).eps * count
    while count > 1 and not exact and length / count < cutoff * (1 + rounding):
        count -= 1
    return count


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
def test_cells_are_as_many_as_by_trying_one_after_the_other(precision):
    chance = np.random.default_rng(1)
    cutoffs = [1.0, 0.5, 2.0, 1.3, np.nextafter(1.0, 2), 1e-3, 1.5e-9, 3e4]
    tried = set()
    for _ in range(4000):
        cutoff = float(chance.choice(cutoffs) if chance.random() < 0.7 else chance.uniform(0.01, 3))
        whole = int(10 ** chance.uniform(0, 4)) * cutoff
        near = [
            whole,
            np.nextafter(whole, 0),
            np.nextafter(whole, np.inf),
            whole * chance.uniform(1, 1 + 1e-5),
        ]
        length = float(chance.choice([*near, whole * chance.uniform(0.01, 2)]))
        found = _cells_along(length, cutoff, precision)
        assert found == walked(length, cutoff, precision), (length, cutoff)
        assert type(found) is int
        tried.add(found - max(1, math.floor(length / cutoff)))
    assert {0, -1} <= tried  # both sides of the rule


@pytest.mark.parametrize(
    ("length", "radius", "precision"),
    [(1e8 + 0.5, None, "float32"), (6, 1e-9, "float32"), (1e15 + 0.5, None, "float64")],
)
def test_a_large_box_or_a_small_radius_is_refused_at_once(length, radius, precision):
    state = md.State(
        [[1.0, 1, 1]], [[0.0, 0, 0]], md.Box((length,) * 3), radius=None if radius is None else [radius]
    )
    message = rf"cells of side .* bytes .*; allowed: up to {MAX_CELLS} \(int32 cell numbers\); take a smaller"
    with pytest.raises(ValueError, match=message):
        md.Simulation(state, LAW, dt=1e-3, precision=precision, backend="cpu")


def test_no_box_is_too_large_to_count_its_cells():
    for length, cutoff in ((1e300, 1.0), (1e300, 1e-9), (1.7e308, 1e-9)):
        with pytest.raises(ValueError, match=r"cells of side .*allowed: up to") as refusal:
            CellGrid(md.Box((length,) * 3), cutoff, DOUBLE, md.backend.Cpu())
        assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("length", [1e7 + 0.5, 3e6])
def test_a_long_box_that_is_narrow_is_taken(length):
    grid = CellGrid(md.Box((length, 2.0), (False, True)), 1.0, DOUBLE, md.backend.Cpu())
    assert grid.shape == (walked(length, 1.0, DOUBLE), 2)


WITHOUT_CELLS = "lbvh", "reflexive", "wide_bvh", "verlet_tree"


@pytest.mark.parametrize("search", sorted({*md.search.SEARCHES} - {*WITHOUT_CELLS, "naive"}))
def test_more_cells_than_there_is_memory_for_are_refused_before_the_allocation(search, monkeypatch):
    monkeypatch.setattr(md.checks, "host_memory", lambda: 2**28)
    state = md.State([[1.0, 1, 1]], [[0.0, 0, 0]], md.Box((500,) * 3, False))
    message = (
        r"\d+ cells of a box of \(500\.0, .*: [\d,]+ bytes .*are needed; allowed: up to 268,435,456 .*'lbvh'"
    )
    with pytest.raises(ValueError, match=message):
        md.Simulation(state, LAW, search=search, backend="cpu")


@pytest.mark.quick
def test_few_cells_are_made_without_a_query_of_free_memory(monkeypatch):
    def free() -> int:
        raise AssertionError("memory was queried")

    monkeypatch.setattr(md.checks, "host_memory", free)
    CellGrid(md.Box((160.0,) * 3), 1.0, DOUBLE, md.backend.Cpu()).require_memory(4, free)  # 2**24 bytes
    with pytest.raises(AssertionError, match="was queried"):
        CellGrid(md.Box((161.0,) * 3), 1.0, DOUBLE, md.backend.Cpu()).require_memory(5, free)
    state = md.State([[1.0, 1, 1]], [[0.0, 0, 0]], md.Box((10.0,) * 3))
    md.Simulation(state, LAW, reorder=md.Reorder("row", md.Every(5)), backend="cpu")


def test_the_remedy_for_too_many_cells_works(monkeypatch):
    monkeypatch.setattr(md.checks, "host_memory", lambda: 2**28)
    state = md.State([[1.0, 1, 1]], [[0.0, 0, 0]], md.Box((500,) * 3, False))
    md.Simulation(state, LAW, search="lbvh", backend="cpu").run(2)
    with pytest.raises(ValueError, match=r"cells of a box .*bytes .*allowed: up to .*without a reorder"):
        md.Simulation(
            md.State(state.pos, state.vel, state.box),
            LAW,
            reorder=md.Reorder("row", md.Every(5)),
            backend="cpu",
        )


def test_a_checkpoint_of_more_cells_than_there_is_memory_for_is_an_error(tmp_path, monkeypatch):
    state = md.State([[1.0, 1, 1]], [[0.0, 0, 0]], md.Box((200,) * 3, False))
    md.Simulation(state, LAW, backend="cpu").save(tmp_path / "run.npz")
    monkeypatch.setattr(md.checks, "host_memory", lambda: 2**20)
    with pytest.raises(
        md.CheckpointError, match=r"run\.npz makes no simulation: 8000000 cells .*allowed: up to"
    ):
        md.Simulation.load(tmp_path / "run.npz")


@pytest.mark.parametrize("cutoff", [0, -1.0, np.nan, np.inf])
def test_a_cutoff_out_of_range_is_refused(cutoff):
    with pytest.raises(ValueError, match=r"cutoff = .*; allowed: a finite number above 0 \(d\)"):
        CellGrid(md.Box((5, 5)), cutoff, DOUBLE, md.backend.Cpu())


@pytest.mark.parametrize(
    "search",
    tiers.by_default(WITHOUT_CELLS, lambda name: name not in ("reflexive", "wide_bvh"), tiers.full),
)
def test_a_start_that_overlaps_is_found_in_a_box_of_many_more_cells_than_particles(search, monkeypatch):
    monkeypatch.setattr(md.checks, "host_memory", lambda: 2**20)
    box = md.Box((300.0,) * 3, (True, True, False))
    for at, overlaps in ((0.3, True), (299.9, True), (2.0, False)):
        state = md.State([[0.1, 5, 5], [at, 5, 5]], [[0.0, 0, 0], [1e-3, 0, 0]], box)
        run = md.Simulation(state, LAW, search=search, backend="cpu")
        if not overlaps:
            run.run(1)
            continue
        with pytest.raises(md.OverlappingStart, match=r"step 0: particles [01] and [01] overlap deeply"):
            run.run(1)


@pytest.mark.parametrize(
    ("periodic", "length", "message"),
    [(True, 1.2, "at least 1.2000000476837158"), (False, 0.6, "at least 0.6000000238418579 d")],
)
def test_a_box_that_only_rounded_radii_do_not_fit_is_refused_with_the_reason(periodic, length, message):
    law, options = md.laws.SpringDashpot(1e4, 5.0), {"dt": 1e-3, "backend": "cpu", "search": "naive"}
    if not periodic:
        options["walls"] = md.Walls(contact_time=0.05)
    state = md.State(np.full((1, 2), 0.3), np.zeros((1, 2)), md.Box((length, 9.0), periodic), radius=[0.3])
    md.Simulation(state, law, precision="float64", **options)
    reason = re.escape(f"{message} (float32 rounds radii; in float64 this may do)")
    with pytest.raises(ValueError, match=reason):
        md.Simulation(state, law, precision="float32", **options)
    short = md.State(state.pos, state.vel, md.Box((length - 1e-3, 9.0), periodic), radius=[0.3])
    for precision in ("float32", "float64"):
        with pytest.raises(ValueError, match="allowed") as refused:
            md.Simulation(short, law, precision=precision, **options)
        assert "rounds" not in str(refused.value)
