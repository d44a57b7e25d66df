"""Forecasts beside measurements: errors of sectors, misses, bytes, times and gains, and ranks of orders.

`python -m experiments.forecasts.compared` prints them for the kept runs of `experiments.foreseen`. A measured
run is compared only if its predictions were committed before it began, and were not changed since.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy
import seaborn
from matplotlib.ticker import LogLocator, NullFormatter

from experiments.core import style
from experiments.core.provenance import git
from experiments.core.rerun import read_table_now
from experiments.prediction.drawn_gases import DRAWS
from experiments.results.baselines import LATTICE, SHUFFLED
from experiments.results.kept.queries import REFERENCE
from sfc.cache.core import Processor
from sfc.cache.core.processor import KNOWN as CPUS
from sfc.cache.machine import KNOWN

GAS = ["gas", "kernel", "particles", "filling_fraction", "precision"]
CASE = [*GAS, "ordering"]
BASELINES = {"shuffled": (SHUFFLED, "random"), "lattice": (LATTICE,)}  # of searches that sort: of their cells
CURVES = ("hilbert", "morton", "peano", "gray", "gilbert", "skilling", "row", "tiled")
LADDER = {  # column -> name of the model
    "block": "ratio of [thesis]", "lru_l1": "least recently used, first cache",
    "lru_l2": "the same, second cache", "reader_sectors": "sectors of one reader",
    "sectors": "sectors of warps", "missed": "+ first cache", "bytes": "+ second cache: bytes",
    "time_us": "+ time",
}  # fmt: skip
FIRST = next(iter(DRAWS))
LISTS = "lists"  # of verlet over sorted and over unsorted memory: predicted and timed as a draw
SECTOR = 32  # bytes for each item; launches that are foreseen or counted to read as many do not fit the cache
PERMUTATIONS = 2000
ROOT = REFERENCE / "foreseen"
DETAILS = REFERENCE.parent / "details"


def require_earlier(predicted: Path, measured: Path) -> None:
    """Check that predictions were committed before a measurement began, and not changed since.

    Args:
        predicted: folder of the run with the predictions, in a git checkout.
        measured: folder of the measured run.

    Raises:
        ValueError: predictions that are not committed, were changed, or are later.
    """
    table = predicted / "table.parquet"
    root = Path(git(predicted, "rev-parse", "--show-toplevel").decode().strip())
    name = str(table.resolve().relative_to(root.resolve()))
    commits = git(root, "log", "--format=%cI", "--", name).decode().split()
    changed = git(root, "status", "--porcelain", "--", name).decode().strip()
    began = datetime.fromisoformat(json.loads((measured / "provenance.json").read_text("utf-8"))["started"])
    if len(commits) != 1 or changed:
        raise ValueError(
            f"{name}: {len(commits)} commits{' and a change' if changed else ''}; allowed: one, and none "
            "later; a prediction is committed once"
        )
    if datetime.fromisoformat(commits[0]) >= began:
        raise ValueError(
            f"{measured}: began {began}, and its predictions were committed {commits[0]}; allowed: later "
            "than these; predict other cases"
        )


def beside(predicted: pd.DataFrame, timed: pd.DataFrame, counted: pd.DataFrame, machine: str) -> pd.DataFrame:
    """Put predictions beside measurements.

    Args:
        predicted: table of `experiments.foreseen`.
        timed: another.
        counted: another; no counts if empty.
        machine: name of the chip of the predictions.

    Returns:
        A row for each case that was timed, with the columns of `predicted`, `measured_us`, the median over
        rounds and copies, `spread`, the largest over the least of these; and `counted_us`, `counted_sectors`,
        `counted_missed`, `counted_read` and `counted_written`, bytes, for each item, or NaN.

    Raises:
        ValueError: a case that was measured and not predicted.
    """
    own = predicted[predicted["machine"] == machine].set_index(CASE)
    times = timed.groupby(CASE)["time_us"]
    found = pd.DataFrame({"measured_us": times.median(), "spread": times.max() / times.min()})
    missing = found.index.difference(own.index)
    if len(missing):
        raise ValueError(f"{len(missing)} measured cases were not predicted, as {missing[0]}; allowed: none")
    found = own.join(found, how="inner")
    if counted.empty:
        return found.reset_index()
    counts = counted.set_index(CASE)
    items = counts.index.get_level_values("particles")
    for name, values in {
        "sectors": counts["l1_loads"], "missed": counts["l1_loads"] - counts["l1_hits"],
        "read": counts["dram_read"], "written": counts["dram_written"],
    }.items():  # fmt: skip
        found[f"counted_{name}"] = (values / items).reindex(found.index)
    found["counted_us"] = counts["time_us"].reindex(found.index)
    return found.reset_index()


def of_runs(folders: Sequence[Path]) -> pd.DataFrame:
    """Return the rows of runs; those of a gas from the first run that has it."""
    rows: list[pd.DataFrame] = []
    for folder in folders:
        table = read_table_now(folder)
        known = {gas for one in rows for gas in one["gas"]}
        rows.append(table[~table["gas"].isin(known)])
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def gains_over(table: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return foreseen and measured gains over a baseline, or the first of its names that a gas has.

    Args:
        table: of `beside`.
        baseline: "shuffled" or "lattice".
    """
    found = [table[table["ordering"] == name] for name in BASELINES[baseline]]
    base = pd.concat(found).drop_duplicates("gas")  # the first that a gas has
    rows = table.drop(base.index)
    base = base.set_index("gas")[["time_us", "measured_us"]]
    rows = rows[rows["gas"].isin(base.index)]
    of_gas = base.reindex(rows["gas"])
    return rows.assign(
        foreseen_gain=of_gas["time_us"].to_numpy() / rows["time_us"].to_numpy(),
        measured_gain=of_gas["measured_us"].to_numpy() / rows["measured_us"].to_numpy(),
    )


