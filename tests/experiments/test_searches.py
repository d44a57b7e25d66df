"""experiments.searches: every case checked, its rows beside the floor."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import md
from experiments import searches
from experiments.core import main

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
AXES += ["--samples", "2", "--steps", "3", "--warmup", "80"]


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
    main(searches.Config, searches.measure, searches.draw, searches.QUICK, flags)
    return next((results / "searches").iterdir())


def test_every_case_has_a_row_for_each_sample(folder, found):
    table = pd.read_parquet(folder / "table.parquet")
    cases = table.groupby(["n", "search", "cell_order"]).size()
    assert len(cases) == 2 * len(found) * 2
    assert (cases == 2).all()
    assert (table["time_ms"] > 0).all()
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
        assert np.ptp(rows["temperature_end"]) < 1e-9
    each = table.groupby("search")
    assert (each["steps_per_build"].max() == 1).drop("verlet").all()
    assert each["steps_per_build"].min()["verlet"] > 1
    read = each["partners_read"].mean()
    assert read["verlet"] < read["coherent"] < read["naive"]
    assert read.get("tiles", read["coherent"]) == read["coherent"]


def test_figures_and_medians_are_there(folder, found):
    assert (folder / "sizes_float64.png").read_bytes().startswith(b"\x89PNG")
    spread = pd.read_csv(folder / "summary.csv")
    assert len(spread) == 4 * len(found)
    assert (spread["time_ms_q25"] <= spread["time_ms_median"]).all()


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
        search="verlet",
        cell_order="row",
        precision="float64",
    )
    with pytest.raises(ValueError, match="verlet finds other pairs than linked; not recorded"):
        next(searches.measure(case))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": ("verle",)}, "unknown search 'verle'; known: naive, .*verlet"),
        ({"cell_order": ("hilbrt",)}, "unknown cell_order 'hilbrt'; known: .*hilbert"),
        ({"skin": -0.1}, "--skin -0.1; allowed: at least 0"),
        ({"filling_fraction": (0.7,)}, "--filling-fraction 0.7; allowed: above 0, up to 0.5"),
        ({"n": (1,)}, "--n 1; allowed: at least 2"),
        ({"search": ("lbvh",)}, "--search lbvh beside --cell-order row; allowed: .*morton"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        searches.Config(**change)
