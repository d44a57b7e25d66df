"""A run of a reader beside a kept one: like with like, each with its device, n, backend, warnings."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments.core.record import PROVENANCE, TABLE
from experiments.results import reliability
from experiments.results.claims.judgement import Judgement
from experiments.results.kept.queries import REFERENCE, Query, evaluate
from experiments.results.page import charts, runs
from experiments.results.page.chart_list import CHARTS
from experiments.results.page.own_runs import NO_ROWS, Compared, beside

pytestmark = pytest.mark.quick
SOURCE = "timing/h100"
STEP = "phase == 'step with reorder' and filling_fraction == 0.2 and search == 'linked' and ordering == '{}'"
QUERY = Query((SOURCE,), STEP.format("hilbert"), "time_ms", "gain", STEP.format("shuffled"))
WORTH = CHARTS["worth"]
DEVICE = "NVIDIA H100 80GB HBM3 (cuda)"


@pytest.fixture(scope="module")
def kept():
    return {run.name: run for run in runs.kept()}


@pytest.fixture
def own(tmp_path):
    """Function that makes a run of a reader from the kept one, with other columns or provenance."""

    def made(columns=(), backend=None):
        folder = tmp_path / "timing" / "20260101T000000Z-0123abcd"
        folder.mkdir(parents=True, exist_ok=True)
        table = pd.read_parquet(REFERENCE / SOURCE / TABLE).assign(**dict(columns))
        table.to_parquet(folder / TABLE, index=False)
        origin = json.loads((REFERENCE / SOURCE / PROVENANCE).read_text())
        del origin["table_crc32"]
        if backend is not None:
            origin["backend"]["name"] = backend
        (folder / PROVENANCE).write_text(json.dumps(origin))
        return runs.own([folder])[0]

    return made


def _is_of(run, row):
    wanted = {"run": run.name, "over": "shuffled", "filling": "20 %"}
    return wanted.items() <= row.items()


def compared(run, kept, query=QUERY):
    claim = SimpleNamespace(id="X1", queries={"measured": query})
    (row,) = beside(run, Judgement(claim, "", {"measured": evaluate(query)}), kept)
    return row


def test_both_sides_say_device_backend_and_n_and_the_warnings_of_their_rows(own, kept):
    found = compared(own(), kept)
    assert isinstance(found, Compared)
    assert (found.id, found.query, found.overlap) == ("X1", "measured", "yes")
    assert found.yours.on == found.kept.on == f"{DEVICE}, n 2,097,152"
    assert found.yours.text == found.kept.text
    assert found.yours.interval == found.kept.interval == "95 % over 3 runs"


def test_a_warning_stands_beside_the_numbers_of_its_rows_alone(own, kept):
    mine = own({"working_set_MB": lambda table: table["cache_MB"].where(table["ordering"] == "hilbert", 1e6)})
    assert compared(mine, kept).yours.warnings == reliability.SMALL
    assert compared(mine, kept).yours.text.endswith("; does not carry over)")
    of_orders = {row["order"]: row["text"] for row in charts.rows(WORTH, kept, [mine]) if _is_of(mine, row)}
    assert of_orders["hilbert"].endswith("; does not carry over)")
    assert "does not carry over" not in of_orders["row"]
    assert compared(mine, kept).kept.warnings == "none"
    other = replace(QUERY, where=STEP.format("row"))
    assert compared(mine, kept, other).yours.warnings == "none"


def test_intervals_that_have_no_number_in_common_do_not_overlap(own, kept):
    mine = own({"time_ms": lambda table: table["time_ms"] * (1 + (table["ordering"] == "hilbert"))})
    found = compared(mine, kept)
    assert found.overlap == "no"
    assert found.yours.text != found.kept.text


@pytest.mark.parametrize(
    ("n", "is_compared"), [(2**21, True), (2_080_000, True), (2_070_000, False), (2**14, False)]
)
def test_another_n_is_not_compared_and_named(own, kept, n, is_compared):
    found = compared(own({"n": n}), kept)
    assert isinstance(found, Compared) == is_compared
    if not is_compared:
        assert found == ("X1", "measured", f"n {n:,} on {DEVICE} beside 2,097,152 on {DEVICE}")


def test_another_kind_of_backend_is_not_compared_and_named(own, kept):
    id, name, reason = compared(own(backend="cpu"), kept)
    assert (id, name) == ("X1", "measured")
    assert reason.endswith(f" (cpu) beside 2,097,152 on {DEVICE}")


def test_predictions_are_compared_on_any_machine(own, kept):
    same = kept | {SOURCE: replace(kept[SOURCE], where="any machine gives the same")}
    assert isinstance(compared(own(backend="cpu"), same), Compared)


def test_rows_that_are_missing_are_named(own, kept):
    found = compared(own({"ordering": "peano"}), kept)
    assert found == ("X1", "measured", NO_ROWS)
    without = own()
    table = pd.read_parquet(without.folder / TABLE).drop(columns="search")
    table.to_parquet(without.folder / TABLE, index=False)
    assert compared(without, kept)[2] == NO_ROWS


def test_queries_on_other_experiments_are_left_out(own, kept):
    claim = SimpleNamespace(id="X1", queries={"measured": replace(QUERY, run=("interval/h100",))})
    assert list(beside(own(), Judgement(claim, "", {"measured": None}), kept)) == []
