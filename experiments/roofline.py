"""What limits each kernel of a step: memory, the issue of instructions, or the time that warps wait?

The gas is `md.scenes.shared_gas`. On a device Nsight Compute counts every kernel in the steps from one
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
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, TimedSettings, figures, main, save_table
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces, check_states
from experiments.measurement.cycle_target import CycleJob, simulation, write_start
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.hardware_counters import CannotCountError, counter_for
from experiments.measurement.ideal_bytes import Traffic, of_phase, sizes_of, traffic
from experiments.measurement.kernel_counters import counted_cycle
from experiments.measurement.memory_bandwidth import copy_bandwidth
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phases_of, sample_of_steps
from experiments.processes.lifetime import temporary_folder
from experiments.results import limits
from experiments.results.answers import Answer, headline, percent, rounded, rows_of
from md.backend import Backend
from md.simulation import PRECISIONS

SETTLE = 20  # steps before a profile, of a gas that is warm: rebuilds are planned by the fastest particle
COMPARED = 10  # steps after which two searches are compared: rounding has not grown yet
PHASES = ("build", "force", "integrate")
MOST_REASONS = 5  # of a figure, besides the sum of the others
RULE = f"a kernel is limited by what takes {limits.SHARE:.0%} of its time or more, else by latency"
SMALL = 0.03  # share of a step below which kernels are one bar
OTHERS = "others"
MOST_PERCENT = 120  # of a kernel's time; a floor beyond it, of arrays in a cache, leaves the frame
NO_KERNELS = "phases of a step; kernels and what limits them are not shown: nothing was counted"
_FIGURE = ["n", "search", "precision"]
_CASE = [*_FIGURE, "filling_fraction"]
_COLOURS = {limits.MEMORY: "#0072B2", limits.ISSUE: "#E69F00", limits.LATENCY: "#CC79A7"}
_HATCHES = {limits.MEMORY: "", limits.ISSUE: "///", limits.LATENCY: "..."}
_MARKS = {  # column -> label, marker
    "floor_memory_us": ("floor: bytes it must move", "|"),
    "dram_us": ("bytes it moved to and from memory", "D"),
    "floor_issue_us": ("floor: its instructions", "^"),
}
_LABELS = {"long_scoreboard": "memory or L2 (long scoreboard)", "short_scoreboard": "shared memory"}
_LABELS |= {"wait": "fixed latency (wait)", "not_selected": "another warp was issued"}
_LABELS |= {"lg_throttle": "queue of loads (lg throttle)", "mio_throttle": "queue of shared memory"}
_REASON_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
_REASON_HATCHES = ("", "///", "...", "xx", "\\\\")


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
    job = CycleJob(
        case.n, case.filling_fraction, case.search, case.precision, case.fused, case.backend, case.seed,
        case.warm_up,
    )  # fmt: skip
    place = md.backend.get(case.backend)
    bandwidth = _copied(place)
    common = {
        "particles": case.n,
        "precision": case.precision,
        "fused": case.fused,
        "device": place.describe()["device"],
        "copy_GB_per_s": bandwidth,
        **working_set(case.n, 3, case.precision, place),
    }
    start = _warm(job)
    sim = _checked(job, start)
    sizes = sizes_of(sim)
    moved = traffic(case.search, sizes, place.runs_ahead)
    common["listed_per_particle"] = sizes.listed / 4 / case.n
    entry = _entry(case, sim, moved, bandwidth, common)
    yield from take_rounds([entry], case.rounds, place, seed=case.seed, begin=begin)
    last, moved = sim.state, traffic(case.search, sizes_of(sim), place.runs_ahead)
    del sim, entry  # frees the device for the profiler
    yield from _counted(case, job, last, place, moved, common)


@lru_cache
def _copied(place: Backend) -> float:
    """Return the bandwidth of a copy in GB/s, measured once in a process."""
    return copy_bandwidth(place)


def _warm(job: CycleJob) -> md.State:
    """Return the gas of a job after its warm-up, in the memory order of the search."""
    sim = simulation(job)
    sim.run(job.warm_up, phases=False)
    return sim.state


def _checked(job: CycleJob, start: md.State) -> md.Simulation:
    """Make the simulation of a job from a gas in which spheres touch, and compare it with another search."""
    other = "linked" if job.search == "coherent" else "coherent"
    expected = simulation(job._replace(search=other, fused=False), start)
    sim = simulation(job, start)
    check_forces(sim, expected.forces(), job.precision)
    for one in (expected, sim):
        one.run(COMPARED, phases=False)
    name = f"{job.search} after {COMPARED} steps"
    check_states(name, sim.state, expected.state, job.precision, f"those of {other}")
    return sim


def _entry(
    case: Config, sim: md.Simulation, moved: dict[str, Traffic], bandwidth: float, common: dict
) -> Entry:
    """Return a simulation, ready to be sampled."""
    first, built = sim.step, sim.builds

    def sample() -> Iterator[dict]:
        whole = sample_of_steps(sim, case.steps)["sample_ms"]
        phases = {phase: sum(of) for phase, of in phases_of(sim, case.steps).items()}
        per_build = (sim.step - first) / max(sim.builds - built, 1)
        found = {"sample_ms": whole, "steps_per_build": per_build}
        apart = {"phases_over_step": sum(phases.values()) / whole}
        yield found | apart | {"what": "step", "name": "step", "step_us": 1e3 * whole / case.steps}
        for phase in PHASES:
            if phase in phases:
                least = of_phase(moved, phase, per_build)
                yield found | {
                    "what": "phase",
                    "name": phase,
                    "sample_ms": phases[phase],
                    "step_us": 1e3 * phases[phase] / case.steps,
                    "ideal_bytes": least,
                    "floor_memory_us": limits.memory_us(least, bandwidth),
                }

    return Entry(common, sample)


def _counted(
    case: Config, job: CycleJob, start: md.State, place: Backend, moved: dict[str, Traffic], common: dict
) -> Iterator[dict]:
    """Yield a row for each kernel of a cycle; print a message if nothing can be counted."""
    counter = counter_for(place.name, case.n) if case.counter == "auto" else case.counter
    if counter != "nsight":
        print(
            "nothing is counted: " + ("--counter none" if case.counter == "none" else "no Nsight Compute"),
            file=sys.stderr,
        )
        return
    try:
        with temporary_folder("roofline-") as folder:
            path = folder / "start.npz"
            write_start(path, start)
            cycle, kernels = counted_cycle(job._replace(start=str(path), warm_up=SETTLE))
    except CannotCountError as error:
        if case.counter != "auto":
            raise ValueError(f"--counter {counter}: {error}; allowed: none, or a device with ncu") from error
        print(f"nothing is counted: {error}", file=sys.stderr)
        return
    device: Any = place
    for row in kernels:
        own = moved.get(row["kernel"])
        found = with_floors(row, math.nan if own is None else own.bytes, common["copy_GB_per_s"], device)
        cycles = {"cycle_steps": cycle.steps, "cycle_builds": cycle.builds}
        yield common | {"what": "kernel", "name": found.pop("kernel")} | cycles | found


def with_floors(row: dict[str, Any], ideal: float, bandwidth: float, device: Any) -> dict[str, Any]:
    """Add to the counters of a kernel its floors, what limits it, and the longest waits.

    Args:
        row: of `experiments.measurement.kernel_counters.by_kernel`.
        ideal: bytes that a launch must move; NaN if they are not known.
        bandwidth: of a copy, in GB/s.
        device: its number of `multiprocessors`.
    """
    dram = row["dram_read"] + row["dram_written"]
    found = {
        "ideal_bytes": ideal,
        "dram_bytes": dram,
        "floor_memory_us": limits.memory_us(ideal, bandwidth),
        "dram_us": limits.memory_us(dram, bandwidth),
        "floor_issue_us": limits.issue_us(
            row["instructions"], row["cycles"], row["time_us"], device.multiprocessors
        ),
    }
    found["limit"] = limits.limit(row["time_us"], found["dram_us"], found["floor_issue_us"])
    found["clock_of_kernel_MHz"] = row["cycles"] / row["time_us"]
    return row | found | limits.top_stalls(row)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the kernels' times beside their floors, what limits each, and its waits; write the summary."""
    found = summary(table)
    save_table(found, out, "summary")
    for key, rows in found.groupby(_FIGURE, sort=False):
        _draw_floors(rows, out, figures.file_name("floors", table, _FIGURE, key))
        if (rows["what"] == "kernel").any():
            _draw_limits(rows, out, figures.file_name("limits", table, _FIGURE, key))
        if _reasons(rows):
            _draw_waits(rows, out, figures.file_name("waits", table, _FIGURE, key))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Take medians over rounds and runs of each step, phase and kernel, the longest first.

    Args:
        table: of rows of `measure`, with the columns of their cases.

    Returns:
        A row for each `what` and `name` of a case, with medians of all numbers. `limit` and the longest waits
        are those of the medians; `limit` is missing if nothing was counted.
    """
    keys = [*_CASE, "what", "name"]
    numbers = [
        name
        for name in table.select_dtypes("number")
        if name not in (*keys, "case", "run", "round", "turn", "sample_ms")
    ]
    found = table.groupby(keys, sort=False)[numbers].median().reset_index()
    devices = table.groupby(keys, sort=False)["device"].first().reset_index()
    found = found.merge(devices, on=keys)
    if "dram_us" in found:
        found = found.drop(columns=[name for name in map(str, found) if name.startswith("reason_")])
        columns = ["time_us", "dram_us", "floor_issue_us"]
        found["limit"] = [limits.limit(*times) for times in found[columns].itertuples(index=False)]
        rows: list[Any] = found.to_dict("records")
        waits = pd.DataFrame([limits.top_stalls(row) for row in rows], index=found.index)
        found = found.join(waits)
    return found.sort_values([*_CASE, "step_us"], ascending=[True] * len(_CASE) + [False], kind="stable")


def _draw_floors(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw the time of each kernel, or phase, in a step beside its floors: a panel a filling fraction."""
    counted = (rows["what"] == "kernel").any()
    shown = _with_others(rows[rows["what"] == ("kernel" if counted else "phase")])
    shown = shown.assign(per_step=_per_step(shown))
    names = _longest_first(shown)
    figure, panels = _panels(rows, names, 6.8)
    for panel, fraction in zip(panels, sorted(rows["filling_fraction"].unique()), strict=True):
        part = shown[shown["filling_fraction"] == fraction].set_index("name").reindex(names)
        limit = part["limit"] if "limit" in part else pd.Series(None, index=names, dtype=object)
        for what in (*limits.LIMITS, None):
            own = part[limit.isna() if what is None else limit == what].dropna(subset="step_us")
            if own.empty:
                continue
            places = [names.index(one) for one in own.index]
            label = f"time, limited by {what}" if what else "time"
            look: dict[str, Any] = {"color": _COLOURS.get(str(what), "0.75"), "label": label}
            look |= {"hatch": _HATCHES.get(str(what), ""), "edgecolor": "white", "linewidth": 0}
            panel.barh(places, own["step_us"], 0.62, **look)
        for column, (label, marker) in _MARKS.items():
            if column in part and part[column].notna().any():
                look = {"color": "black", "linestyle": "", "marker": marker, "label": label}
                look |= {"ms": 13, "mew": 2} if marker == "|" else {"ms": 6, "mec": "white", "mew": 0.8}
                panel.plot(part[column] * part["per_step"], range(len(names)), **look)
        step = rows[(rows["filling_fraction"] == fraction) & (rows["what"] == "step")]["step_us"].median()
        title = f"filling fraction {fraction:g}: step {_us(step)}, sum {_us(part['step_us'].sum())}"
        panel.set_title(title, fontsize=9)
    panels[-1].set(xlabel="time in a step (us)", xlim=(0, None))
    figures.legend_outside(panels[0], None, panels)
    figures.titled(figure, f"{_title(rows)}\n{RULE if counted else NO_KERNELS}", out, name, rows)


