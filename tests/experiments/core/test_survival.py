"""Runs that are killed, interrupted or out of room go on where they ended; and a run can be done again."""

import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from experiments.core import main
from experiments.core.provenance import read_provenance
from experiments.core.record import DATABASE, Record, read_table
from experiments.core.sweep import sweep
from tests.experiments import toy
from tests.experiments.faults import FULL, KILLED, each_fault, largest_file
from tests.processes import started
from tests.tiers import full, nightly


def argv(*arguments) -> list[str]:
    return ["--backend", "cpu", *map(str, arguments)]


def run(*arguments, measure=toy.measure, spreads=True) -> int:
    """The toy's own command line in this process; its exit status."""
    try:
        main(toy.Config, measure, toy.draw, {}, argv(*arguments), spreads)
    except SystemExit as ended:
        return ended.code
    return 0


def only(results: Path) -> Path:
    (folder,) = (results / "toy").iterdir()
    return folder


def provenance(folder: Path) -> dict:
    return json.loads((folder / "provenance.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing disturbed."""
    results = tmp_path_factory.mktemp("whole")
    assert run("--results", results, "--repeats", 2) == 0
    return only(results)


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """The folder of a run of times that ended before its last case."""
    results = tmp_path_factory.mktemp("failed")
    assert run("--results", results, "--size", 1, 13, spreads=False) == 1
    return only(results)


def same_table(folder: Path, other: Path) -> None:
    for read, name in ((pd.read_parquet, "table.parquet"), (pd.read_csv, "table.csv")):
        pd.testing.assert_frame_equal(read(folder / name), read(other / name))


@pytest.mark.nightly
def test_a_run_killed_ten_times_has_every_case_once(whole, tmp_path):
    log = tmp_path / "log"
    flags = ("--seconds", 0.1, "--log", log)
    moments = np.random.default_rng(3).uniform(0, 0.3, 10)
    folder, done = None, [0]
    for moment in moments:
        begin = argv("--results", tmp_path, "--repeats", 2, *flags)
        more = begin if folder is None else argv("--resume", folder)
        measured = log.stat().st_size if log.exists() else 0
        process, _ = started(toy.run, more)
        while process.is_alive() and (not log.exists() or log.stat().st_size == measured):
            time.sleep(0.005)
        time.sleep(moment)
        process.kill()
        process.join()
        folder = only(tmp_path)
        assert provenance(folder)["status"] != "complete"
        done.append(len(Record.reopen(folder).finished))
        assert done[-1] >= done[-2]
        assert len(read_table(folder)) <= 2 * done[-1]
    assert len(done) == 1 + 10
    assert done[-1] > 3
    process, _ = started(toy.run, argv("--resume", folder))
    process.join()
    assert process.exitcode == 0
    same_table(folder, whole)
    assert provenance(folder)["status"] == "complete"
    assert provenance(folder)["finished"] == 24
    assert len(provenance(folder)["resumed"]) >= 1
    assert not list(folder.glob(f"{DATABASE}*"))
    assert not list(folder.glob(".*"))
    assert len(log.read_text().splitlines()) <= 24 + len(done)  # what was finished was not measured again


def test_sigterm_ends_a_run_that_goes_on(whole, tmp_path, monkeypatch):
    log = tmp_path / "log"
    flags = ("--results", tmp_path, "--repeats", 2, "--seconds", 0.04, "--log", log)
    process, _ = started(toy.run, argv(*flags))
    while process.is_alive() and (not log.exists() or len(log.read_text().splitlines()) < 3):
        time.sleep(0.005)
    process.terminate()
    process.join()
    assert process.exitcode == 143
    folder = only(tmp_path)
    assert provenance(folder)["status"] == "terminated"
    assert len(read_table(folder)) >= 2 * 2
    monkeypatch.setattr(
        toy, "time", SimpleNamespace(sleep=lambda seconds: None)
    )  # nothing interrupts the rest
    assert run("--resume", folder) == 0
    same_table(folder, whole)


def test_a_disk_that_fills_up_and_is_freed(whole, tmp_path, capsys):
    with contextlib.ExitStack() as stack:

        def fills(case):
            if case.size == 4:
                stack.enter_context(largest_file(800))
            yield from toy.measure(case)

        assert run("--results", tmp_path, "--repeats", 2, measure=fills) == 1
    folder = only(tmp_path)
    errors = capsys.readouterr().err
    assert f"disk I/O error: '{folder / DATABASE}'" in errors
    assert f"--resume {folder} continues" in errors
    assert Record.reopen(folder).finished == set(range(6))
    assert run("--resume", folder) == 0
    same_table(folder, whole)
    assert not list(folder.glob(".*"))


@pytest.mark.quick
def test_what_failed_is_told_and_measured_again(tmp_path, capsys):
    assert run("--results", tmp_path, "--size", 1, 13) == 1
    folder = only(tmp_path)
    assert "size 13 breaks" in capsys.readouterr().err
    assert provenance(folder)["status"] == "failed: ValueError: size 13 breaks"
    assert len(pd.read_parquet(folder / "table.parquet")) == 4
    assert run("--resume", folder) == 1
    assert provenance(folder)["finished"] == 2
    assert len(provenance(folder)["resumed"]) == 1


@pytest.mark.parametrize(
    ("arguments", "expected_message"),
    [
        (("--size", "9"), "beside other settings or folders; allowed: alone"),
        (("--results", "elsewhere"), "beside other settings or folders; allowed: alone"),
        (("--replot", "elsewhere"), "beside other settings or folders; allowed: alone"),
        (("--quick",), "--resume and --quick; allowed: one of them"),
        (("--from", "."), "allowed: one of them"),
    ],
)
def test_resume_goes_on_with_its_own_settings_alone(arguments, expected_message, tmp_path, capsys):
    assert run("--results", tmp_path, "--size", 1, 13) == 1
    folder = only(tmp_path)
    capsys.readouterr()
    assert run("--resume", folder, *arguments) == 2
    assert expected_message in capsys.readouterr().err


def test_a_run_that_another_process_measures_can_be_drawn_but_not_resumed(tmp_path, capsys):
    assert run("--results", tmp_path, "--size", 1, 13) == 1
    folder = only(tmp_path)
    holder = Record.reopen(folder)
    assert run("--resume", folder) == 2
    assert f"{folder} is being measured by another process" in capsys.readouterr().err
    os.unlink(folder / "table.parquet")
    holder.add(2, [{"area": 1}], 0)
    assert run("--replot", folder) == 0
    assert (folder / "toy.png").read_text() == "5"
    assert run("--resume", folder) == 2
    del holder
    assert run("--resume", folder) == 1


def test_a_run_that_is_complete_cannot_be_resumed(whole, capsys):
    assert run("--resume", whole) == 2
    said = capsys.readouterr().err
    assert f"no {DATABASE} in {whole}; allowed: the folder of an interrupted, killed or failed run" in said
    assert "--from repeats a finished run" in said


@pytest.mark.quick
@pytest.mark.parametrize(
    ("group", "change", "message"),
    [
        ("machine", {"cpu": "Z80"}, "another machine or program (cpu Z80, here "),
        ("machine", {"cores": 1000}, "(cores 1000, here "),
        ("machine", {"flags": "c0ffee"}, "(flags c0ffee, here "),
        ("machine", {"caches": "L1 Data 1K"}, "(caches L1 Data 1K, here "),
        ("backend", {"threads": 3}, "(threads 3, here "),
        ("packages", {"numba": "0.1"}, "(numba 0.1, here "),
        ("packages", {"cupy-cuda13x": "1.0"}, "(cupy-cuda13x 1.0, here not installed)"),
        (
            "environment",
            {"NUMBA_OPT": "1"},
            "(NUMBA_OPT 1, here not set): times of both do not",
        ),
        ("python", "2.7", "(Python 2.7, here "),
        ("packages", {"matplotlib": "0.1"}, ""),
        ("machine", {"system": "Linux 1.0"}, ""),
        ("environment", None, ""),  # of older code
        ("packages", None, ""),
    ],
)
def test_rows_of_times_go_on_with_the_same_machine_and_program_alone(
    failed, group, change, message, tmp_path, capsys
):
    folder = tmp_path / "run"
    shutil.copytree(failed, folder)
    origin = provenance(folder)
    if change is None:
        del origin[group]
    else:
        origin[group] = origin[group] | change if isinstance(change, dict) else change
    (folder / "provenance.json").write_text(json.dumps(origin))
    capsys.readouterr()
    assert run("--resume", folder, spreads=False) == (2 if message else 1)
    assert (message or "size 13 breaks") in capsys.readouterr().err
    assert run("--resume", folder) == 1  # predictions may


def test_a_setting_of_the_compiler_that_is_new_stops_a_run_of_times(failed, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "run"
    shutil.copytree(failed, folder)
    monkeypatch.setenv("SFC_REGISTERS", "0")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")  # changes no code
    assert run("--resume", folder, spreads=False) == 2
    assert "(SFC_REGISTERS not set, here 0)" in capsys.readouterr().err


@pytest.mark.quick
def test_from_does_a_run_again(whole, tmp_path):
    assert run("--from", whole, "--results", tmp_path) == 0
    same_table(only(tmp_path), whole)
    assert run("--from", whole, "--results", tmp_path / "other", "--size", 8, "--repeats", 1) == 0
    table = read_table(only(tmp_path / "other"))
    assert set(table["size"]) == {8}
    assert table["colour"].tolist() == ["red", "red", "blue", "blue"]


def test_from_refuses_what_it_does_not_know(whole, tmp_path, capsys):
    for change, expected_message in (
        ({"config": {"weight": 1}}, "settings that no longer exist: weight"),
        ({"experiment": "timing"}, "is a run of timing; allowed: one of toy"),
        ({"experiment": "../../x"}, "names the experiment '../../x'; allowed: one of advise"),
        ({"config": None}, "settings"),
    ):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        held = provenance(whole) | change
        if held["config"] is None:
            del held["config"]
        (folder / "provenance.json").write_text(json.dumps(held))
        assert run("--from", folder, "--results", tmp_path) == 2
        assert (
            expected_message if held.get("config") else "no provenance.json with a config"
        ) in capsys.readouterr().err
    assert run("--from", tmp_path / "none", "--results", tmp_path) == 2
    assert "has no provenance.json" in capsys.readouterr().err


@pytest.mark.parametrize("value", [(1, 2), [1.0], {"a": 1}, 1j, np.zeros(2)])
def test_a_cell_of_the_table_holds_one_number_or_word(value, tmp_path, capsys):
    def wrong(case):
        yield {"fine": np.float32(1.5), "shape": value}

    assert run("--results", tmp_path, measure=wrong) == 1
    assert "column 'shape' has" in capsys.readouterr().err


def test_finished_cases_are_those_of_the_settings(tmp_path, capsys):
    assert run("--results", tmp_path, "--size", 1, 13) == 1
    folder = only(tmp_path)
    origin = provenance(folder)
    origin["config"]["colour"][1] = "green"
    (folder / "provenance.json").write_text(json.dumps(origin))
    assert run("--resume", folder) == 1
    assert "case 1 of" in (expected_message := capsys.readouterr().err)
    assert "the experiment has changed since; take --from" in expected_message


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ({"sources": "0" * 64}, "(sources of hash 000000000000 (commit not known), here "),
        nightly({"tree": "0" * 40, "commit": "1"}, "(sources of hash not known (commit 1), here "),
    ],
)
def test_times_of_other_code_do_not_go_on(code, message, tmp_path, capsys):
    assert run("--results", tmp_path, "--size", 1, 13, spreads=False) == 1
    folder = only(tmp_path)
    (folder / "provenance.json").write_text(json.dumps(provenance(folder) | {"code": code}))
    assert run("--resume", folder, spreads=False) == 2
    assert message in (expected_message := capsys.readouterr().err)
    assert "--from to measure all of it again" in expected_message
    assert run("--resume", folder) == 1  # predictions may


@pytest.mark.filterwarnings("ignore:running on the CPU")
def test_the_backend_that_auto_finds_is_that_of_every_case(tmp_path):
    main(toy.Config, toy.measure, toy.draw, {}, ["--results", str(tmp_path), "--size", "1"], True)
    assert provenance(only(tmp_path))["config"]["backend"] in ("cpu", "cuda")


@pytest.mark.parametrize("kind", [KILLED, full(FULL)])
def test_a_run_with_a_fault_at_any_change_of_its_folder_goes_on(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)
    settings, results = toy.Config(size=(1, 2), colour=("red",), backend="cpu"), tmp_path / "results"

    def prepare():
        shutil.rmtree(results, ignore_errors=True)

    def begin():
        record = Record.create(results, "toy", {"experiment": "toy"})
        return sweep(settings, toy.measure, record, {"experiment": "toy"}), record.folder

    _, folder = begin()
    whole = read_table(folder)
    faults = 0
    for _ in each_fault(kind, results, prepare, begin):
        faults += 1
        for folder in results.glob("toy/*"):
            if not read_provenance(folder):  # it had no time to begin
                continue
            found = read_table(folder)
            assert str(found.to_dict("records")) == str(whole.iloc[: len(found)].to_dict("records"))
            if (folder / DATABASE).exists():
                assert sweep(settings, toy.measure, Record.reopen(folder), read_provenance(folder))
            assert read_provenance(folder)["status"] == "complete"
            pd.testing.assert_frame_equal(read_table(folder), whole)
    assert faults > 5
