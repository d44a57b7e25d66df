"""What limits each kernel of a step: memory, the issue of instructions, or the time that warps wait?

The gas is `md.scenes.benchmark_gas`. On a device Nsight Compute counts every kernel in the steps from one
rebuild of the search to the next: time, bytes to and from memory, instructions, occupancy, and the reasons
why warps wait. Beside the time of each kernel stand two floors. `floor_memory_us` is the time in which the
bytes that it must move are copied: each array read once and written once, at the bandwidth of a copy in
memory measured here. `floor_issue_us` is the time in which its instructions are issued, four per
multiprocessor and cycle at the clock of the kernel. `dram_us` is the time in which the bytes that it did move
to and from memory are copied: beyond the first floor they are read again and again.

What limits a kernel follows by a rule: `memory`, if `dram_us` is 70 % of its time or more; `issue`, if
`floor_issue_us` is; the larger if both are; else `latency`. Arrays that fit the last cache need not come from
memory, so with few particles a kernel may be below its floor.

The CPU has no such counters: there are the phases of a step with the bytes that they must move, and the time
of a copy of them. A device without Nsight Compute gets the same.

Before a time is taken, the forces on a gas in which spheres touch are compared with those of another search,
and so are the states ten steps later. Times of steps and phases are sampled in rounds. Kernels are counted
after all rounds, in the gas as it then is, and belong to no round; in a run that was interrupted after its
last round, soon after the warm-up. The sum of the kernels of a step is not its time: launches, memory that
is filled without a kernel, and what the host does are missing, and with few particles the time of a kernel
that is counted includes its start. The gas cools from round to round, so that lists are built less often:
take few steps in a sample.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

import md
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces, check_states
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.hardware_counters import CannotCountError, counter_for
from experiments.measurement.ideal_bytes import Traffic, entry_bytes, of_phase, sizes_of, traffic
from experiments.measurement.kernel_counters import counted_cycle
from experiments.measurement.memory_bandwidth import copy_bandwidth
from experiments.measurement.profiler_target import CycleJob
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import benchmark_simulation, phases_of, sample_of_steps
from experiments.processes.lifetime import temporary_folder
from experiments.results import limits
from experiments.results.answers import Answer, headline, listed, percent, rounded, rows_of
from experiments.results.charts import BARS, DOTS, FILLED, FIRST, Chart, Points, Scale, Table
from md.backend import Backend
from md.simulation import PRECISIONS

COMPARED = 10  # steps after which two searches are compared: rounding has not grown yet
PHASES = ("build", "force", "integrate")
MOST_REASONS = 5  # of a figure, besides the sum of the others
RULE = f"a kernel is limited by what takes {limits.SHARE:.0%} of its time or more, else by latency"
SMALL = 0.03  # share of a step below which kernels are one bar
OTHERS = "others"
MOST_PERCENT = 120  # of a kernel's time; a floor beyond it, of arrays in a cache, leaves the frame
NO_KERNELS = "phases of a step; kernels and what limits them are not shown: nothing was counted"
OCCUPANCY, STEP = "occupancy", "time in a step"
_FIGURE = ["n", "search", "precision"]
_CASE = [*_FIGURE, "filling_fraction"]
_KEYS = [*_CASE, "device", "name"]
_MARKS = {"dram_us": "bytes it moved to and from memory", "floor_issue_us": "floor: its instructions",
          "floor_memory_us": "floor: bytes it must move"}  # fmt: skip
_COUNTED = ["time_us", "launches", "cycle_steps", "limit", "occupancy_percent"]
_COLUMNS = [*_KEYS, *_MARKS, "what", "step_us", *_COUNTED]
_ISSUED = [limits.STALL + one for one in limits.WORKING]
_LABELS = {"long_scoreboard": "memory or L2 (long scoreboard)", "short_scoreboard": "shared memory"}
_LABELS |= {"wait": "fixed latency (wait)", "not_selected": "another warp was issued"}
_LABELS |= {"lg_throttle": "queue of loads (lg throttle)", "mio_throttle": "queue of shared memory"}


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of gases and searches, one in memory at a time, besides one more for the check."""

    n: Axis[int] = (2**17, 2**19)
    """Number of particles. Take 131072, 2097152 and 8388608 on a GPU."""
    filling_fraction: Axis[float] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    search: Axis[str] = ("verlet",)
    """Neighbour searches. The bytes that a kernel must move are known for verlet, coherent and linked."""
    precision: str = "float32"
    """Precision of positions, velocities and forces."""
    fused: bool = True
    """Whether the step is fused into the force kernel, which the search reflexive cannot be."""
    steps: int = 50
    """Number of steps in a sample, once as a whole and once phase by phase. Take 80 on a GPU."""
    warm_up: int = 100
    """Number of steps before the check and the times. The gas starts on a jittered lattice, where no spheres
    touch."""
    counter: str = "auto"
    """Program that counts kernels; auto is nsight on a device that has it, else none."""

    def __post_init__(self):
        super().__post_init__()
        searches = tuple(name for name in md.search.SEARCHES if name != "naive")
        known = {"search": searches, "precision": PRECISIONS, "counter": ("nsight", "none", "auto")}
        self.check_known(known)
        if self.counter == "nsight" and self.backend == "cpu":
            raise ValueError("--counter nsight beside --backend cpu; allowed: cuda")
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_least({"n": 100, "steps": 1, "warm_up": 1})
        self.check_particles(2)


