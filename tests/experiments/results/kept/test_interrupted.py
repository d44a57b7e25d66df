"""A kept run that is changed on a full disk, or until a kill, is the old or the new one, never damaged."""

import shutil

import pandas as pd
import pytest

from experiments.core.record import TABLE, TABLE_CRC, read_provenance, read_table
from experiments.results.kept import keep as keeping
from experiments.results.kept.listing import kept_runs, runs_text
from experiments.results.kept.redraw import redraw
from experiments.results.kept.shrink import shrink
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


@pytest.mark.parametrize("kind", [KILLED, FULL])
def test_a_run_that_is_made_small(run, tmp_path, kind):
    folder, small = tmp_path / "run", tmp_path / "small"
    origin, table = read_provenance(run), read_table(run)
    shutil.copytree(run, small)
    shrink(small)

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(run, folder)

    seen = set()
    for _ in each_fault(kind, folder, prepare, lambda: shrink(folder)):
        pd.testing.assert_frame_equal(read_table(folder), table, check_exact=True)
        found = read_provenance(folder)
        seen.add(str(found.pop(TABLE_CRC)))
        assert found == {name: value for name, value in origin.items() if name != TABLE_CRC}
        shrink(folder)
        assert contents(folder) == contents(small)
    assert len(seen) == 2  # the old sum, and both while the table is replaced


def test_a_damaged_table_is_refused_while_two_sums_are_allowed(run):
    held = read_provenance(run)
    keeping.write_provenance(run, held | {TABLE_CRC: [1, held[TABLE_CRC]]})
    read_table(run)
    (run / TABLE).write_bytes((run / TABLE).read_bytes()[:-1] + b"!")
    with pytest.raises(ValueError, match=r"its CRC-32 is \d+, but provenance.json says 1 or \d+; restore"):
        read_table(run)


@FAULTS
def test_a_run_that_is_kept(run, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(keeping, "_commit_of", lambda *of: "c0ffee")
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
