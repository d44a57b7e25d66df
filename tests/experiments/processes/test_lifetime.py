"""Workers and programs end with the process that began them, however that ends."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory

import psutil
import pytest
from tqdm import tqdm

from experiments.processes import lifetime
from tests.experiments import toy_ended
from tests.experiments.core.test_executor import ROOT
from tests.experiments.core.test_survival import argv
from tests.processes import all_heard, started
from tests.tiers import full, nightly


def ended_within(processes: list[psutil.Process], seconds: float) -> bool:
    """Whether all are over within some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("how", [full("kill"), nightly("terminate")])
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
        assert ended_within(workers, 5)
    finally:
        for process in (main, *workers):
            if process.is_running():
                process.kill()


def idle(work, message) -> None:
    """A process that begins a worker, says which, and waits."""
    multiprocessing.current_process()._config["daemon"] = False  # those of the tests may begin none
    heard, tell = multiprocessing.get_context("fork").Pipe(duplex=False)
    worker = multiprocessing.get_context("fork").Process(target=work, args=(tell,))
    worker.start()
    message.send((worker.pid, heard.recv()))
    time.sleep(60)


def waiting(tell) -> None:
    lifetime.end_with_parent()
    tell.send(threading.active_count())
    time.sleep(60)


def watching(tell) -> None:
    """A worker that the kernel does not end."""
    lifetime._killed_by_the_kernel = lambda: False
    waiting(tell)


@pytest.mark.parametrize(("work", "threads"), [(waiting, 1), (watching, 2)], ids=["kernel", "thread"])
def test_the_kernel_ends_a_worker_and_where_it_does_not_a_thread(work, threads):
    if work is waiting and sys.platform != "linux":
        pytest.skip("the kernel of Linux")
    main, heard = started(idle, work)
    pid, count = heard.recv()
    assert count == threads
    worker = psutil.Process(pid)
    os.kill(main.pid, 9)
    main.join()
    assert ended_within([worker], 5)


def test_a_process_that_multiprocessing_did_not_start_is_refused():
    with pytest.raises(RuntimeError, match="allowed: processes that multiprocessing started"):
        lifetime.end_with_parent()


def running(command: list[str], folder, message) -> None:
    """A process that waits for a program, with a temporary folder, and gives it less time to end."""
    lifetime._WATCH = lifetime._WATCH.replace("sleep 2", "sleep 0.2")
    with lifetime.terminable(), TemporaryDirectory(dir=folder):
        lifetime.run_program(command)


def started_processes(process, named: str) -> list[psutil.Process]:
    """Wait until a process has started a program of this name, and return all of its children."""
    while process.is_running():
        found = process.children(recursive=True)
        if any(told_by(one).startswith(named) for one in found):
            return found
        time.sleep(0.01)
    raise AssertionError(f"{named} was not started")


def told_by(process: psutil.Process) -> str:
    """Its command line."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_programs_and_what_they_begin_end_with_the_process_that_began_them(how, tmp_path):
    process, _ = started(running, ["sh", "-c", "trap '' INT; sleep 63 & sleep 62"], tmp_path)
    found = started_processes(psutil.Process(process.pid), "sleep 62")
    assert len(found) == 4  # the shell that watches, the program, and two of it
    os.kill(process.pid, how)
    process.join()
    assert ended_within(found, lifetime.PROGRAM_GRACE + 3)
    assert bool(list(tmp_path.iterdir())) is (how == signal.SIGKILL)
    assert process.exitcode == (-9 if how == signal.SIGKILL else 128 + signal.SIGTERM)


def test_a_program_that_ignores_sigterm_is_killed(monkeypatch):
    monkeypatch.setattr(lifetime, "PROGRAM_GRACE", 0.2)
    with lifetime.program(["sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done"],
                          stdout=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdout.readline() == "on\n"
    assert process.returncode == -9


def test_what_a_program_tells_is_told():
    done = lifetime.run_program(["sh", "-c", "echo out; echo err >&2; cat; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(FileNotFoundError):
        lifetime.run_program(["no-such-program"])


def working(message) -> None:
    """A worker that sends what it would leave behind, and what it and its programs do at Ctrl-C."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # another thread may take one of the process
    lifetime.prepare_worker()
    multiprocessing.set_start_method("spawn", force=True)
    left = []
    resource_tracker.register = lambda *message: left.append(message)
    with tqdm(total=1, disable=True):
        message.send(left)
    os.kill(os.getpid(), signal.SIGINT)
    message.send(lifetime.run_program(["sh", "-c", "kill -INT $$; echo ignored"]).returncode)


