"""results/RUNS.md lists every kept run, and each is described by what its folder says."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from experiments.core.provenance import code_of
from experiments.core.record import PROVENANCE, TABLE, read_provenance
from experiments.core.settings import UsageError
from experiments.drawing.style.origin import origin_of
from experiments.results.kept.keep import keep
from experiments.results.kept.listing import (
    ABOUT,
    COLUMNS,
    RUNS,
    commit_of_kept,
    kept_runs,
    read_about,
    runs_text,
    write_runs,
)
from tests.experiments.results.kept.checkout import complete_run

pytestmark = pytest.mark.quick
RESULTS = Path(__file__).parents[4] / "results"
ROWS = [{"run": number, "n": n} for number in range(3) for n in (4096, 1048576)]


def cells(text):
    """The cells of each row below the head."""
    lines = [line for line in text.splitlines() if line.startswith("| [")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_committed_list_is_current():
    assert (RESULTS / RUNS).read_text(encoding="utf-8") == runs_text(RESULTS), (
        "take python -m experiments.results.kept list, and commit results/RUNS.md"
    )


def test_the_committed_list_has_every_folder_and_no_other():
    listed = re.findall(r"^\| \[(\w+/\w+)\]\(reference/\1\)", (RESULTS / RUNS).read_text(), re.MULTILINE)
    folders = {f"{path.parent.parent.name}/{path.parent.name}" for path in RESULTS.glob(f"*/*/*/{TABLE}")}
    assert len(listed) == len(set(listed)) > 50
    assert set(listed) == folders


@pytest.fixture
def kept(checkout, tmp_path):
    run = complete_run(tmp_path / "runs", code_of(checkout.root), ROWS)
    return keep(run, "cpu", "main job | both precisions", checkout.root)


def test_a_row_says_what_where_how_large_how_often_how_long_from_which_code_and_how(checkout, kept):
    path = write_runs(checkout.root / "results")
    (row,) = cells(path.read_text())
    assert dict(zip(COLUMNS, row, strict=True)) == {
        "run": "[timing/cpu](reference/timing/cpu)",
        "what": "main job / both precisions",
        "where": "A Processor, 2 threads",
        "n": "4,096; 1,048,576",
        "runs": "3",
        "s": "1,234",
        "code": f"`{checkout.first:.7}`",
        "command": "`python -m experiments.timing --n 64 8`",
    }


def test_a_folder_whose_name_python_cannot_decode_is_read(checkout, kept, tmp_path):
    results = shutil.copytree(checkout.root / "results", tmp_path / "out_\udcc3\udca4")
    assert write_runs(results).read_text() == write_runs(checkout.root / "results").read_text()
    kept.rename(kept.parent / "cpu_\udcc3\udca4")
    assert "[timing/cpu_ä]" in write_runs(checkout.root / "results").read_text(encoding="utf-8")


def test_a_run_has_one_commit_in_list_provenance_figures_and_verdicts():
    rows = {run: code for run, *_, code, _ in cells((RESULTS / RUNS).read_text())}
    for folder in kept_runs(RESULTS):
        origin, about = read_provenance(folder), read_about(folder)
        name = f"{folder.parent.name}/{folder.name}"
        code = rows[f"[{name}](reference/{name})"].strip("`")
        commit = commit_of_kept(folder)
        assert code == about.get("code", commit)
        assert commit in code
        footer = origin_of(folder, origin, pd.DataFrame({"n": [1]})).code
        assert footer == about.get("code", f"commit {commit}")
        parts = [origin, *origin.get("resumed", [])]
        assert "code" in about or {part["code"]["commit"][:7] for part in parts} == {commit}
        drawn = ""
        for figure in [*folder.glob("*.png")][:1]:  # a run of counts alone has a summary
            with Image.open(figure) as picture:
                drawn = picture.text.get("Description", "")
        assert drawn or (folder / "summary.csv").exists(), name
        assert set(re.findall(r"commit ([0-9a-f]{7})", drawn)) <= set(re.findall(r"[0-9a-f]{7}", code)), name


def change(kept, **entries):
    """Change the provenance of a run, and return its row."""
    path = kept / PROVENANCE
    found = json.loads(path.read_text()) | entries
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not None}))
    (row,) = cells(runs_text(kept.parents[2]))
    return dict(zip(COLUMNS, row, strict=True))


def test_the_wall_time_of_a_resumed_run_is_unknown_and_a_device_its_name(kept):
    assert change(kept, resumed=[{"code": {"commit": "c0ffee01", "dirty": False}}])["s"] == "unknown"
    assert change(kept, backend={"name": "cuda", "device": "NVIDIA H200"})["where"] == "NVIDIA H200"


def test_a_description_replaces_what_the_provenance_says(kept):
    with open(kept / ABOUT, "a") as file:
        file.write('code = "before 2026-11-23: tree of commit X"\nwhere = "any machine"\n')
    row = change(kept)
    assert (row["code"], row["where"]) == ("before 2026-11-23: tree of commit X", "any machine")


def test_the_commit_of_a_run_counts_only_if_its_sources_were_clean(kept):
    code = {"commit": "c0ffee0123456789", "dirty": False}
    assert change(kept, code=code)["code"] == "`c0ffee0`"
    last = code | {"commit": "decade0123456789"}
    assert change(kept, code=code, resumed=[{"code": last}])["code"] == "`decade0`"
    change(kept, resumed=None)
    for other in (code | {"dirty": True}, {"commit": None, "dirty": None}):
        with pytest.raises(UsageError, match=r"is not known: .*(with changes|none); allowed"):
            change(kept, code=other)


def test_a_description_of_code_without_a_commit_names_none(kept):
    with open(kept / ABOUT, "a") as file:
        file.write('code = "a notebook"\n')
    with pytest.raises(UsageError, match=r"'a notebook'; allowed: a text with a commit"):
        commit_of_kept(kept)


@pytest.mark.parametrize("name", [ABOUT, PROVENANCE, TABLE])
def test_a_folder_that_lacks_a_file_is_refused(kept, name):
    (kept / name).unlink()
    with pytest.raises(UsageError, match=f"{kept}.*allowed|{kept}.*restore"):
        runs_text(kept.parents[2])


def test_a_date_that_is_none_is_named(kept):
    with pytest.raises(
        UsageError, match=r"provenance.json: Invalid isoformat string: 'soon'; allowed: dates"
    ):
        change(kept, ended="soon")


def test_the_runs_are_listed_in_order(kept):
    (kept.parent / "a").mkdir()
    assert [path.name for path in kept_runs(kept.parents[2])] == ["a", "cpu"]
