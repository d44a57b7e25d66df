"""What a memory order is compared with: the words for it, in columns, legends and text.

- shuffled: memory in a random permutation, a worst case that no running program has.
- lattice: memory in the order of the lattice from which the gas was made.
- aged (s steps): memory that was in an order s steps ago and was not reordered since; or aged (0.1 d), by how
  far the particles have moved since.
- fresh (s steps): memory that was reordered along a curve s steps ago, fewer than lie between two reorders.
- reordered every k: memory that is reordered every k steps, the cost of the reorders included.

Where a case is sampled more than once, s is the largest age that its memory came to.

Every gain names the one that it is over. A second case of the same name and ` again` after it is the same
case measured twice: what the two differ by is noise.
"""

import pandas as pd

from sfc import checks

SHUFFLED, LATTICE, AGED, FRESH = "shuffled", "lattice", "aged", "fresh"
BASELINES = (SHUFFLED, LATTICE)  # memory orders that reorder nothing
_AGAIN = " again"


def aged(steps: int) -> str:
    """The name of memory that was in an order some steps ago and was not reordered since.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 0.
    """
    return f"{AGED} ({checks.integer('steps', steps, 0, unit='steps')} steps)"


def aged_by(distance: float) -> str:
    """The name of memory that was in an order before the particles moved so far, in d.

    Raises:
        TypeError: a distance that is no number.
        ValueError: one below 0.
    """
    return f"{AGED} ({checks.number('distance', distance, 0):g} d)"


def fresh(steps: int) -> str:
    """The name of memory that was reordered some steps ago.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 0.
    """
    return f"{FRESH} ({checks.integer('steps', steps, 0, unit='steps')} steps)"


def reordered_every(steps: int) -> str:
    """The name of memory that is reordered every so many steps.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 1.
    """
    return f"reordered every {checks.integer('steps', steps, unit='steps')}"


def memory_of(ordering: str, age: float | None, every: float | None = None) -> str:
    """What memory was when it was timed, in the words above.

    Args:
        ordering: a baseline or the name of an order.
        age: steps since memory was in that order, at most; None or NaN where it is not told.
        every: steps between reorders; None where there is one alone.

    Returns:
        Such as "fresh (5 steps)"; empty where the age is not told, but of shuffled memory, which has none.
    """
    if ordering == SHUFFLED:
        return SHUFFLED
    if age is None or pd.isna(age):
        return ""
    if ordering in (LATTICE, AGED):
        return aged(round(age))
    return reordered_every(int(every)) if every is not None and age > every else fresh(round(age))


def with_ages(summary: pd.DataFrame, table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The rows of a summary with what their memory was when it was timed.

    Args:
        summary: a row for each case.
        table: a row for each sample; with `age_steps`, and `reorder_every` where orders are kept up.
        by: columns that tell cases apart, `ordering` among them.

    Returns:
        Besides `age_steps`, the largest of the samples, and `memory`, of `memory_of`; the summary as it is if
        the table does not tell ages.
    """
    if "age_steps" not in table:
        return summary
    told = table.assign(age_steps=pd.to_numeric(table["age_steps"]))
    every = [name for name in ("reorder_every",) if name in table]
    oldest = told.groupby(by, sort=False)[["age_steps", *every]].max().reset_index()
    columns = (oldest[name] for name in ("ordering", "age_steps", *every))
    oldest["memory"] = [memory_of(*row) for row in zip(*columns, strict=True)]
    return summary.merge(oldest.drop(columns=every), on=by, how="left")


def again(name: str) -> str:
    """The name of the same case, measured a second time beside the first."""
    return checks.text("name", name) + _AGAIN


def is_again(name: object) -> bool:
    """Whether a name is that of a case measured a second time."""
    return isinstance(name, str) and name.endswith(_AGAIN)


def original(name: str) -> str:
    """The name of the case that one is the second measurement of, or the name itself."""
    return checks.text("name", name).removesuffix(_AGAIN)


def gain_over(baseline: str) -> str:
    """The name of the column that holds gains over a baseline."""
    return f"gain_over_{checks.text('baseline', baseline)}"
