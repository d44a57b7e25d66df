"""Count cache accesses while forces are computed: by Nsight Compute, perf, or cachegrind's simulation.

On a CPU the counters cover the whole process. The counts of a run that computes the forces several times,
minus the counts of a run that computes them once, are those of the search's build and its forces.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from experiments.measurement.profiler_target import Job
from experiments.processes.lifetime import run_program, temporary_folder
from sfc import checks

COUNTERS = ("nsight", "perf", "cachegrind")
MORE = 4  # additional computations of the forces in the second run
NOISE = 0.01  # share of the loads by which two runs of one program may differ
PROFILED = 3  # force kernels of each order under Nsight Compute, which replays each for every counter
MOST = 2**17  # particles under cachegrind
_LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
_READS = "lts__t_sectors_srcunit_tex_op_read"
_METRICS = {
    "l1_loads": f"{_LOADS}.sum",
    "l1_hits": f"{_LOADS}_lookup_hit.sum",
    "l2_reads": f"{_READS}.sum",
    "l2_hits": f"{_READS}_lookup_hit.sum",
    "dram_read": "dram__bytes_read.sum",
    "dram_written": "dram__bytes_write.sum",
    "time_ns": "gpu__time_duration.sum",
}
_EVENTS = ("L1-dcache-loads", "L1-dcache-load-misses", "LLC-load-misses")
_ALONE = {"NUMBA_NUM_THREADS": "1"}
_PLAIN = _ALONE | {  # valgrind supports no newer processor
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
}
_UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "sector": 1, "ns": 1, "us": 1e3, "ms": 1e6}
_TARGET = "experiments.measurement.profiler_target"


class CannotCountError(RuntimeError):
    """Raised if a counter is not installed or does not work."""


def counter_for(backend: str, n: int) -> str | None:
    """Choose a counter: Nsight Compute on a device; on a CPU perf if it counts, else cachegrind; or None.

    Args:
        backend: "cpu" or "cuda".
        n: number of particles; cachegrind takes few.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: another backend, or no particles.
    """
    checks.word("backend", backend, ("cpu", "cuda"))
    n = checks.integer("n", n, unit="particles")
    if backend == "cuda":
        return "nsight" if shutil.which("ncu") else None
    if shutil.which("perf") and _perf_counts():
        return "perf"
    return "cachegrind" if shutil.which("valgrind") and n <= MOST else None


def counted(counter: str, job: Job) -> Iterator[dict]:
    """Count the accesses of each ordering of a job, in other processes.

    Args:
        counter: one of `COUNTERS`.
        job: forces to be computed.

    Returns:
        One or more dicts for each ordering: its name as `ordering`, `l1_loads` and `l1_hits` (sectors of 32
        bytes on a device, loads on a CPU), `on_chip` (the share of them that needs no memory outside the
        chip), and on a device `l2_reads`, `l2_hits`, `dram_read` and `dram_written` (bytes), and `time_ns`,
        of the kernel alone.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a counter that is not known.
        CannotCountError: the program is missing, fails, or prints unexpected counters.
    """
    counter = checks.word("counter", counter, COUNTERS)
    return _counted(
        counter, checks.instance("job", job, Job, "an experiments.measurement.profiler_target.Job")
    )


def _counted(counter: str, job: Job) -> Iterator[dict]:
    if counter == "nsight":
        yield from _by_nsight(job)
        return
    tool = _by_perf if counter == "perf" else _by_cachegrind
    for ordering in job.orderings:
        once, often = (tool(job._replace(orderings=[ordering], times=times)) for times in (1, 1 + MORE))
        loads, first, last = (b - a for a, b in zip(once, often, strict=True))
        if loads <= 0 or not all(-NOISE * loads <= missed <= loads for missed in (first, last)):
            raise CannotCountError(
                f"{counter} counted {loads:g} loads, {first:g} and {last:g} missed, of the forces of {job.n} "
                "particles; allowed: no more misses than loads, and neither below 0; take more particles"
            )
        yield {
            "ordering": ordering,
            "l1_loads": loads / MORE,
            "l1_hits": (loads - first) / MORE,
            "on_chip": 1 - last / loads,
        }


def _by_nsight(job: Job) -> Iterator[dict]:
    flags = ["--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none"]
    flags += ["--csv", "--page", "raw"]
    flags += ["--kernel-name", "force", "--metrics", ",".join(_METRICS.values())]
    rows = list(read_nsight(_run_under("ncu", flags, job._replace(times=PROFILED)).stdout))
    orderings = [ordering for ordering in job.orderings for _ in range(PROFILED)]
    if len(rows) != len(orderings):
        raise CannotCountError(f"ncu profiled {len(rows)} force kernels; allowed: {len(orderings)}")
    for ordering, row in zip(orderings, rows, strict=True):
        missed = row["l2_reads"] - row["l2_hits"]
        yield {"ordering": ordering, **row, "on_chip": 1 - missed / row["l1_loads"]}


def read_nsight(text: str) -> Iterator[dict[str, float]]:
    """Parse Nsight Compute's counters of each kernel, in sectors, bytes and ns.

    Args:
        text: its raw page as CSV, with any other lines around it.

    Raises:
        CannotCountError: no such page, or a metric is missing.
    """
    table = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if len(table) < 2 or not set(_METRICS.values()) <= set(table[0]):
        raise CannotCountError(f"ncu printed none of these counters: {text.strip()[-300:]!r}")
    units = dict(zip(table[0], table[1], strict=True))
    for line in table[2:]:
        row = dict(zip(table[0], line, strict=True))
        yield {
            name: float(row[metric].replace(",", "")) * _UNITS[units[metric]]
            for name, metric in _METRICS.items()
        }


def _by_perf(job: Job) -> tuple[float, float, float]:
    return read_perf(_run_under("perf", ["stat", "-x,", "-e", ",".join(_EVENTS)], job).stderr)


def read_perf(text: str) -> tuple[float, float, float]:
    """Parse loads, misses of the first and of the last level from `perf stat -x,`.

    Raises:
        CannotCountError: an event is not counted.
    """
    found = {}
    for line in text.splitlines():
        parts = line.split(",")
        if len(parts) > 2 and parts[2].split(":")[0] in _EVENTS and parts[0].strip().isdigit():
            found[parts[2].split(":")[0]] = float(parts[0])
    if set(found) != set(_EVENTS):
        raise CannotCountError(f"perf does not count {', '.join(sorted(set(_EVENTS) - set(found)))}")
    loads, first, last = (found[name] for name in _EVENTS)
    return loads, first, last


def _perf_counts() -> bool:
    done = run_program(["perf", "stat", "-x,", "-e", ",".join(_EVENTS), "true"])
    try:
        read_perf(done.stderr)
    except CannotCountError:
        return False
    return True


def _by_cachegrind(job: Job) -> tuple[float, float, float]:
    with temporary_folder("cachegrind-") as folder:
        path = folder / "out"
        flags = ["--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={path}"]
        _run_under("valgrind", flags, job)
        return read_cachegrind(path.read_text("utf-8", "replace"))


def read_cachegrind(text: str) -> tuple[float, float, float]:
    """Parse loads, misses of the first and of the last level from cachegrind's file.

    Raises:
        CannotCountError: the file has no such sums.
    """
    lines = {line.split(":")[0]: line.split(":")[1].split() for line in text.splitlines() if ":" in line}
    try:
        sums = dict(zip(lines["events"], map(float, lines["summary"]), strict=True))
        return sums["Dr"], sums["D1mr"], sums["DLmr"]
    except (KeyError, ValueError) as error:
        raise CannotCountError(f"cachegrind wrote no sums of loads: {text[-200:]!r}") from error


def _run_under(program: str, flags: list[str], job: Job) -> subprocess.CompletedProcess:
    """Run the profiler target under a program."""
    return run_under(program, flags, _TARGET, job._asdict())


def run_under(
    program: str, flags: list[str], module: str, job: dict[str, Any]
) -> subprocess.CompletedProcess:
    """Run a module of this project under a profiler, and return its output.

    Args:
        program: "ncu", "perf" or "valgrind".
        flags: of the program.
        module: to be run, with the job as JSON in its command line.
        job: what the module is to do.

    Raises:
        CannotCountError: the program is missing or fails.
    """
    if shutil.which(program) is None:
        raise CannotCountError(f"{program} is not installed")
    command = [program, *flags, sys.executable, "-m", module, json.dumps(job)]
    env = os.environ | {"ncu": {}, "perf": _ALONE, "valgrind": _PLAIN}[program]
    if program != "ncu":  # fills the kernel cache, so that the counted run compiles nothing
        run_program(command[len(flags) + 1 :], env=env)
    done = run_program(command, env=env)
    if done.returncode:
        raise CannotCountError(
            f"{program} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}"
        )
    return done
