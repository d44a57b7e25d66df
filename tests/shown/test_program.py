"""The program that records what is shown: its commands, and the digests that are kept."""

import json
import os
import subprocess
import sys

import pytest

from tests import shown_results
from tests.shown import catching, entries
from tests.shown.comparing import renamed

RUN = {"answer": ["hilbert 1.79"], "figures": {"gain": {"title": "gain", "panels": {}}}, "tables": {}}


@pytest.fixture
def folders(tmp_path):
    """Writer of two folders of records."""

    def write(old: dict, new: dict) -> list[str]:
        for name, records in (("old", old), ("new", new)):
            for run, record in records.items():
                path = tmp_path / name / f"{run}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(record))
        return ["compare", str(tmp_path / "old"), str(tmp_path / "new")]

    return write


def test_equal_records_have_no_difference(folders, capsys):
    assert shown_results.main(folders({"ladder/cpu": RUN}, {"ladder/cpu": RUN})) == 0
    assert capsys.readouterr().out == "0 differences\n"


def test_differences_are_printed_by_place_and_end_with_status_1(folders, capsys):
    changed = RUN | {"answer": ["hilbert 1.80"]}
    command = folders({"ladder/cpu": RUN, "wear/cpu": RUN}, {"ladder/cpu": changed, "fence/cpu": RUN})
    assert shown_results.main(command) == 1
    assert capsys.readouterr().out.splitlines() == [
        "fence/cpu: no such record before",
        "ladder/cpu / answer / 1: hilbert 1.79 -> hilbert 1.80",
        "wear/cpu: no such record now",
        "3 differences",
    ]
    assert shown_results.main([*command, "--only", "nothing/"]) == 0


def test_a_run_and_a_figure_with_another_name_are_compared(folders, capsys):
    moved = RUN | {"figures": {"gas_gain": RUN["figures"]["gain"]}}
    command = folders({"gas_ladder/cpu": RUN}, {"ladder/gas_cpu": moved})
    names = ["gas_ladder/cpu=ladder/gas_cpu", "gas_ladder/cpu/gain=gas_gain"]
    assert shown_results.main(command) == 1
    assert shown_results.main([*command, "--rename", *names]) == 0
    assert renamed({"wear/cpu": RUN}, {"gas_ladder/cpu": "ladder/gas_cpu"}) == {"wear/cpu": RUN}


def test_every_kept_run_has_digests():
    assert sorted(json.loads(shown_results.RECORDED.read_text())) == sorted(shown_results.names())


def test_a_digest_that_differs_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(shown_results, "RECORDED", tmp_path / "digests.json")
    monkeypatch.setattr(shown_results, "records", lambda chosen: ((name, RUN) for name in chosen))
    assert shown_results.main(["update", "--only", "fence/"]) == 0
    assert shown_results.main(["check", "--only", "fence/cpu"]) == 0
    changed = RUN | {"answer": []}
    monkeypatch.setattr(shown_results, "records", lambda chosen: ((name, changed) for name in chosen))
    assert shown_results.main(["check", "--only", "fence/cpu"]) == 1
    assert capsys.readouterr().out.splitlines()[-2].startswith("fence/cpu / answer: ")


def test_a_run_that_shows_nothing_or_cannot_be_drawn_is_refused(monkeypatch):
    run = entries.REFERENCE / "fence" / "cpu"
    with monkeypatch.context() as patch:
        patch.setattr(catching, "output_of", lambda *_: "figures: /tmp/folder\n")
        with pytest.raises(catching.NothingShownError, match="gives no figure and no answer"):
            catching.record_run(run)
    name, record, reason, _ = shown_results.recorded("fence/absent")
    assert (name, record) == ("fence/absent", None)
    assert "--replot" in reason


@pytest.mark.full
def test_cheap_runs_and_the_verdicts_show_what_they_did():
    command = [sys.executable, "-m", "tests.shown_results", "check", "--only"]
    chosen = ["fence/", "timing/h200_orders", "searches/cpu", "verdicts"]
    ended = subprocess.run(
        [*command, *chosen], cwd=entries.ROOT, env=os.environ, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "0 differences\n"), ended.stderr