QUICK = {"n": (2**14,), "runs": 1, "rounds": 3, "steps": 20}
MINUTES = 2  # CPU time of one run of a smaller size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict] | dict]:
    """Yield the rounds from `begin` on, of `step` and `phase`; then rows `kernel`."""
    kind: Any = md.search.SEARCHES[case.search]
    if case.fused and not kind.capabilities.fusable:
        return
    place = md.backend.get(case.backend)
    common = {"particles": case.n, "precision": case.precision, "fused": case.fused,
              "device": place.describe()["device"], "copy_GB_per_s": copy_bandwidth(place),
              **working_set(case.n, 3, case.precision, place)}  # fmt: skip
    sim = _checked(case)
    sizes = sizes_of(sim)
    moved = traffic(case.search, sizes, place.runs_ahead)
    common["listed_per_particle"] = sizes.listed / entry_bytes(place.runs_ahead) / case.n
    entry = Entry(common, partial(_sample, case, sim, moved, common["copy_GB_per_s"], sim.step, sim.builds))
    yield from take_rounds([entry], case.rounds, place, seed=case.seed, begin=begin)
    last, moved = sim.state, traffic(case.search, sizes_of(sim), place.runs_ahead)
    del sim, entry  # frees the device for the profiler
    yield from _counted(case, last, place, moved, common)


def _checked(case: Config) -> md.Simulation:
    """Make the simulation of a case from its gas after the warm-up, and compare it with another search.

    In that gas spheres touch; it is in the memory order of the search.
    """
    gas = md.scenes.benchmark_gas(case.n, case.filling_fraction, seed=case.seed, backend=case.backend)
    warm = benchmark_simulation(gas, case, case.search, fused=case.fused)
    warm.run(case.warm_up, phases=False)
    start, other = warm.state, "linked" if case.search == "coherent" else "coherent"
    del warm
    expected = benchmark_simulation(start, case, other, fused=False, allow_overlap=True)
    sim = benchmark_simulation(start, case, case.search, fused=case.fused, allow_overlap=True)
    check_forces(sim, expected.forces(), case.precision)
    for one in (expected, sim):
        one.run(COMPARED, phases=False)
    name = f"{case.search} after {COMPARED} steps"
    check_states(name, sim.state, expected.state, case.precision, f"those of {other}")
    return sim


