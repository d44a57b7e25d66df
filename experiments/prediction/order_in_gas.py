"""Half-lives of a memory order in gases, by predicted hits: tables, charts and answer of `decay`.

Contract. A table of gases has hits of an order, and of the same particles shuffled, at growing steps. What is
left of the gain is 1 at the first observation, and 0 for shuffled memory.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from experiments.prediction.half_life import (
    SMALL_RESIDUAL,
    crossings,
    fit,
    in_words,
    lasts,
    stretched_exponential,
    with_range,
)
from experiments.results.answers import Answer, case_in_words, percent, rows_of
from experiments.results.charts import DOTS, FILLED, FIRST, GIVEN, LINES, Chart, Points, Scale, Table, View

CASE = ["geometry", "size", "filling_fraction", "interaction", "speed", "ordering"]
SHOWN = 320  # particles: the capacity of a cache in figures
LEAST_HITS = 1e-3  # of all reads: a smaller first gain of a gas is none
HALF, FLOWN = "half_life_crossing_steps", "half_life_crossing_flown_d"
_LINE = [*CASE, "model", "cache_particles"]


def with_left(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `left`: the share of the gain over shuffled memory that is left; NaN without a gain."""
    more = table["hit_ratio"] - table["hit_ratio_shuffled"]
    first = more.groupby([table[name] for name in (*_LINE, "repeat")]).transform("first")
    return table.assign(left=more / first.where(first > LEAST_HITS))


def half_lives(table: pd.DataFrame) -> pd.DataFrame:
    """List the half-lives of every gas, model and capacity, with their range over gases.

    Args:
        table: of gases.

    Returns:
        Columns of a case; `gases`, and how many of them reached half within `last_step`; hit ratios (medians
        over gases); `half_life_crossing_*` in steps and in d flown since the reorder, as median, lowest and
        highest over gases, empty where that one was not reached; `fit`, "within 0.02" or "none", with the
        largest residual as a part of the gain, and `fit_scale_steps` and `fit_exponent` of
        2^-(steps / scale)^exponent if there is one. The scale may lie beyond `last_step`: it is no half-life.
    """
    found = []
    for key, rows in with_left(table).groupby(_LINE, sort=False):
        steps = crossings(rows, "repeat", "step")
        flown = np.array(
            [_flown_at(gas, at) for (_, gas), at in zip(rows.groupby("repeat"), steps, strict=True)]
        )
        at_step = rows.groupby("step")[["hit_ratio", "left"]].median()
        scale, exponent, residual = fit(at_step.index.to_numpy(), at_step["left"].to_numpy())
        found.append({
            **dict(zip(_LINE, key, strict=True)),
            "gases": len(steps),
            "gases_at_half": int(np.isfinite(steps).sum()),
            "last_step": int(at_step.index[-1]),
            "hit_ratio_first": at_step["hit_ratio"].get(0, math.nan),
            "hit_ratio_last": at_step["hit_ratio"].iloc[-1],
            "hit_ratio_shuffled": rows["hit_ratio_shuffled"].median(),
            "left_last": at_step["left"].iloc[-1],
            **with_range(HALF, steps),
            **with_range(FLOWN, flown),
            "fit": "none" if math.isnan(scale) else f"within {SMALL_RESIDUAL:g}",
            "fit_residual_largest": residual,
            "fit_scale_steps": scale,
            "fit_exponent": exponent,
        })  # fmt: skip
    return pd.DataFrame(found)


