"""Foreseen surfaces of gains beside measured ones: errors, the law of age, and their figure.

`python -m experiments.forecasts.surfaces` prints them for the kept runs of `experiments.surface`, and draws
the figure of results/details/foreseen.md. A measured run is compared only if its predictions were committed
before it began (`experiments.forecasts.compared`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn
from matplotlib.ticker import LogLocator, NullFormatter

from experiments.core import style
from experiments.core.rerun import read_table_now
from experiments.forecasts.compared import DETAILS, errors, require_earlier
from experiments.results.kept.queries import REFERENCE
from sfc.cache import Machine
from sfc.cache.machine import KNOWN

CASE = ["scene", "ordering", "search", "precision", "n", "filling_fraction", "occupied_MB", "path_d"]
ROOT = REFERENCE / "surface"


def beside(predicted: pd.DataFrame, timed: pd.DataFrame) -> pd.DataFrame:
    """Put foreseen gains of the force beside measured ones.

    Args:
        predicted: rows of `experiments.surface` with predictions.
        timed: others, of one or several chips.

    Returns:
        A row for each case that was measured and foreseen for its chip: `machine`, the columns of `CASE`,
        `particles`, `w`, and `foreseen` and `measured`, gains, the latter the median over rounds and runs,
        with `low` and `high`, its range; and `age_d`, the path flown when it was measured.

    Raises:
        ValueError: a device that no machine is of.
    """
    names = {Machine.read(name).name: name for name in KNOWN}
    force = timed[timed["part"] == "force"]
    force = force.assign(machine=force["device"].map(names))
    if (unknown := force["machine"].isna()).any():
        raise ValueError(
            f"device {force.loc[unknown, 'device'].iloc[0]!r} has no file of a machine; known: "
            f"{', '.join(names)}; write it with experiments.machine"
        )
    groups = force.groupby(["machine", *CASE])
    found = groups["gain"].agg(measured="median", low="min", high="max")
    found = found.join(groups[["w", "particles"]].first()).join(groups["flown_d"].median().rename("age_d"))
    own = predicted.groupby(["machine", *CASE])["gain"].first().rename("foreseen")
    return found.join(own, how="inner").reset_index()


def wear(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Fit how an order wears: the share of the time of shuffled memory that a step gains for each d flown.

    With a gain G0 of the fresh order, 1 / G = 1 / G0 + path / length.

    Args:
        table: of `beside`.
        column: "foreseen" or "measured".

    Returns:
        A row for each gas of several ages: the columns of `CASE` but the path, `machine`, `w`, `fresh`, which
        is G0, and `length_d`.
    """
    found = []
    keys = ["machine", *[name for name in CASE if name != "path_d"]]
    for key, rows in table.groupby(keys):
        if rows["path_d"].nunique() > 2:
            slope, start = np.polyfit(rows["age_d"], 1 / rows[column], 1)
            found.append({**dict(zip(keys, key, strict=True)), "w": rows["w"].iloc[0],
                          "fresh": 1 / start, "length_d": 1 / slope})  # fmt: skip
    return pd.DataFrame(found)


class Law(NamedTuple):
    """Gain of a fresh order: factor * r**of_reads * w**of_size, for r particles in the 27 cells of a search.

    Attributes:
        factor, of_reads, of_size: as above; w is the working set over the last cache.
        median, worst: errors, over the gains to which it is fitted.
        cases: number of these.
    """

    factor: float
    of_reads: float
    of_size: float
    median: float
    worst: float
    cases: int

    def gain(self, filling_fraction: Any, w: Any) -> Any:
        """Return the gain of a cube with a filling fraction and a size w, numbers or columns."""
        return self.factor * reads(filling_fraction) ** self.of_reads * w**self.of_size


def reads(filling_fraction: Any) -> Any:
    """Return the particles in 27 cells of 1 d**3, on average, for a filling fraction or a column of them."""
    return 27 * 6 / np.pi * filling_fraction


def fresh_law(table: pd.DataFrame, machine: str, column: str = "gain") -> Law:
    """Fit the law of a fresh order to gains of cubes along Hilbert's curve, one of each case.

    Args:
        table: rows of predictions, or of `beside`.
        machine: name of the chip.
        column: of the gains: "gain" of predictions, "measured" of the others.
    """
    rows = _of_linked(table, machine).query("path_d == 0 and scene == 'cube'").drop_duplicates(CASE)
    terms = [np.ones(len(rows)), np.log(reads(rows["filling_fraction"])), np.log(rows["w"])]
    fitted = np.linalg.lstsq(np.stack(terms, axis=1), np.log(rows[column]), rcond=None)[0]
    found = Law(float(np.exp(fitted[0])), float(fitted[1]), float(fitted[2]), 0.0, 0.0, len(rows))
    off = errors(found.gain(rows["filling_fraction"], rows["w"]), rows[column])
    return found._replace(median=off["median"], worst=off["worst"])