def _sample(
    case: Config, sim: md.Simulation, moved: dict[str, Traffic], bandwidth: float, first: int, built: int
) -> Iterator[dict]:
    """Time steps as a whole and phase by phase; the first step and the builds before it are those given."""
    whole = sample_of_steps(sim, case.steps)["sample_ms"]
    phases = {phase: sum(of) for phase, of in phases_of(sim, case.steps).items()}
    per_build = (sim.step - first) / max(sim.builds - built, 1)
    found = {"sample_ms": whole, "steps_per_build": per_build}
    apart = {"phases_over_step": sum(phases.values()) / whole}
    yield found | apart | {"what": "step", "name": "step", "step_us": 1e3 * whole / case.steps}
    for phase in (phase for phase in PHASES if phase in phases):
        ms, least = phases[phase], of_phase(moved, phase, per_build)
        floor = {"ideal_bytes": least, "floor_memory_us": limits.memory_us(least, bandwidth)}
        row = {"what": "phase", "name": phase, "sample_ms": ms, "step_us": 1e3 * ms / case.steps}
        yield found | row | floor


def _counted(
    case: Config, start: md.State, place: Backend, moved: dict[str, Traffic], common: dict
) -> Iterator[dict]:
    """Yield a row for each kernel of a cycle; print a message if nothing can be counted."""
    counter = counter_for(place.name, case.n) if case.counter == "auto" else case.counter
    try:
        if counter != "nsight":
            raise CannotCountError("--counter none" if counter == "none" else "no Nsight Compute")
        with temporary_folder("roofline-") as folder:
            path = folder / "start.npz"  # of a simulation that is freed, as the profiler needs the device
            benchmark_simulation(start, case, case.search, fused=case.fused, allow_overlap=True).save(path)
            cycle, kernels = counted_cycle(CycleJob(str(path)))
    except CannotCountError as error:
        if case.counter == "nsight":
            raise ValueError(f"--counter {counter}: {error}; allowed: none, or a device with ncu") from error
        print(f"nothing is counted: {error}", file=sys.stderr)
        return
    device: Any = place
    for row in kernels:
        own = moved.get(row["kernel"])
        found = with_floors(row, own.bytes if own else math.nan, common["copy_GB_per_s"], device)
        cycles = {"cycle_steps": cycle.steps, "cycle_builds": cycle.builds}
        yield common | {"what": "kernel", "name": found.pop("kernel")} | cycles | found


def with_floors(row: dict[str, Any], ideal: float, bandwidth: float, device: Any) -> dict[str, Any]:
    """Add to the counters of a kernel its floors, what limits it, and the longest waits.

    Args:
        row: of `experiments.measurement.kernel_counters.by_kernel`.
        ideal: bytes that a launch must move; NaN if they are not known.
        bandwidth: of a copy, in GB/s.
        device: its backend; `resident_blocks` is its number of multiprocessors.
    """
    dram = row["dram_read"] + row["dram_written"]
    issue = limits.issue_us(row["instructions"], row["cycles"], row["time_us"], device.resident_blocks)
    found = {"ideal_bytes": ideal, "dram_bytes": dram, "floor_memory_us": limits.memory_us(ideal, bandwidth),
             "dram_us": limits.memory_us(dram, bandwidth), "floor_issue_us": issue}  # fmt: skip
    found["limit"] = limits.limit(row["time_us"], found["dram_us"], found["floor_issue_us"])
    found["clock_of_kernel_MHz"] = row["cycles"] / row["time_us"]
    return row | found | limits.top_stalls(row)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Take medians over rounds and runs of each step, phase and kernel, the longest first.

    Args:
        table: of rows of `measure`, with the columns of their cases.

    Returns:
        A row for each `what` and `name` of a case, with medians of all numbers. `limit` and the longest waits
        are those of the medians; `limit` is missing if nothing was counted.
    """
    keys = [*_CASE, "what", "name"]
    no_numbers = [*keys, "case", "run", "round", "turn", "sample_ms"]
    numbers = table.select_dtypes("number").columns.difference(no_numbers, sort=False)
    how: dict[Any, Any] = dict.fromkeys(numbers, "median") | {"device": "first"}
    found = table.groupby(keys, sort=False).agg(how).reset_index()
    if "dram_us" in found:
        found = found.drop(columns=[name for name in map(str, found) if name.startswith("reason_")])
        columns = ["time_us", "dram_us", "floor_issue_us"]
        found["limit"] = [limits.limit(*times) for times in found[columns].itertuples(index=False)]
        rows: list[Any] = found.to_dict("records")
        waits = pd.DataFrame([limits.top_stalls(row) for row in rows], index=found.index)
        found = found.join(waits)
    return found.sort_values([*_CASE, "step_us"], ascending=[True] * len(_CASE) + [False], kind="stable")


def _floors(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each kernel, or phase, of a step: its time, its floors in a step, what limits it."""
    parts = []
    for _, rows in summary(table).groupby(_FIGURE, sort=False):
        shown = _with_others(rows[rows["what"] == _kind(rows)]).reindex(columns=_COLUMNS)
        launches = (shown["launches"] / shown["cycle_steps"]).fillna(1.0)  # the floor of a phase is of a step
        shown = shown.assign(**{column: shown[column] * launches for column in _MARKS})
        limited = [f"time, limited by {one}" if isinstance(one, str) else "time" for one in shown["limit"]]
        steps = rows[rows["what"] == "step"].groupby("filling_fraction")["step_us"].median()
        parts.append(shown.assign(limited=limited, whole_us=shown["filling_fraction"].map(steps)))
    return _longest_first(pd.concat(parts, ignore_index=True))


