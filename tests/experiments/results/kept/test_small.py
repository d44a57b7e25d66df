"""A table is kept in fewer bytes, and no value of it is lost; large tables of text are left out."""

import zlib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from experiments.core.provenance import code_of
from experiments.core.record import TABLE, read_provenance, read_table
from experiments.results.kept import keep as keeping
from experiments.results.kept.keep import keep
from tests.experiments.results.kept.checkout import complete_run

pytestmark = pytest.mark.quick


@pytest.fixture
def run(checkout, tmp_path):
    """A run with columns of every class and values that differ in a bit alone."""
    random = np.random.default_rng(0)
    rows = [
        {
            "run": number,
            "random": float(random.random()),
            "zero": (0.0, -0.0, float("nan"), None)[number % 4],
            "exact": 0.1 + 0.2,
            "large": 2**62 + number,
            "flag": number % 2 == 0,
            "name": "linked" * (number % 3) or None,
        }
        for number in range(3000)
    ]
    return complete_run(tmp_path, code_of(checkout.root), rows)


def bits(path):
    """Bits of each column of numbers, and the rest as it is."""
    table = pd.read_parquet(path)
    return {name: list(c.to_numpy().view("u8") if c.dtype.kind in "fi" else c) for name, c in table.items()}


def test_a_table_keeps_every_bit_in_fewer_bytes(run, checkout):
    before, size, schema = bits(run / TABLE), (run / TABLE).stat().st_size, pq.read_schema(run / TABLE)
    folder = keep(run, "cpu", "numbers", checkout.root)
    assert bits(folder / TABLE) == before
    assert pq.read_schema(folder / TABLE).equals(schema, check_metadata=True)
    assert (folder / TABLE).stat().st_size < 0.8 * size
    assert read_provenance(folder)["table_crc32"] == zlib.crc32((folder / TABLE).read_bytes())
    read_table(folder)


def test_a_table_that_would_grow_is_left_as_it_is(run, checkout, monkeypatch):
    monkeypatch.setattr(keeping, "smallest", lambda table: b"x" * 10**7)
    folder = keep(run, "cpu", "numbers", checkout.root)
    assert (folder / TABLE).read_bytes() == (run / TABLE).read_bytes()
    read_table(folder)


def test_large_tables_of_text_are_left_out_and_small_ones_stay(run, checkout):
    assert (run / "table.csv").exists()  # the table as text, which a kept run has not
    (run / "summary.csv").write_text("a\n" * 50_000)
    (run / "best.csv").write_text("a\n" * 49_999)
    folder = keep(run, "cpu", "numbers", checkout.root)
    assert [path.name for path in folder.glob("*.csv")] == ["best.csv"]
