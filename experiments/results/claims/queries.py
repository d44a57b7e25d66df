"""Queries of claims and of sentences in short: times compared, numbers, and the extreme of several cases."""

from dataclasses import replace

from experiments.results.kept.queries import HIGHEST, LOWEST, Query

Runs = str | tuple[str, ...]  # folders below `results/reference`


def gain(
    run: Runs, where: str, this: object, over: object, value: str = "time_ms", statistic: str = "gain"
) -> Query:
    """Compare rows with those of a baseline: the time of the baseline over theirs, paired by round.

    Args:
        run: one run or several.
        where: pandas query with a `?`, which stands for what the two differ in.
        this: what the `?` is in the rows.
        over: what it is in the baseline.
        value: column or expression that is compared.
        statistic: one that has a baseline.
    """
    rows, baseline = (where.replace("?", str(given)) for given in (this, over))
    return Query(_runs(run), rows, value, statistic, baseline)


def over_best(run: Runs, where: str, at: int, along: str = "interval", statistic: str = "over best") -> Query:
    """Compare the time of one interval between reorders with that of the best one.

    Args:
        run: one run or several.
        where: pandas query of all intervals.
        at: the interval in steps.
        along: its column.
        statistic: "over best" or "sums over best".
    """
    return Query(_runs(run), f"{where} and {along} == {at}", "time_ms", statistic, where, along)


def number(
    run: Runs, where: str, value: str, statistic: str = "median", along: str = "", unit: str = ""
) -> Query:
    """Ask for a number without a baseline.

    Args:
        run: one run or several.
        where: pandas query.
        value: column or expression.
        statistic: one that has no baseline.
        along: second column of the statistic, if it has one.
        unit: column of values that are independent of each other; empty for runs or gases.
    """
    return Query(_runs(run), on_a_line(where), value, statistic, along=along, unit=unit)


def lowest(query: Query, *each: str) -> Query:
    """Take the lowest answer of those of each group of some columns."""
    return replace(query, each=each, pick=LOWEST)


def highest(query: Query, *each: str) -> Query:
    """Take the highest answer of those of each group of some columns."""
    return replace(query, each=each, pick=HIGHEST)


def both(condition: str, *names: str, by: str = " and ") -> str:
    """Join the same condition on several answers to a rule.

    Args:
        condition: with a `?` for the name of a query.
        names: of the queries.
        by: " and " or " or ".
    """
    return by.join(condition.replace("?", name) for name in names)


def on_a_line(text: str) -> str:
    """Return a text with line breaks and what stands round them as spaces."""
    return " ".join(text.split())


def _runs(run: Runs) -> tuple[str, ...]:
    return (run,) if isinstance(run, str) else run
