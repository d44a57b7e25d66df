"""Forecasts of drawn gases: their settings, rows and answer."""

import pandas as pd
import pytest

from experiments import foreseen
from experiments.foreseen import Config, answer
from experiments.prediction.drawn_gases import DRAWS, LISTS, SEEN, SEEN_ON_CPU, cpu_gases, drawn_gases
from tests.experiments.runs import one


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"what": "guessed"}, "unknown what 'guessed'; allowed: .*predicted.*timed.*counted"),
        ({"cases": "all"}, "unknown cases 'all'; allowed: one of drawn, second, seen, lists, cpu, cpu_seen"),
        ({"gas": (34,)}, "--gas = 34; allowed: .* 33"),
        ({"gas": (18,), "cases": "seen"}, "--gas = 18; allowed: .* 17"),
        ({"gas": (-1,)}, "--gas = -1"),
        ({"machine": ("a100",)}, "machine 'a100'"),
        ({"what": "timed", "backend": "cpu"}, "--what timed of --cases second beside --backend cpu; allowed"),
        ({"what": "counted", "backend": "cpu"}, "--what counted of .* beside --backend cpu; allowed: cuda"),
        ({"cases": "cpu", "gas": (0,)}, "processor 'h100'"),
        ({"cases": "cpu", "gas": (16,)}, "--gas = 16; allowed: .* 15"),
        (
            {"cases": "cpu", "what": "ladder", "gas": (0,)},
            "--what ladder of --cases cpu; allowed: predicted, timed",
        ),
        ({"cases": "cpu", "what": "timed", "gas": (0,)}, "beside --backend auto; allowed: cpu"),
        ({"threads": 0}, "--threads = 0"),
    ],
)
def test_settings_out_of_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Config(**fields)


@pytest.mark.parametrize(
    ("cases", "gases"),
    [
        ("drawn", drawn_gases()),
        ("second", drawn_gases(seed=DRAWS["second"])),
        ("seen", SEEN),
        ("lists", LISTS),
    ],
)
def test_a_row_has_the_properties_of_its_gas(monkeypatch, cases, gases):
    given = []

    def foreseen_of(gas, machines, seed):
        given.append((gas, machines, seed))
        return [{"ordering": name, "time_us": 2.0} for name in gas.orderings]

    monkeypatch.setattr(foreseen, "foreseen", foreseen_of)
    rows = list(foreseen.measure(one(foreseen, cases=cases, gas=(7,), seed=3, machine=("h200",))))
    gas = gases[7]
    assert given == [(gas, ("h200",), 3)]
    assert [row["ordering"] for row in rows] == list(gas.orderings)
    for row in rows:
        properties = [row[name] for name in ("kernel", "particles", "filling_fraction", "precision")]
        assert properties == list(gas[:4])


def test_cases_of_cpus_are_foreseen_and_timed_there(monkeypatch):
    given = []
    monkeypatch.setattr(foreseen, "foreseen_on_cpu", lambda *one: given.append(one) or [{"ordering": "row"}])
    monkeypatch.setattr(foreseen, "timed_on_cpu", lambda *one: given.append(one) or [{"ordering": "row"}])
    gas = cpu_gases()[3]
    (row,) = foreseen.measure(one(foreseen, cases="cpu", gas=(3,), seed=2, machine=("epyc_genoa",)))
    assert (row["kernel"], row["particles"]) == gas[:2]
    options = {"what": "timed", "threads": 1}
    (row,) = foreseen.measure(one(foreseen, cases="cpu_seen", gas=(4,), seed=2, **options))
    assert row["threads"] == 1
    assert row["device"]
    assert given == [(gas, ("epyc_genoa",), 2), (SEEN_ON_CPU[4], 2, 1)]


@pytest.mark.parametrize("what", ["timed", "counted"])
def test_what_is_measured_has_the_name_of_its_device(monkeypatch, what):
    class Device:
        def describe(self):
            return {"device": "Chip 1"}

    rows = [{"ordering": "row", "time_us": 3.0}]
    monkeypatch.setattr(foreseen.md.backend, "get", lambda name: Device())
    monkeypatch.setattr(foreseen, "timed", lambda gas, seed: rows if what == "timed" else [])
    monkeypatch.setattr(foreseen, "counted", lambda gases, seed: rows if what == "counted" else [])
    case = one(foreseen, gas=(5,))
    object.__setattr__(case, "what", what)  # of a device that is not here
    (row,) = foreseen.measure(case)
    assert row["device"] == "Chip 1"
    assert row["time_us"] == 3.0


MORE = (7.0, 0.0, 50.0)  # us, in each round


def table_of(place: str = "machine") -> pd.DataFrame:
    """Two gases of three orders on two chips; of a device in three rounds."""
    rows = [
        {"gas": gas, "kernel": kernel, "particles": n, "filling_fraction": 0.2, "precision": "float32",
         "ordering": name, place: chip, "round": k, "time_us": time * factor + MORE[k]}
        for gas, kernel, n in ((0, "linked", 1000), (4, "spmv", 2000))
        for chip, factor in (("h100", 1.0), ("h200", 2.0))
        for name, time in (("shuffled", 31.0 + 30 * gas), ("hilbert", 10.0), ("row", 20.0))
        for k in range(3 if place == "device" else 1)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("place", ["machine", "device"])
def test_the_answer_compares_the_slowest_order_with_the_fastest(place):
    found = answer(table_of(place))
    # 158 over 17 us and 309 over 27 of spmv, 38 over 17 and 69 over 27 of linked
    assert found.sentence == (
        "6 launches of 2 gases; the slowest order of a gas takes up to 11.4 times as long as the fastest."
    )
    assert list(found.table.index) == [
        "spmv, 2,000, 0.2, float32 (h200)",
        "spmv, 2,000, 0.2, float32 (h100)",
        "linked, 1,000, 0.2, float32 (h200)",
        "linked, 1,000, 0.2, float32 (h100)",
    ]
    assert list(found.table.iloc[:, 0]) == ["11.4", "9.29", "2.56", "2.24"]


def test_the_answer_of_earlier_models_counts_cases():
    table = pd.DataFrame({"gas": [4, 4], "ordering": ["row", "hilbert"], "block": [0.5, 0.25]})
    assert answer(table).sentence.startswith("2 cases of earlier models")


def test_the_figure_has_a_row_for_each_gas_and_a_colour_for_each_chip(drawn):
    figures = drawn(foreseen.VIEWS, table_of())
    (axes,) = figures["orders"].axes
    assert axes.get_xlabel() == "time of the slowest order\nover that of the fastest"
    rows = {label.get_text() for label in axes.get_yticklabels()}
    assert rows == {"linked, 1,000, 0.2, float32", "spmv, 2,000, 0.2, float32"}
    legends = [*figures["orders"].legends, *filter(None, [axes.get_legend()])]
    assert [text.get_text() for text in legends[0].get_texts()] == ["h100", "h200"]
