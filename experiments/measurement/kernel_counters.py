"""Count what every kernel of some steps does: time, bytes, instructions, occupancy, and why warps wait.

Nsight Compute runs each launch once for every group of counters, from the same memory, so the counts of a
launch belong together and the steps go on as without it. Its time of a launch is that of the kernel alone.
Memory that is filled without a kernel is not in the list.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pandas as pd

from experiments.measurement.hardware_counters import NSIGHT, CannotCountError, read_launches, run_under
from experiments.measurement.profiler_target import Cycle, CycleJob
from experiments.results.limits import STALL

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
REASONS = (  # why a warp issues no instruction. Nsight Compute, Profiling Guide, warp stall reasons
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
_REFUSED: set[str] = set()  # sets of counters that the profiler refused in this process
POLLS = ("motion",)  # kernels of each call of `Simulation.run`, not of a step: the sum of the energy
_WAITS = {
    f"{STALL}{one}": f"smsp__average_warps_issue_stalled_{one}_per_issue_active.ratio" for one in REASONS
}


def counted_cycle(job: CycleJob) -> tuple[Cycle, list[dict[str, Any]]]:
    """Profile the steps from one build to the next in another process.

    If the profiler refuses a counter that a chip may lack, the steps are profiled again with fewer counters:
    without the waits, and then with those alone that are needed.

    Args:
        job: steps to be profiled.

    Returns:
        The number of steps and builds, and the rows of `by_kernel`.

    Raises:
        CannotCountError: Nsight Compute is missing or fails, or does not print the counters.
    """
    sets = {"waits": MORE | _WAITS, "more": MORE, "needed": {}}
    refused: set[str] = set()
    for name in [name for name in sets if name not in _REFUSED]:
        metrics = ",".join([*NEEDED.values(), *sets[name].values()])
        try:
            text = run_under("ncu", [*NSIGHT, "--metrics", metrics], job).stdout
            cycle = read_cycle(text)
            kernels = by_kernel(launches_of(text), cycle)
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


def launches_of(text: str) -> pd.DataFrame:
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
    found = read_launches(text, NEEDED, MORE | _WAITS)
    names = [*found.columns.union([*MORE], sort=False)]
    found = found.reindex(columns=sorted(names, key=lambda name: name.startswith(STALL)))
    found[["l2_read", "l2_written"]] *= SECTOR
    return found


def by_kernel(launches: pd.DataFrame, cycle: Cycle) -> list[dict[str, Any]]:
    """Reduce the launches of a profile to a row for each kernel, the longest in sum first.

    Launches of `POLLS` are left out.

    Args:
        launches: of `launches_of`.
        cycle: what was profiled.

    Returns:
        For each kernel its name as `kernel`; `launches` in the profile; `cycle_us`, the sum of their times;
        `step_us`, that sum over the number of steps; `share` of the time of all kernels; and the medians over
        launches of all else.

    Raises:
        CannotCountError: no launch is left, or no step was taken.
    """
    table = launches[~launches["kernel"].isin(POLLS)]
    if table.empty or cycle.steps < 1:
        raise CannotCountError(f"ncu profiled {len(table)} launches of {cycle.steps} steps; allowed: some")
    kernels = table.groupby("kernel", sort=False)
    time: Any = kernels["time_us"].sum()
    sums = {"cycle_us": time, "step_us": time / cycle.steps, "share": time / time.sum()}
    found = pd.DataFrame({"launches": kernels.size(), **sums}).join(kernels.median()).reset_index()
    rows: list[Any] = found.sort_values("cycle_us", ascending=False, kind="stable").to_dict("records")
    return rows
