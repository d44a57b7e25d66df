"""A kept run that is changed on a full disk, or until a kill, is the old or the new one, never damaged."""

import shutil

import pytest

from experiments.core.record import read_table
from experiments.results.kept import keep as keeping
from experiments.results.kept.listing import kept_runs, runs_text
from experiments.results.kept.redraw import redraw
from tests.experiments.faults import FULL, KILLED, each_fault
from tests.experiments.results.kept.checkout import complete_run
from tests.tiers import full

ROWS = [{"run": number % 3, "round": 0, "n": 64, "time_ms": 0.1 * number} for number in range(60)]
FAULTS = pytest.mark.parametrize("kind", [KILLED, full(FULL)])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".partial"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)
    return complete_run(tmp_path / "runs", {"sources": "x"}, ROWS)


@FAULTS
def test_a_run_that_is_kept(run, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(keeping, "find_commit", lambda *of: "c0ffee01")
    root = tmp_path / "checkout"

    def keep():
        return keeping.keep(run, "h200", "what", root)

    def prepare():
        shutil.rmtree(root, ignore_errors=True)

    prepare()
    whole = contents(keep())
    for _ in each_fault(kind, root, prepare, keep):
        runs_text(root / "results")
        for folder in kept_runs(root / "results") or [keep()]:
            assert contents(folder) == whole


@pytest.mark.parametrize("kind", [full(KILLED), FULL])
def test_a_run_that_is_drawn_again(run, tmp_path, kind, monkeypatch):
    folder, drawn = tmp_path / "run" / "timing" / "one", [1]

    def draw(table, out):
        for name in ("a.png", "b.png", "c.csv"):
            (out / name).write_bytes(b"new" * drawn[0])

    monkeypatch.setattr("experiments.timing.VIEWS", draw)
    shutil.copytree(run, folder)
    redraw(folder)
    before, drawn[0] = contents(folder), 2
    shutil.copytree(folder, tmp_path / "before")
    redraw(folder)
    after = contents(folder)
    assert after != before

    def prepare():
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)

    for _ in each_fault(kind, folder, prepare, lambda: redraw(folder)):
        read_table(folder)
        found = contents(folder)
        assert found.keys() == before.keys()
        new = {name for name in found if found[name] == after[name] != before[name]}
        assert all(found[name] == before[name] for name in found.keys() - new)
        assert kind == KILLED or not new or found == after
        redraw(folder)
        assert contents(folder) == after
