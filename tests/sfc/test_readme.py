"""The page of sfc names files that exist, all rooms and all curves, as they are."""

import math
import re
from pathlib import Path

import pytest

import sfc
from tests.tiers import full

ROOT = Path(__file__).parents[2]
README = (ROOT / "sfc" / "README.md").read_text()
NAMED = sorted(
    {
        name
        for name in re.findall(r"`([\w./]+)`", README)
        if name.endswith((".py", ".cu", ".cuh", ".md", "/")) and "<" not in name
    }
)


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMED)
def test_a_named_file_exists(name):
    assert (ROOT / name if name.startswith("tests/") else ROOT / "sfc" / name).exists()


@pytest.mark.quick
def test_every_room_and_top_level_module_is_named():
    there = {
        path.name + "/" * path.is_dir()
        for path in (ROOT / "sfc").iterdir()
        if not path.name.startswith("__") and path.suffix != ".md"
    }
    assert there <= set(NAMED)


@pytest.mark.quick
def test_it_is_under_1100_words_without_the_table_of_curves():
    words = [
        line for line in README.splitlines() if not line.startswith(tuple(f"| `{n}`" for n in sfc.curves()))
    ]
    assert len(" ".join(words).split()) < 1100


DILATIONS = re.findall(r"^\| `(\w+)` \| (\d) \| (\d) \| ([^|]+) \| ([\d., ]+) \|", README, re.MULTILINE)


def test_every_curve_of_the_plane_and_of_space_is_in_the_table():
    there = (
        {(name, int(dim)) for name, dim, *_ in DILATIONS}
        | {(n, d) for n in ("morton", "gray") for d in (2, 3)}
        | {("hindex", 2)}
    )
    assert there == {(name, dim) for dim in (2, 3) for name in sfc.curves(dim)}


@pytest.mark.parametrize("norm", [2, full(1), full(math.inf)])
@pytest.mark.parametrize(("name", "dim", "base", "steps", "dilations"), DILATIONS)
def test_the_table_tells_what_a_curve_is(name, dim, base, steps, dilations, norm):
    curve = sfc.curve(name, int(dim))
    assert (curve.base, curve.is_continuous, curve.is_closed) == (
        int(base),
        "unit" in steps,
        "closed" in steps,
    )
    listed = dict(zip((1, 2, math.inf), dilations.strip().split(", "), strict=True))
    assert listed[norm] == f"{sfc.locality.limit_dilation(curve, norm):.2f}"
