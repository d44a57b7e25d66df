"""Does the gain of a memory order decay in measured step times as fast as in predicted hits?

Two kinds of kept runs are read, and nothing is simulated. Runs of `interval` have the time of a step by the
age of the order. Runs of `decay` predict the hits of the same elastic gas at the same ages. The loss of the
gain is the growth of a step's time, or of the misses, since the reorder; `wear`, in the name of this
experiment and of its columns, is the measured loss. Its half-life is the age at which half of the full loss
is reached. The full loss is the one to shuffled memory, if the run of `interval` has rows of it; if not, both
half-lives are those of the loss up to the oldest age that was timed.

A prediction of another speed is scaled to the same path flown. Whether the path alone decides is a second
table: losses at two speeds after the same path. Make the prediction with the contact time of `interval`:
`python -m experiments.decay --contact-steps 25 --interaction elastic`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.core import Settings, figures, main, save_table, style
from experiments.core.old_names import table_now
from experiments.core.provenance import read_provenance
from experiments.core.record import read_table
from experiments.core.settings import UsageError
from experiments.core.terminal import FEW_RUNS
from experiments.prediction.wear import (
    CASE,
    LEAST_LOSS,
    PREDICTION,
    at_equal_paths,
    compare,
    measured_curves,
    predicted_curves,
)
from experiments.results.answers import Answer, rounded, rows_of, spread

LEAST_DRAWN = 0.5  # % of loss, in the figure
SHOWN = ("block", 320.0)  # of the predictions, in the figure


@dataclass(frozen=True)
class Config(Settings):
    """Runs to be compared."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("measured", "predicted")

    measured: tuple[str, ...] = ("results/reference/interval/h200", "results/reference/interval/h200_8388608")
    """Folders of runs of `interval`."""
    predicted: tuple[str, ...] = ("results/reference/decay/cpu_interval",)
    """Folders of runs of `decay`, of elastic gases in cubes."""


QUICK = {"measured": ("results/reference/interval/h200_again",)}
MINUTES = 0.5  # measured


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each age of each curve, with the run that it is from."""
    for runs, experiment, curves in (
        (case.measured, "interval", measured_curves),
        (case.predicted, "decay", predicted_curves),
    ):
        for run in runs:
            found = curves(kept(run, experiment)).rename(columns={"repeat": "sample"})
            for row in found.to_dict("records"):
                yield {"source": run, **row}


def kept(run: str, experiment: str) -> pd.DataFrame:
    """Read the table of a kept run, under the present names.

    Args:
        run: its folder.
        experiment: name of the experiment of which it has to be a run.

    Raises:
        UsageError: no run, or one of another experiment.
    """
    table, found = read_table(Path(run)), read_provenance(Path(run)).get("experiment")
    if found != experiment:
        raise UsageError(f"{run} is a run of {found}; allowed: the folder of a run of {experiment}")
    return table_now(table, experiment)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw measured and predicted losses over the path flown; write both tables."""
    curves = table.drop(columns="repeat").rename(columns={"sample": "repeat"})
    save_table(compare(curves), out, "half_lives")
    save_table(at_equal_paths(curves), out, "equal_paths")
    measured = curves[curves["what"] == "measured"].astype({"n": int})
    keys = [name for name in CASE if name not in ("filling_fraction", "speed")]
    guess = curves[(curves["what"] == "predicted") & _is_shown(curves)]
    for key, rows in measured.groupby(keys, sort=False):
        name = figures.file_name("wear", measured, keys, key)
        is_of = (guess["ordering"] == rows["ordering"].iloc[0]) & guess["speed"].isin(rows["speed"])
        _draw_case(rows, guess[is_of], out, name)


def _is_shown(curves: pd.DataFrame) -> pd.Series:
    """Mark the prediction to be drawn: that of `SHOWN`, or else the first."""
    guess = curves.loc[curves["what"] == "predicted", PREDICTION]
    shown = (
        SHOWN if (guess == list(SHOWN)).all(axis=1).any() else tuple(guess.iloc[0]) if len(guess) else SHOWN
    )
    return (curves[PREDICTION] == list(shown)).all(axis=1)