def ranks(table: pd.DataFrame, orders: tuple[str, ...] = ()) -> pd.Series:
    """Correlate the ranks of foreseen and measured times in each gas of four orders or more, by gas.

    A gas of which all times are foreseen to be the same has no correlation.

    Args:
        table: of `beside`.
        orders: that are compared; none for all.
    """
    rows = table[table["ordering"].isin(orders)] if orders else table
    found = {
        gas: scipy.stats.spearmanr(one["time_us"], one["measured_us"])[0]
        for gas, one in rows.groupby("gas")
        if len(one) >= 4 and min(one["time_us"].nunique(), one["measured_us"].nunique()) > 1
    }
    return pd.Series(found, dtype=float)


def by_chance(table: pd.DataFrame, orders: tuple[str, ...] = (), seed: int = 0) -> float:
    """Return the median over gases of rank correlations (`ranks`) that times in no order exceed in 5 %.

    Args:
        table: of `beside`.
        orders: that are compared; none for all.
        seed: of the permutations.
    """
    generator = np.random.default_rng(seed)
    rows = table[table["ordering"].isin(orders)] if orders else table
    found = []
    for gas in ranks(table, orders).index:
        both = rows.loc[rows["gas"] == gas, ["time_us", "measured_us"]].rank().to_numpy().T
        mixed = generator.permuted(np.tile(both[0], (PERMUTATIONS, 1)), axis=1)
        found.append(
            (mixed - both[0].mean()) @ (both[1] - both[1].mean()) / len(both[0]) / both.std(axis=1).prod()
        )
    return float(np.quantile(np.median(found, axis=0), 0.95)) if found else np.nan


def errors(foreseen: pd.Series, measured: pd.Series) -> dict[str, float]:
    """Return median, 95th percentile, root mean square and largest of |foreseen / measured - 1|."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(foreseen.to_numpy(float) / measured.to_numpy(float) - 1)
    off = off[np.isfinite(off)]
    if not off.size:
        return {"cases": 0, "median": np.nan, "95 %": np.nan, "rms": np.nan, "worst": np.nan}
    rms = float(np.sqrt(np.mean(off**2)))
    return {"cases": off.size, "median": float(np.median(off)), "95 %": float(np.percentile(off, 95)),
            "rms": rms, "worst": float(off.max())}  # fmt: skip


def marks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of each quantity, and those of gains over each baseline."""
    found = {}
    if "counted_us" in table:
        counted = table[table["counted_us"].notna()]
        found["sectors"] = errors(counted["sectors"], counted["counted_sectors"])
        found["missed"] = errors(counted["missed"], counted["counted_missed"])
        read = counted["bytes"] - counted["written"]
        moved = counted["counted_read"] + counted["counted_written"]
        found["bytes read"] = errors(read, counted["counted_read"])
        found["bytes written"] = errors(counted["written"], counted["counted_written"])
        found["bytes"] = errors(counted["bytes"], moved)
        large = np.maximum(read, counted["counted_read"]) >= SECTOR
        found["bytes read, a sector or more"] = errors(read[large], counted["counted_read"][large])
    found["time"] = errors(table["time_us"], table["measured_us"])
    for baseline in BASELINES:
        gains = gains_over(table, baseline)
        found[f"gain over {baseline}"] = errors(gains["foreseen_gain"], gains["measured_gain"])
    return pd.DataFrame(found).T


