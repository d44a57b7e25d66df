"""Ranks at once, as processes under MPI: the same as in turn, and how they end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from tests import tiers
from tests.md.domain.mpi_program import gas, state_after

ROOT = Path(__file__).parents[3]
MPIEXEC = shutil.which(
    "mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
)
ENDS_WITHIN = 10.0  # s

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")


@pytest.fixture
def started():
    """Start a run of `mpi_program` on some ranks, of one thread each; one that does not end is ended."""
    runs = []

    def start(run: str, size: int, folder: Path) -> subprocess.Popen:
        program = [sys.executable, "-m", "tests.md.domain.mpi_program", run, str(folder)]
        runs.append(subprocess.Popen(
            [str(MPIEXEC), "-n", str(size), *program], cwd=ROOT, env=os.environ | {"NUMBA_NUM_THREADS": "1"},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ))  # fmt: skip
        return runs[-1]

    yield start
    for run in runs:
        if run.poll() is None:
            run.terminate()
            run.wait(timeout=30)


@pytest.mark.parametrize("size", tiers.first([2, 3]))
def test_ranks_at_once_do_what_they_do_in_turn(started, size, tmp_path):
    run = started("compare", size, tmp_path)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 0, output
    right = in_turn(size, state_after)[0]
    found = np.load(tmp_path / "state.npz")
    for name in ("pos", "vel", "id"):
        assert np.array_equal(found[name], getattr(right, name)), name


@pytest.mark.gpu
@pytest.mark.parametrize("size", [2, 3])
def test_ranks_on_devices_store_ghosts_into_the_memory_of_each_other(started, size, tmp_path):
    run = started("compare_on_devices", size, tmp_path)
    output, _ = run.communicate(timeout=200)
    assert run.returncode == 0, output
    right, found = state_after(None), np.load(tmp_path / "state.npz")
    order, by_id = np.argsort(found["id"]), np.argsort(right.id)
    for name in ("pos", "vel"):
        np.testing.assert_allclose(found[name][order], getattr(right, name)[by_id], rtol=0, atol=1e-8)


def test_an_error_of_one_rank_ends_all(started, tmp_path):
    run = started("fail", 2, tmp_path)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    assert "RuntimeError: rank 1 has an error of its own" in output


def test_ranks_go_on_after_errors_of_all_and_of_one(started, tmp_path):
    run = started("go_on", 2, tmp_path)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    zero, one = ((tmp_path / f"{rank}.txt").read_text().splitlines() for rank in range(2))
    ended = "RankFailedError: rank 1 has ended: MemoryError: rank 1 is full"
    for found, error in ((zero, ended), (one, "MemoryError: rank 1 is full")):
        assert len(found) == 5
        assert found[0] == found[1]
        assert "Error" not in found[0].partition(":")[0]
        assert found[2].startswith(error)
        assert found[3].startswith(ended)
        assert found[4] == "20"


def test_what_a_rank_that_leaves_says_is_not_taken_for_rows(started, tmp_path):
    run = started("tear", 2, tmp_path)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    zero, one = ((tmp_path / f"{rank}.txt").read_text().splitlines() for rank in range(2))
    assert one == 2 * ["MemoryError: full"]
    assert len(zero) == 2
    assert all(said.startswith("RankFailedError: rank 1 has ended: MemoryError: full") for said in zero)


def test_a_launcher_of_another_library_is_refused():
    made, launched = (
        "import md; md.Communicator.mpi()",
        {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"},
    )
    run = subprocess.run(
        [sys.executable, "-c", made], text=True,
        capture_output=True, timeout=60, cwd=ROOT, env=os.environ | launched,
    )  # fmt: skip
    library = subprocess.run(
        [sys.executable, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"], text=True,
        capture_output=True, timeout=60,
    ).stdout  # fmt: skip
    how = "and each is alone under Open MPI" if "Open MPI" in library else "by Open MPI, and mpi4py is of "
    assert run.returncode == 1
    assert f"ImportError: 2 processes were started{',' * ('alone' in how)} {how}" in run.stderr
    assert "take the mpiexec beside this python" in run.stderr


def wait_for(folder: Path, *names: str) -> None:
    end = time.monotonic() + 60
    while not all((folder / name).exists() for name in names):
        assert time.monotonic() < end, f"no {names} in {folder}"
        time.sleep(0.05)


@pytest.mark.parametrize("how", tiers.first([signal.SIGKILL, signal.SIGINT]))
def test_a_signal_ends_all_ranks_and_the_run_goes_on_from_its_checkpoint(started, how, tmp_path):
    run = started("endless", 2, tmp_path)
    wait_for(tmp_path, "0.pid", "1.pid", "run.npz")
    processes = [int((tmp_path / f"{rank}.pid").read_text()) for rank in range(2)]
    if how == signal.SIGKILL:
        os.kill(processes[1], how)
    else:
        run.send_signal(how)
    output, _ = run.communicate(timeout=ENDS_WITHIN)
    assert run.returncode != 0
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    if how == signal.SIGKILL:
        assert f"PID {processes[1]}" in output
        assert "signal 9" in output.lower()
    saved = md.Simulation.load(tmp_path / "run.npz")
    assert saved.step % 50 == 0
    assert saved.step > 0
    saved.run(10)
    assert len(gas(None)) == len(saved)
