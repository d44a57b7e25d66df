"""experiments.writes: reads beside writes in memory orders, their checks, forecasts, answer and charts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments import writes
from experiments.core.settings import cases
from experiments.drawing.charts import draw
from experiments.forecasts.on_cpu import foreseen_on_cpu
from experiments.forecasts.predicted import foreseen
from experiments.measurement.correctness import WrongResultError
from experiments.measurement.kernels.index_kernels import Scatter
from experiments.prediction.drawn_gases import Gas
from experiments.prediction.index_cases import KINDS, index_case
from experiments.processes.separate_run import all_rows
from experiments.results.charts import estimates, prepared
from tests.experiments.runs import one, run
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda


class Device(EmulatedCuda):
    """A device with the name of a chip."""

    def __init__(self, chip: str = "NVIDIA H200"):
        super().__init__()
        self.chip = chip

    def describe(self):
        return {"device": self.chip, "compute_capability": "9.0", "l2_MiB": 50}


ORDERS = ("shuffled", "hilbert", "window 16")


def small(kind: str, **more):
    return one(writes, n=(256,), kind=(kind,), ordering=ORDERS, rounds=2, **more)


def made(gains: dict, foretold: dict, runs: int = 3, **more) -> pd.DataFrame:
    """Rows of runs with these gains over shuffled memory, which takes 8 ms; kind -> ordering -> gain."""
    return pd.DataFrame(
        {"kind": kind, "n": 4096, "reads": 8, "precision": "float32", "machine": "m", "ordering": name,
         "run": number, "case": number, "round": k, "time_ms": 8 / gain * (1 + 0.001 * (number + k)),
         "foreseen_ms": 4 / foretold[kind].get(name, 1), "conflicts": 0.5} | more
        for kind, orders in gains.items()
        for name, gain in {"shuffled": 1, "shuffled again": 1.01, **orders}.items()
        for number in range(runs)
        for k in range(2)
    )  # fmt: skip


def test_every_order_is_timed_once_a_round_and_shuffled_memory_twice(tmp_path):
    folder = run(writes, tmp_path, "--n", "256", "512", "--ordering", *ORDERS, "--runs", "1", "--rounds", "2")
    table = pd.read_parquet(folder / "table.parquet")
    counts = table.groupby(["kind", "n", "round", "ordering"]).size()
    assert len(counts) == 2 * 2 * 2 * 4
    assert (counts == 1).all()
    assert set(table["ordering"]) == {*ORDERS, "shuffled again"}
    assert (table[["time_ms", "foreseen_ms"]] > 0).all().all()
    assert set(table["machine"]) == {"epyc_genoa"}
    files = {path.name for path in folder.iterdir()}
    assert {"gains_256.png", "gains_512.png", "sizes.png", "summary.csv"} <= files


def test_shuffled_memory_is_measured_if_it_is_not_asked_for():
    case = replace(small("scatter"), ordering=("hilbert",))
    found = pd.DataFrame(all_rows(writes.measure(case)))
    assert set(found["ordering"]) == {"shuffled", "shuffled again", "hilbert"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_what_the_model_of_a_core_foresees(kind):
    rows = pd.DataFrame(all_rows(writes.measure(small(kind))))
    expected = foreseen_on_cpu(Gas(kind, 256, 0.2, "float32", ORDERS), ["epyc_genoa"], 0)
    times = rows.drop_duplicates("ordering").set_index("ordering")["foreseen_ms"]
    for row in expected:
        assert times[row["ordering"]] == pytest.approx(row["time_us"] / 1e3)
    assert times["shuffled again"] == times["shuffled"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_a_device_has_what_the_model_of_a_gpu_foresees(kind):
    case = small(kind)
    for name, value in (("backend", "cuda"), ("machine", "h200")):  # of a device that is not here
        object.__setattr__(case, name, value)
    entry = writes._entry(case, "hilbert", Device())
    (row,) = entry.sample()
    assert row["time_ms"] > 0
    (expected,) = foreseen(Gas(kind, 256, 0.2, "float32", ("hilbert",)), ["h200"], 0)
    assert entry.columns["foreseen_ms"] == pytest.approx(expected["time_us"] / 1e3)


def test_the_machine_of_auto_is_that_which_is_there():
    for chip, expected in (("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("other", "h100")):
        assert writes._here(Device(chip)) == expected


def test_conflicts_are_counted_within_32_in_a_row():
    assert writes.conflicts(np.zeros(64, int)) == 62 / 64
    assert writes.conflicts(np.arange(64) % 32) == 0
    assert writes.conflicts(np.arange(64) // 2) == 0.5
    assert writes.conflicts(np.array([4, 4, 7])) == pytest.approx(1 / 3)
    cells = np.random.default_rng(0).integers(0, 40, 1000)
    parts = [cells[k : k + 32] for k in range(0, 1000, 32)]
    assert writes.conflicts(cells) == sum(len(part) - len(set(part)) for part in parts) / 1000


def test_conflicts_are_those_of_the_cells_and_reads_have_none():
    row = next(writes.measure(small("scatter")))[-1]
    cells = index_case("scatter", 256, 8, row["ordering"], 0)
    assert row["conflicts"] == writes.conflicts(cells) > 0
    assert np.isnan(next(writes.measure(small("gather")))[0]["conflicts"])


@pytest.mark.parametrize("make", [writes._on_cpu, writes._on_gpu])
def test_no_time_of_a_wrong_cell_is_kept(make, monkeypatch):
    launch, cells = Scatter.launch, index_case("scatter", 256, 8, "shuffled", 0)

    def wrong(kernel):
        launch(kernel)
        getattr(kernel._result, "host", kernel._result)[3] += 1

    assert make(small("scatter"), cells, Device())() > 0
    monkeypatch.setattr(Scatter, "launch", wrong)
    with pytest.raises(WrongResultError, match="sums differ from numpy's by 1 of"):
        make(small("scatter"), cells, Device())


GAINS: dict = {"gather": {"hilbert": 2.0, "lattice": 1.8}, "scatter": {"hilbert": 0.6, "lattice": 1.4}}


def test_the_answer_names_orders_that_gain_for_reads_and_lose_for_writes():
    said = writes.answer(made(GAINS, {"gather": {"hilbert": 2.2}, "scatter": {"hilbert": 0.7}}))
    assert "gather is best in hilbert memory, 2.00" in said.sentence
    assert "(foreseen hilbert, 2.20); scatter is best in lattice memory, 1.40" in said.sentence
    assert said.sentence.endswith(
        "Gains for reads, loses for writes: hilbert (0.60, foreseen 0.70). Losses foreseen: 1 of 1."
    )
    assert list(said.table.columns) == ["gather", "scatter"]
    assert said.table.loc["hilbert", "scatter"].endswith("foreseen 0.70")


def test_the_answer_counts_the_losses_that_were_foreseen_and_names_the_worst():
    orders = {"hilbert": 0.6, "morton": 0.5, "peano": 0.7, "gray": 0.8, "lattice": 1.4, "butz": 0.4}
    gains = {"gather": dict.fromkeys(orders, 2.0) | {"butz": 0.9}, "scatter": orders}
    foretold = {"gather": {}, "scatter": {"hilbert": 0.996, "morton": 0.4, "peano": 0.7, "gray": 1.2}}
    said = writes.answer(made(gains, foretold)).sentence
    assert said.endswith(
        "loses for writes: morton (0.50, foreseen 0.40), hilbert (0.60, foreseen 1.00), peano "
        "(0.70, foreseen 0.70) and 1 more. Losses foreseen: 2 of 4."
    )


def test_the_answer_of_a_loss_within_the_noise_or_of_one_kind_says_so():
    near = GAINS | {"scatter": {"hilbert": 0.993, "lattice": 1.4}}
    foretold = {"gather": {}, "scatter": {}}
    assert writes.answer(made(near, foretold)).sentence.endswith(
        "No order gains for reads and loses for writes."
    )
    reads = {"gather": GAINS["gather"]}
    assert "give --kind gather scatter" in writes.answer(made(reads, foretold)).sentence
    nothing = writes.answer(made({"gather": {}}, foretold)).sentence
    assert nothing.endswith("only shuffled memory was measured; give --ordering.")


def test_one_run_is_judged_by_the_range_of_its_rounds():
    foretold = {"gather": {"hilbert": 2.2}, "scatter": {"hilbert": 0.7}}
    said = writes.answer(made(GAINS, foretold, runs=1)).sentence
    assert (
        "Gains for reads, loses for writes: hilbert (0.60, foreseen 0.70). Losses foreseen: 1 of 1. One run"
        in said
    )


def test_the_chart_has_measured_and_foreseen_gains_side_by_side(tmp_path):
    foretold = {"gather": {"hilbert": 2.2, "lattice": 1.0}, "scatter": {"hilbert": 0.7, "lattice": 1.0}}
    chart, table = writes.VIEWS[0], made(GAINS, foretold)
    found = estimates(prepared(chart, table), chart.measures[0], chart.each)
    assert found["kind"].iloc[0] == "scatter"
    for what, gains in (("measured", GAINS), ("foreseen", foretold)):
        own = found[found["what"] == what].set_index(["kind", "ordering"])["value"]
        expected = {(kind, name): gain for kind, orders in gains.items() for name, gain in orders.items()}
        assert own.to_dict() == pytest.approx(expected, rel=1e-6)
    draw(writes.VIEWS, table, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"gains.png"}
    sizes = pd.concat([table, table.assign(n=8192)])
    draw(writes.VIEWS, sizes, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} >= {"gains_4096.png", "gains_8192.png", "sizes.png"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": ("copy",)}, "unknown kind 'copy'; allowed: one of gather, scatter, spmv"),
        ({"n": (63,)}, "--n = 63; allowed: .* at least 64"),
        ({"reads": (0,)}, "--reads = 0"),
        ({"reads": (64,), "n": (64, 128)}, "--reads = 64; allowed: .* up to 63; each point reads others"),
        ({"reads": (257,)}, "--reads = 257; allowed: .* up to 256"),
        ({"ordering": ("shuffled", "nonsense")}, "ordering 'nonsense'; allowed: "),
        ({"machine": "h100", "backend": "cpu"}, "processor 'h100'"),
        ({"machine": "epyc_genoa", "backend": "cuda"}, "machine 'epyc_genoa'"),
    ],
)
def test_settings_out_of_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        writes.Config(**fields)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_device_is_timed_after_a_check(kind, device):
    config = writes.Config(backend="cuda", kind=(kind,), n=(2**16,), ordering=ORDERS, rounds=2, runs=1)
    rows = pd.DataFrame(all_rows(writes.measure(cases(config)[0].config)))
    assert len(rows) == 2 * 4
    assert (rows[["time_ms", "foreseen_ms"]] > 0).all().all()
    assert set(rows["machine"]) == {writes._here(device)}