def _draw_limits(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw for each kernel which share of its time memory and issue take: a panel a filling fraction."""
    shown = rows[rows["what"] == "kernel"]
    names = _longest_first(shown)
    figure, panels = _panels(rows, names, 6.4)
    at = np.arange(len(names))
    for panel, fraction in zip(panels, sorted(rows["filling_fraction"].unique()), strict=True):
        part = shown[shown["filling_fraction"] == fraction].set_index("name").reindex(names)
        for column, what, aside in (
            ("dram_us", limits.MEMORY, -0.17),
            ("floor_issue_us", limits.ISSUE, 0.17),
        ):
            look: dict[str, Any] = {"color": _COLOURS[what], "label": _MARKS[column][0]}
            look |= {"hatch": _HATCHES[what], "edgecolor": "white", "linewidth": 0}
            panel.barh(at + aside, 100 * part[column] / part["time_us"], 0.32, **look)
        label, marker = _MARKS["floor_memory_us"]
        look = {"color": "black", "linestyle": "", "marker": marker, "ms": 9, "mew": 2, "label": label}
        panel.plot(100 * part["floor_memory_us"] / part["time_us"], at - 0.17, **look)
        panel.axvline(100 * limits.SHARE, color="0.4", linewidth=0.9, linestyle="--", zorder=0)
        for row, note in enumerate(_notes(part)):
            place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
            panel.annotate(note, (1.01, row), va="center", fontsize=7, **place)
        panel.set_title(f"filling fraction {fraction:g}", fontsize=9)
        panel.set(xlim=(0, MOST_PERCENT))
    panels[-1].set_xlabel("share of the kernel's time (%)")
    marks = panels[-1].get_legend_handles_labels()
    figure.legend(*marks, loc="outside lower center", ncols=3, fontsize=7)  # the notes are at the right
    notes = "right: time in a step, what limits it, occupancy"
    figures.titled(figure, f"{_title(rows)}\n{RULE} (dashed); {notes}", out, name, rows)


def _draw_waits(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw for each kernel how long a warp waits for what: a panel a filling fraction."""
    shown = rows[rows["what"] == "kernel"]
    names, reasons = _longest_first(shown), _reasons(shown)
    figure, panels = _panels(rows, names, 6.8)
    for panel, fraction in zip(panels, sorted(rows["filling_fraction"].unique()), strict=True):
        part = shown[shown["filling_fraction"] == fraction].set_index("name").reindex(names)
        left, looks = np.zeros(len(names)), zip(_REASON_COLOURS, _REASON_HATCHES, strict=True)
        waits = part[[limits.STALL + one for one in reasons]].fillna(0)
        for one, (colour, hatch) in zip(reasons[:MOST_REASONS], looks, strict=False):
            width = waits[limits.STALL + one].to_numpy()
            look: dict[str, Any] = {"color": colour, "label": _LABELS.get(one, one.replace("_", " "))}
            look |= {"hatch": hatch, "edgecolor": "white", "linewidth": 0}
            panel.barh(range(len(names)), width, 0.62, left=left, **look)
            left += width
        others = waits.sum(axis=1).to_numpy() - left
        if len(reasons) > MOST_REASONS:
            panel.barh(range(len(names)), others, 0.62, left=left, color="0.8", label="other reasons")
        panel.set_title(f"filling fraction {fraction:g}", fontsize=9)
    panels[-1].set(xlabel="wait of a warp (cycles per instruction)", xlim=(0, None))
    figures.legend_outside(panels[0], "waits for", panels)
    figures.titled(figure, _title(rows), out, name, rows)


def _panels(rows: pd.DataFrame, names: list[str], width: float) -> tuple[Any, list]:
    """Make a panel for each filling fraction, with a row for each name, the first at the top."""
    titles = [""] * rows["filling_fraction"].nunique()
    heights = [0.27 * max(4, len(names))] * len(titles)
    figure, panels = figures.panels_in_a_column(titles, width, heights, 1.4, sharey=True)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    return figure, panels


def _title(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return f"{first['device']}; {first['n']:,} particles, {first['search']}, {first['precision']}"


def _us(time: float) -> str:
    return f"{time:,.0f} us" if time >= 100 else f"{time:.3g} us"


def _notes(kernels: pd.DataFrame) -> list[str]:
    """Return the text beside each kernel; empty where nothing was counted."""
    found = []
    for _, row in kernels.iterrows():
        note = f"{_us(row['step_us'])}: {row['limit']}" if np.isfinite(row["step_us"]) else ""
        occupancy = row.get("occupancy_percent", math.nan)
        found.append(f"{note}, {occupancy:.0f} %" if note and np.isfinite(occupancy) else note)
    return found


def _with_others(rows: pd.DataFrame) -> pd.DataFrame:
    """Replace names that take little of the step at every filling fraction by their sum, without floors."""
    share = rows["step_us"] / rows.groupby("filling_fraction")["step_us"].transform("sum")
    large = share.groupby(rows["name"]).transform("max") >= SMALL
    if (~large).sum() == 0:
        return rows
    others = rows[~large].groupby("filling_fraction")["step_us"].sum().reset_index()
    name = f"{rows[~large]['name'].nunique()} {OTHERS}"
    return pd.concat([rows[large], others.assign(name=name, what=rows["what"].iloc[0])], ignore_index=True)


def _per_step(rows: pd.DataFrame) -> pd.Series:
    """Return the launches of a kernel in a step; 1 for a phase, as its floor is that of a step."""
    if "launches" not in rows:
        return pd.Series(1.0, index=rows.index)
    return (rows["launches"] / rows["cycle_steps"]).fillna(1.0)


def _longest_first(rows: pd.DataFrame) -> list[str]:
    longest = rows.groupby("name")["step_us"].max().sort_values(ascending=False)
    return sorted(longest.index, key=lambda name: name.endswith(OTHERS))  # the sum of small ones last


def _reasons(rows: pd.DataFrame) -> list[str]:
    """Return the reasons of waits that were counted, by the time that they take of all kernels."""
    kernels = rows[rows["what"] == "kernel"]
    names = [name for name in map(str, rows) if name.startswith(limits.STALL)]
    waits = {
        name.removeprefix(limits.STALL): float((kernels[name] * kernels["step_us"]).sum()) for name in names
    }
    for one in limits.WORKING:
        waits.pop(one, None)
    return sorted((one for one in waits if waits[one] > 0), key=lambda one: -waits[one])


def answer(table: pd.DataFrame) -> Answer:
    """Name the kernels, or the phases, that take most of a step, and what limits them."""
    rows = headline(summary(table), *_FIGURE)
    rows = rows[rows["filling_fraction"] == rows["filling_fraction"].iloc[0]]
    step = rows.loc[rows["what"] == "step", "step_us"].sum()
    counted = (rows["what"] == "kernel").any()
    parts = rows[rows["what"] == ("kernel" if counted else "phase")].sort_values("step_us", ascending=False)
    parts = parts.assign(share_of_all=parts["step_us"] / parts["step_us"].sum())
    cells = {
        "us a step": lambda row: rounded(row["step_us"]),
        "share": lambda row: percent(row["share_of_all"]),
        "limited by": lambda row: row["limit"] if counted else "not counted",
    }
    n, search, phi = (rows[name].iloc[0] for name in ("n", "search", "filling_fraction"))
    where = f"At {n:,} particles, {percent(phi)} filled, a step of {search} takes {rounded(step)} us"
    if parts.empty:
        return Answer(pd.DataFrame(), f"{where}; its parts were not measured.")
    first = parts.iloc[0]
    kind = "kernel" if counted else "phase"
    what = f"the {kind} {first['name']} takes {percent(first['share_of_all'])} of the {kind}s' time"
    limited = f"and is limited by {first['limit']}" if counted else "and what limits it was not counted"
    return Answer(rows_of(parts, ["name"], cells), f"{where}; {what} {limited}.")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
