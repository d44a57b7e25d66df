"""Sentences of experiments in their branches, on small tables made by hand."""

import math

import pandas as pd
import pytest

from experiments import (
    cache_hit,
    cavity_flow,
    contacts,
    counters,
    curves,
    decay,
    flock_order,
    pictures,
    reorder_cost,
    roofline,
    searches,
    timing,
)
from experiments.results.answers import ONE_RUN

pytestmark = pytest.mark.quick


def timed(names: dict[str, float], label: str, runs: int = 3, **columns) -> pd.DataFrame:
    """Times in one round of some runs."""
    return pd.DataFrame([
        columns | {"run": run, "round": 0, label: name, "time_ms": ms}
        for run in range(runs) for name, ms in names.items()
    ])  # fmt: skip


GAS = {"search": "linked", "precision": "float64", "fused": False, "phase": "step with reorder"}


def test_timing_is_about_the_largest_gas_at_the_first_filling_fraction():
    orders = {"shuffled": 20.0, "lattice": 15.0, "hilbert": 10.0, "row": 8.0}
    small = timed({name: 1.0 for name in orders}, "ordering", n=64, filling_fraction=0.05, **GAS)
    large = [timed(orders, "ordering", n=4096, filling_fraction=phi, **GAS) for phi in (0.05, 0.2)]
    found = timing.answer(pd.concat([small, *large]))
    assert found.sentence == (
        "At 5 % filled (4,096 particles, linked), hilbert is 2.00 times as fast as shuffled memory, row "
        "2.50; row over hilbert 1.25: faster."
    )
    assert found.table.loc["hilbert"].to_dict() == {"5 %": "2.00", "20 %": "2.00"}


def test_the_shaken_box_is_compared_at_the_fillings_of_the_thesis():
    box = {"contact_time": 2e-4, "search": "linked", "precision": "float32", "fused": True, "part": "total"}
    box |= {"particles": 100, "reorder_every": 500}
    orders = {"shuffled": 30.0, "aged": 20.0, "pancake": 10.0}
    phis = (0.01, 0.05, 0.2)
    rows = pd.concat([timed(orders, "ordering", filling_fraction=phi, **box) for phi in phis])
    found = timing.answer(rows)
    assert found.sentence == (
        "At 5 % filled (100 spheres, fused), pancake is 3.00 times as fast as shuffled memory; "
        "pancake over aged memory 2.00: faster."
    )
    assert list(found.table) == ["5 %", "20 %"]
    single = timing.answer(rows[rows["filling_fraction"] == 0.01])
    assert single.sentence.startswith("At 1 % filled (100 spheres, fused), pancake is 3.00 times as fast")


def test_searches_say_how_far_the_best_is_from_the_memory():
    case = {"filling_fraction": 0.2, "precision": "float32", "cell_order": "row", "share_of_floor": 0.25}
    rows = timed({"linked": 8.0, "verlet": 4.0}, "search", n=64, **case)
    assert searches.answer(rows).sentence == (
        "At 64 particles, 20 % filled, float32, verlet is 2.00 times as fast as linked; verlet takes "
        "4.00 times the floor of memory."
    )


def test_a_reorder_is_compared_in_aged_memory_if_it_was_measured():
    case = {"ordering": "hilbert", "precision": "float64", "n": 64}
    rows = pd.concat([
        timed({"one thread": ms, "all threads": 1.0}, "place", memory=memory, **case)
        for memory, ms in (("shuffled", 4.0), ("aged", 2.0))
    ])  # fmt: skip
    assert "in aged memory along hilbert, all threads is 2.00 times" in reorder_cost.answer(rows).sentence
    without = reorder_cost.answer(rows[rows["memory"] == "shuffled"]).sentence
    assert "in shuffled memory along hilbert, all threads is 4.00 times" in without


def hits(**ratios: float) -> pd.DataFrame:
    case = {"geometry": "cubes", "search": "linked", "model": "block", "size": 8, "cache_particles": 320}
    return pd.DataFrame([
        case | {"filling_fraction": 0.2, "ordering": name, "hit_ratio": ratio, "speed_up": 1 / (1 - ratio)}
        for name, ratio in ratios.items()
    ])  # fmt: skip


