"""experiments.searches: every search checked, sampled in the same rounds, its rows beside the floor."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import md
from experiments import searches, timing
from experiments.core import main
from experiments.drawing.charts import draw
from experiments.processes.separate_run import all_rows
from experiments.results.kept.queries import REFERENCE
from md.particles.state import sphere_volume
from md.search.lists.step_costs import StepCosts

AXES = [
    "--backend",
    "cpu",
    "--n",
    "400",
    "512",
    "--filling-fraction",
    "0.2",
    "--cell-order",
    "row",
    "hilbert",
]
AXES += ["--runs", "1", "--rounds", "2", "--steps", "3", "--warmup", "80"]


FEW = ("naive", "linked", "coherent", "verlet")
ALL = (*FEW, "scattered", "tiles")


@pytest.fixture(
    scope="module", params=[FEW, pytest.param(ALL, marks=pytest.mark.nightly)], ids=["few", "all"]
)
def found(request) -> tuple[str, ...]:
    """The searches that are measured."""
    return request.param


@pytest.fixture(scope="module")
def folder(found, tmp_path_factory) -> Path:
    results = tmp_path_factory.mktemp("searches")
    flags = [*AXES, "--search", *found, "--results", str(results)]
    main(searches.Config, searches.measure, searches.VIEWS, searches.QUICK, flags)
    return next((results / "searches").iterdir())


def test_every_round_has_each_search_in_each_order_of_the_cells(folder, found):
    table = pd.read_parquet(folder / "table.parquet")
    assert (
        table.groupby(["n", "search", "cell_order"])["round"].apply(sorted).map(lambda r: r == [0, 1]).all()
    )
    each = table[table["n"] == 512].groupby("round")
    for _, rows in each:
        kinds = set(zip(rows["search"], rows["cell_order"], strict=True))
        assert len(rows) == len(kinds) == 2 * len(found) + 1
        assert ("linked again", "row") in kinds
    assert (table["time_ms"] > 0).all()
    assert np.allclose(table["sample_ms"], 3 * table["time_ms"])
    rate = 1e3 * table["n"] / table["time_ms"]
    assert np.allclose(table["particle_steps_per_s"], rate)
    assert np.allclose(table["share_of_floor"], table["floor_ms"] / table["time_ms"])
    assert np.allclose(table["moved_GB_per_s"], rate * 4 * 24 / 1e9)  # rows of three float64 lie packed
    assert np.allclose(table["asked_GB_per_s"], rate * (4 + table["partners_read"]) * 24 / 1e9)


def test_searches_see_the_same_gas_and_lists_outlive_a_step(folder):
    table = pd.read_parquet(folder / "table.parquet")
    for _, rows in table.groupby("n"):
        assert rows["touching_pairs"].nunique() == 1
        assert rows["touching_pairs"].iloc[0] > 10
        assert np.ptp(rows["temperature_start"]) < 1e-9
        assert np.ptp(rows["temperature_end"].dropna()) < 1e-9
        assert rows.loc[rows["round"] == 1, "temperature_end"].notna().all()
    each = table.groupby("search")
    assert (each["steps_per_build"].max() == 1).drop("verlet").all()
    assert each["steps_per_build"].min()["verlet"] > 1
    read = each["partners_read"].mean()
    assert read["verlet"] < read["coherent"] < read["naive"]
    assert read.get("tiles", read["coherent"]) == read["coherent"]


def test_memory_is_aged_where_the_search_does_not_sort_it(folder):
    table = pd.read_parquet(folder / "table.parquet")
    aged = table.groupby("search")["age_steps"].agg(lambda steps: steps.notna().all())
    kinds = md.search.SEARCHES
    assert all(
        is_aged != kinds[name.removesuffix(" again")].capabilities.moves_particles
        for name, is_aged in aged.items()
    )
    steps = table[table["search"] == "linked"].groupby("round")["age_steps"].max()
    assert steps[1] - steps[0] == 1 + 3  # one that is not timed
    assert steps[0] >= 80 + 2 * (1 + 3)  # after the warm-up and a round that is not timed


def test_figures_and_gains_of_each_round_are_there(folder, found):
    for name in ("sizes_float64.png", "gains_float64.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    summary = pd.read_csv(folder / "summary.csv")
    assert len(summary) == 2 * 2 * len(found)
    assert not summary["search"].str.endswith("again").any()
    assert summary.set_index("search").loc["linked", "age_steps"].ge(80).all()
    assert summary.set_index("search").loc["verlet", "age_steps"].isna().all()
    assert (summary["time_ms_lowest_round"] <= summary["time_ms_median_of_rounds"]).all()
    assert summary["floor_ms"].gt(0).all()
    table = pd.read_parquet(folder / "table.parquet").set_index(["n", "search", "cell_order", "round"])
    times = table["time_ms"].sort_index()
    ratio = times.loc[512, "linked", "row"] / times.loc[512, "coherent", "hilbert"]
    row = summary[(summary["n"] == 512) & (summary["name"] == "coherent, hilbert")].iloc[0]
    assert row["gain_over_linked_row_median_of_rounds"] == pytest.approx(ratio.median())
    twin = (times.loc[512, "linked", "row"] / times.loc[512, "linked again", "row"]).median()
    assert row["noise_floor_linked_row"] == pytest.approx(max(twin, 1 / twin))
    baseline = summary[summary["name"] == "linked, row"]
    assert baseline["gain_over_linked_row_median_of_rounds"].isna().all()


def test_without_linked_the_first_search_is_measured_twice():
    case = searches.Config(
        backend="cpu", n=400, filling_fraction=0.2, search=("coherent", "verlet"), cell_order=("row",),
        precision="float64", rounds=1, steps=1, warmup=1,
    )  # fmt: skip
    names = {row["search"] for row in all_rows(searches.measure(case))}
    assert names == {"coherent", "verlet", "coherent again"}


def test_lists_have_the_widths_that_they_have_in_timing_unless_one_is_given():
    fixed = {"backend": "cpu", "n": 400, "filling_fraction": 0.2, "precision": "float32"}
    place = md.backend.get("cpu")

    def lists(**fields):
        case = searches.Config(**fixed, search=("verlet",), **fields)
        return searches._simulation(case, place, "verlet", "row").config.search

    case = timing.Config(**fixed, scene="shared", search="verlet", ordering=("row",), fused=True)
    assert lists() == timing._simulation(case, "verlet", "row").config.search
    assert lists(skin=0.3) == md.search.Verlet("row", 0.3)


def test_a_search_compared_with_itself_alone_is_drawn(tmp_path):
    case = searches.Config(
        backend="cpu", n=400, filling_fraction=0.2, search=("linked",), cell_order=("row",),
        precision="float64", rounds=2, steps=1, warmup=1,
    )  # fmt: skip
    table = pd.DataFrame(all_rows(searches.measure(case)))
    table = table.assign(n=400, filling_fraction=0.2, precision="float64", run=0)
    draw(searches.VIEWS, table, tmp_path)
    assert [path.name for path in tmp_path.glob("*.png")] == ["sizes_float64.png"]
    assert pd.read_csv(tmp_path / "summary.csv")["search"].tolist() == ["linked"]


def test_a_search_that_misses_a_pair_is_not_recorded(monkeypatch):
    right = md.Simulation.pairs
    monkeypatch.setattr(
        md.Simulation,
        "pairs",
        lambda sim: right(sim)[:-1] if sim.search.name == "verlet" else right(sim),
    )
    case = searches.Config(
        backend="cpu",
        n=512,
        filling_fraction=0.2,
        search=("verlet",),
        cell_order=("row",),
        precision="float64",
    )
    with pytest.raises(ValueError, match="verlet finds other pairs than linked; not recorded"):
        next(searches.measure(case))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": ("verle",)}, "unknown search 'verle'; allowed: one of naive, .*verlet"),
        ({"cell_order": ("hilbrt",)}, "unknown cell_order 'hilbrt'; allowed: .*hilbert"),
        ({"skin": -0.1}, "--skin = -0.1; allowed: .*at least 0"),
        ({"filling_fraction": (0.7,)}, "--filling-fraction = 0.7; allowed: .*above 0, up to 0.5"),
        ({"n": (1,)}, "--n = 1; allowed: .*at least 2"),
        ({"search": ("lbvh",)}, "--search lbvh beside --cell-order row; allowed: .*morton"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        searches.Config(**change)


SAID = {0.05: (1.31, 1.33), 0.2: (1.05, 1.08), 0.4: (1.0, 1.03)}  # in details/gas.md


@pytest.mark.parametrize(("run", "timed"), [("h200", "h200_three_runs"), ("h100", "h100")])
@pytest.mark.parametrize("filling", [0.05, 0.2, 0.4])
def test_kept_times_of_lists_of_0_3_d_are_longer_as_the_model_of_widths_says(run, timed, filling):
    case = "search == 'verlet' and filling_fraction == @filling and n == 2**21"
    narrow = pd.read_parquet(REFERENCE / "searches" / run / "table.parquet").query(case)
    own = pd.read_parquet(REFERENCE / "timing" / timed / "table.parquet").query(case)
    own = own.query("phase == 'step' and ordering == 'row'")
    measured = narrow["time_ms"].mean() / own["time_ms"].mean()
    costs = StepCosts(2**21, filling / sphere_volume(3), 1.0, 3)
    ratios = []
    for temperature in (own["temperature_start"].max(), own["temperature_end"].min()):
        stride = 6 * temperature**0.5 * md.scenes.BENCHMARK_DT  # of the fastest of two million particles
        times = [
            costs.time(*map(np.array, costs.fastest(stride, skin, None, 20.0)), stride)
            for skin in (0.3, None)
        ]
        ratios.append(float(times[0] / times[1]))
    assert min(ratios) / 1.1 < measured < max(ratios)  # the model is within 10 %
    low, high = SAID[filling]
    assert (round(min(ratios), 2), round(max(ratios), 2)) == (low, high)
    text = " ".join((REFERENCE.parent / "details" / "gas.md").read_text(encoding="utf-8").split())
    assert f"{measured:.2f}" in text
