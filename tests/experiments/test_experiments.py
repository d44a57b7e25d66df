"""The experiments there are: each runs small, and its table says what it should."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments import timing
from experiments.__main__ import listing
from experiments.core import main

ROOT = Path(__file__).parents[2]


def run(module, tmp_path, *arguments) -> Path:
    main(
        module.Config,
        module.measure,
        module.draw,
        quick=module.QUICK,
        arguments=["--backend", "cpu", "--results", str(tmp_path), *arguments],
    )
    (folder,) = (tmp_path / module.__name__.split(".")[-1]).iterdir()
    return folder


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> Path:
    small = ["--n", "2048", "--filling-fraction", "0.05", "0.3", "--samples", "3", "--quick"]
    return run(timing, tmp_path_factory.mktemp("timing"), *small)


def test_the_list_of_experiments_has_a_line_for_each():
    lines = listing()
    assert {"timing", "curves"} <= set(lines)
    assert all(lines.values())


def test_python_m_experiments_prints_the_list():
    found = subprocess.run(
        [sys.executable, "-m", "experiments"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert all(line in found for line in listing().values())


def test_timing_has_every_case_with_every_phase(timed):
    table = pd.read_parquet(timed / "table.parquet")
    counts = table.groupby(["filling_fraction", "ordering", "phase"]).size()
    assert len(table.groupby(["filling_fraction", "ordering"])) == 2 * 7
    for (_, ordering, phase), count in counts.items():
        assert count == {"reorder": 2, "first reorder": 1}.get(phase, 3), (ordering, phase)
    assert set(table[table["ordering"] == "shuffled"]["phase"]) == {
        "force",
        "build",
        "integrate",
        "step",
        "step with reorder",
    }
    assert {"reorder", "first reorder"} <= set(table[table["ordering"] == "hilbert"]["phase"])
    assert (table["time_ms"] > 0).all()
    assert (table["particles"] == 2048).all()


def test_timing_runs_the_same_physics_under_every_ordering(timed):
    table = pd.read_parquet(timed / "table.parquet")
    for _, rows in table.groupby("filling_fraction"):
        ends = rows["temperature_end"]
        assert ends.max() - ends.min() < 1e-9 * ends.max()
        assert (rows["temperature_start"] > rows["temperature_end"]).all()


def test_timing_predicts_more_hits_along_a_curve_than_in_shuffled_memory(timed):
    table = pd.read_parquet(timed / "table.parquet")
    hits = table.groupby(["filling_fraction", "ordering"])["predicted_hit_ratio"].first().unstack()
    assert (hits["hilbert"] > hits["row"]).all()
    assert (hits["row"] > hits["shuffled"]).all()
    assert hits.to_numpy().min() > 0
    assert hits.to_numpy().max() < 1


def test_timing_shares_the_reorder_out_over_its_interval(timed):
    table = pd.read_parquet(timed / "table.parquet")
    rows = table[(table["ordering"] == "hilbert") & (table["filling_fraction"] == 0.3)]
    times = rows.groupby("phase")["time_ms"]
    share = times.get_group("step with reorder").to_numpy() - times.get_group("step").to_numpy()
    assert share == pytest.approx(times.get_group("reorder").median() / 500)


def test_the_speed_up_of_the_summary_is_the_ratio_of_the_medians(timed):
    summary = pd.read_csv(timed / "summary.csv")
    table = pd.read_parquet(timed / "table.parquet")
    medians = table.groupby(["filling_fraction", "phase", "ordering"])["time_ms"].median()
    row = summary[
        (summary["filling_fraction"] == 0.05)
        & (summary["phase"] == "force")
        & (summary["ordering"] == "hilbert")
    ].iloc[0]
    wanted = medians[0.05, "force", "shuffled"] / medians[0.05, "force", "hilbert"]
    assert row["speed_up_over_shuffled"] == pytest.approx(wanted)
    assert summary[summary["ordering"] == "lattice"]["speed_up_over_lattice"].dropna().eq(1).all()


def test_a_reorder_inside_a_sample_is_counted_where_it_is():
    case = timing.Config(n=64, search="linked", ordering="row", warmup=2, steps=3, reorder_every=5)
    assert [timing._reorders(case, range(first, first + 3)) for first in (3, 6, 9, 12)] == [0, 1, 0, 1]
    assert timing._reorders(timing.Config(n=64, search="linked", ordering="shuffled"), range(1000)) == 0


def test_timing_leaves_figures_in_both_formats_and_its_provenance(timed):
    for name in ("speed_up_n2048_linked_float64", "phases_n2048_linked_float64"):
        assert (timed / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (timed / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert json.loads((timed / "provenance.json").read_text())["finished"] == 14


def test_timing_replots_a_table_without_a_baseline(timed, tmp_path):
    table = pd.read_parquet(timed / "table.parquet")
    timing.draw(table[table["ordering"].isin(["row", "hilbert"])], tmp_path)
    assert (tmp_path / "speed_up_n2048_linked_float64.png").exists()


@pytest.mark.parametrize(
    ("part", "message"), [(0, "the forces came out wrong"), (1, "the temperature .* under ordering")]
)
def test_a_wrong_answer_is_never_recorded(monkeypatch, part, message):
    case = timing.Config(
        n=512,
        filling_fraction=0.3,
        search="linked",
        precision="float64",
        fused=False,
        ordering="row",
        backend="cpu",
    )
    reference = timing._reference

    def off(wanted):
        forces, temperature = reference(wanted)
        return (forces * 1.001, temperature) if part == 0 else (forces, temperature * 1.001)

    monkeypatch.setattr(timing, "_reference", off)
    with pytest.raises(ValueError, match=message):
        list(timing.measure(case))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ordering": ("hilbrt",)}, "unknown ordering 'hilbrt'; known: shuffled, lattice, butz, .*hilbert"),
        ({"filling_fraction": (0.6,)}, r"--filling-fraction 0.6 cannot be packed; allowed: 0 < phi <= 0.5"),
        ({"n": (0,)}, "--n 0; allowed: at least 2"),
        ({"reorder_every": 0}, "--reorder-every 0; allowed: at least 1"),
        ({"precision": "half"}, "unknown precision 'half'; known: float32, float64"),
    ],
)
def test_timing_refuses_bad_values(change, message):
    with pytest.raises(ValueError, match=message):
        timing.Config(**change)


def test_timing_takes_searches_precisions_sizes_and_fusion_as_axes(tmp_path):
    axes = ["--n", "512", "1024", "--filling-fraction", "0.2", "--search", "linked", "coherent"]
    axes += [
        "--precision",
        "float32",
        "--fused",
        "True",
        "--ordering",
        "shuffled",
        "hilbert",
        "--scene",
        "shared",
    ]
    folder = run(timing, tmp_path, *axes, "--samples", "2", "--steps", "4", "--reorder-every", "2")
    table = pd.read_parquet(folder / "table.parquet")
    found = set(table[["n", "search", "ordering"]].itertuples(index=False, name=None))
    assert found == {
        (n, *kind)
        for n in (512, 1024)
        for kind in (("linked", "shuffled"), ("linked", "hilbert"), ("coherent", "hilbert"))
    }
    assert "integrate" not in set(table["phase"])
    sorted_rows = table[
        (table["n"] == 512) & (table["search"] == "linked") & (table["ordering"] == "hilbert")
    ]
    counts = sorted_rows.groupby("phase").size()
    assert counts["force"] == 2
    assert counts["reorder"] == 2 + 4
    assert counts["step"] == 2
    for name in (
        "sizes_float32_fused",
        "phases_n512_linked_float32_fused",
        "phases_n1024_coherent_float32_fused",
    ):
        assert (folder / f"{name}.png").exists()