def test_hits_are_those_of_hilbert_rows_and_shuffled_memory():
    found = cache_hit.answer(hits(gilbert=0.9, hilbert=0.8, row=0.6, shuffled=0.5)).sentence
    assert "should serve 80 % along hilbert, 60 % along row and 50 % in shuffled memory" in found
    assert found.endswith(
        "; by the formula of [thesis], which measured times refute (T4), hilbert would make reads 2.50 times "
        "as fast."
    )
    without = cache_hit.answer(hits(gilbert=0.9, morton=0.8)).sentence
    assert "should serve 90 % along gilbert and 80 % along morton (block" in without
    assert without.endswith("a side).")
    assert "none of a curve" not in cache_hit.answer(hits(shuffled=0.5)).sentence


@pytest.mark.parametrize(
    ("low", "high", "models", "expected"),
    [
        (-0.95, -0.5, ["block"],
         "block in L1 ranks 5 curves and scans like the times, with a rank correlation of -0.90 "
         "(-0.95 to -0.50) between hits and times, where -1 is perfect."),
        (-0.95, 0.2, ["block"],
         "The one model tried, of one reader at a time, does not rank 5 curves and scans by hit ratio "
         "like the times: the nearest, block in L1, has"),
        (-0.95, 0.2, ["block", "LRU"],
         "None of the 2 models tried, each of one reader at a time, ranks 5 curves and scans by hit "
         "ratio like the times: the nearest, "),
    ],
)  # fmt: skip
def test_a_model_ranks_the_orders_or_none_does(low, high, models, expected, monkeypatch):
    row = {"level": "L1", "against": "time", "among": "curves", "orders": 5}
    row |= {"rank_correlation": -0.9, "from": low, "to": high}
    found = pd.DataFrame([row | {"model": model} for model in models])
    monkeypatch.setattr(counters, "correlations", lambda table: found)
    case = {"n": 8, "filling_fraction": 0.2, "search": "linked", "precision": "float32", "run": 0, "round": 0}
    table = pd.DataFrame([case | {"ordering": "row", "what": "time", "model": None, "level": None}])
    assert counters.answer(table).sentence.startswith(expected)
    monkeypatch.setattr(counters, "correlations", lambda table: found.assign(rank_correlation=math.nan))
    assert counters.answer(table).sentence.startswith("No model is compared with the times")


def test_trees_without_a_fence_are_wrong_or_not():
    case = {"n": 8, "dim": 3, "start": "leaves", "boxes": 7, "races": 0}
    rows = [case | {"fence": "with", "wrong_boxes": 0}] * 4 + [
        case | {"fence": "without", "wrong_boxes": 2}
    ] * 4
    assert contacts.answer(pd.DataFrame(rows)).sentence == (
        "At 8 boxes in 3D from leaves, with the fence 0 of 4 trees have a wrong box (0 % to 60.2 %), without "
        "the fence 4 of 4 trees have a wrong box (39.8 % to 100 %)."
    )


def test_the_memory_of_a_grid_stands_beside_that_of_a_tree():
    rows = pd.DataFrame([
        {"n": 8, "filling_fraction": phi, "order": "row", "cells_per_particle": 1.0, "empty_share": 0.5,
         "grid_bytes": size, "tree_bytes": 100.0, "most_in_a_cell": 3, "reads_per_particle": 9.0,
         "slots_apart_median": 2.0, "slots_apart_90": 50.0}
        for phi, size in ((0.01, 700.0), (0.2, 4.0))
    ])  # fmt: skip
    found = contacts.answer(rows).sentence
    assert "a grid takes 700 bytes a particle at 1 %, 4.00 at 20 %, and a tree 100; there a cell" in found
    assert found.endswith("one in ten partners is farther in memory than 50 along row.")


@pytest.mark.parametrize(
    ("holds", "since", "expected"),
    [
        (True, 56, "from step 56 on"),
        (False, 1562.0, "until step 1,562"),
        (False, None, "never"),
        (False, math.nan, "never"),
    ],
)
def test_a_condition_of_a_flock_holds_held_or_never_did(holds, since, expected):
    row = {"is_aligned": holds, "aligned_since_step": since}
    assert flock_order._since_when("aligned", row) == expected


