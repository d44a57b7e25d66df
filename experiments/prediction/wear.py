"""Measured loss of the gain of a memory order beside the predicted decay of its hits.

Contract. Wear, in the names of this file and of its columns, is the measured loss: the growth of a step's
time since the reorder. A curve is a cost over the age of an order, of one repeat: the time of a step in ms,
or the predicted misses as a part of all reads. Its rows have the columns of `CASE`, `what` ("measured" or
"predicted"), `model` and `cache_particles` (of a prediction), `repeat`, `spread_over` (what the repeats are),
`age` in steps, `cost`, `cost_shuffled` (NaN if not measured), `contact_over_free`. The fresh order is the age
of least cost, because the first steps after a reorder may hold other work, such as the capture of graphs. The
full loss is the one to shuffled memory, or the one to the oldest age if shuffled memory was not measured; a
prediction is compared over the same span of ages as the measurement.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from experiments.prediction.half_life import crossing, in_words, with_range
from experiments.results import gains
from experiments.results.answers import Answer, rounded, rows_of, spread
from experiments.results.charts import FILLED, LINES, Chart, Points, Scale, Table

CASE = ["n", "filling_fraction", "speed", "ordering", "search", "precision"]
PREDICTION = ["model", "cache_particles"]
LEAST_LOSS = 0.05  # of the time of a fresh step; a smaller full loss is lost in noise
LEAST_DRAWN = 0.5  # % of loss
HARD = 0.1  # contact time over the time between two collisions, at most, of nearly hard spheres


def measured_curves(table: pd.DataFrame) -> pd.DataFrame:
    """Read the curves of step times off a table of `interval`.

    Args:
        table: rows `age`, and `shuffled` if there are any. Tables of before 2026-11-23 have no rounds.

    Returns:
        A curve for each run; for each round if there is one run.
    """
    ages = gains.with_rounds(table[table["what"] == "age"], [*CASE, "age"])
    repeat, over = ("run", "runs") if ages["run"].nunique() > 1 else ("round", "rounds of one run")
    keys, shuffled = [*CASE, repeat], table[table["what"] == "shuffled"].reindex(columns=ages.columns)
    times = shuffled.groupby(keys)["time_ms"].median().rename("cost_shuffled")
    found = ages.groupby([*keys, "age"], sort=False)["time_ms"].median().rename("cost").reset_index()
    found = found.merge(times.reset_index(), on=keys, how="left")
    none = {"model": None, "cache_particles": np.nan, "contact_over_free": np.nan}
    numbers = repeat + " " + found[repeat].astype(str)
    found = found.drop(columns=repeat).assign(repeat=numbers, what="measured", spread_over=over, **none)
    return found.sort_values([*CASE, "repeat", "age"], ignore_index=True)


def predicted_curves(table: pd.DataFrame) -> pd.DataFrame:
    """Read the curves of predicted misses of elastic gases in cubes off a table of `decay`.

    Returns:
        A curve for each gas, model and capacity with more misses in shuffled memory.
    """
    rows = table[(table["interaction"] == "elastic") & (table["geometry"] == "cubes")]
    found = rows.assign(
        what="predicted",
        age=rows["step"],
        cost=1 - rows["hit_ratio"],
        cost_shuffled=1 - rows["hit_ratio_shuffled"],
        contact_over_free=rows["contact_steps"] / rows["free_steps"],
        repeat=[f"{side} boxes, gas {gas}" for side, gas in zip(rows["size"], rows["repeat"], strict=True)],
        spread_over="gases",
    )
    keys = ["filling_fraction", "speed", "ordering", *PREDICTION, "repeat"]
    shuffled = found.groupby(keys)["cost_shuffled"].transform("median")
    first = found.groupby(keys)["cost"].transform("first")
    found = found.assign(cost_shuffled=shuffled)[shuffled - first > 1e-3]  # of all reads
    names = ["what", *keys, "age", "cost", "cost_shuffled", "contact_over_free", "spread_over"]
    return found[names].reset_index(drop=True)


def _losses(curves: pd.DataFrame, oldest: float, to_shuffled: bool) -> pd.DataFrame:
    """Compute the loss of each curve up to an age.

    Args:
        curves: of one case, with a curve for each `repeat`.
        oldest: largest age in steps that counts.
        to_shuffled: whether the full loss is that to shuffled memory; else that to the oldest age.

    Returns:
        A row for each curve: `fresh`, its least cost; `full`, its full loss; `half`, the age at which half of
        that is reached, NaN if it is not; `lost_at_end`, the part of the gain over shuffled memory that is
        lost at the oldest age, NaN for a curve that ends before it.
    """
    found = []
    for _, curve in curves.groupby("repeat"):
        age, cost = curve["age"].to_numpy(float), curve["cost"].to_numpy(float)
        end = np.interp(oldest, age, cost, right=np.nan)
        young = age < oldest
        age, cost = np.append(age[young], oldest), np.append(cost[young], end)
        least = np.nanargmin(cost)
        whole, lost = curve["cost_shuffled"].iloc[0] - cost[least], end - cost[least]
        full = whole if to_shuffled else lost
        left = 1 - (cost[least:] - cost[least]) / full if full > 0 else np.full(len(cost) - least, np.nan)
        half = crossing(age[least:], left)
        found.append({"fresh": cost[least], "full": full, "half": half, "lost_at_end": lost / whole})
    return pd.DataFrame(found)


def compare(curves: pd.DataFrame) -> pd.DataFrame:
    """Set the half-life of the measured loss of each case beside that of each prediction.

    A prediction is that of the same filling fraction and order and of the nearest speed; its ages are scaled
    to the same path flown.

    Args:
        curves: rows of `measured_curves` and `predicted_curves`.

    Returns:
        A row for each case and prediction; one without a prediction if there is none. `half_wear_*` is
        measured, `half_decay_*` predicted, in steps and as a path in d, which is steps times the speed of
        the start: median, lowest and highest over repeats.
        They are empty if half is not reached, or the measured loss is below `LEAST_LOSS` of a fresh step.
        `predicted_lost_at_end` is the part of the gain over shuffled memory that the prediction has lost at
        the oldest age; `are_spheres_hard`, whether a contact is short against the time between collisions.
    """
    measured, guesses = (curves[curves["what"] == what] for what in ("measured", "predicted"))
    rows = []
    for key, own in measured.groupby(CASE, sort=False):
        case: dict[str, Any] = dict(zip(map(str, CASE), key, strict=True))
        oldest, to_shuffled = own["age"].max(), bool(own["cost_shuffled"].notna().all())
        found = _losses(own, oldest, to_shuffled)
        fresh, full = found[["fresh", "full"]].median(skipna=False)
        unit = case["speed"] if full >= LEAST_LOSS * fresh else None
        case |= {
            "repeats": len(found),
            "spread_over": own["spread_over"].iloc[0],
            "oldest_age": oldest,
            "full_loss": "to shuffled memory" if to_shuffled else f"to the age of {oldest:g} steps",
            "time_ms_fresh": fresh,
            "full_loss_over_fresh": full / fresh,
            **_halves("half_wear", found["half"], unit),
        }
        same = ["filling_fraction", "ordering"]
        like = guesses[(guesses[same] == [case[name] for name in same]).all(axis=1)]
        away = np.log(like["speed"] / case["speed"]).abs()
        beside = like[away == away.min()].groupby(PREDICTION, sort=False)
        rows += [case | _predicted(case, guess, to_shuffled, unit) for _, guess in beside] or [case]
    return pd.DataFrame(rows)


def _predicted(case: dict, guess: pd.DataFrame, to_shuffled: bool, unit: float | None) -> dict[str, Any]:
    """Return the predicted columns of a case, for its span of measured ages."""
    first = guess.iloc[0]
    scaled = guess.assign(age=guess["age"] * (first["speed"] / case["speed"]))
    found = _losses(scaled, case["oldest_age"], to_shuffled)
    halves = _halves("half_decay", found["half"], unit)
    return {
        **first[PREDICTION],
        "gases": len(found),
        "predicted_at_speed": first["speed"],
        "contact_over_free": first["contact_over_free"],
        "are_spheres_hard": bool(first["contact_over_free"] <= HARD * (1 + 1e-9)),
        "predicted_lost_at_end": found["lost_at_end"].median(skipna=False),
        **halves,
        "half_wear_over_half_decay": case["half_wear_steps"] / halves["half_decay_steps"],
    }


def _halves(name: str, steps: pd.Series, speed: float | None) -> dict[str, float]:
    """Return half-lives as columns, in steps and as a path at a speed; NaN without one: the loss is noise."""
    known = steps.to_numpy() * (1.0 if speed else np.nan)
    return with_range(f"{name}_steps", known) | with_range(f"{name}_path_d", known * (speed or 1.0))


def curves_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the curves in a table of `decay --measured`, which has a column `repeat` of its own."""
    return table.drop(columns="repeat").rename(columns={"sample": "repeat"})


