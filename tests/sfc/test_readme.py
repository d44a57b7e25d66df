"""The map of sfc names files that exist, and all rooms."""

import re
from pathlib import Path

import pytest

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
def test_it_is_under_700_words():
    assert len(README.split()) < 700
