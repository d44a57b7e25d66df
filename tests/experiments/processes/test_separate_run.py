"""Experiments that time: rounds in the record, runs in processes of their own, warnings for the user."""

import json
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from experiments.core import main
from experiments.core.record import DATABASE, Record, read_table
from experiments.processes.separate_run import RunFailed, all_rows, rounds_with_numbers
from experiments.results import reliability
from tests.experiments import toy_timed
from tests.experiments.core.test_executor import ROOT
from tests.processes import started
from tests.tiers import full, nightly


def argv(*arguments) -> list[str]:
    return ["--backend", "cpu", *map(str, arguments)]


def run(*arguments) -> int:
    """The toy's command line in this process; its exit status."""
    try:
        main(toy_timed.Config, toy_timed.measure, toy_timed.draw, {"size": (1,), "runs": 1}, argv(*arguments))
    except SystemExit as ended:
        return ended.code
    return 0


def only(results: Path) -> Path:
    (folder,) = (results / "toy_timed").iterdir()
    return folder


def measured(results: Path) -> int:
    """Rounds that were measured, those lost too."""
    log = results / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def recorded(results: Path) -> int:
    """Rounds in the record of the only run, while it is measured."""
    return read_table(only(results)).dropna(subset="time_ms").groupby(["run", "size", "round"]).ngroups


