"""experiments.cavity_flow: steady flows against published values, verdicts and pictures."""

import numpy as np
import pandas as pd
import pytest

from experiments import cavity_flow
from experiments.core import main
from experiments.drawing.film import can_film
from md.cavity.validation.references import GHIA, HELD_TO
from md.errors import NonFiniteField
from tests.experiments.runs import one, run

SMALL = ("--quick", "--n", "17", "--drawn", "17", "--film-n", "17", "--film-time", "0.5", "--pictures", "3",
         "--settled", "1e-3")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(
        cavity_flow, tmp_path_factory.mktemp("flow"), *SMALL, "--n", "9", "17", "--scheme", "staggered",
        "collocated", "--largest-halved", "8",
    )  # fmt: skip


def test_the_staggered_grid_is_near_the_truth_and_keeps_mass(folder):
    found = pd.read_csv(folder / "summary.csv")
    assert set(found["n"]) == {9, 17}
    found = found[found["n"] == 17]
    whole = found[found["dt_factor"] == 1]
    errors = whole["error_percent"].abs().groupby(whole["scheme"])
    assert errors.max()["staggered"] < 12 < 30 < errors.min()["collocated"]
    assert whole["dt_change_percent"].isna().all()
    halved = found[found["dt_factor"] == 0.5]
    assert set(halved["scheme"]) == {"staggered"}  # --largest-halved 8
    assert halved["dt_change_percent"].abs().max() < 0.2
    flows = pd.read_csv(folder / "deviations.csv")
    flows = flows.set_index(["n", "scheme", "dt_factor"]).loc[17]["net_flow"]
    assert abs(flows["staggered", 1.0]) < 0.01 < 0.03 < abs(flows["collocated", 1.0])
    assert np.isnan(flows["staggered", 0.5])


def test_fields_are_drawn_at_one_size_and_the_start_of_one_flow_is_filmed(folder):
    table = pd.read_parquet(folder / "table.parquet")
    fields = table[table["what"] == "field"]
    assert fields.groupby("scheme").size().to_dict() == {"staggered": 17 * 17, "collocated": 17 * 17}
    assert (fields.loc[(fields["y"] == 1) & fields["x"].between(0.01, 0.99), "u"] == 1).all()
    pictures = table[table["what"] == "film"]
    assert set(pictures["scheme"]) == {"staggered"}
    assert sorted(pictures["time"].unique()) == pytest.approx([0, 0.25, 0.5], abs=0.02)
    rest = pictures[pictures["time"] == 0]
    assert len(rest) == 17 * 17
    assert (rest[["u", "v"]] == 0).all(axis=None)
    assert {path.name for path in folder.glob("*.png")} == {"centre_lines.png", "errors.png", "flow_100.png"}
    assert (folder / "film.mp4").exists() == can_film()


@pytest.mark.full
def test_without_the_lids_pressure_the_flow_depends_on_the_time_step_and_is_drawn_again(tmp_path):
    folder = run(cavity_flow, tmp_path, *SMALL, "--scheme", "collocated_closed", "--pictures", "0")
    changes = pd.read_csv(folder / "summary.csv")["dt_change_percent"].dropna()
    assert len(changes) == 4
    assert changes.abs().min() > 2
    figures = {path.name for path in folder.glob("*.png")}
    assert figures == {"centre_lines.png", "errors.png", "flow_100.png"}
    assert not list(folder.glob("*.mp4"))
    for name in figures:
        (folder / name).unlink()
    with pytest.raises(SystemExit) as ended:
        main(cavity_flow.Config, cavity_flow.measure, cavity_flow.VIEWS, {}, ["--replot", str(folder)])
    assert ended.value.code == 0
    assert {path.name for path in folder.glob("*.png")} == figures


def test_points_of_a_large_field_are_thinned():
    case = one(cavity_flow, scheme=("staggered",), reynolds=(100,), n=(33,), film_n=33, pictures=1)
    rows = pd.DataFrame(cavity_flow._start(case))
    assert len(rows) == 33**2
    case = one(cavity_flow, scheme=("staggered",), reynolds=(100,), n=(49,), film_n=49, pictures=1)
    rows = pd.DataFrame(cavity_flow._start(case))
    assert sorted(rows["x"].unique()) == pytest.approx(np.arange(25) / 24, abs=1e-5)