def _draw_case(rows: pd.DataFrame, guess: pd.DataFrame, out: Path, name: str) -> None:
    """Draw the measured loss above the predicted one, a column for each filling fraction."""
    fractions = sorted(rows["filling_fraction"].unique())
    size = (2.9 * len(fractions) + 1.6, 5.2)
    figure, panels = plt.subplots(2, len(fractions), figsize=size, squeeze=False, sharex=True, sharey="row")
    speeds = sorted({*rows["speed"], *guess["speed"]})
    look = style.steps_in_turn([f"{speed:g}" for speed in speeds], "line") | {"markersize": 3.5}
    for (above, below), phi in zip(panels.T, fractions, strict=True):
        lines = []
        for part in (rows, guess):
            own = part[part["filling_fraction"] == phi]
            lines.append(own.assign(
                line=[f"{speed:g}" for speed in own["speed"]],
                flown=own["age"] * own["speed"],
                lost=100 * _lost_part(own),
            ))  # fmt: skip
        for panel, line in zip((above, below), lines, strict=True):
            shown = line[line["lost"] > LEAST_DRAWN]
            if len(shown):
                figures.median_lines(panel, shown, "flown", "lost", look)
            panel.set(xscale="log", yscale="log", xlabel="", ylabel="")
        above.axhline(100 * LEAST_LOSS, color="0.6", linewidth=0.8, zorder=0)
        above.set_title(f"{phi:.0%} filled", fontsize=9)
        below.set_xlabel("path flown since the reorder (d)")
    panels[0][0].set_ylabel("measured: growth of\na step's time (%)")
    panels[1][0].set_ylabel("predicted: part of the gain\nin hits that is lost (%)")
    for row in panels:
        row[0].set_ylim(LEAST_DRAWN, None)
    figures.name_lines(panels[0][-1], "speed (d per step)", panels[0])
    first = rows.iloc[0]
    title = f"{first['n']:,.0f} particles, {first['search']}, {first['ordering']}, {first['precision']}; "
    title += f"median and range over {first['spread_over']}; grey: {LEAST_LOSS:.0%}, the least loss judged"
    if len(guess):
        model, cache = guess[PREDICTION].iloc[0]
        title += f"; predicted: {model}, cache of {cache:.0f} particles; median and range over gases"
    figures.titled(figure, title, out, name, rows)


def _lost_part(rows: pd.DataFrame) -> pd.Series:
    """Compute the loss: of times over that of a fresh step, of hits over the gain over shuffled memory."""
    if rows.empty:
        return pd.Series(dtype=float)
    curve = rows.groupby([*CASE, *PREDICTION, "repeat"], sort=False, dropna=False)
    fresh = curve["cost"].transform("min")
    whole = np.where(rows["what"] == "measured", fresh, rows["cost_shuffled"] - fresh)
    return (rows["cost"] - fresh) / whole


def answer(table: pd.DataFrame) -> Answer:
    """Compare the half-life of the measured wear with that of the predicted hits."""
    found = compare(table.drop(columns="repeat").rename(columns={"sample": "repeat"}))
    if "half_wear_over_half_decay" not in found:
        sentence = f"Of {len(found)} measured cases none has a prediction of its order and filling fraction."
        return Answer(pd.DataFrame(), sentence)
    shown = found[_is_shown(found.assign(what="predicted"))]
    cells = {
        "measured (steps)": lambda row: _half_life(row, "half_wear_steps"),
        "predicted (steps)": lambda row: _half_life(row, "half_decay_steps"),
        "ratio": lambda row: rounded(row["half_wear_over_half_decay"]),
    }
    ratios = shown["half_wear_over_half_decay"].dropna()
    model = f"{shown['model'].iloc[0]} model, {shown['cache_particles'].iloc[0]:,.0f} particles"
    sentence = (
        f"In none of {len(shown)} cases both the measured wear and the predicted hits have a half-life."
    )
    if len(ratios):
        sentence = (
            f"The half-life of the measured wear is {spread(ratios)} times that of the predicted hits "
            f"({model}), in the {len(ratios)} of {len(shown)} cases that have both."
        )
    return Answer(rows_of(shown, list(CASE), cells), sentence)


def _half_life(row: dict, name: str) -> str:
    """Format a half-life with its range; a dash if there is none."""
    return spread([row[name], row[f"{name}_low"], row[f"{name}_high"]])


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_RUNS, minutes=MINUTES)