def _flown_at(gas: pd.DataFrame, step: float) -> float:
    """Return the distance in d flown until a step, at the root mean square speed; NaN for a step of NaN."""
    at, speed = gas["step"].to_numpy(), gas["speed_d_per_step"].to_numpy()
    flown = np.concatenate([[0.0], np.cumsum(np.diff(at) * (speed[1:] + speed[:-1]) / 2)])
    return float(np.interp(step, at, flown))


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Select the first model and the capacity near `SHOWN` that has a gain; add what figures show."""
    table = with_left(table[table["model"] == table["model"].iloc[0]])
    table = table.assign(path=table["step"] * table["speed"])
    gains = table.dropna(subset="left")
    capacities = (gains if len(gains) else table)["cache_particles"].unique()
    rows = table[table["cache_particles"] == capacities[np.abs(np.log(capacities / SHOWN)).argmin()]]
    laws = half_lives(rows)[[*CASE, "fit_scale_steps", "fit_exponent"]]
    rows = rows.merge(laws, on=CASE, how="left")
    fitted = stretched_exponential(rows["step"], rows["fit_scale_steps"], rows["fit_exponent"])
    return rows.assign(fitted=fitted)


def _halves(table: pd.DataFrame) -> pd.DataFrame:
    """List the half-lives of what figures show, with the name of each case in them."""
    lives = half_lives(_shown(table)).rename(columns={"gases": "runs"})
    names = [name for name in ("size", "interaction", "speed", "ordering") if lives[name].nunique() > 1]
    every: list[Any] = lives.to_dict("records")
    return lives.assign(case=[case_in_words(life, names or ["interaction"]) for life in every])


def _gas(rows: pd.DataFrame) -> str:
    """Describe what all lines of a figure share, and the cache."""
    words = {
        "geometry": "{}", "size": "{} boxes a side", "interaction": "{} gas", "speed": "{:g} d per step",
        "ordering": "order {}", "model": "{} model", "cache_particles": "cache of {:.0f} particles",
    }  # fmt: skip
    return ", ".join(of.format(rows[name].iloc[0]) for name, of in words.items() if rows[name].nunique() == 1)


def _later(rows: pd.DataFrame) -> str:
    """Describe the gas, and name the cases that keep more than half."""
    late = rows[rows[HALF].isna() & rows["left_last"].notna()]
    named = [
        f"{row['case']} at {percent(row['filling_fraction'])} ({percent(row['left_last'])} left)"
        for row in late.to_dict("records")
    ]
    return "\n".join([_gas(rows), *([f"half not reached: {', '.join(named)}"] if named else [])])


_STEPS = Scale("steps after the reorder", "step", log=10, from_zero=True)
_LINEAR = Scale("steps after the reorder", "step")
_PATH = Scale("path since the reorder (d)", "path", log=10)
_FLOWN = Scale("path flown by then (d)", log=10)
_HIT, _LEFT = Scale("predicted hit ratio", ends=(0, 1)), Scale("left of the gain over shuffled", line=0.5)
_AT = "At {filling_fraction} filled, {of_worst} of the reads hit {step} steps after the reorder"
_BY = {  # series -> its title, its words in the sentence, axis of what is left
    "speed": ("speed (d per step)", " at {worst} d a step", _PATH),
    "interaction": ("interaction", " in the {worst} gas", None),
    "size": ("boxes a side", " at {worst} boxes a side", None),
    "ordering": ("memory order", " along {worst}", None),
}
_NEARLY = Points("fitted", statistic=FIRST, values=_LEFT)
_OF: dict[str, Any] = {"note": _gas, "prepare": _shown, "needs": "geometry"}
VIEWS: tuple[View, ...] = (
    *(
        Chart(
            f"by_{column}", _AT + words, LINES,
            (Points("hit_ratio"), Points("left", "step > 0" if at else "", values=_LEFT, at=at)),
            _STEPS, _HIT, column, title, "filling_fraction", FILLED, varying=(column,),
            files=tuple(name for name in CASE if name not in (column, "filling_fraction")),
            bounds=(replace(_NEARLY, where="step > 0", at=at),), gaps=False, **_OF,
        )
        for column, (title, words, at) in _BY.items()
    ),
    Chart(
        "by_filling_fraction", _AT.replace("filling_fraction", "worst"), LINES,
        (Points("hit_ratio"), Points("left", values=_LEFT)), _STEPS, _HIT, "filling_fraction",
        "filling fraction", files=("geometry",), single=tuple(_BY), bounds=(_NEARLY,), **_OF,
    ),
    Chart(
        "linear_by_interaction", _AT + " in the {worst} gas", LINES,
        (Points("hit_ratio", "step <= 0.1 * step.max()"), Points("hit_ratio")), _LINEAR, _HIT,
        "interaction", "interaction", "filling_fraction", FILLED, varying=("interaction",),
        files=("geometry", "size", "speed", "ordering"), **_OF,
    ),
    Chart(
        "half_lives", "At {filling_fraction} filled, half of the gain is left after {value} steps: {best}",
        DOTS,
        (Points(HALF, statistic=GIVEN),
         Points(FLOWN, statistic=GIVEN, values=_FLOWN)),
        Scale("", "case"), Scale("half-life of the gain (steps)", log=10), panels="filling_fraction",
        heading=FILLED, files=("geometry",), note=_later, prepare=_halves, needs="geometry",
    ),
    Table("half_lives", lambda table: half_lives(table) if "geometry" in table else table.iloc[:0]),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say after how many steps half of an order's gain is lost."""
    lives = half_lives(_shown(table))
    cells = {
        "half-life (steps)": lambda row: in_words(row, HALF),
        "flown by then (d)": lambda row: in_words(row, FLOWN),
        "left at the end": lambda row: f"{percent(row['left_last'])} after {row['last_step']:,} steps",
    }
    first = lives.to_dict("records")[0]
    sentence = (
        f"The gain of {first['ordering']} over shuffled memory in hits: {lasts(first, HALF, 'last_step')} "
        f"({first['gases']} gases, {percent(first['filling_fraction'])} filled, {first['interaction']}, "
        f"{first['speed']:g} d a step; {first['model']} model, cache of {first['cache_particles']:,.0f} "
        f"particles). In {(lives['gases_at_half'] == lives['gases']).sum()} of {len(lives)} cases all gases "
        "fall to one half."
    )
    return Answer(rows_of(lives, CASE, cells), sentence)
