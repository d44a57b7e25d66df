"""Names of the memory orders that others are compared with, for columns, legends and text.

- shuffled: memory in a random permutation, to which memory that is never reordered tends.
- lattice: memory in the order of the lattice sites of the initial state; this order decays as
  steps are done.
- aged (s steps): memory that was in an order s steps ago and was not reordered since; or aged (0.1 d), by how
  far the particles have moved since.
- fresh (s steps): memory that was reordered along a curve s steps ago, fewer than lie between two reorders.
- reordered every k: memory that is reordered every k steps, the cost of the reorders included.

If a case is sampled more than once, s is the largest age of its memory.

Every gain names its baseline. A case whose name ends in ` again` is a second measurement of the case of the
same name: the difference of the two is noise.
"""

import pandas as pd

from sfc import checks

SHUFFLED, LATTICE, AGED, FRESH = "shuffled", "lattice", "aged", "fresh"
BASELINES = (SHUFFLED, LATTICE)  # memory orders that reorder nothing
_AGAIN = " again"


def aged(steps: int) -> str:
    """Name memory that was in an order some steps ago and was not reordered since.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 0.
    """
    return f"{AGED} ({checks.integer('steps', steps, 0, unit='steps')} steps)"


def aged_by(distance: float) -> str:
    """Name memory that was in an order before the particles moved by a distance in d.

    Raises:
        TypeError: a distance that is no number.
        ValueError: one below 0.
    """
    return f"{AGED} ({checks.number('distance', distance, 0):g} d)"


def fresh(steps: int) -> str:
    """Name memory that was reordered some steps ago.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 0.
    """
    return f"{FRESH} ({checks.integer('steps', steps, 0, unit='steps')} steps)"


def reordered_every(steps: int) -> str:
    """Name memory that is reordered at an interval of steps.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 1.
    """
    return f"reordered every {checks.integer('steps', steps, unit='steps')}"


def memory_of(ordering: str, age: float | None, every: float | None = None) -> str:
    """Name the state of memory when it was timed.

    Args:
        ordering: a baseline or the name of an order.
        age: largest number of steps since memory was in that order; None or NaN if unknown.
        every: steps between reorders; None for a single reorder.

    Returns:
        A name such as "fresh (5 steps)"; empty if the age is unknown, except for shuffled memory, which has
        no age.
    """
    if ordering == SHUFFLED:
        return SHUFFLED
    if age is None or pd.isna(age):
        return ""
    if ordering in (LATTICE, AGED):
        return aged(round(age))
    return reordered_every(int(every)) if every is not None and age > every else fresh(round(age))


def with_ages(summary: pd.DataFrame, table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Add the age and the name of the memory to the rows of a summary.

    Args:
        summary: a row for each case.
        table: a row for each sample; with `age_steps`, and with `reorder_every` if memory is reordered.
        by: columns that identify a case, `ordering` among them.

    Returns:
        The summary with `age_steps`, the largest of the samples, and `memory`, from `memory_of`; the summary
        itself if the table has no ages.
    """
    if "age_steps" not in table:
        return summary
    samples = table.assign(age_steps=pd.to_numeric(table["age_steps"]))
    every = [name for name in ("reorder_every",) if name in table]
    more = [name for name in every if name not in by]
    oldest = samples.groupby(by, sort=False)[["age_steps", *more]].max().reset_index()
    columns = (oldest[name] for name in ("ordering", "age_steps", *every))
    oldest["memory"] = [memory_of(*row) for row in zip(*columns, strict=True)]
    return summary.merge(oldest.drop(columns=more), on=by, how="left")


def again(name: str) -> str:
    """Name the second measurement of a case."""
    return checks.text("name", name) + _AGAIN


def is_again(name: object) -> bool:
    """Return whether a name is that of a second measurement."""
    return isinstance(name, str) and name.endswith(_AGAIN)


def original(name: str) -> str:
    """Return the name of the case without the mark of a second measurement."""
    return checks.text("name", name).removesuffix(_AGAIN)


def gain_over(baseline: str) -> str:
    """Name the column that holds gains over a baseline."""
    return f"gain_over_{checks.text('baseline', baseline)}"