def extremes(
    scheme: str, values: dict[int, float], factor: float = 1.0, quantity: str = "u_min"
) -> pd.DataFrame:
    """Make rows of an extreme at Re 400, by n."""
    held = HELD_TO[400][quantity]
    rows = [
        {"what": "extreme", "repeat": 0, "scheme": scheme, "reynolds": 400, "n": n, "dt_factor": factor,
         "quantity": quantity, "value": value, "reference": held.extremes[quantity], "source": held.source}
        for n, value in values.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_verdict_holds_at_the_largest_n_and_time_step():
    reference = GHIA[400].extremes["u_min"]
    rows = pd.concat([
        extremes("staggered", {33: 0.8 * reference, 65: 0.981 * reference}),
        extremes("staggered", {65: 0.5 * reference}, 0.5),
        extremes("collocated", {33: reference, 65: 1.021 * reference}),
        extremes("collocated", {65: GHIA[400].extremes["psi"]}, quantity="psi"),
    ])  # fmt: skip
    found = cavity_flow.summary(rows)
    first, second = cavity_flow.largest_errors(found).to_dict("records")
    assert (first["scheme"], first["n"], first["is_within"]) == ("staggered", 65, True)
    assert abs(first["error_percent"]) == pytest.approx(1.9)
    assert (second["scheme"], second["n"], second["is_within"]) == ("collocated", 65, False)
    assert (second["quantity"], second["smallest_error_percent"]) == ("u_min", pytest.approx(0))
    changed = found[found["dt_factor"] == 0.5]["dt_change_percent"]
    assert changed.item() == pytest.approx(100 * 0.481 / 0.981)


def test_an_order_needs_three_spacings_halved_each_time():
    values = {n: -0.3 + 4.0 / (n - 1) ** 2 for n in (17, 33, 65, 81)}
    found = cavity_flow.summary(extremes("staggered", values)).set_index("n")["order"]
    assert found[65] == pytest.approx(2.0)
    assert found.drop(65).isna().all()
    stray = cavity_flow.summary(extremes("staggered", {17: 0.1, 33: 0.2, 65: 0.1}))
    assert stray["order"].isna().all()


def test_a_cavity_without_a_steady_state_is_reported_and_the_others_are_drawn(tmp_path, monkeypatch, capsys):
    whole = cavity_flow.steady_cavity

    def blows_up(grid, *arguments, **options):
        if grid == "collocated":
            raise NonFiniteField(7, (0, 0), "p", np.nan, 0.1, 0.2)
        return whole(grid, *arguments, **options)

    monkeypatch.setattr(cavity_flow, "steady_cavity", blows_up)
    flags = *SMALL, "--n", "9", "--pictures", "0", "--dt-factor", "1", "--scheme"
    folder = run(cavity_flow, tmp_path / "none", *flags, "collocated")
    assert list(folder.glob("*.png")) == []
    capsys.readouterr()
    folder = run(cavity_flow, tmp_path / "one", *flags, "staggered", "collocated")
    assert pd.read_csv(folder / "faults.csv")["scheme"].tolist() == ["collocated"]
    assert set(pd.read_csv(folder / "summary.csv")["scheme"]) == {"staggered"}
    printed = capsys.readouterr().err
    assert "no steady state: [cavity], p = 0 at the lid, reynolds 100, n 9, dt_factor 1: step 7" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scheme": ("none",)}, "unknown scheme 'none'; allowed: one of staggered"),
        ({"reynolds": (500,)}, "--reynolds 500; allowed: 100, 400, 1000"),
        ({"film_reynolds": 5}, "--film-reynolds 5; allowed: 100, 400, 1000"),
        ({"n": (3,)}, "--n = 3; allowed"),
        ({"dt_factor": (2.0,)}, "--dt-factor = 2.0; allowed"),
        ({"pictures": -1}, "--pictures = -1; allowed"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        cavity_flow.Config(backend="cpu", **change)
