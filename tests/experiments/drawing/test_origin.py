"""The line on the origin of a figure: device, size, run and commit."""

from pathlib import Path

import pandas as pd
import pytest

from experiments.drawing.style import UNKNOWN, commit_of, origin_of

pytestmark = pytest.mark.quick

TABLE = pd.DataFrame({"n": [8, 16, 8]})
CPU = {"backend": {"name": "cpu"}, "machine": {"cpu": "a processor", "threads": 2}}
GPU = {"backend": {"name": "cuda", "device": "a GPU"}, "machine": {"cpu": "a processor", "threads": 2}}
COMMIT = "0123456789"


def text(run: Path, provenance: dict, table: pd.DataFrame = TABLE) -> str:
    return origin_of(run, provenance, table).text


def test_it_names_device_sizes_run_and_commit():
    run = Path("results/timing/x")
    assert (
        text(run, GPU | {"code": {"commit": COMMIT}}) == "a GPU | n = 8; 16 | run timing/x | commit 0123456"
    )
    assert text(run, CPU).startswith("a processor, 2 threads | ")
    one = CPU | {"machine": {"cpu": "a processor", "threads": 1}}
    assert text(run, one).startswith("a processor, 1 thread | ")


def test_changes_are_told_unless_the_commit_is_that_of_the_changed_sources():
    changed = {"code": {"commit": COMMIT, "dirty": True}}
    assert text(Path("a/b"), changed).endswith("commit 0123456 with changes")
    found = {"code": {"commit": "fedcba9876", "dirty": False, "checkout": changed["code"]}}
    assert text(Path("a/b"), found).endswith("commit fedcba9")


def test_a_resumed_run_has_the_commit_of_its_last_part():
    first, last = ({"code": {"commit": commit, "dirty": False}} for commit in (COMMIT, "fedcba9876"))
    assert commit_of(first | {"resumed": [first, last]}) == "fedcba9"
    assert commit_of({"code": {"commit": None}}) == commit_of({}) == ""


def test_what_is_not_known_is_left_out():
    assert text(Path("a/b"), {}, pd.DataFrame({"x": [1]})) == "run a/b"
    assert text(Path("a/b"), {"config": {"n": [4, 5]}}, pd.DataFrame({"x": [1]})) == "n = 4; 5 | run a/b"


def test_the_description_of_a_kept_run_replaces_its_provenance(tmp_path):
    (tmp_path / "about.toml").write_text('what = "x"\nwhere = "two machines"\ncode = "tree of a commit"\n')
    found = text(tmp_path, GPU | {"code": {"commit": COMMIT}})
    assert found.startswith("two machines | ")
    assert found.endswith(" | tree of a commit")


def test_formats_have_their_own_keys():
    origin = origin_of(Path("a/b"), {}, TABLE)
    assert origin.metadata(Path("x.png")) == {"Title": "x", "Description": "n = 8; 16 | run a/b"}
    assert origin.metadata(Path("x.pdf"))["Subject"] == "n = 8; 16 | run a/b"
    assert UNKNOWN.metadata(Path("x.svg")) == {}


def test_rows_of_a_figure_have_their_own_sizes():
    origin = origin_of(Path("a/b"), GPU, TABLE)
    assert origin.of_rows(TABLE[TABLE["n"] == 16]).text == "a GPU | n = 16 | run a/b"
    assert origin.of_rows(TABLE[["n"]].rename(columns={"n": "x"})).text == "a GPU | n = 8; 16 | run a/b"
    assert UNKNOWN.of_rows(TABLE) == UNKNOWN