def rank_ladder(table: pd.DataFrame, ladder: pd.DataFrame) -> pd.DataFrame:
    """Correlate what each model of memory gives with the measured times of the orders of a gas, by ranks.

    Args:
        table: of `beside`.
        ladder: rows of earlier models (`experiments.prediction.model_ladder`).

    Returns:
        A row for each model and gas: `model`, `gas`, `rank_correlation` (best: 1).
    """
    rungs = [name for name in LADDER if name in ladder]
    both = table.merge(ladder[["gas", "ordering", *rungs]], on=["gas", "ordering"])
    found = []
    for column, name in LADDER.items():
        for gas, rows in both.groupby("gas"):
            varies = rows[column].nunique() > 1
            rank = scipy.stats.spearmanr(rows[column], rows["measured_us"])[0] if varies else 0.0
            found.append({"model": name, "gas": gas, "rank_correlation": rank})
    return pd.DataFrame(found)


def draw(table: pd.DataFrame, ladder: pd.DataFrame, out: Path) -> None:
    """Draw foreseen over measured gains, and the ranks of each model, into a folder.

    Args:
        table: of `beside`, of one draw and chip.
        ladder: as that of `rank_ladder`.
        out: the folder.
    """
    chip = table["machine"].iloc[0].upper()
    draw_gains(table, f"unseen launches ({chip})", out, "foreseen_gains")
    ranked = rank_ladder(table, ladder)
    figure, panel = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    seaborn.stripplot(ranked, x="rank_correlation", y="model", color="0.5", jitter=0.15, ax=panel)
    middle = ranked.groupby("model", sort=False)["rank_correlation"].median()
    panel.plot(middle, range(len(middle)), "D-", color="black", label="median")
    panel.set(xlabel="rank correlation with measured times, all orders of a gas (best: 1)", ylabel="",
              title=f"Linked and scattered ({chip}), {ranked['gas'].nunique()} gases")  # fmt: skip
    panel.legend(loc="lower left")
    style.save(figure, out, "foreseen_ladder")


def draw_gains(table: pd.DataFrame, what: str, out: Path, name: str) -> None:
    """Draw foreseen over measured gains over shuffled memory into a folder.

    Args:
        table: of `beside`, of one draw and chip.
        what: was measured, for the title.
        out: the folder.
        name: of the file.
    """
    gains = gains_over(table, "shuffled")
    figure, panel = plt.subplots(figsize=(5.5, 4.6), layout="constrained")
    seaborn.scatterplot(gains, x="measured_gain", y="foreseen_gain", hue="kernel", style="kernel", ax=panel)
    ends = np.array([0.9, 1.1 * gains[["measured_gain", "foreseen_gain"]].to_numpy().max()])
    panel.plot(ends, ends, color="black", linewidth=1)
    panel.fill_between(ends, ends / 1.25, ends * 1.25, color="black", alpha=0.08, linewidth=0)
    panel.set(xscale="log", yscale="log", xlabel="measured gain over shuffled memory",
              ylabel="foreseen gain over shuffled memory",
              title=f"{len(gains)} {what}; band: 25 %")  # fmt: skip
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    style.save(figure, out, name)


def noise_floor(timed: pd.DataFrame) -> float:
    """Return the factor by which two copies of equal work differ in 1 of 20 cases.

    Args:
        timed: table of `experiments.foreseen` of a CPU, with copies.
    """
    times = timed.groupby([*CASE, "copy"])["time_us"].median().unstack("copy").to_numpy()
    return float(np.percentile(times.max(axis=1) / times.min(axis=1), 95))


