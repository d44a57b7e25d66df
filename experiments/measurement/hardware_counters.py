"""Count cache accesses while forces are computed: by Nsight Compute, perf, or cachegrind's simulation.

On a CPU the counters cover the whole process. The counts of a run that computes the forces several times,
minus the counts of a run that computes them once, are those of the search's build and its forces.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from experiments.measurement.profiler_target import Job
from experiments.processes.lifetime import run_program, temporary_folder

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
    "time_us": "gpu__time_duration.sum",
}
NSIGHT = ["--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--csv"]
NSIGHT += ["--page", "raw", "--print-units", "base"]
_UNITS = {"ns": 1e-3, "nsecond": 1e-3, "byte": 1.0, "inst": 1.0, "cycle": 1.0, "sector": 1.0}  # times in us
_EVENTS = ("L1-dcache-loads", "L1-dcache-load-misses", "LLC-load-misses")
_ALONE = {"NUMBA_NUM_THREADS": "1"}
# valgrind supports no newer processor
_PLAIN = _ALONE | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
_ENVIRONMENTS = {"ncu": {}, "perf": _ALONE, "valgrind": _PLAIN}


class CannotCountError(RuntimeError):
    """Raised if a counter is not installed or does not work."""


def counter_for(backend: str, n: int) -> str | None:
    """Choose a counter: Nsight Compute on a device; on a CPU perf if it counts, else cachegrind; or None.

    Args:
        backend: "cpu" or "cuda".
        n: number of particles; cachegrind takes few.
    """
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
        chip), and on a device `l2_reads`, `l2_hits`, `dram_read` and `dram_written` (bytes), and `time_us`,
        of the kernel alone.

    Raises:
        CannotCountError: the program is missing, fails, or prints unexpected counters.
    """
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
    flags = [*NSIGHT, "--kernel-name", "force", "--metrics", ",".join(_METRICS.values())]
    launches = read_launches(run_under("ncu", flags, job._replace(times=PROFILED)).stdout, _METRICS)
    orderings = [ordering for ordering in job.orderings for _ in range(PROFILED)]
    if len(launches) != len(orderings):
        raise CannotCountError(f"ncu profiled {len(launches)} force kernels; allowed: {len(orderings)}")
    launches["on_chip"] = 1 - (launches["l2_reads"] - launches["l2_hits"]) / launches["l1_loads"]
    yield from launches.drop(columns="kernel").assign(ordering=orderings).to_dict("records")


def read_launches(
    text: str, needed: Mapping[str, str], more: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Parse Nsight Compute's counters of each launch.

    Args:
        text: its raw page as CSV, with any other lines around it.
        needed: name of a column -> its counter.
        more: counters that a chip or a version of the profiler may lack.

    Returns:
        A row for each launch: the name of its `kernel`, and the counters, times in us, all else in ones. A
        counter of `more` that is not on the page has no column, and NaN in a launch that lacks it.

    Raises:
        CannotCountError: no such page, a counter that is needed is missing, or its unit is not known.
    """
    page = "\n".join(line for line in text.splitlines() if line.startswith('"'))
    table = pd.read_csv(io.StringIO(page or '""'), dtype=str, keep_default_na=False)
    missing = sorted({"Kernel Name", *needed.values()} - set(table))
    if missing or table.empty:
        raise CannotCountError(f"ncu printed no {', '.join(missing)}: {text.strip()[-300:]!r}")
    units, table = table[:1].to_dict("records")[0], table[1:]
    kernels = table["Kernel Name"].str.partition("(")[0].str.split().str[-1]
    found = {"kernel": kernels}
    for name, metric in {**needed, **(more or {})}.items():
        if metric not in table:
            continue
        if name in needed and units[metric] not in _UNITS:
            raise CannotCountError(f"ncu printed {metric} in {units[metric]!r}, a unit that is not known")
        numbers = pd.to_numeric(table[metric].str.replace(",", ""), errors="coerce")
        if name in needed and (uncounted := numbers.isna()).any():
            of, what = kernels[uncounted].iloc[0], table.loc[uncounted, metric].iloc[0]
            raise CannotCountError(f"ncu counted no {metric} of {of}: {what!r}")
        found[name] = numbers * _UNITS.get(units[metric], 1.0)
    return pd.DataFrame(found)


def _by_perf(job: Job) -> tuple[float, float, float]:
    return read_perf(run_under("perf", ["stat", "-x,", "-e", ",".join(_EVENTS)], job).stderr)


def read_perf(text: str) -> tuple[float, float, float]:
    """Parse loads, misses of the first and of the last level from `perf stat -x,`.

    Raises:
        CannotCountError: an event is not counted.
    """
    lines = [line.split(",") for line in text.splitlines()]
    found = {
        line[2].split(":")[0]: float(line[0]) for line in lines if len(line) > 2 and line[0].strip().isdigit()
    }
    if missing := sorted(set(_EVENTS) - set(found)):
        raise CannotCountError(f"perf does not count {', '.join(missing)}")
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
        run_under("valgrind", flags, job)
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


def run_under(program: str, flags: list[str], job: Any) -> subprocess.CompletedProcess:
    """Run the program of a job under a profiler, and return its output.

    Args:
        program: "ncu", "perf" or "valgrind".
        flags: of the program.
        job: NamedTuple: what its module, run as a program, is to do.

    Raises:
        CannotCountError: the program is missing or fails.
    """
    if shutil.which(program) is None:
        raise CannotCountError(f"{program} is not installed")
    alone = [sys.executable, "-m", type(job).__module__, json.dumps(job._asdict())]
    env = os.environ | _ENVIRONMENTS[program]
    if program != "ncu":  # fills the kernel cache, so that the counted run compiles nothing
        run_program(alone, env=env)
    done = run_program([program, *flags, *alone], env=env)
    if done.returncode:
        said = (done.stderr or done.stdout)[-500:]
        raise CannotCountError(f"{program} ended with {done.returncode}: {said}")
    return done