def test_the_parts_of_a_step_are_kernels_or_phases_or_not_measured():
    case = {"n": 8, "search": "verlet", "precision": "float32", "filling_fraction": 0.2, "device": "x"}
    rows = [case | {"what": "step", "name": "step", "step_us": 40.0}]
    bare = roofline.answer(pd.DataFrame(rows)).sentence
    assert bare == "At 8 particles, 20 % filled, a step of verlet takes 40.0 us; its parts were not measured."
    rows += [
        case | {"what": "phase", "name": name, "step_us": us}
        for name, us in (("force", 30.0), ("build", 10.0))
    ]
    assert roofline.answer(pd.DataFrame(rows)).sentence.endswith(
        "the phase force takes 75 % of the phases' time and what limits it was not counted."
    )


def test_wear_without_a_prediction_and_without_half_lives(monkeypatch):
    case = dict.fromkeys(decay.wear.CASE, 1) | {"half_wear_steps": 5.0}
    table = pd.DataFrame([{"source": "a/run", "repeat": 0, "sample": 0}])
    monkeypatch.setattr(decay.wear, "compare", lambda curves: pd.DataFrame([case]))
    assert decay.answer(table).sentence.startswith("Of 1 measured cases none has a prediction")
    ends = {
        f"{name}{end}": 5.0
        for name in ("half_wear_steps", "half_decay_steps")
        for end in ("", "_low", "_high")
    }
    found = pd.DataFrame([case | ends | {"model": "block", "cache_particles": 320.0}])
    for ratio, expected in (
        (math.nan, "In none of 1 cases both"),
        (1.5, "wear is 1.50 times that of the predicted"),
    ):
        monkeypatch.setattr(
            decay.wear, "compare", lambda curves, ratio=ratio: found.assign(half_wear_over_half_decay=ratio)
        )
        assert expected in decay.answer(table).sentence


def test_a_cavity_without_a_steady_state_says_so():
    table = pd.DataFrame(
        [{"case": 0, "repeat": 0, "what": "fault"}, {"case": 1, "repeat": 0, "what": "fault"}]
    )
    assert cavity_flow.answer(table).sentence == "None of 2 cases has a steady state."


def test_curves_compare_the_largest_cube_of_three_dimensions():
    case = {"dim": 3, "order": math.nan, "nx": 4, "ny": 4, "nz": 4, "nw": 1, "cells": 64, "size": "4x4x4"}
    means = {
        "dilation_2_mean": 2.0,
        "bounding_box_mean": 1.5,
        "clusters_2_mean": 3.0,
        "edge_stretch_mean_cells": 9.0,
    }
    box = case | {"nz": 32, "cells": 512, "size": "4x4x32"}
    rows = [case | means | {"name": "hilbert"}, case | means | {"name": "row", "bounding_box_mean": 1.2},
            box | means | {"name": "pancake", "dilation_2_mean": 0.1}]  # fmt: skip
    found = curves.answer(pd.DataFrame(rows))
    assert found.sentence.startswith(
        "Of 2 orderings of 64 cells in 3D, hilbert has the least dilation (2.00), row"
    )
    assert list(found.table.index) == ["row", "hilbert"]


def test_one_run_is_called_so_by_an_experiment():
    rows = pd.concat([
        timed({"shuffled": 20.0, "hilbert": ms}, "ordering", 1, n=8, filling_fraction=1, **GAS)
        .assign(round=ms) for ms in (10.0, 8.0)
    ])  # fmt: skip
    assert timing.answer(rows).sentence.endswith(
        f"2.25 (2.00 to 2.50) times as fast as shuffled memory.{ONE_RUN}"
    )


def test_pictures_say_how_near_contacts_are_in_memory_before_and_after():
    slots = {"slot_before": [0, 3, 1, 2], "slot_after": [0, 1, 2, 3]}
    touches = ["1", "0", "3", "2"]
    places = {"cell_x": [0, 0, 5, 5], "cell_y": 0, "ordering": "hilbert", "repeat": 0}
    rows = pd.DataFrame({"particle": range(4), **slots, **places, "touches": touches})
    found = pictures.answer(rows.assign(block_slots=2, steps=10))
    assert found.table.loc["hilbert", "slots between contacts"] == "2.00 to 1.00"
    assert found.sentence == (
        "A reorder along hilbert brings particles that touch from 2.00 to 1.00 slots apart (median), and "
        "reads that hit a block of 2 slots from 0 % to 100 %."
    )
