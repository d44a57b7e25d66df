"""The answer in at most ten lines."""

from __future__ import annotations

import math

import pandas as pd

from experiments.advice import headroom
from experiments.advice.candidates import AGAIN, GIVEN
from experiments.advice.how_often import Lasting
from experiments.advice.uses import THERE, YOURS
from experiments.advice.verdict import CANNOT_TELL, DO_NOT, REORDER, Verdict, judge
from experiments.results.answers import listed, rounded
from experiments.results.baselines import SHUFFLED

NEVER = 10**6  # uses
NOT_MEASURED = "Not measured: your own code; a gain holds for one kind (--code) and machine."
OWN_CODE = "Your own function was timed: the gain holds for it, on this machine."


def first_line(verdict: Verdict, smallest_gain: float) -> str:
    """Say whether to reorder.

    Args:
        verdict: on the times.
        smallest_gain: that is worth it.
    """
    gain = f"{verdict.gains[verdict.best]} times as fast as {GIVEN}"
    if verdict.says == REORDER:
        return f"{REORDER} along {verdict.best}: {gain}"
    if verdict.says == DO_NOT:
        return f"{DO_NOT}: the best order, {verdict.best}, is {gain}"
    return f"{CANNOT_TELL}: {verdict.best} is {gain}; {smallest_gain:g} would pay"


def lines(
    verdict: Verdict, *, what: str, items: int, costs_ms: dict[str, float], smallest_gain: float,
    uses: int = 0, step_ms: float = 0, last: Lasting | None = None, said: str = "", rounds: int = 0,
    least_ms: float = 0, foreseen: str = "",
) -> list[str]:  # fmt: skip
    """Say all that was found.

    Args:
        verdict: on the times.
        what: was timed.
        items: number of them.
        costs_ms: order -> time of a reorder.
        smallest_gain: that is worth a reorder.
        uses: of the data in its order; 0 for any number.
        step_ms: of a step of the user's program; 0 if the use is all of it.
        last: how long the order lasts; None if items do not move.
        said: sentences on what was assumed.
        rounds: in which orders were timed.
        least_ms: time of a use by its bytes alone; 0 if that is not known.
        foreseen: sentence on another machine.
    """
    best, times = verdict.best, verdict.times_ms
    saved, cost = times[GIVEN] - times[best], costs_ms[best]
    found = [first_line(verdict, smallest_gain)]
    threads = "" if what == YOURS or what.endswith(THERE) else "one thread, "
    found.append(
        f"{what[0].upper()}{what[1:]}, {items:,} items: {rounded(times[GIVEN])} ms as given, "
        f"{rounded(times[best])} along {best} ({threads}{rounds} rounds; noise "
        f"{100 * (verdict.floor - 1):.0f} %)."
    )
    others = [f"{name} {gain.value:.2f}" for name, gain in verdict.gains.items()
              if name not in (best, GIVEN, AGAIN)]  # fmt: skip
    equal = f"; equal to {best}: {listed(verdict.equal)}" if verdict.equal else ""
    found.append(f"Over given: {', '.join(others)}{equal}.")
    worth = []
    if saved > 0:
        worth.append(_cost(cost, saved, times[GIVEN], uses))
    if least_ms:
        fastest = min((GIVEN, best), key=lambda name: times[name])
        worth.append(headroom.sentence(fastest, times[fastest], least_ms))
    often = _often(last, times, best) if last is not None else ""
    step = ""
    if step_ms:
        step = f"Your step of {step_ms:g} ms is shorter than the time saved here."
        if saved < step_ms:
            step = f"Your step of {step_ms:g} ms: at best {step_ms / (step_ms - saved):.2f} times as fast."
    bounds = " ".join(filter(None, (said, step, OWN_CODE if what == YOURS else NOT_MEASURED)))
    return [*found, *filter(None, (" ".join(filter(None, worth)), often, foreseen, bounds))]


def _cost(cost: float, saved: float, given: float, uses: int) -> str:
    """Say what a reorder costs, and after how many uses it pays; times in ms."""
    pays = math.ceil(cost / saved)
    word = f"pays after {pays:,} use{'s' * (pays != 1)}" if pays < NEVER else "never pays"
    worth = f"; {uses:,} uses save {rounded((uses * saved - cost) / 1e3)} s" if uses else ""
    return f"A reorder takes {rounded(cost)} ms, {rounded(cost / given)} uses; it {word}{worth}."


def _often(last: Lasting, times: dict[str, float], best: str) -> str:
    """Say how often to reorder, and what it costs never to."""
    worst = max(times.get(SHUFFLED, times[GIVEN]), times[GIVEN])
    never = f"up to {worst / times[best]:.2f} times as long if never"
    if math.isinf(last.low):
        return f"No loss was found within {last.longest:,.0f} steps of a reorder; {never}."
    return (
        f"Reorder every {last.low:,.0f} to {last.high:,.0f} steps; a use takes {100 * last.loss:.0f} % "
        f"longer after {last.longest:,.0f}, {never}."
    )


def lines_of(table: pd.DataFrame) -> list[str]:
    """Say what the rows of a run say.

    Args:
        table: of `experiments.advise`.
    """
    first, last = table.iloc[0], table.iloc[-1]
    verdict = judge(table, float(first["smallest_gain"]))
    costs = {str(name): float(cost) for name, cost in table.groupby("ordering")["cost_ms"].median().items()}
    ages = None
    if "interval_low" in table and last["interval_low"] == last["interval_low"]:
        known = table.dropna(subset="interval_low")  # a row of each run
        ages = Lasting(
            float(known["interval_low"].min()), float(known["interval_high"].max()),
            float(last["interval_longest"]), float(known["interval_loss"].median()),
        )  # fmt: skip
    return lines(
        verdict, what=first["use"], items=int(first["items"]), costs_ms=costs, said=first["said"],
        smallest_gain=float(first["smallest_gain"]), uses=int(first["uses"]), step_ms=float(first["step_ms"]),
        last=ages, least_ms=float(first.get("least_ms") or 0), foreseen=str(first.get("foreseen") or ""),
        rounds=len(table[[one for one in ("run", "round") if one in table]].drop_duplicates()),
    )  # fmt: skip