def test_a_worker_ignores_ctrl_c_its_programs_do_not_and_it_leaves_no_semaphore():
    _, heard = started(working)
    assert all_heard(heard) == [[], -signal.SIGINT]


def interrupted_while_starting(message) -> None:
    """A process that hears Ctrl-C while it starts a worker."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with lifetime.without_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            message.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    except KeyboardInterrupt:
        message.send("afterwards")
    message.send(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before)


def test_ctrl_c_while_a_worker_is_started_comes_afterwards():
    _, heard = started(interrupted_while_starting)
    assert all_heard(heard) == [True, "afterwards", True]


def test_a_second_sigterm_does_not_interrupt_what_the_first_has_begun():
    process, heard = started(terminated_twice)
    assert all_heard(heard) == ["first", "cleaned"]
    process.join()
    assert process.exitcode == 143


def terminated_twice(message) -> None:
    """A process that hears SIGTERM while it cleans up after one."""
    with lifetime.terminable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        finally:
            message.send("first")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            message.send("cleaned")


def ended(tmp_path, *flags):
    """A run in a process group of its own, its errors in a file."""
    flags = ["--backend", "cpu", "--results", tmp_path / "results", "--folder", tmp_path, *flags]
    with (tmp_path / "errors").open("w") as errors:
        return psutil.Popen(
            [sys.executable, "-m", "tests.experiments.toy_ended", *map(str, flags)],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("how", "runs", "plainly"),
    [
        (signal.SIGINT, 2, True),
        *(nightly(how, 2, False) for how in (signal.SIGTERM, signal.SIGKILL)),
        nightly(signal.SIGKILL, 2, True),
        *(nightly(how, 1, False) for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)),
    ],
)
def test_nothing_outlives_a_run_but_what_it_keeps(how, runs, plainly, tmp_path):
    main = ended(tmp_path, "--runs", runs, *(["--plainly"] if plainly else []))
    found = []
    try:
        found = started_processes(main, " ".join(toy_ended.SLEEP))
        assert len(list(tmp_path.glob("peer-*"))) == 1
        (os.killpg if how == signal.SIGINT else os.kill)(main.pid, how)
        assert main.wait(20) == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how]
        assert ended_within(found, 8)
    finally:
        for process in (main, *found):
            if process.is_running():
                process.kill()
    assert bool(list(tmp_path.glob("peer-*"))) is (how == signal.SIGKILL and runs == 1)  # nobody is left to
    errors = (tmp_path / "errors").read_text()
    assert "Traceback" not in errors
    assert "leaked" not in errors
    if how != signal.SIGKILL:
        assert {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[how] in errors


@pytest.mark.nightly
@pytest.mark.parametrize("seconds", [0.0, 0.2, 1.0])
def test_ctrl_c_while_the_process_of_a_run_imports_shows_no_traceback(seconds, tmp_path):
    main = ended(tmp_path, "--runs", 2)
    try:
        while not any("spawn_main" in told_by(one) for one in main.children()):
            assert main.is_running()
            time.sleep(0.005)
        time.sleep(seconds)
        os.killpg(main.pid, signal.SIGINT)
        assert main.wait(20) == 130
    finally:
        if main.is_running():
            main.kill()
    errors = (tmp_path / "errors").read_text()
    assert "error: interrupted; the finished cases" in errors
    assert "Traceback" not in errors
    assert "leaked" not in errors


def test_sigterm_in_a_finaliser_is_not_lost():
    class Ended:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.001)  # the handler runs here

    def goes_on():
        Ended()
        time.sleep(2)

    with pytest.raises(lifetime.Terminated), lifetime.terminable():
        goes_on()


@pytest.mark.parametrize("work", ["Path.mkdir", "shutil.rmtree"])
def test_a_folder_is_removed_even_if_a_signal_comes_as_it_is_made_or_removed(work, monkeypatch, tmp_path):
    owner, name = work.split(".")
    done = getattr(getattr(lifetime, owner), name)

    def signalled(*arguments, **options):
        if name == "mkdir":
            done(*arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)  # the handler has been called
        done(*arguments, **options)

    monkeypatch.setattr(getattr(lifetime, owner), name, signalled)
    with pytest.raises(lifetime.Terminated), lifetime.terminable():
        with lifetime.temporary_folder("peer-", tmp_path):
            assert name == "rmtree"
    assert not list(tmp_path.glob("peer-*"))