def _with_others(rows: pd.DataFrame) -> pd.DataFrame:
    """Replace names that take little of the step at every filling fraction by their sum, without floors."""
    share: Any = rows["step_us"] / rows.groupby("filling_fraction")["step_us"].transform("sum")
    is_small = share.groupby(rows["name"]).transform("max") < SMALL
    others: Any = rows[is_small].groupby([*_CASE, "what", "device"], as_index=False)["step_us"].sum()
    others["name"] = f"{rows[is_small]['name'].nunique()} {OTHERS}"
    return pd.concat([rows[~is_small], others], ignore_index=True) if is_small.any() else rows


def _shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of each kernel's time, its occupancy and its time in a step."""
    rows = _kernels(table)
    numbers: dict[str, Any] = {
        label: 100 * rows[column] / rows["time_us"] for column, label in _MARKS.items()
    }
    return _one_below_another(rows, numbers | {OCCUPANCY: rows["occupancy_percent"], STEP: rows["step_us"]})


def _waits(table: pd.DataFrame) -> pd.DataFrame:
    """Return how long a warp of each kernel waits, in cycles an instruction, by the reason."""
    parts = [_one_below_another(_kernels(table.iloc[:0]), {})]
    for _, rows in _kernels(table).groupby(_FIGURE, sort=False):
        waits = rows.filter(like=limits.STALL).fillna(0).drop(columns=_ISSUED, errors="ignore")
        waits = waits.rename(columns=lambda name: name.removeprefix(limits.STALL))
        total = waits.mul(rows["step_us"], axis=0).sum().sort_values(ascending=False, kind="stable")
        reasons = total.index[total > 0]
        largest = list(reasons[:MOST_REASONS])
        numbers: dict[str, Any] = {_LABELS.get(one, one.replace("_", " ")): waits[one] for one in largest}
        if len(reasons) > MOST_REASONS:
            numbers["other reasons"] = waits[reasons].sum(axis=1) - sum(numbers.values())
        parts.append(_one_below_another(rows, numbers))
    return pd.concat(parts, ignore_index=True)


def _kind(rows: pd.DataFrame) -> str:
    """Return the parts of a step that are known: kernels if they were counted, else phases."""
    return "kernel" if (rows["what"] == "kernel").any() else "phase"


def _kernels(table: pd.DataFrame) -> pd.DataFrame:
    found = summary(table)
    found = found.reindex(columns=found.columns.union(_COLUMNS, sort=False))
    return _longest_first(found[found["what"] == "kernel"])


