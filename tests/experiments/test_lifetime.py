"""Workers end with the process that began them, however that ends."""

import multiprocessing
import os
import subprocess
import sys
import time

import psutil
import pytest

from experiments.core import lifetime
from experiments.core.apart import Piece, measured_apart
from tests.experiments import toy
from tests.experiments.test_executor import ROOT
from tests.experiments.test_survival import argv
from tests.processes import started
from tests.tiers import nightly


def gone(processes: list[psutil.Process], seconds: float) -> bool:
    """Whether all are over within some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("how", ["kill", nightly("terminate")])
def test_workers_and_their_tracker_end_with_a_main_process_that_is_killed(how, tmp_path):
    log = tmp_path / "log"
    flags = ("--results", tmp_path, "--executor", "processes", "--workers", 2, "--seconds", 60, "--log", log)
    main = psutil.Popen(
        [sys.executable, "-m", "tests.experiments.toy", *argv(*flags)], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    workers = []
    try:
        while main.is_running() and (not log.exists() or len(log.read_text().splitlines()) < 2):
            time.sleep(0.05)
        workers = main.children(recursive=True)
        assert len(workers) >= 3  # two, and the resource tracker
        getattr(main, how)()
        main.wait(10)
        assert gone(workers, 5)
    finally:
        for process in (main, *workers):
            if process.is_running():
                process.kill()


def idle(told) -> None:
    """A process that begins a worker, says which, and waits."""
    multiprocessing.current_process()._config["daemon"] = False  # those of the tests may begin none
    heard, tell = multiprocessing.get_context("fork").Pipe(duplex=False)
    worker = multiprocessing.get_context("fork").Process(target=waiting, args=(tell,))
    worker.start()
    told.send((worker.pid, heard.recv()))
    time.sleep(60)


Config = toy.Config  # for the worker of a run


def sleeping(config, begin):
    """A timed case that never comes to its first round."""
    yield from toy.measure(config)


def timing(log: str, told) -> None:
    """A process that measures a run of its own in another."""
    multiprocessing.current_process()._config["daemon"] = False
    piece = Piece(0, "Config", {"size": 1, "colour": "red", "seconds": 60.0, "log": log}, 0)
    list(measured_apart(__name__, "sleeping", {}, [piece]))


@pytest.mark.nightly
def test_the_process_of_a_run_ends_with_the_main_process(tmp_path):
    main, _ = started(timing, str(tmp_path / "log"))
    while not (tmp_path / "log").exists() or not (tmp_path / "log").read_text().strip():
        assert main.is_alive()
        time.sleep(0.05)
    worker = psutil.Process(int((tmp_path / "log").read_text().split()[-1]))
    os.kill(main.pid, 9)
    main.join()
    assert gone([worker], 5)


def waiting(tell) -> None:
    lifetime._killed_by_the_kernel = lambda: False
    lifetime.end_with_parent()
    tell.send("ready")
    time.sleep(60)


def test_where_the_kernel_does_not_a_thread_ends_a_worker():
    main, heard = started(idle)
    pid, _ = heard.recv()
    worker = psutil.Process(pid)
    os.kill(main.pid, 9)
    main.join()
    assert gone([worker], 5)


def test_a_process_that_nobody_began_is_refused():
    with pytest.raises(RuntimeError, match="allowed: processes that multiprocessing began"):
        lifetime.end_with_parent()
