"""A run is kept for reference only if it is complete, undamaged, of committed sources and of enough runs."""

import json
import runpy
import sys

import pandas as pd
import pytest

from experiments.core.provenance import code_of
from experiments.core.record import PROVENANCE, TABLE, read_provenance, read_table
from experiments.core.settings import UsageError
from experiments.results.kept.keep import keep
from experiments.results.kept.listing import read_about
from tests.experiments.results.kept.checkout import complete_run

pytestmark = pytest.mark.quick
THREE_RUNS = [{"run": number, "round": 0, "n": 64, "time_ms": 0.1 * number} for number in range(3)]


def changed(run, **entries):
    """Change the provenance of a run; None removes an entry."""
    found = json.loads((run / PROVENANCE).read_text()) | entries
    found = {key: value for key, value in found.items() if value is not None}
    (run / PROVENANCE).write_text(json.dumps(found))


@pytest.fixture
def run(checkout, tmp_path):
    """A run on a machine whose checkout is older than its sources."""
    checkout.write("sfc/curve.py", "changed\n")
    code = code_of(checkout.root)
    assert (code["commit"], code["dirty"]) == (checkout.first, True)
    made = complete_run(tmp_path / "runs", code, THREE_RUNS)
    checkout.commit("two")
    return made


def test_a_kept_run_has_its_table_its_figures_and_the_commit_of_its_sources(checkout, run):
    for name in ("gain.png", "gain.pdf", "summary.csv", "film.mp4", "counters.ncu-rep", "nohup.out"):
        (run / name).write_bytes(name.encode())
    folder = keep(run, "h200_512", 'the "main" job, 20 %', checkout.root)
    assert folder == checkout.root / "results" / "reference" / "timing" / "h200_512"
    kept = {"gain.png", "summary.csv", TABLE, PROVENANCE, "about.toml"}
    assert {path.name for path in folder.iterdir()} == kept
    assert [path.name for path in folder.parent.iterdir()] == ["h200_512"]
    pd.testing.assert_frame_equal(read_table(folder), read_table(run), check_exact=True)
    two = checkout.git("rev-parse", "HEAD")
    assert read_provenance(folder)["reference"] == {"runs": 3, "fewest_runs": 3}
    found = read_provenance(run)["code"]
    checkout_of_machine = {"commit": checkout.first, "dirty": True}
    assert {name: found[name] for name in checkout_of_machine} == checkout_of_machine
    of_sources = {"commit": two, "dirty": False, "checkout": checkout_of_machine}
    assert read_provenance(folder)["code"] == found | of_sources
    assert read_about(folder) == {"what": 'the "main" job, 20 %'}


def test_a_film_is_kept_if_it_is_wanted(checkout, run):
    (run / "film.mp4").write_bytes(b"film")
    assert (keep(run, "h200", "a film", checkout.root, films=True) / "film.mp4").read_bytes() == b"film"


def test_rows_are_left_out_only_by_name_and_the_description_says_so(checkout, tmp_path):
    rows = [row | {"what": what} for row in THREE_RUNS for what in ("cell", "frame")]
    run = complete_run(tmp_path / "runs", code_of(checkout.root), rows)
    with pytest.raises(UsageError, match=r"no rows disc to leave out; allowed: \['cell', 'frame'\]"):
        keep(run, "h200", "a wing", checkout.root, without=("disc",))
    folder = keep(run, "h200", "a wing", checkout.root, without=("frame",))
    rest = read_table(run).query("what == 'cell'").reset_index(drop=True)
    pd.testing.assert_frame_equal(read_table(folder), rest, check_exact=True)
    assert read_about(folder) == {"what": "a wing; without its rows frame"}


@pytest.mark.parametrize("status", ["interrupted", "terminated"])
def test_an_interrupted_run_is_kept_if_that_is_allowed_and_says_so(checkout, tmp_path, status):
    ended = {"status": status, "finished": 2, "cases": 3}
    run = complete_run(tmp_path / "runs", code_of(checkout.root), THREE_RUNS, **ended)
    assert (run / "rows.sqlite").stat().st_size
    with pytest.raises(UsageError, match="allowed: a complete run"):
        keep(run, "h200", "times", checkout.root)
    folder = keep(run, "h200", "times", checkout.root, interrupted=True)
    assert read_about(folder) == {"what": "times; interrupted after 2 of 3 cases"}
    assert not (folder / "rows.sqlite").exists()


def test_a_run_that_was_terminated_after_its_last_case_lacks_nothing(checkout, tmp_path):
    ended = {"status": "terminated", "finished": 3, "cases": 3}
    run = complete_run(tmp_path / "runs", code_of(checkout.root), THREE_RUNS, **ended)
    assert read_about(keep(run, "h200", "times", checkout.root, interrupted=True)) == {"what": "times"}


@pytest.mark.parametrize("change", [{"status": "failed: OSError: x"}, {"status": "running"}])
def test_a_run_that_failed_is_not_kept_as_an_interrupted_one(checkout, run, change):
    changed(run, **change)
    with pytest.raises(UsageError, match="allowed: a complete run"):
        keep(run, "h200", "times", checkout.root, interrupted=True)


