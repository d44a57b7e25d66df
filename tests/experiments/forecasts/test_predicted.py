"""Forecasts of a gas: their columns, and numbers for each of its items."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.forecasts import predicted
from experiments.forecasts.predicted import (
    ROUND,
    SHARED,
    fitted_for,
    foreseen,
    index_streams,
)
from experiments.loads import step_loads
from experiments.machine import text_of
from experiments.prediction.drawn_gases import PROPERTIES, Gas
from experiments.prediction.foreseen_systems import simulations
from experiments.prediction.index_cases import KINDS
from sfc.cache import Fitted, Machine
from sfc.cache.forecast import Forecast, foresee_on
from sfc.cache.loads import READ, LoadStream
from sfc.cache.sectors import Estimate
from tests.tiers import full

N, SEED = 500, 3  # no multiple of a block
ORDER = {"coherent": "row", "verlet": "row", "wide_bvh": "morton"}  # of searches that sort
COLUMNS = [
    "ordering", "machine", "time_us", "sectors", "sectors_error", "missed", "missed_error", "bytes",
    "bytes_error", "written", "rounds",
]  # fmt: skip


def gas_of(kernel: str, *orderings: str, precision: str = "float64") -> Gas:
    return Gas(kernel, N, 0.2, precision, orderings or (ORDER.get(kernel, "shuffled"),))


def stream_of(gas: Gas) -> LoadStream:
    if gas.kernel in KINDS:
        return next(index_streams(gas, SEED))[1].force
    return step_loads(next(simulations(gas, "cpu", SEED))[1]).force


def sectors_of(stream: LoadStream) -> int:
    """Sectors of all loads, one warp and one instruction after the other."""
    loads = stream.loads_of(np.arange(stream.warps))
    lanes = np.split(loads.address, loads.start[1:-1])
    return sum(
        len(set((one // 32).tolist())) for one, kind in zip(lanes, loads.kind, strict=True) if kind == READ
    )


@pytest.mark.parametrize(
    "kernel", [one if one in ("scattered", "gather", "spmv") else full(one) for one in PROPERTIES["kernel"]]
)
def test_sectors_are_those_of_all_warps_over_the_items_of_the_gas(kernel):
    gas = gas_of(kernel)
    (row,) = foreseen(gas, ["h100"], SEED)
    assert list(row) == COLUMNS
    stream = stream_of(gas)
    assert (stream.items > N) == (kernel in ("coherent", "wide_bvh"))  # whose blocks work as a whole
    assert row["sectors"] * N == pytest.approx(sectors_of(stream))
    assert 0 <= row["missed"] <= row["sectors"]
    assert 0 <= row["written"] <= row["bytes"]
    assert row["rounds"] >= 1
    assert row["time_us"] > SHARED.launch


def test_all_numbers_but_rounds_and_time_are_scaled_to_the_items_of_the_gas(monkeypatch):
    forecast = Forecast(
        Estimate(5.0, 0.5), Estimate(3.0, 0.3), Estimate(70.0, 7.0), 20.0, Estimate(9.0, 0.9), 11.0
    )
    monkeypatch.setattr(predicted, "foresee_on", lambda *_, **__: [forecast])
    (row,) = foreseen(gas_of("wide_bvh"), ["h200"], SEED)
    more = 512 / 500  # items of whole blocks for each particle
    assert row == pytest.approx({
        "ordering": "morton", "machine": "h200", "time_us": 11.0, "sectors": 5 * more,
        "sectors_error": 0.5 * more, "missed": 3 * more, "missed_error": 0.3 * more,
        "bytes": 70 * more, "bytes_error": 7 * more,
        "written": 20 * more, "rounds": 9.0,
    })  # fmt: skip


def test_there_is_a_row_for_each_order_and_machine(tmp_path):
    own = tmp_path / "slow.toml"
    own.write_text(text_of(replace(Machine.read("h100"), l2_rate=1.0)))
    gas = gas_of("gather", "shuffled", "hilbert", precision="float32")
    rows = list(foreseen(gas, ["h100", str(own)], SEED))
    assert [(row["ordering"], row["machine"]) for row in rows] == [
        (name, machine) for name in ("shuffled", "hilbert") for machine in ("h100", str(own))
    ]
    assert rows[1]["time_us"] > rows[0]["time_us"]
    assert rows[1]["sectors"] == rows[0]["sectors"]
    assert rows[2]["sectors"] < rows[0]["sectors"]


def test_forecasts_of_a_seed_are_the_same_again():
    one, again = (list(foreseen(gas_of("scatter"), ["h100"], SEED)) for _ in range(2))
    assert one == again
    assert one != list(foreseen(gas_of("scatter"), ["h100"], SEED + 1))


def test_launches_before_count_below_a_size(monkeypatch):
    given = []

    def noted(stream, chips, fitted, before, seed):
        given.append(len(before))
        return foresee_on(stream, chips, fitted, before, seed=seed)

    monkeypatch.setattr(predicted, "foresee_on", noted)
    list(foreseen(gas_of("scattered"), ["h100"], SEED))
    monkeypatch.setattr(predicted, "LARGE", N)
    list(foreseen(gas_of("scattered"), ["h100"], SEED))
    assert given[0] > 0 == given[1]


def test_each_kernel_has_its_time_of_a_round_and_all_share_the_rest():
    assert set(ROUND) == set(PROPERTIES["kernel"])
    for kernel, time in ROUND.items():
        found = fitted_for(kernel)
        assert isinstance(found, Fitted)
        assert found == SHARED._replace(round=time)
    with pytest.raises(KeyError):
        fitted_for("naive")


@pytest.mark.parametrize(("precision", "size"), [("float32", 4), ("float64", 8)])
@pytest.mark.parametrize("kernel", KINDS)
def test_an_element_has_the_bytes_of_the_precision(kernel, precision, size):
    gas = gas_of(kernel, precision=precision)
    stream = stream_of(gas)
    loads = stream.loads_of(np.arange(stream.warps))
    lanes = np.split(loads.address, loads.start[1:-1])
    stored = np.concatenate([one for one, kind in zip(lanes, loads.kind, strict=True) if kind != READ])
    assert np.diff(np.unique(stored)).min() == size
