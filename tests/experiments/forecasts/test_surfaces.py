"""Foreseen surfaces beside measured ones: cases that are matched, the wear of an order, and the figure."""

import numpy as np
import pandas as pd
import pytest

from experiments.forecasts import surfaces
from experiments.forecasts.surfaces import CASE, beside, fresh_law, main, reads, wear
from sfc.cache import Machine

GAS = {"scene": "cube", "ordering": "hilbert", "search": "linked", "precision": "float32",
       "filling_fraction": 0.2, "occupied_MB": 0.0}  # fmt: skip
PATHS = (0.0, 2.0, 8.0)


def foreseen_of(n: int, gain: float, path: float = 0.0, machine: str = "h100") -> dict:
    return GAS | {"machine": machine, "n": n, "path_d": path, "gain": gain, "w": n / 1e6, "part": "force"}


def timed_of(n: int, gains, path: float = 0.0, machine: str = "h100", part: str = "force") -> list[dict]:
    common = GAS | {"device": Machine.read(machine).name, "n": n, "path_d": path, "part": part}
    common |= {"w": n / 1e6, "particles": n, "flown_d": path + 0.1}
    return [common | {"gain": gain} for gain in gains]


def test_cases_are_those_of_the_force_on_the_same_chip():
    predicted = pd.DataFrame([
        foreseen_of(1000, 2.0), foreseen_of(1000, 3.0, machine="h200"), foreseen_of(2000, 4.0),
    ])  # fmt: skip
    timed = pd.DataFrame([
        *timed_of(1000, (1.0, 2.0, 4.0)), *timed_of(1000, (9.0,), part="step"), *timed_of(3000, (1.0,)),
        *timed_of(1000, (5.0,), machine="h200"),
    ])  # fmt: skip
    table = beside(predicted, timed)
    found = table[["machine", "n", "foreseen", "measured", "low", "high", "age_d"]].to_numpy().tolist()
    assert found == [["h100", 1000, 2.0, 2.0, 1.0, 4.0, 0.1], ["h200", 1000, 3.0, 5.0, 5.0, 5.0, 0.1]]
    assert set(CASE) <= set(table)


def worn(n: int, fresh: float, length: float) -> list[tuple[float, float]]:
    return [(path, 1 / (1 / fresh + (path + 0.1) / length)) for path in PATHS]


def test_the_wear_of_an_order_is_a_share_of_the_time_of_shuffled_memory_for_each_length():
    rows = [timed_of(1000, (gain,), path) for path, gain in worn(1000, 8.0, 60.0)]
    predicted = pd.DataFrame([foreseen_of(1000, gain, path) for path, gain in worn(1000, 4.0, 30.0)])
    table = beside(predicted, pd.DataFrame([one for each in rows for one in each]))
    for column, fresh, length in (("measured", 8.0, 60.0), ("foreseen", 4.0, 30.0)):
        (row,) = wear(table, column).to_dict("records")
        assert (row["fresh"], row["length_d"]) == (pytest.approx(fresh), pytest.approx(length))
        assert (row["n"], row["machine"]) == (1000, "h100")
    assert wear(table[table["path_d"] < 5], "measured").empty


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A root with predictions and a measured run, the pairs that were checked, and the folder of figures."""
    taken = {0.0: 5.0, 16.0: 7.0}  # MB that another kernel reads -> gain
    tables = {
        "predicted": pd.DataFrame(
            [foreseen_of(n, g, p) for n in (1000, 4000) for p, g in worn(n, 6.0, 50.0)]
        ),
        "other": pd.DataFrame([foreseen_of(9000, 2.0)]),
        "h100": pd.DataFrame([one for p, g in worn(1000, 8.0, 60.0) for one in timed_of(1000, (g, g), p)]),
        "predicted_16": pd.DataFrame([foreseen_of(1000, 9.0) | {"occupied_MB": 16.0}]),
        "h100_occupied": pd.DataFrame(
            [row | {"occupied_MB": size} for size, gain in taken.items() for row in timed_of(1000, (gain,))]
        ),
    }
    for name, table in tables.items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        table.to_parquet(tmp_path / "runs" / name / "table.parquet")
    checked = []
    monkeypatch.setattr(surfaces, "read_table_now", lambda run: tables[run.name])
    monkeypatch.setattr(surfaces, "require_earlier", lambda *pair: checked.append([one.name for one in pair]))
    return tmp_path / "runs", checked, tmp_path


def test_kept_runs_are_compared_with_earlier_predictions_and_drawn(runs, capsys):
    root, checked, out = runs
    main(root, out)
    assert sorted(checked) == [
        ["predicted", "h100"], ["predicted", "h100_occupied"], ["predicted_16", "h100_occupied"]
    ]  # fmt: skip
    assert (out / "foreseen_surface_h100.png").exists()
    printed = capsys.readouterr().out
    assert "'cases': 3" in printed  # none of those beside another kernel
    assert "60.0" in printed
    beside_a_kernel = printed[printed.index("beside a kernel") :].splitlines()[2:4]
    assert [line.split()[-3:] for line in beside_a_kernel] == [["5.0"] * 3, ["7.0"] * 3]


def test_a_law_is_fitted_to_forecasts_or_to_what_was_measured():
    cases = [(n, phi) for n in (10**6, 2 * 10**6, 4 * 10**6) for phi in (0.05, 0.2)]
    own = [{"n": n, "filling_fraction": phi, "w": n / 1e6, "gain": 2 * reads(phi) ** 0.3 * (n / 1e6) ** 0.5}
           for n, phi in cases]  # fmt: skip
    table = pd.DataFrame([GAS | one | {"machine": "h100", "path_d": 0.0} for one in own])
    table["measured"] = 3 * table["gain"]
    for column, factor in (("gain", 2), ("measured", 6)):
        law = fresh_law(table, "h100", column)
        assert law[:3] == pytest.approx((factor, 0.3, 0.5))
        assert (law.worst, law.cases) == (pytest.approx(0, abs=1e-9), 6)
        assert law.gain(0.2, 2.0) == pytest.approx(factor * reads(0.2) ** 0.3 * 2**0.5)


def test_lines_are_foreseen_and_points_measured(runs, monkeypatch):
    root, _, out = runs
    drawn = []
    monkeypatch.setattr(surfaces.style, "save", lambda figure, *given: drawn.append(figure))
    main(root, out)
    (panel,) = drawn[0].axes
    lines = [
        one.get_xydata() for one in panel.lines if len(one.get_xdata()) == 2 and one.get_color() != "grey"
    ]
    assert np.allclose(lines[0][:, 0], [0.001, 0.004])
    points = [one.get_xydata() for one in panel.lines if len(one.get_xdata()) == 1]
    assert [one[0][1] for one in points] == pytest.approx([gain for _, gain in worn(1000, 8.0, 60.0)])
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["0 d", "2 d", "8 d"]


def test_unknown_devices_and_runs_without_forecasts_are_refused(runs, tmp_path):
    timed = pd.DataFrame(timed_of(1000, (2.0,))).assign(device="GPU of tomorrow")
    with pytest.raises(ValueError, match="device 'GPU of tomorrow' has no file of a machine; known: NVIDIA"):
        beside(pd.DataFrame([foreseen_of(1000, 2.0)]), timed)
    root, *_ = runs
    for file in (root / "h100").iterdir():
        file.unlink()
    with pytest.raises(ValueError, match="no measured case that was foreseen"):
        main(root, tmp_path)
