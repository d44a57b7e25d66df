"""The map of md names files that exist, and all rooms."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "md" / "README.md").read_text()
NAMED = sorted(
    {name for name in re.findall(r"`([\w./]+)`", README) if re.fullmatch(r"[\w/]+(\.py|\.cuh|/)", name)}
)


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMED)
def test_a_named_file_exists(name):
    assert (ROOT / "md" / name).exists()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "path"),
    re.findall(r"^\| [^|]+\? \| `([A-Z][\w.]*|interact)`.*? in `([\w/.]+)`", README, re.MULTILINE),
)
def test_an_answer_is_in_its_file(name, path):
    assert re.search(rf"\b{name.rpartition('.')[2]}\b", (ROOT / "md" / path).read_text())


@pytest.mark.quick
def test_every_room_is_named():
    there = {path.name + "/" for path in (ROOT / "md").iterdir() if path.is_dir() and path.name[0] != "_"}
    assert len(there) == 14
    assert there <= set(NAMED)


@pytest.mark.quick
def test_it_is_under_500_words():
    assert len(README.split()) < 500