def _longest_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by the longest time of their name, the sum of small ones last, then by filling fraction."""
    longest = rows.groupby([*_FIGURE, "name"])["step_us"].transform("max")
    rows = rows.assign(_longest=longest, _last=rows["name"].str.endswith(OTHERS))
    return rows.sort_values(["_last", "_longest", "filling_fraction"], ascending=[True, False, True])


def _one_below_another(rows: pd.DataFrame, numbers: dict[str, Any]) -> pd.DataFrame:
    """Return numbers in the column `value` with their names in the column `of`, a row for each."""
    parts = [rows[_KEYS].assign(of=name, value=values) for name, values in numbers.items()]
    return pd.concat(parts or [rows[_KEYS].assign(of="", value=0.0)], ignore_index=True)


def _about(rows: pd.DataFrame) -> str:
    return "{device}; {n:,} particles, {search}, {precision}".format(**rows.iloc[0])


def _note(rows: pd.DataFrame) -> str:
    """Describe the steps of a figure of floors."""
    of = rows.groupby("filling_fraction")
    step, parts = (listed(map(rounded, one)) for one in (of["whole_us"].first(), of["step_us"].sum()))
    rule = RULE if _kind(rows) == "kernel" else NO_KERNELS
    return f"{_about(rows)}; step {step} us, sum of its parts {parts} us\n{rule}"


_PARTS: dict[str, Any] = {"panels": "filling_fraction", "heading": FILLED, "files": tuple(_FIGURE)}
VIEWS = (
    Table("summary", summary),
    Chart(
        "floors", "At {filling_fraction} filled {worst} takes the longest, {of_worst} us of a step",
        BARS, Points("step_us", statistic=FIRST), Scale("", "name"), Scale("time in a step (us)"), "limited",
        bounds=tuple(Points(column, statistic=FIRST, label=label) for column, label in _MARKS.items()),
        order=(*(f"time, limited by {what}" for what in limits.LIMITS), "time"),
        note=_note, prepare=_floors, **_PARTS,
    ),
    Chart(
        "limits",
        "At {filling_fraction} filled memory takes {of_worst} % of the time of {worst}, {value} % of {best}",
        DOTS, (Points("value", f"of != '{STEP}'", FIRST),
               Points("value", f"of == '{STEP}'", FIRST, values=Scale("time in a step (us)", log=10))),
        Scale("", "name"),
        Scale("share of the kernel's time,\nor of the most warps (%)", line=100 * limits.SHARE,
              ends=(0, MOST_PERCENT)),
        "of", note=lambda rows: f"{_about(rows)}\n{RULE} (line)", prepare=_shares, **_PARTS,
    ),
    Chart(
        "waits",
        "At {filling_fraction} filled a warp of {worst} waits {of_worst} cycles an instruction for {of}, of "
        "{best} {value}",
        BARS, Points("value", statistic=FIRST), Scale("", "name"),
        Scale("wait of a warp\n(cycles per instruction)"), "of", "waits for", note=_about, prepare=_waits,
        **_PARTS,
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Name the kernels, or the phases, that take most of a step, and what limits them."""
    rows = headline(summary(table), *_FIGURE)
    rows = rows[rows["filling_fraction"] == rows["filling_fraction"].iloc[0]]
    step, kind = rows.loc[rows["what"] == "step", "step_us"].sum(), _kind(rows)
    parts = rows[rows["what"] == kind].sort_values("step_us", ascending=False)
    parts = parts.assign(share_of_all=parts["step_us"] / parts["step_us"].sum())
    cells = {
        "us a step": lambda row: rounded(row["step_us"]),
        "share": lambda row: percent(row["share_of_all"]),
        "limited by": lambda row: row["limit"] if kind == "kernel" else "not counted",
    }
    n, search, phi = (rows[name].iloc[0] for name in ("n", "search", "filling_fraction"))
    where = f"At {n:,} particles, {percent(phi)} filled, a step of {search} takes {rounded(step)} us"
    if parts.empty:
        return Answer(pd.DataFrame(), f"{where}; its parts were not measured.")
    first = parts.iloc[0]
    what = f"the {kind} {first['name']} takes {percent(first['share_of_all'])} of the {kind}s' time"
    limited = f"is limited by {first['limit']}" if kind == "kernel" else "what limits it was not counted"
    return Answer(rows_of(parts, ["name"], cells), f"{where}; {what} and {limited}.")


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