def test_an_interrupted_run_with_an_error_is_not_kept(checkout, run):
    changed(run, status="terminated", finished=2, cases=3)
    (run / "error.txt").write_text("x")
    with pytest.raises(UsageError, match=r"with error.txt; allowed"):
        keep(run, "h200", "times", checkout.root, interrupted=True)


REFUSED = {
    "interrupted": (lambda run: changed(run, status="interrupted"), "is 'interrupted'; allowed: a complete"),
    "failed": (lambda run: changed(run, status="failed: OSError: x"), "is 'failed: OSError: x'; allowed"),
    "with an error": (lambda run: (run / "error.txt").write_text("x"), "'complete', with error.txt; allowed"),
    "with a database": (lambda run: (run / "rows.sqlite").touch(), "'complete', with rows.sqlite; allowed"),
    "damaged": (lambda run: changed(run, table_crc32=1), "is damaged: its CRC-32"),
    "without a CRC": (lambda run: changed(run, table_crc32=None), "has no CRC-32 of its table; allowed"),
    "of other sources": (
        lambda run: changed(run, code={"sources": "0" * 64, "commit": "c0ffee"}),
        "sources of hash 000000000000, which are those of no commit .* was at c0ffee; allowed",
    ),
    "without a hash": (
        lambda run: changed(run, code={"commit": "c0ffee", "dirty": False}),
        "has no hash of its sources; allowed",
    ),
    "resumed by other sources": (
        lambda run: changed(run, resumed=[{"code": {"sources": "0" * 64}}]),
        "sources of hash 000000000000, which are those of no commit",
    ),
    "of no experiment": (
        lambda run: changed(run, experiment="../../x"),
        "names the experiment '../../x'; allowed: one of advise, ",
    ),
    "small by --quick": (lambda run: changed(run, quick=True), "has sizes of --quick, .* take --quick"),
    "of older code, small by --quick": (
        lambda run: changed(run, command=["python", "-m", "experiments.timing", "--quick"]),
        "has sizes of --quick",
    ),
    "without provenance": (lambda run: (run / PROVENANCE).unlink(), "has no provenance.json of a run"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_a_run_with_a_fault_is_refused_and_nothing_is_left(checkout, run, fault):
    spoil, message = REFUSED[fault]
    spoil(run)
    with pytest.raises(UsageError, match=message):
        keep(run, "h200", "what", checkout.root)
    assert not (checkout.root / "results").exists()


@pytest.mark.parametrize("runs", [1, 2])
def test_times_of_fewer_than_three_runs_are_kept_only_if_the_command_says_so(checkout, run, tmp_path, runs):
    few = complete_run(tmp_path / "few", code_of(checkout.root), THREE_RUNS[:runs])
    with pytest.raises(
        UsageError, match=rf"times of {runs} runs?; allowed: 3 or more; .* take --runs {runs}"
    ):
        keep(few, "h200", "what", checkout.root)
    entry = read_provenance(keep(few, "h200", "what", checkout.root, runs))["reference"]
    assert (entry["runs"], entry["fewest_runs"]) == (runs, runs)


def test_a_run_of_quick_is_kept_if_that_is_allowed_and_says_so(checkout, run):
    changed(run, quick=True)
    folder = keep(run, "h200", "times", checkout.root, quick=True)
    assert read_about(folder) == {"what": "times; with sizes of --quick"}


def test_predictions_need_one_repeat(checkout, run, tmp_path):
    rows = [{"repeat": 0, "hit_ratio": 0.5}]
    predicted = complete_run(tmp_path / "predicted", code_of(checkout.root), rows)
    assert read_provenance(keep(predicted, "cpu", "what", checkout.root))["reference"]["runs"] == 1


@pytest.mark.parametrize("name", ["", "H200", "a b", "../x", "a__b", "a-b"])
def test_a_name_of_other_letters_is_refused(checkout, run, name):
    with pytest.raises(ValueError, match="name"):
        keep(run, name, "what", checkout.root)


def test_a_name_that_is_taken_is_refused_and_that_run_is_left_as_it_is(checkout, run):
    folder = keep(run, "h200", "the first", checkout.root)
    with pytest.raises(UsageError, match="exists; allowed: a new name"):
        keep(run, "h200", "the second", checkout.root)
    assert read_about(folder) == {"what": "the first"}


@pytest.mark.parametrize(
    "text", ["", "what = 3", 'what = ""', 'what = "a"\nwho = "b"', 'what = "a\\nb"', "what = "]
)
def test_a_description_of_another_form_is_refused(tmp_path, text):
    (tmp_path / "about.toml").write_text(text)
    with pytest.raises(UsageError, match="allowed: "):
        read_about(tmp_path)


def test_the_command_names_a_value_that_is_not_allowed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["reference", "keep", str(tmp_path), "", "--about", "x"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("experiments.results.kept", run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: name = ''; allowed:")


def test_the_command_refuses_with_a_message_and_status_2(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["reference", "keep", str(tmp_path), "h200", "--about", "x"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("experiments.results.kept", run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path} has no provenance.json of a run; allowed: results/<experiment>/<utc>-<hash>\n"
    )
