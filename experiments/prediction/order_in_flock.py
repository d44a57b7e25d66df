"""What is left of the gain of an order in a flock: tables, charts and answer of `decay --scene flock`.

Contract. A table has times and predicted hits of sorted and of shuffled memory at growing ages of the order.
What is left of the gain is 1 at the first age, and 0 for shuffled memory.
"""

import numpy as np
import pandas as pd

from experiments.prediction.half_life import crossings, in_words, lasts, with_range
from experiments.results.answers import Answer, headline, percent, rounded, rows_of
from experiments.results.charts import LINES, Chart, Points, Scale, Table

CASE = ["n", "ordering", "precision", "rules"]
LEAST_GAIN = 0.1  # at the first age, as a part of the cost; of a smaller one noise would be left
HALF = "half_age_crossing_steps"
_SEARCH = [*CASE, "system", "search"]
_PREDICTED = ["model", "cache_particles", "hit_ratio", "hit_ratio_shuffled", "displacement_cutoffs"]


def left(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the part of the gain of an order that is left at each age, measured and predicted.

    Args:
        table: of `decay --scene flock`.

    Returns:
        Columns of a case, `system`, `search`, `kind` ("measured" or "predicted", with the model and its
        capacity), `repeat` (the run), `age`, `gain` over shuffled memory of the same age (of times, or of
        misses), `left`, `displacement_cutoffs` (NaN in an interrupted run, which has no predictions). `left`
        is NaN if there was no gain at the first age, or shuffled memory has no misses.
    """
    table = table.rename(columns={"run": "repeat"})
    table = table.reindex(columns=[*dict.fromkeys([*table, *_PREDICTED])])  # an interrupted run lacks them
    at = [*_SEARCH, "repeat", "round", "age"]
    times, guess = (table[(table["what"] == "predicted") == is_guess] for is_guess in (False, True))
    base = times[times["what"] == "shuffled"].groupby(at)["time_ms"].median().rename("base")
    aged = times[times["what"] == "sorted"].join(base, on=at, how="inner")
    aged = aged.assign(kind="measured", cost=aged["time_ms"] / aged["base"])
    names = [f"{m}, {c:.0f} particles" for m, c in zip(guess["model"], guess["cache_particles"], strict=True)]
    shuffled = 1 - guess["hit_ratio_shuffled"]
    misses = (1 - guess["hit_ratio"]) / shuffled.where(shuffled > 0)
    both = pd.concat([aged, guess.assign(kind=names, cost=misses)], ignore_index=True)
    found = both.groupby([*_SEARCH, "repeat", "kind", "age"], sort=False)["cost"].median().reset_index()
    found = found.sort_values("age", kind="stable", ignore_index=True)
    first = found.groupby([*_SEARCH, "repeat", "kind"], sort=False)["cost"].transform(
        lambda cost: cost.iloc[0]
    )
    found["gain"] = 1 / found["cost"].where(found["cost"] > 0)
    found["left"] = ((1 - found["cost"]) / (1 - first)).where((1 - first) > LEAST_GAIN)
    of_state = [*CASE, "system", "repeat", "age"]
    return found.join(guess.groupby(of_state)["displacement_cutoffs"].first(), on=of_state)


def half_ages(found: pd.DataFrame) -> pd.DataFrame:
    """List for each case the gain at the first age, and the age at which half of that gain is left.

    Args:
        found: rows of `left`.

    Returns:
        A row for each system, search and kind. `half_age_crossing_steps` is the age at which half of the
        gain is left: median, lowest and highest over runs, and `runs_at_half`, how many reach it within
        `age_last`. It is NaN without a gain, or where more than half is left. `left_last` has its range over
        runs too. All else is a median over runs. One run has no range.
    """
    rows = []
    for key, part in found.groupby([*_SEARCH, "kind"], sort=False):
        middle = part.groupby("age")[["left", "gain", "displacement_cutoffs"]].median().reset_index()
        halves = crossings(part, "repeat", "age")
        first, end = middle.iloc[0], middle.iloc[-1]
        last = part.loc[part["age"] == end["age"], "left"].agg(["min", "max"])
        half = with_range(HALF, halves)
        moved = np.interp(half[HALF], middle["age"], middle["displacement_cutoffs"])
        rows.append({
            **dict(zip([*_SEARCH, "kind"], key, strict=True)),
            "runs": len(halves),
            "age_first": middle["age"].iloc[0],
            "gain_first": first["gain"],
            "age_last": middle["age"].iloc[-1],
            "gain_last": end["gain"],
            "left_last": end["left"],
            "left_last_low": last["min"],
            "left_last_high": last["max"],
            "displacement_cutoffs_last": end["displacement_cutoffs"],
            "runs_at_half": int(np.isfinite(halves).sum()),
            **half,
            "half_age_crossing_displacement_cutoffs": moved,
        })  # fmt: skip
    ends = [f"{name}_{end}" for name in ("left_last", HALF) for end in ("low", "high")]
    listed = pd.DataFrame(rows)
    listed.loc[listed["runs"] == 1, ends] = np.nan
    return listed


def drawn(rows: pd.DataFrame) -> list[str]:
    """Select the kinds to draw: measured, and the prediction in which the system that gains least gains most.

    Args:
        rows: of `left`.
    """
    guess = rows[rows["kind"] != "measured"]
    first = guess[guess["age"] == guess["age"].min()].groupby(["kind", "system"], sort=False)["gain"].median()
    gains = first.groupby("kind", sort=False).min().dropna()
    return ["measured", *([] if gains.empty else [str(gains.idxmax())])]


def _lasting(table: pd.DataFrame) -> pd.DataFrame:
    """Select of what is left the lines to draw; the displacement of an age is the median over runs."""
    cases = left(table).groupby(CASE, sort=False)
    rows = pd.concat([case[case["kind"].isin(drawn(case))] for _, case in cases], ignore_index=True)
    moved = rows.groupby([*_SEARCH, "kind", "age"])["displacement_cutoffs"].transform("median")
    line = rows["system"] + " " + rows["kind"]
    return rows.assign(displacement_cutoffs=moved, line=line, spread_over="runs")


def halves_in_words(rows: pd.DataFrame) -> str:
    """Describe for each search what is left at the end and when half was, or that there was no gain.

    Args:
        rows: of `left`, of one case.
    """
    lines = [f"{rows['ordering'].iloc[0]}, {rows['precision'].iloc[0]}"]
    for kind in [kind for kind in rows["kind"].unique() if kind != "measured"]:
        lines[0] += f"; {kind} predicts the largest gain"
    measured = half_ages(rows[rows["kind"] == "measured"])
    for search, halves in measured.groupby("search", sort=False):
        parts = [f"{row['system']}: {lasts(row, HALF, 'age_last')}" for row in halves.to_dict("records")]
        lines.append(f"{search}, {'; '.join(parts)}")
    return "\n".join(lines)


_AGE = Scale("steps after the sort", "age", log=10)
_MOVED = Scale("displacement (cutoffs)", "displacement_cutoffs", log=10)
VIEWS = (
    Chart(
        "left", "Of the gain of an order of {n} particles, {value} is left after {age} steps: {best}", LINES,
        (Points("left"), Points("left", at=_MOVED)), _AGE, Scale("left of the gain over shuffled", line=0.0),
        "line", panels="search", heading="{search}", files=tuple(CASE), note=halves_in_words,
        gaps=False, prepare=_lasting, needs="system",
    ),
    Table("half_ages", lambda table: half_ages(left(table)) if "system" in table else table.iloc[:0]),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say what is left of the gain of an order in each system, as measured in the first search."""
    found = half_ages(headline(left(table), *CASE))
    found = found.sort_values("kind", key=lambda kinds: kinds != "measured", kind="stable")
    cells = {
        "gain at first": lambda row: rounded(row["gain_first"]),
        "left at the end": lambda row: f"{percent(row['left_last'])} after {row['age_last']:,.0f} steps",
        "half is left (steps)": lambda row: in_words(row, HALF),
    }
    systems = found.groupby("system", sort=False)
    parts = [
        f"in the {row['system']} ({row['search']}, {row['kind']}) {lasts(row, HALF, 'age_last')}"
        for row in systems.head(1).to_dict("records")
    ]
    where = f"{found['ordering'].iloc[0]} over shuffled memory, {found['n'].iloc[0]:,} particles"
    rows = rows_of(systems.head(2), ["system", "search", "kind"], cells, most=4)
    return Answer(rows, f"The gain of {where}: {'; '.join(parts)}.")
