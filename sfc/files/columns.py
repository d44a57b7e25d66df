"""Coordinates among the columns of a file, by name, by number, or by the names x, y and z."""

from collections.abc import Sequence

from sfc import checks

AXES = ("x", "y", "z")
PLAIN = (2, 3)  # columns of a table without names that are all coordinates
GIVE = "name the coordinates with --columns, such as --columns x y z"


def coordinate_columns(columns: Sequence[str] | None, names: Sequence[str] | None, count: int) -> list[int]:
    """Return the numbers of the columns that are coordinates, in the order of the axes.

    Args:
        columns: names, or numbers from 0, of the columns; None for those named x, y and z, in either case, or
            for all of a table of two or three columns without names.
        names: of the columns; None for a table without names.
        count: of columns.

    Raises:
        ValueError: a column that is not there, or twice; no columns given, and none with these names.
    """
    if columns is None:
        return _plain_columns(names, count)
    found = []
    for word in columns:
        if names is not None and word in names:
            if list(names).count(word) > 1:
                raise checks.refuse_value("column", word, "a name of one column", "give its number, from 0")
            found.append(list(names).index(word))
        elif word.isdecimal() and int(word) < count:
            found.append(int(word))
        else:
            known = "" if names is None else f"{', '.join(names)}, or "
            raise checks.refuse_value("column", word, f"{known}a number from 0 to {count - 1}")
    if len(set(found)) < len(found):
        raise checks.refuse_value("columns", list(columns), "each column once")
    return found


def _plain_columns(names: Sequence[str] | None, count: int) -> list[int]:
    if names is None:
        if count not in PLAIN:
            raise checks.refuse_value("columns of the file", count, "two or three without names", GIVE)
        return list(range(count))
    small = [name.strip().lower() for name in names]
    found = [small.index(axis) for axis in AXES if small.count(axis) == 1]
    if len(found) < 2 or any(small.count(axis) > 1 for axis in AXES) or "x" not in small or "y" not in small:
        raise checks.refuse_value(
            "columns of the file", list(names), "x and y, or x, y and z, once each", GIVE
        )
    return found