def is_shown(curves: pd.DataFrame) -> pd.Series:
    """Mark the prediction to be drawn: that of the block model and 320 particles, or else the first."""
    guess = curves[PREDICTION].dropna()
    usual = ["block", 320.0]
    shown = usual if guess.empty or (guess == usual).all(axis=1).any() else list(guess.iloc[0])
    return (curves[PREDICTION] == shown).all(axis=1)


def losses(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the losses that a figure shows, in %: of times over a fresh step, of hits over the full gain.

    Args:
        table: of `decay --measured`.

    Returns:
        Rows of curves with the columns `lost` and `flown`, the path in d; those below `LEAST_DRAWN` are left
        out. Predictions are those of `is_shown`, listed for each measured case of the same order and speed.
    """
    curves = curves_of(table)
    fresh = curves.groupby([*CASE, *PREDICTION, "repeat"], sort=False, dropna=False)["cost"].transform("min")
    is_measured = curves["what"] == "measured"
    whole = fresh.where(is_measured, curves["cost_shuffled"] - fresh)
    curves["lost"] = 100 * ((curves["cost"] - fresh) / whole)
    curves["flown"] = curves["age"] * curves["speed"]
    measured, alone = curves[is_measured], ["n", "search", "precision"]
    cases = measured[[*alone, "ordering", "speed"]].drop_duplicates()
    guess = curves[~is_measured & is_shown(curves)].drop(columns=alone)
    rows = pd.concat([measured, guess.merge(cases, on=["ordering", "speed"])], ignore_index=True)
    return rows[rows["lost"] > LEAST_DRAWN].astype({"n": int})


def slope(ages: pd.DataFrame, oldest: float = math.inf) -> float:
    """Fit the growth of the time of a step with age, in ms per step: a line by least squares over steps.

    Args:
        ages: columns `age`, `steps` (of the mean) and `time_ms`.
        oldest: largest age that counts, in steps.

    Returns:
        NaN below two ages.
    """
    use = ages[ages["age"] <= oldest]
    if use["age"].nunique() < 2:
        return math.nan
    growth = use["time_ms"] - use["time_ms"].iloc[0]  # a time that is the same at all ages has the slope 0
    return float(np.polyfit(use["age"], growth, 1, w=np.sqrt(use["steps"]))[0])


def interval_of_linear_loss(reorder_ms: float, slope_ms: float) -> float:
    """Compute the best interval between reorders, sqrt(2 C / s), if the time of a step grows with its age.

    Args:
        reorder_ms: cost C of a reorder.
        slope_ms: growth s of the time of a step with each step of age.

    Returns:
        Steps; NaN for a time that does not grow.

    The minimum of C / k + s k / 2 over k.
    """
    return math.sqrt(2 * reorder_ms / slope_ms) if slope_ms > 0 else math.nan


def _of_loss(rows: pd.DataFrame) -> str:
    """Describe a case, and the prediction beside it."""
    first, guess = rows.iloc[0], rows.loc[rows["what"] == "predicted", PREDICTION]
    note = f"{first['n']:,} particles, {first['search']}, {first['ordering']}, {first['precision']}; grey: "
    note += f"{LEAST_LOSS:.0%}, the least loss judged"
    for model, cache in guess.drop_duplicates().itertuples(index=False):
        note += f"; predicted: {model}, cache of {cache:.0f} particles, median and range over gases"
    return note


_LOST = Scale("part of the gain in hits that is lost (%)", log=10)
_GROWN = Scale("growth of a step's time (%)", log=10, line=100 * LEAST_LOSS)
VIEWS = (
    Chart(
        "wear", "At {filling_fraction} filled, a step takes {of_worst} % longer after {flown} d flown", LINES,
        (Points("lost", "what == 'measured'"), Points("lost", "what == 'predicted'", values=_LOST)),
        Scale("path flown since the reorder (d)", "flown", log=10), _GROWN, "speed", "speed (d per step)",
        "filling_fraction", FILLED, files=("n", "ordering", "search", "precision"), note=_of_loss,
        gaps=False, prepare=losses, needs="source",
    ),
    Table("half_lives", lambda table: compare(curves_of(table)) if "source" in table else table[:0]),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the half-life of the measured loss with that of the predicted hits."""
    found, ratio = compare(curves_of(table)), "half_wear_over_half_decay"
    if ratio not in found:
        sentence = f"Of {len(found)} measured cases none has a prediction of its order and filling fraction."
        return Answer(pd.DataFrame(), sentence)
    shown = found[is_shown(found)]
    cells = {
        "measured (steps)": lambda row: in_words(row, "half_wear_steps"),
        "predicted (steps)": lambda row: in_words(row, "half_decay_steps"),
        "ratio": lambda row: rounded(row[ratio]),
    }
    ratios = shown[ratio].dropna()
    sentence = (
        f"The half-life of the measured wear is {spread(ratios)} times that of the predicted hits "
        f"({shown['model'].iloc[0]} model, {shown['cache_particles'].iloc[0]:,.0f} particles), in the "
        f"{len(ratios)} of {len(shown)} cases that have both."
        if len(ratios)
        else f"In none of {len(shown)} cases both the measured wear and the predicted hits have a half-life."
    )
    return Answer(rows_of(shown, list(CASE), cells), sentence)
