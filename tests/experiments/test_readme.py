"""experiments/README.md: the files and rooms that it names exist, and every room is named."""

import re
from pathlib import Path

import experiments

FOLDER = Path(experiments.__file__).parent
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_file_and_folder_that_the_readme_names_exists():
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", TEXT))
    assert len(named) > 15
    assert [
        name for name in named if not any((root / name).exists() for root in (FOLDER, FOLDER.parent))
    ] == []


def test_the_readme_names_every_room_and_is_short():
    rooms = [path.parent.name for path in FOLDER.glob("*/__init__.py")]
    assert [room for room in rooms if f"`{room}/`" not in TEXT] == []
    assert len(TEXT.split()) < 600