def _of_linked(rows: pd.DataFrame, machine: str) -> pd.DataFrame:
    """Return the rows of a chip that figure and law are of: linked cells along Hilbert's curve, float32."""
    return rows.query(
        f"machine == '{machine}' and ordering == 'hilbert' and search == 'linked' and precision == 'float32' "
        "and occupied_MB == 0"
    )


def draw(predicted: pd.DataFrame, table: pd.DataFrame, machine: str, out: Path) -> None:
    """Draw gains over the working set: foreseen as lines, measured as points with the range of their rounds.

    Args:
        predicted: rows of predictions.
        table: of `beside`.
        machine: name of the chip that is drawn.
        out: folder of the figure.
    """
    lines, points = (_of_linked(rows, machine) for rows in (predicted, table))
    panels = sorted(set(zip(lines["scene"], lines["filling_fraction"], strict=True)))
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.1 * len(panels), 3.6), sharey=True, squeeze=False, layout="constrained"
    )
    paths = sorted(lines["path_d"].unique())
    colours = dict(zip(paths, seaborn.color_palette("viridis", len(paths)), strict=True))
    for panel, (scene, filling) in zip(axes[0], panels, strict=True):
        of_panel = [rows[(rows["scene"] == scene) & (rows["filling_fraction"] == filling)]
                    for rows in (lines, points)]  # fmt: skip
        for path in paths:
            for rows, is_line in zip(of_panel, (True, False), strict=True):
                rows = rows[rows["path_d"] == path].sort_values("w")
                if is_line:
                    panel.plot(rows["w"], rows["gain"], color=colours[path], label=f"{path:g} d")
                else:
                    spread = np.abs(rows[["low", "high"]].to_numpy() - rows[["measured"]].to_numpy()).T
                    panel.errorbar(rows["w"], rows["measured"], spread, color=colours[path], fmt="o",
                                   markeredgecolor="black", markersize=5)  # fmt: skip
        panel.axhline(1, color="grey", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlabel="working set over the second cache",
                  title=f"{scene}, {100 * filling:g} % filled")  # fmt: skip
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
    axes[0][0].set_ylabel("gain of the force along Hilbert's curve\nover shuffled memory")
    axes[0][-1].legend(title="path flown\nsince a reorder", loc="upper left", frameon=False, fontsize="small")
    figure.suptitle(f"Lines: foreseen ({machine.upper()}); points: measured", fontsize="medium")
    style.save(figure, out, f"foreseen_surface_{machine}")


def main(root: Path = ROOT, out: Path = DETAILS) -> None:
    """Print the errors of the kept runs, and draw their gains.

    Args:
        root: folder of the runs of `experiments.surface`.
        out: folder of the figures.
    """
    tables = {run: read_table_now(run) for run in sorted(root.iterdir()) if (run / "table.parquet").exists()}
    foreseen = {run: table for run, table in tables.items() if "machine" in table}
    predicted = pd.concat(foreseen.values(), ignore_index=True)
    found: dict[bool, list[pd.DataFrame]] = {True: [], False: []}  # beside another kernel, or not
    for run, table in tables.items():
        if run in foreseen:
            continue
        for earlier, cases in foreseen.items():
            rows = beside(cases, table)
            if len(rows):
                require_earlier(earlier, run)
                found[table["occupied_MB"].max() > 0].append(rows.assign(run=run.name))
    if not found[False]:
        raise ValueError(
            f"{root} has no measured case that was foreseen; measure some by experiments.surface"
        )
    table = pd.concat(found[False], ignore_index=True).drop_duplicates(["run", *CASE])
    print_errors(table)
    if found[True]:
        rows = pd.concat(found[True], ignore_index=True).drop_duplicates(["run", *CASE])
        print("beside a kernel that reads a part of the cache:")
        print(rows[["machine", "n", "occupied_MB", "w", "foreseen", "measured", "low", "high"]].round(2))
    for machine in table["machine"].unique():
        print(machine, "foreseen", fresh_law(predicted, str(machine)))
        print(machine, "measured", fresh_law(table, str(machine), "measured"))
        draw(predicted, table, str(machine), out)


def print_errors(table: pd.DataFrame, by: Sequence[str] = ("machine", "scene", "path_d")) -> None:
    """Print the errors of gains by some columns, and the fitted wear.

    Args:
        table: of `beside`.
        by: the columns.
    """
    rows = [{**dict(zip(by, key, strict=True)), **errors(one["foreseen"], one["measured"])}
            for key, one in table.groupby([*by])]  # fmt: skip
    print(pd.DataFrame(rows).round(3).to_string(index=False))
    print("all:", errors(table["foreseen"], table["measured"]))
    for column in ("measured", "foreseen"):
        print(column, wear(table, column).round(3).to_string(index=False), sep="\n")


if __name__ == "__main__":
    main()