def right_signs(gains: pd.DataFrame, floor: float) -> tuple[int, int]:
    """Return how many gains or losses beyond a factor were measured, and how many of these were foreseen.

    Args:
        gains: of `gains_over`.
        floor: the factor.
    """
    measured, foreseen = np.log(gains["measured_gain"]), np.log(gains["foreseen_gain"])
    is_beyond = measured.abs() > np.log(floor)
    return int(is_beyond.sum()), int((is_beyond & (measured * foreseen > 0)).sum())


def _of_cpus() -> None:
    """Print the marks of the kept runs of CPUs; draw their gains into results/details."""
    runs = sorted(ROOT.glob("cpu_predicted*"))
    predictions = {name: run for run in runs for name in read_table_now(run)["machine"].unique()}
    for chip in CPUS:
        runs = sorted(ROOT.glob(f"{chip}_timed*"))
        if not runs:
            print(f"cpu, {chip}: not run")
            continue
        if chip not in predictions:
            raise ValueError(f"{chip} was timed and not foreseen; allowed: {', '.join(predictions)}")
        predicted = predictions[chip]
        for run in runs:
            require_earlier(predicted, run)
        timed, threads = of_runs(runs), Processor.read(chip).threads
        if set(timed["threads"]) != {threads}:
            raise ValueError(
                f"{chip}: timed on {set(timed['threads'])} threads; allowed: {threads}, as predicted"
            )
        table, floor = beside(read_table_now(predicted), timed, pd.DataFrame(), chip), noise_floor(timed)
        print(f"cpu, {chip}: {len(table)} cases\n{marks(table).round(3).to_string()}")
        draw_gains(table, f"unseen cases ({chip})", DETAILS, f"foreseen_gains_{chip}")
        for kernel, rows in gains_over(table, "shuffled").groupby("kernel", sort=False):
            print(kernel, errors(rows["foreseen_gain"], rows["measured_gain"]))
        for baseline in BASELINES:
            beyond, right = right_signs(gains_over(table, baseline), floor)
            print(f"over {baseline}: of {beyond} gains beyond {floor:.3f} {right} have the right sign")
        found, most = ranks(table), by_chance(table)
        print(f"rank correlation: median {found.median():.2f}, {len(found)} gases; by chance {most:.2f}")


def _folder(of_draw: str, what: str) -> Path:
    return ROOT / (what if of_draw == FIRST else f"{of_draw}_{what}")


def kept(draw: str, chip: str, what: str) -> list[Path]:
    """Return the folders of kept runs of a draw on a chip; names of the first draw do not have its word."""
    return sorted(ROOT.glob(f"{_folder(draw, chip).name}_{what}*"))


def main() -> None:
    """Print the marks of the kept runs; draw the last draw, on its first chip, into results/details."""
    drawn: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}
    for of_draw, chip in itertools.product((*DRAWS, LISTS), KNOWN):
        runs = {what: kept(of_draw, chip, what) for what in ("timed", "counted")}
        if not runs["timed"]:
            print(f"{of_draw}, {chip}: not run")
            continue
        predicted, ladder = (_folder(of_draw, what) for what in ("predicted", "ladder"))
        for run in (*runs["timed"], *runs["counted"]):
            require_earlier(predicted, run)
        table = beside(read_table_now(predicted), of_runs(runs["timed"]), of_runs(runs["counted"]), chip)
        print(f"{of_draw}, {chip}: {len(table)} cases\n{marks(table).round(3).to_string()}")
        spread = table["spread"]
        print(f"slowest over fastest round: median {spread.median():.2f}, most {spread.max():.1f}")
        for name, orders in (("all orders", ()), ("curves and scans", CURVES)):
            found, most = ranks(table, orders), by_chance(table, orders)
            chance = f"by chance above {most:.2f} in 5 %"
            print(f"rank correlation of {name}: median {found.median():.2f}, {len(found)} gases; {chance}")
        if ladder.is_dir():
            earlier = read_table_now(ladder)
            models = rank_ladder(table, earlier).groupby("model", sort=False)["rank_correlation"]
            print(models.describe()[["min", "50%", "max"]].round(2).to_string())
            drawn.setdefault(of_draw, (table, earlier))
    _of_cpus()
    if drawn:
        draw(*drawn[[*drawn][-1]], DETAILS)


if __name__ == "__main__":
    main()
