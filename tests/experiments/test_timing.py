"""The experiments there are: each runs small, and its table says what it should."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import md
from experiments import counters, timing
from experiments.__main__ import LIST, listing
from experiments.__main__ import main as list_experiments
from experiments.core.settings import cases
from experiments.drawing import style
from experiments.drawing.charts import draw
from tests.experiments.runs import one, run
from tests.tiers import full

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> Path:
    small = ["--quick", "--n", "2048", "--filling-fraction", "0.05", "0.3", "--rounds", "3"]
    return run(timing, tmp_path_factory.mktemp("timing"), *small)


def test_the_list_of_experiments_has_a_line_for_each():
    lines = listing()
    assert {"timing", "curves"} <= set(lines)
    assert all(lines.values())


def test_python_m_experiments_prints_the_list():
    found = subprocess.run(
        [sys.executable, "-m", "experiments"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    words = " ".join(found.split())
    assert all(f"{name} {line}" in words for name, line in listing().items())
    assert max(map(len, found.splitlines())) <= 100


@pytest.mark.quick
@pytest.mark.parametrize("word", LIST)
def test_the_list_can_be_asked_for(word, capsys):
    assert list_experiments([word]) == 0
    assert "  timing " in capsys.readouterr().out


@pytest.mark.quick
@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("tming", "error: unknown experiment 'tming'; .*did you mean python -m experiments.timing?"),
        ("zzz", "error: unknown experiment 'zzz'; allowed: those listed above; take one of the list above"),
        ("timing", "error: timing is run as a module: python -m experiments.timing"),
        ("report", "error: report is run as a module: python -m experiments.results.page"),
    ],
)
def test_an_unknown_experiment_ends_with_status_2_the_list_and_the_nearest_name(word, remedy, capsys):
    assert list_experiments([word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "  timing " in err
    assert re.fullmatch(remedy.replace("?", r"\?"), err.splitlines()[-1])


def test_timing_has_every_case_with_every_phase_in_every_round(timed):
    table = pd.read_parquet(timed / "table.parquet")
    counts = table.groupby(["filling_fraction", "ordering", "phase"])["round"].apply(sorted)
    assert len(table.groupby(["filling_fraction", "ordering"])) == 2 * (5 + 1)
    assert all(rounds == [0, 1, 2] for rounds in counts)
    bare = {"force", "build", "integrate", "step", "step with reorder"}
    for ordering, rows in table.groupby("ordering"):
        reorders = ordering not in ("shuffled", "lattice", "shuffled again")
        assert set(rows["phase"]) == bare | ({"reorder"} if reorders else set())
        assert rows["first_reorder_ms"].notna().all() == reorders
    assert (table["time_ms"] > 0).all()
    assert (table["particles"] == 2048).all()
    ages = table.groupby("ordering")["age_steps"]
    assert ages.count()["shuffled"] == 0
    whole = table[table["phase"] == "step"]
    fresh = whole[~whole["ordering"].isin(["shuffled", "shuffled again", "lattice"])]
    assert (fresh["age_steps"] == 2).all()
    assert (table.loc[table["ordering"].eq("row") & table["phase"].eq("force"), "age_steps"] == 3).all()
    # A step, two more, an untimed round; in each round one that is not timed, one as a whole, one by phases.
    lattice = table[(table["ordering"] == "lattice") & (table["filling_fraction"] == 0.05)]
    assert lattice[lattice["phase"] == "force"]["age_steps"].tolist() == [9, 12, 15]
    assert lattice[lattice["phase"] == "step"]["age_steps"].tolist() == [8, 11, 14]


@pytest.mark.parametrize("experiment", [timing, counters])
def test_what_is_sampled_twice_is_prepared_twice_alike(experiment, monkeypatch):
    asked, accesses = [], md.Simulation.accesses
    monkeypatch.setattr(
        md.Simulation, "accesses", lambda simulation: asked.append(simulation) or accesses(simulation)
    )
    common = {"n": 1000, "filling_fraction": 0.2, "rounds": 1, "runs": 1, "precision": "float64"}
    config = experiment.Config(**common, backend="cpu", search="linked", ordering=("shuffled", "hilbert"))
    (case,) = cases(config)
    next(experiment.measure(case.config))
    assert len(asked) == len(set(map(id, asked))) == 3  # shuffled, hilbert, shuffled again


def test_timing_runs_the_same_physics_under_every_ordering(timed):
    table = pd.read_parquet(timed / "table.parquet")
    assert set(table.loc[table["temperature_end"].notna(), "round"]) == {2}  # it is found when all is timed
    for _, rows in table.groupby("filling_fraction"):
        ends = rows["temperature_end"].dropna()
        assert ends.max() - ends.min() < 1e-9 * ends.max()
        assert (rows["temperature_start"] > ends.max()).all()


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
    times = rows.set_index("round").groupby("phase")["time_ms"]
    share = times.get_group("step with reorder") - times.get_group("step")
    assert share.to_numpy() == pytest.approx(times.get_group("reorder").to_numpy() / 500)


def test_the_gains_of_the_summary_are_ratios_of_one_round(timed):
    summary = pd.read_csv(timed / "summary.csv")
    table = pd.read_parquet(timed / "table.parquet")
    table = table[(table["filling_fraction"] == 0.05) & (table["phase"] == "force")]
    times = table.pivot(index="round", columns="ordering", values="time_ms")
    those = summary[(summary["filling_fraction"] == 0.05) & (summary["phase"] == "force")]
    row = those.set_index("ordering").loc["hilbert"]
    for baseline in ("shuffled", "lattice"):
        wanted = times[baseline] / times["hilbert"]
        name = f"gain_over_{baseline}"
        expected_message = row[
            [f"{name}_median_of_rounds", f"{name}_lowest_round", f"{name}_highest_round"]
        ].tolist()
        assert expected_message == pytest.approx([wanted.median(), wanted.min(), wanted.max()])
    assert set(summary["ordering"]) == set(times) - {"shuffled again"}
    assert row["memory"] == "fresh (3 steps)"
    assert those.set_index("ordering").loc["lattice", "memory"] == "aged (15 steps)"
    noise = (times["shuffled"] / times["shuffled again"]).median()
    assert row["noise_floor_lattice"] == pytest.approx(max(noise, 1 / noise))
    assert not [name for name in summary if name.startswith("difference")]  # one run: no verdict


def test_timing_leaves_figures_and_its_provenance(timed):
    for name in ("gain_n2048_linked_float64", "phases_n2048_linked_float64"):
        assert (timed / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((timed / "provenance.json").read_text())["finished"] == 2


def test_the_figure_of_gains_tells_ages_and_has_a_row_of_dots_for_each_order(timed, tmp_path, monkeypatch):
    figures = {}
    monkeypatch.setattr(style, "save", lambda figure, out, name, *_: figures.update({name: figure}))
    draw(timing.VIEWS, pd.read_parquet(timed / "table.parquet"), tmp_path)
    figure = figures["gain_n2048_linked_float64"]
    shuffled, lattice, fastest = figure.axes[0::2]  # one of the two filling fractions
    predicted = figures["foreseen_n2048_linked_float64"].axes[-2]
    assert "orders: fresh (2 steps)" in figure.get_suptitle()
    assert lattice.get_xlabel().endswith("lattice memory, aged (14 steps)")
    assert shuffled.get_xlabel().endswith("over\nshuffled memory")
    assert shuffled.get_xscale() == lattice.get_xscale() == "log"
    names = [label.get_text() for label in predicted.get_yticklabels()]
    for panel, baseline in ((shuffled, "shuffled"), (lattice, "lattice")):
        shown = [label.get_text() for label in panel.get_yticklabels()]
        assert shown == [name for name in names if name != baseline]
    assert {"shuffled", "lattice", "row", "hilbert"} <= set(names)
    assert {label.get_text() for label in fastest.get_yticklabels()} == {"row", "morton", "hilbert"}
    assert 1 in {dot[0].get_xdata()[0] for dot in fastest.containers}  # the best over itself
    drawn = [sum(len(dot[0].get_xdata()) for dot in panel.containers) for panel in (predicted, lattice)]
    assert drawn == [len(names), len(names) - 1]  # no gain of the baseline over itself


def test_timing_replots_a_table_without_a_baseline(timed, tmp_path):
    table = pd.read_parquet(timed / "table.parquet")
    draw(timing.VIEWS, table[table["ordering"].isin(["row", "hilbert"])], tmp_path)
    assert (tmp_path / "gain_n2048_linked_float64.png").exists()


def test_the_gas_is_made_of_copies_if_its_number_divides_into_large_ones(monkeypatch):
    gas, box = timing._gas.__wrapped__, md.scenes.box_for(512, 0.2)
    whole = md.preparation.granular_gas(0.2, box, seed=1, backend="cpu").pos
    assert (gas("tiled", 512, 0.2, 1, "cpu").pos == whole).all()  # too few for copies
    monkeypatch.setattr(md.preparation, "copies_for", lambda n: 2)
    found = gas("tiled", 512, 0.2, 1, "cpu").pos
    assert (found == md.preparation.tiled_gas(0.2, box, 2, seed=1, backend="cpu").pos).all()
    assert not np.array_equal(found, whole)
    assert (gas("granular", 512, 0.2, 1, "cpu").pos == whole).all()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (0, "the forces in float64 differ from those of another search by"),
        (1, "the temperature .* under ordering 'row' differs from"),
    ],
)
def test_a_wrong_answer_is_never_recorded(monkeypatch, part, message):
    case = timing.Config(
        n=512,
        filling_fraction=0.3,
        search="linked",
        precision="float64",
        fused=False,
        ordering=("row",),
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
        (
            {"ordering": ("hilbrt",)},
            "unknown ordering 'hilbrt'; allowed: one of shuffled, lattice, .*hilbert",
        ),
        (
            {"filling_fraction": (0.6,)},
            "--filling-fraction = 0.6; .* up to 0.5; more cannot be packed",
        ),
        ({"n": (0,)}, "--n = 0; allowed: an integer of at least 2"),
        ({"reorder_every": 0}, "--reorder-every = 0; allowed: an integer of at least 1"),
        ({"steps": 9, "reorder_every": 8}, "--steps 9 beside --reorder-every 8; allowed: up to as many"),
        ({"precision": "half"}, "unknown precision 'half'; allowed: one of float32, float64"),
    ],
)
def test_timing_refuses_bad_values(change, message):
    with pytest.raises(ValueError, match=message):
        timing.Config(**change)


@pytest.mark.parametrize(("precision", "fused"), [("float32", True), ("float64", False)])
def test_timing_is_of_the_precision_and_the_steps_that_are_asked_for(precision, fused):
    case = one(timing, n=(512,), scene="shared", precision=(precision,), fused=(fused,))
    simulation = timing._simulation(case, "linked", "shuffled")
    assert (simulation.system.particles.pos.dtype, simulation.config.fused) == (precision, fused)


@pytest.mark.parametrize("precision", [full("float32"), "float64"])
def test_timing_takes_searches_precisions_sizes_and_fusion_as_axes(precision, tmp_path):
    axes = ["--n", "512", "1024", "--filling-fraction", "0.2", "--search", "linked", "coherent"]
    axes += ["--precision", precision, "--fused", "True", "--ordering", "shuffled", "hilbert"]
    axes += ["--scene", "shared"]
    folder = run(
        timing, tmp_path, *axes, "--runs", "1", "--rounds", "2", "--steps", "4", "--reorder-every", "7"
    )
    table = pd.read_parquet(folder / "table.parquet")
    found = set(table[["n", "search", "ordering"]].itertuples(index=False, name=None))
    assert found == {
        (n, *kind)
        for n in (512, 1024)
        for kind in (
            ("linked", "shuffled"),
            ("linked", "hilbert"),
            ("linked", "shuffled again"),
            ("coherent", "hilbert"),
            ("coherent", "hilbert again"),
        )
    }
    assert "integrate" not in set(table["phase"])
    rows = table[(table["n"] == 512) & (table["search"] == "linked") & (table["ordering"] == "hilbert")]
    counts = rows.groupby("phase").size()
    assert counts["force"] == counts["step"] == 2
    assert counts["reorder"] == 2 * 2  # before whole steps and, for 8 steps are more than 7, before phases
    for name in (
        f"sizes_{precision}_fused",
        f"phases_n512_linked_{precision}_fused",
        f"phases_n1024_coherent_{precision}_fused",
    ):
        assert (folder / f"{name}.png").exists()
