"""Table 6.1 of [thesis] beside the gains measured here, over both baselines, in markdown.

The gains are those of a reorder along the Hilbert pancake in the shaken box: of the force, of the rest of a
step, and of the whole step, not fused: mean time over mean time of the windows of a shake that were timed.
They are computed from the tables of the kept runs `RUNS`.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

from experiments.core.record import read_table
from experiments.results.baselines import AGED, SHUFFLED
from experiments.results.claims.judgement import Shown, number
from experiments.results.claims.queries import gain
from experiments.results.gains import Estimate
from experiments.results.kept.queries import REFERENCE, evaluate
from experiments.results.published_gains import TABLE_6_1

BEGIN, END = "<!-- table 6.1: begin -->", "<!-- table 6.1: end -->"
RUNS = {"H100": "speed_up/h100", "H200": "speed_up/h200_three_runs", "CPU": "speed_up/cpu"}  # device -> run
BASELINES = {"lattice": AGED, "shuffled": SHUFFLED}  # name in the heading -> name in the tables
PARTS = ("force", "other", "total")


def markdown(root: Path = REFERENCE) -> str:
    """Return the table, and below it what the intervals of each device are.

    Args:
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a run without one of the gains.
    """
    columns = [(device, baseline) for device in RUNS for baseline in BASELINES]
    found = {
        (device, baseline, phi, part): _gain(device, baseline, phi, part, root)
        for device, baseline in columns
        for phi in _fractions(device, root)
        for part in PARTS
    }
    published = TABLE_6_1.set_index("filling_fraction").stack().map(number).to_dict()
    rows = [["filled", "part", "[thesis]", *(f"{device} over {baseline}" for device, baseline in columns)]]
    rows.append(["---"] * len(rows[0]))
    for phi, part in itertools.product(sorted({phi for _, _, phi, _ in found}), PARTS):
        answers = (found.get((*column, phi, part)) for column in columns)
        shown = (str(Shown(answer)) if answer else "" for answer in answers)
        rows.append([_percent(phi), part, published.get((phi, part), ""), *shown])
    notes = [f"{device}: {_supports(found, device)}" for device in RUNS]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in rows) + f"\n\nIn brackets: {'; '.join(notes)}."


def _fractions(device: str, root: Path) -> Iterable[float]:
    """Return the filling fractions that were measured phase by phase."""
    table = read_table(root / RUNS[device])
    return table.loc[~table["fused"], "filling_fraction"].unique()


def _gain(device: str, baseline: str, phi: float, part: str, root: Path) -> Estimate:
    """Return the time of a part in the memory of a baseline over that in reordered memory."""
    where = f"not fused and filling_fraction == {phi} and part == '{part}' and ordering == '?'"
    query = gain(RUNS[device], where, "pancake", BASELINES[baseline], statistic="gain of sums")
    return evaluate(query, root)


def _supports(found: dict[tuple[str, str, float, str], Estimate], device: str) -> str:
    """Return what the intervals of a device are, each with its filling fractions if there are several."""
    kinds: dict[str, dict[str, None]] = {}  # interval -> its fractions, in order
    for (own, _, phi, _), answer in found.items():
        if own == device:
            kinds.setdefault(answer.interval, {})[_percent(phi)] = None
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(f"{kind} at {', '.join(fractions)}" for kind, fractions in kinds.items())


def _percent(phi: float) -> str:
    return f"{100 * phi:g} %"
