"""Cases measured by processes or by a cluster give the table of one process."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import md
from experiments.core import executor, main
from experiments.core.record import read_provenance
from tests.experiments import toy, toy_timed
from tests.experiments.core.test_survival import argv, only, run, same_table
from tests.tiers import full, nightly

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    results = tmp_path_factory.mktemp("serial")
    assert run("--results", results, "--repeats", 2) == 0
    return only(results)


@pytest.fixture(scope="module")
def cluster():
    """Address of a local cluster of two workers, each a process."""
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
    )
    with local:
        yield local.scheduler_address


def pids(log: Path) -> set[str]:
    return {line.split()[-1] for line in log.read_text().splitlines()}


@pytest.mark.usefixtures("preloaded_workers")
def test_two_processes_give_the_table_of_one(whole, tmp_path):
    log = tmp_path / "log"
    flags = ("--results", tmp_path, "--repeats", 2, "--executor", "processes", "--workers", 2)
    assert run(*flags, "--seconds", 0.1, "--log", log) == 0
    same_table(only(tmp_path), whole)
    assert len(pids(log)) == 2
    assert read_provenance(only(tmp_path))["executor"] == "processes"


@pytest.mark.nightly
def test_two_workers_of_a_cluster_give_the_table_of_one_process(whole, cluster, tmp_path):
    log = tmp_path / "log"
    flags = ("--results", tmp_path, "--repeats", 2, "--executor", cluster, "--seconds", 0.15, "--log", log)
    command = [sys.executable, "-m", "tests.experiments.toy", *argv(*flags)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same_table(only(tmp_path), whole)
    assert len(pids(log)) == 2


@pytest.mark.parametrize("executor", ["processes", nightly("cluster")])
def test_a_case_that_fails_elsewhere_ends_the_run_and_keeps_the_others(executor, tmp_path, capsys, request):
    where = request.getfixturevalue("cluster") if executor == "cluster" else executor
    assert run("--results", tmp_path, "--executor", where, "--size", 1, 2, 13, "--workers", 1) == 1
    assert "size 13 breaks" in capsys.readouterr().err
    if executor == "cluster":  # processes are started again for each run
        assert run("--resume", only(tmp_path), "--executor", where) == 1
    assert set(pd.read_parquet(only(tmp_path) / "table.parquet")["size"]) == {1, 2}


@pytest.mark.nightly
@pytest.mark.parametrize("executor", ["processes", "cluster"])
def test_a_fault_of_a_simulation_elsewhere_reads_as_it_does_here(executor, tmp_path, capsys, request):
    where = request.getfixturevalue("cluster") if executor == "cluster" else executor
    assert run("--results", tmp_path, "--executor", where, "--size", 14, "--workers", 1) == 1
    assert f"error: {md.NonFiniteState(7, 3)}\n" in capsys.readouterr().err
    trace = (only(tmp_path) / "error.txt").read_text()
    assert "toy.py" in trace
    assert "NonFiniteState" in trace


@pytest.mark.parametrize("goes_on", [False, full(True)])
@pytest.mark.usefixtures("preloaded_workers")
def test_a_worker_that_is_killed_ends_the_run_with_the_remedy_and_the_run_goes_on(goes_on, tmp_path, capsys):
    workers = ("--executor", "processes", "--workers", 1)
    assert run("--results", tmp_path, *workers, "--size", 1, 99) == 1
    message = capsys.readouterr().err
    assert "fewer --workers take less memory" in message
    assert f"--resume {only(tmp_path)} continues" in message
    if goes_on:
        assert run("--resume", only(tmp_path), *workers) == 1
    assert set(pd.read_parquet(only(tmp_path) / "table.parquet")["size"]) == {1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--executor", "threads"), "--executor threads; allowed: serial, processes, or the address"),
        (("--executor", "processes", "--workers", "-1"), "--workers = -1; allowed: an integer of at least 0"),
        (("--executor", "nowhere://127.0.0.1:9"), "nowhere"),
    ],
)
def test_an_executor_that_is_none_is_refused(arguments, message, tmp_path, capsys):
    assert run("--results", tmp_path, *arguments) in (1, 2)
    assert message in capsys.readouterr().err


def test_rows_of_times_are_not_measured_side_by_side(tmp_path, capsys):
    assert run("--results", tmp_path, "--executor", "processes", spreads=False) == 2
    assert "toy measures times" in capsys.readouterr().err
    elsewhere = argv("--results", tmp_path, "--executor", "processes")
    with pytest.raises(SystemExit, match="2"):
        main(toy_timed.Config, toy_timed.measure, toy_timed.draw, {}, elsewhere)
    assert "toy_timed measures times" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(toy.Config, lambda case: [], toy.draw, {}, elsewhere)
    assert "cannot be imported by workers" in capsys.readouterr().err  # and would be measured there else


def test_what_workers_cannot_import_is_refused(tmp_path, capsys):
    def local(case):
        yield from toy.measure(case)

    assert run("--results", tmp_path, "--executor", "processes", measure=local) == 2
    assert "cannot be imported by workers" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_scheduler_without_workers_is_not_waited_for_for_ever(tmp_path, capsys, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    monkeypatch.setattr(executor, "WAIT", 0.2)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", host="127.0.0.1") as empty:
        assert run("--results", tmp_path, "--executor", empty.scheduler_address) == 1
    assert "no worker came within 0.2 s" in capsys.readouterr().err


def test_without_dask_the_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("--results", tmp_path, "--executor", "tcp://127.0.0.1:9") == 2
    assert "pip install -e '.[cluster]'" in capsys.readouterr().err


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"workers": 1.0}, TypeError, "--workers = 1.0 of class float"),
        ({"workers": 10**9}, ValueError, "--workers = 1000000000; allowed: .* up to 1024"),
    ],
)
def test_an_executor_refuses_arguments_of_a_wrong_class(arguments, error, message):
    with pytest.raises(error, match=message):
        executor.Executor(**arguments)
