"""Count what every kernel of some steps does: time, bytes, instructions, occupancy, and why warps wait.

Nsight Compute runs each launch once for every group of counters, from the same memory, so the counts of a
launch belong together and the steps go on as without it. Its time of a launch is that of the kernel alone.
Memory that is filled without a kernel is not in the list.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from typing import Any

import numpy as np
import pandas as pd

from experiments.measurement.cycle_target import Cycle, CycleJob
from experiments.measurement.hardware_counters import CannotCountError, run_under
from experiments.results.limits import STALL
from sfc import checks

SECTOR = 32  # bytes of a sector of the L2
NEEDED = {
    "time_us": "gpu__time_duration.sum",
    "dram_read": "dram__bytes_read.sum",
    "dram_written": "dram__bytes_write.sum",
    "instructions": "smsp__inst_executed.sum",
    "cycles": "sm__cycles_elapsed.max",
}
MORE = {  # that a chip or a version of the profiler may lack
    "l2_read": "lts__t_sectors_op_read.sum",
    "l2_written": "lts__t_sectors_op_write.sum",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "lanes": "smsp__thread_inst_executed_per_inst_executed.ratio",
}
_WAITS = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
REASONS = (  # why a warp issues no instruction. Nsight Compute, Profiling Guide, warp stall reasons
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
_REFUSED: set[str] = set()  # sets of counters that the profiler refused in this process
POLLS = ("motion",)  # kernels of each call of `Simulation.run`, not of a step: the sum of the energy
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_MICROSECONDS |= {"nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3, "second": 1e6}
_COUNTS = ("byte", "inst", "cycle", "sector")
_FLAGS = ["--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--csv"]
_FLAGS += ["--page", "raw", "--print-units", "base"]
_TARGET = "experiments.measurement.cycle_target"


def counted_cycle(job: CycleJob) -> tuple[Cycle, list[dict[str, Any]]]:
    """Profile the steps from one build to the next in another process.

    If the profiler refuses a counter that a chip may lack, the steps are profiled again with fewer counters:
    without the waits, and then with those alone that are needed.

    Args:
        job: steps to be profiled.

    Returns:
        The number of steps and builds, and the rows of `by_kernel`.

    Raises:
        TypeError: no job.
        CannotCountError: Nsight Compute is missing or fails, or does not print the counters.
    """
    checks.instance("job", job, CycleJob, "an experiments.measurement.cycle_target.CycleJob")
    waits = [reason.join(_WAITS) for reason in REASONS]
    needed, more = [*NEEDED.values()], [*NEEDED.values(), *MORE.values()]
    sets = {"waits": [*more, *waits], "more": more, "needed": needed}
    refused: set[str] = set()
    for name in [name for name in sets if name not in _REFUSED]:
        try:
            flags = [*_FLAGS, "--metrics", ",".join(sets[name])]
            text = run_under("ncu", flags, _TARGET, job._asdict()).stdout
            cycle = read_cycle(text)
            kernels = by_kernel(read_launches(text), cycle)
            break
        except CannotCountError as error:
            if name == "needed":
                raise
            refused.add(name)
            print(f"counted again with fewer counters, because of: {error}", file=sys.stderr)
    _REFUSED.update(refused)
    return cycle, kernels


def read_cycle(text: str) -> Cycle:
    """Parse the number of steps and builds that the profiled program printed.

    Raises:
        CannotCountError: it printed none.
    """
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        return Cycle(**json.loads(lines[-1]))
    except (IndexError, ValueError, TypeError) as error:
        raise CannotCountError(f"the program printed no cycle: {text.strip()[-300:]!r}") from error


def read_launches(text: str) -> list[dict[str, Any]]:
    """Parse the counters of every launch.

    Args:
        text: Nsight Compute's raw page as CSV, with any other lines around it.

    Returns:
        For each launch its `kernel`; the names of `NEEDED`, in us, bytes, instructions and cycles; those of
        `MORE` (NaN if missing), of the L2 in bytes; and `stall_<reason>` for each reason that was counted, in
        cycles an instruction.

    Raises:
        CannotCountError: no such page, a counter that is needed is missing, or a unit is not known.
    """
    table = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if len(table) < 2 or not {"Kernel Name", *NEEDED.values()} <= set(table[0]):
        missing = sorted(set(NEEDED.values()) - set(table[0] if table else ()))
        raise CannotCountError(f"ncu printed no {', '.join(missing)}: {text.strip()[-300:]!r}")
    names = table[0]
    units = dict(zip(names, table[1], strict=True))
    found = []
    for line in table[2:]:
        values = dict(zip(names, line, strict=True))
        row: dict[str, Any] = {"kernel": values["Kernel Name"].partition("(")[0].split(" ")[-1]}
        for name, metric in NEEDED.items():
            row[name] = _number(values[metric]) * _scale(metric, units[metric])
            if not math.isfinite(row[name]):
                raise CannotCountError(f"ncu counted no {metric} of {row['kernel']}: {values[metric]!r}")
        for name, metric in MORE.items():
            row[name] = _number(values.get(metric, ""))
        for name in ("l2_read", "l2_written"):
            row[name] *= SECTOR
        found.append(row | _waits(values))
    return found


def _waits(values: dict[str, str]) -> dict[str, float]:
    first, last = _WAITS
    reasons = {name: name[len(first) : -len(last)] for name in values if name.startswith(first)}
    return {STALL + reason: _number(values[name]) for name, reason in reasons.items() if name.endswith(last)}


def _number(text: str) -> float:
    """Return a number as Nsight Compute prints it; NaN for none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


def _scale(metric: str, unit: str) -> float:
    """Return the factor of a unit: times to us, counts to ones."""
    if unit in _MICROSECONDS and "time" in metric:
        return _MICROSECONDS[unit]
    for prefix, factor in ({"": 1.0} | _PREFIXES).items():
        if unit in [prefix + count for count in _COUNTS] and "time" not in metric:
            return factor
    raise CannotCountError(f"ncu printed {metric} in {unit!r}, a unit that is not known")


def by_kernel(launches: list[dict[str, Any]], cycle: Cycle) -> list[dict[str, Any]]:
    """Reduce the launches of a profile to a row for each kernel, the longest in sum first.

    Launches of `POLLS` are left out.

    Args:
        launches: of `read_launches`.
        cycle: what was profiled.

    Returns:
        For each kernel its name as `kernel`; `launches` in the profile; `cycle_us`, the sum of their times;
        `step_us`, that sum over the number of steps; `share` of the time of all kernels; and the medians over
        launches of all else.

    Raises:
        CannotCountError: no launch is left, or no step was taken.
    """
    table = pd.DataFrame([one for one in launches if one["kernel"] not in POLLS])
    if table.empty or cycle.steps < 1:
        raise CannotCountError(f"ncu profiled {len(table)} launches of {cycle.steps} steps; allowed: some")
    whole = float(table["time_us"].sum())
    found: list[dict[str, Any]] = []
    for kernel, rows in table.groupby("kernel", sort=False):
        time = float(rows["time_us"].sum())
        counts = {"launches": len(rows), "cycle_us": time, "step_us": time / cycle.steps}
        medians = {str(name): _median(rows[name]) for name in rows if name != "kernel"}
        found.append({"kernel": str(kernel)} | counts | {"share": time / whole} | medians)
    return sorted(found, key=lambda row: -row["cycle_us"])


def _median(values: pd.Series) -> float:
    known = values.dropna().to_numpy(float)
    return float(np.median(known)) if len(known) else math.nan