def killed_and_resumed(results: Path, hold: int, kills: int, *arguments) -> Path:
    """The folder of a run that was killed whenever another `hold` rounds were measured, `kills` times."""
    begin = argv("--results", results, "--log", results / "log", "--hold", hold, *arguments)
    for kill in range(kills):
        process, _ = started(toy_timed.run, argv("--resume", only(results)) if kill else begin)
        lines, kept = hold * (kill + 1), hold * (kill + 1) - kill - 1
        while process.is_alive() and (measured(results) < lines or recorded(results) < kept):
            time.sleep(0.01)
        process.kill()
        process.join()
        assert (measured(results), recorded(results)) == (lines, kept)
    process, _ = started(toy_timed.run, argv("--resume", only(results)))
    process.join()
    assert process.exitcode == 0
    assert not (only(results) / DATABASE).exists()
    return only(results)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run of one process that nothing disturbed."""
    results = tmp_path_factory.mktemp("whole")
    assert run("--results", results, "--runs", 1, "--rounds", 6) == 0
    return only(results)


def test_rows_carry_run_and_round(whole):
    table = read_table(whole)
    assert list(table.columns[:3]) == ["case", "run", "size"]
    timed = table.dropna(subset="time_ms")
    assert timed.groupby(["size", "colour"])["round"].apply(list).tolist() == [list(range(6))] * 4
    assert table["run"].eq(0).all()
    assert table["round"].isna().sum() == 2  # a row a case that is no sample


def test_rounds_end_with_the_rows_of_none():
    measured = [[{"round": 0, "a": 1}, {"round": 0, "a": 2}], [{"round": 1}], {"a": 3}]
    assert list(rounds_with_numbers(measured)) == [(measured[0], 0), (measured[1], 1), ([{"a": 3}], None)]
    assert list(rounds_with_numbers(measured[:2])) == [(measured[0], 0), (measured[1], 1), ([], None)]
    assert all_rows(measured) == [*measured[0], *measured[1], {"a": 3}]


@pytest.mark.usefixtures("preloaded_workers")
def test_each_run_has_a_process_and_a_seed_of_its_own(tmp_path):
    log = tmp_path / "log"
    assert run("--results", tmp_path, "--runs", 2, "--rounds", 2, "--size", 1, 2, "--log", log) == 0
    message = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    assert [(size, seed, number) for size, seed, number, _ in message] == [
        (size, seed, number) for seed in (0, 1) for size in (1, 2) for number in (0, 1)
    ]
    processes = {seed: {process for _, of, _, process in message if of == seed} for seed in (0, 1)}
    assert [len(found) for found in processes.values()] == [1, 1]
    assert processes[0] != processes[1]
    assert sorted(read_table(only(tmp_path))["run"].unique()) == [0, 1]


@pytest.mark.parametrize("runs", [1, full(2)])
def test_what_breaks_keeps_the_rounds_before(tmp_path, capsys, runs):
    assert run("--results", tmp_path, "--runs", runs, "--rounds", 3, "--size", 1, 13) == 1
    folder, errors = only(tmp_path), capsys.readouterr().err
    assert "size 13 breaks" in errors
    assert f"--resume {folder} continues" in errors
    record = Record.reopen(folder)
    assert record.finished == {0}
    assert record.first_missing_round(1) == 1


@pytest.mark.parametrize(
    ("size", "runs"), [(14, 2), *(nightly(size, runs) for size in (14, 15) for runs in (1, 2))]
)
@pytest.mark.usefixtures("preloaded_workers")
def test_an_error_reads_the_same_whatever_process_it_was_in(size, runs, tmp_path, capsys):
    assert run("--results", tmp_path, "--runs", runs, "--rounds", 2, "--size", size) == 1
    folder, error = only(tmp_path), toy_timed.ERRORS[size]
    assert f"error: {error}\n(the finished cases" in capsys.readouterr().err
    trace = (folder / "error.txt").read_text()
    assert "toy_timed.py" in trace
    assert f"{type(error).__name__}: {error}" in trace
    message = json.loads((folder / "provenance.json").read_text())
    assert message["status"] == f"failed: {type(error).__name__}: {error}"


@pytest.mark.nightly
def test_an_error_that_nobody_expects_is_named_with_its_class(tmp_path, capsys):
    assert run("--results", tmp_path, "--runs", 2, "--rounds", 2, "--size", 16) == 1
    assert "error: KeyError: 'size 16'; its traceback is in error.txt" in capsys.readouterr().err


@pytest.mark.parametrize("error", toy_timed.ERRORS.values(), ids=lambda error: type(error).__name__)
def test_what_a_process_sends_of_an_error_can_be_read(error):
    sent = RunFailed.from_error(error)
    read = pickle.loads(pickle.dumps(sent))
    assert (str(read), read.kind, read.trace) == (str(sent), type(error).__name__, sent.trace)
    assert str(error) in str(read)


@pytest.mark.parametrize(("hold", "kills"), [full(5, 1), nightly(3, 2)])
def test_a_run_in_another_process_goes_on_after_a_kill(hold, kills, tmp_path):
    folder = killed_and_resumed(tmp_path, hold, kills, "--runs", 2, "--rounds", 3, "--size", 1)
    table = read_table(folder).query("colour == 'red'")
    assert table[["run", "round"]].values.tolist() == [[a, b] for a in (0, 1) for b in range(3)]
    assert table["time_ms"].tolist() == [1 + a + b / 8 + 3 / 64 for a in (0, 1) for b in range(3)]
    assert measured(tmp_path) == 6 + kills


def test_a_sweep_that_no_process_can_import_is_refused_before_a_folder_is_made(tmp_path, capsys):
    def local(case, begin=0):
        yield from toy_timed.measure(case, begin)

    arguments = argv("--results", tmp_path, "--runs", 2)
    with pytest.raises(SystemExit, match="2"):
        main(toy_timed.Config, local, toy_timed.draw, {}, arguments)
    assert "python -m experiments.<name>, or take --runs 1" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_a_script_is_refused_more_than_one_run(tmp_path):
    flags = argv("--runs", 2, "--results", tmp_path)
    done = subprocess.run(
        [sys.executable, "experiments/timing.py", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "measure cannot be imported by workers" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_whose_process_is_killed_says_so(tmp_path, capsys):
    assert run("--results", tmp_path, "--runs", 2, "--rounds", 3, "--size", 99) == 1
    assert "the process of a run ended with -9" in capsys.readouterr().err
    assert Record.reopen(only(tmp_path)).first_missing_round(0) == 1


@pytest.mark.parametrize(("hold", "kills"), [(9, 1), full(4, 3)])
def test_a_kill_loses_the_round_it_meets_and_no_other(hold, kills, whole, tmp_path):
    folder = killed_and_resumed(tmp_path, hold, kills, "--runs", 1, "--rounds", 6)
    pd.testing.assert_frame_equal(read_table(folder), read_table(whole))
    assert measured(tmp_path) == 12 + kills


def test_warnings_reach_terminal_column_and_footer(tmp_path, capsys, monkeypatch):
    footers = []
    monkeypatch.setattr("experiments.drawing.style.use", lambda footer="", *_: footers.append(footer))
    assert run("--results", tmp_path, "--runs", 1, "--rounds", 2, "--apart", 1.3) == 0
    folder = only(tmp_path)
    assert f"warning: {reliability.PHASES} (every case)" in capsys.readouterr().err
    assert read_table(folder)["warning"].eq(reliability.PHASES).all()
    assert footers == [f"Warning: {reliability.PHASES}"]
    assert run("--replot", folder) == 0
    assert footers[1:] == footers[:1]


def test_a_good_run_warns_of_nothing(whole, capsys):
    assert read_table(whole)["warning"].eq("").all()
    assert run("--replot", whole) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_quick_run_is_one_run_and_warns_that_it_is_small(tmp_path, capsys):
    assert run("--quick", "--results", tmp_path) == 0
    folder = only(tmp_path)
    assert json.loads((folder / "provenance.json").read_text())["config"]["runs"] == 1
    assert reliability.SMALL in capsys.readouterr().err
    assert read_table(folder)["warning"].eq(reliability.SMALL).all()


def test_an_unfinished_run_is_drawn_with_its_warnings(tmp_path, monkeypatch):
    footers = []
    monkeypatch.setattr("experiments.drawing.style.use", lambda footer="", *_: footers.append(footer))
    given = ("--runs", 1, "--rounds", 3, "--size", 1, 13, "--apart", 1.3)
    assert run("--results", tmp_path, *given) == 1
    assert run("--replot", only(tmp_path)) == 0
    assert footers == [f"Warning: {reliability.PHASES}"] * 2


def test_a_round_without_rows_is_none():
    assert list(rounds_with_numbers([[], [{"round": 1}]])) == [([{"round": 1}], 1), ([], None)]


def test_settings_of_older_runs_are_known_by_their_names_of_now(whole, tmp_path):
    message = json.loads((whole / "provenance.json").read_text())
    message["config"]["samples"] = message["config"].pop("rounds")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "provenance.json").write_text(json.dumps(message))
    assert run("--from", tmp_path / "old", "--results", tmp_path) == 0
    assert json.loads((only(tmp_path) / "provenance.json").read_text())["config"]["rounds"] == 6
