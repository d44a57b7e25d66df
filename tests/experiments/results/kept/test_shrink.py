"""Files of a kept run get smaller, and no value of a table and no line of a picture is lost."""

import zlib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from experiments.core.record import TABLE, read_provenance, read_table
from experiments.core.settings import UsageError
from experiments.results.kept.shrink import COLOURS, shrink, shrink_picture
from tests.experiments.results.kept.checkout import complete_run

pytestmark = pytest.mark.quick


@pytest.fixture
def run(tmp_path):
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
    return complete_run(tmp_path, {"sources": "x"}, rows)


def bits(path):
    """Bits of each column of numbers, and the rest as it is."""
    table = pd.read_parquet(path)
    return {name: list(c.to_numpy().view("u8") if c.dtype.kind in "fi" else c) for name, c in table.items()}


def test_a_table_keeps_every_bit_in_fewer_bytes(run):
    before, size, schema = bits(run / TABLE), (run / TABLE).stat().st_size, pq.read_schema(run / TABLE)
    origin = read_provenance(run)
    saved = shrink(run)
    assert bits(run / TABLE) == before
    assert pq.read_schema(run / TABLE).equals(schema, check_metadata=True)
    assert saved > size - (run / TABLE).stat().st_size > 0.2 * size
    after = read_provenance(run)
    assert after.pop("table_crc32") == zlib.crc32((run / TABLE).read_bytes())
    assert after == {name: value for name, value in origin.items() if name != "table_crc32"}
    read_table(run)


def test_large_tables_of_text_go_and_small_ones_stay(run, tmp_path):
    small = complete_run(tmp_path / "small", {"sources": "x"}, [{"run": 0}])
    for folder, stays in ((run, False), (small, True)):
        (folder / "summary.csv").write_text("a\n" * (25_000 if stays else 50_000))
        shrink(folder)
        left = {path.name for path in folder.glob("*.csv")}
        assert left == ({"table.csv", "summary.csv"} if stays else set())


def test_a_second_time_changes_nothing(run):
    shrink(run)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert shrink(run) == 0
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_table_that_would_grow_is_left_as_it_is(run, monkeypatch):
    before = {path.name: path.read_bytes() for path in run.glob("[!t]*")} | {
        TABLE: (run / TABLE).read_bytes()
    }
    monkeypatch.setattr("experiments.results.kept.shrink._compressed", lambda table: before[TABLE] + b"more")
    shrink(run)
    assert {name: (run / name).read_bytes() for name in before} == before


def test_a_damaged_table_is_refused_and_nothing_is_changed(run):
    data = bytearray((run / TABLE).read_bytes())
    data[len(data) // 2] ^= 1
    (run / TABLE).write_bytes(data)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with pytest.raises(UsageError, match="is damaged"):
        shrink(run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def picture(path, alpha=255):
    """A map of many colours at random, with a black line on white beside it."""
    x, y = np.random.default_rng(0).uniform(0, 255, (2, 300, 300))
    pixels = np.stack([x, y, 255 - x, np.full_like(x, alpha)], axis=-1).astype(np.uint8)
    pixels[:, :40, :3] = 255
    pixels[:, 20, :3] = 0
    about = PngInfo()
    about.add_text("Description", "τ | run toy/one")
    Image.fromarray(pixels).save(path, dpi=(200, 200), pnginfo=about)
    return pixels


def test_a_picture_of_many_colours_gets_few_that_are_near(tmp_path):
    path = tmp_path / "map.png"
    before, size = picture(path)[..., :3].astype(int), path.stat().st_size
    shrink_picture(path)
    with Image.open(path) as found:
        after = np.asarray(found.convert("RGB")).astype(int)
        assert found.text["Description"] == "τ | run toy/one"
        assert found.info["dpi"] == pytest.approx((200, 200), rel=1e-3)
        assert len(found.convert("RGB").getcolors(COLOURS)) > COLOURS // 2
    assert path.stat().st_size < 0.5 * size
    assert np.array_equal(after[:, :40], before[:, :40])  # lines and paper
    assert np.abs(after - before).mean() < 8


@pytest.mark.parametrize("kind", ["few colours", "transparent"])
def test_a_picture_that_would_lose_is_left_as_it_is(tmp_path, kind):
    path = tmp_path / "map.png"
    if kind == "transparent":
        picture(path, alpha=254)
    else:
        Image.fromarray(np.zeros((300, 300, 3), np.uint8)).save(path)
    before = path.read_bytes()
    shrink_picture(path)
    assert path.read_bytes() == before
