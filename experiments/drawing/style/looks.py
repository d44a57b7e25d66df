"""Looks of lines: families of memory orders, and anything else in turn.

A family of orders has one hue and one pattern of dashes, a member its own lightness and marker; so the two
are told apart without colour too. Lines of anything else (searches, speeds, sizes) take other colours, in
turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, repeat
from typing import NamedTuple

from experiments.results.baselines import AGED, LATTICE, SHUFFLED
from sfc import checks

MOST_LINES = 6  # in a panel
Dash = tuple[float, ...]  # lengths of strokes and gaps in widths of the line; empty for a solid line


class Look(NamedTuple):
    """Look of a line: a colour of the web, a marker of matplotlib, and dashes."""

    colour: str
    marker: str
    dash: Dash


@dataclass(frozen=True)
class Family:
    """Family of memory orders.

    Args:
        dash: of its lines.
        members: name -> colour and marker.
    """

    dash: Dash
    members: dict[str, tuple[str, str]]


# `tests/experiments/drawing/test_colours.py` computes the distances of these colours for normal and for
# colour-blind readers. The lightness of Hilbert's kin rises in steps; neighbours in this list are far apart.
FAMILIES = {
    "Hilbert": Family(
        (),
        {
            "hilbert": ("#045890", "o"),
            "gilbert": ("#0E84D4", "s"),
            "moore": ("#0D99E3", "^"),
            "butz": ("#0C72B8", "D"),
            "compact": ("#15ACFE", "v"),
            "skilling": ("#6FBDFE", "P"),
            "betaomega": ("#0469AB", "X"),
            "ar2w2": ("#057BC6", "*"),
            "hindex": ("#058DE3", "<"),
            "harmonious": ("#11A2F0", ">"),
            "haverkort_a26": ("#4DB4FF", "p"),
            "haverkort_f": ("#0A609C", "d"),
        },
    ),
    "scans": Family((6, 1.5), {"row": ("#E8900C", "^"), "zigzag": ("#FFB74D", "v")}),
    "bits": Family((5, 1.5, 1, 1.5), {"morton": ("#8E1B4F", "s"), "gray": ("#B43A72", "p")}),
    "base 3": Family((3, 1, 1, 1, 1, 1), {"peano": ("#1F9A62", "P"), "meander": ("#5CC49A", "*")}),
    "tiles": Family((2.5, 1), {"tiled": ("#4C521E", "D"), "pancake": ("#737A22", "d")}),
    "baselines": Family(
        (1, 1.2), {SHUFFLED: ("#000000", "X"), LATTICE: ("#45100F", "<"), "random": ("#2B0B3F", ">")}
    ),
}
_LOOKS = {
    name: Look(colour, marker, family.dash)
    for family in FAMILIES.values()
    for name, (colour, marker) in family.members.items()
}
_FAMILY_OF = {name: number for number, family in enumerate(FAMILIES.values()) for name in family.members}
_MARKERS = tuple(marker for _, marker in FAMILIES["Hilbert"].members.values())
OWN_COLOURS, _OWN_DASH = ("#B581B5", "#DAABD1"), (8, 1.5, 1, 1.5, 1, 1.5)  # of a user's curves

# Okabe and Ito's palette, Color Universal Design (2008), without its yellow, which is too pale for lines.
TURNS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STEPS, _LIGHTEST = "viridis", 0.82  # map of an ordered quantity, and the part of it that is used


def look(name: str) -> Look:
    """Return the look of a memory order, the same in every figure.

    Aged memory looks like the lattice, in whose order it was. A user's curve looks like none of the others.
    """
    name = checks.instance("name", name, str, "the name of an ordering")
    known = _LOOKS.get(LATTICE if name == AGED else name)
    if known is not None:
        return known
    number = sum(map(ord, name))
    return Look(OWN_COLOURS[number // len(_MARKERS) % 2], _MARKERS[number % len(_MARKERS)], _OWN_DASH)


def few(names: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """Choose the memory orders that are drawn: one of each family, as `FAMILIES` lists them, then others.

    Args:
        names: of memory orders.
        most: largest number of names.

    Returns:
        At most so many of the names, in their order; all of them if they are not more.
    """
    listed, first = list(_LOOKS), dict[int, str]()
    for name in sorted(names, key=lambda name: listed.index(name) if name in listed else len(listed)):
        first.setdefault(_FAMILY_OF.get(name, len(FAMILIES)), name)
    chosen = sorted(names, key=lambda name: (name not in first.values(), names.index(name)))[:most]
    return [name for name in names if name in chosen]


def lines(names: Sequence[str], column: str = "ordering") -> dict:
    """Return the options of a line for each memory order, the same in every panel.

    Args:
        names: of the orders.
        column: that holds them.

    Returns:
        Keys as of `seaborn.lineplot`: hue, hue_order, palette, style, style_order, markers, dashes.
    """
    return _lines(names, column, map(look, names))


def lines_in_turn(names: Sequence[str], column: str) -> dict:
    """Return options as `lines` does for names that are no orderings, by their place in the list."""
    return _lines(names, column, map(Look, cycle(TURNS), cycle(_MARKERS), repeat(())))


def steps_in_turn(names: Sequence[str], column: str) -> dict:
    """Return options as `lines` does for the values of an ordered quantity, from dark to light."""
    import matplotlib as mpl  # here, as in use

    shades = [mpl.colormaps[_STEPS](_LIGHTEST * k / max(1, len(names) - 1)) for k in range(len(names))]
    return _lines(names, column, map(Look, map(mpl.colors.to_hex, shades), cycle(_MARKERS), repeat(())))


def peers_in_turn(names: Sequence[str], column: str) -> dict:
    """Return options as `lines_in_turn` does for other codes: black and dashed, with different markers."""
    looks = map(Look, repeat("black"), cycle(_MARKERS[::-1]), repeat((4.0, 2.0)))
    return _lines(names, column, looks) | {"markersize": 7}


def _lines(names: Sequence[str], column: str, looks: Iterable[Look]) -> dict:
    of = dict(zip(names, looks, strict=False))  # looks in turn have no end
    return {
        "hue": column,
        "hue_order": list(names),
        "palette": {name: look.colour for name, look in of.items()},
        "style": column,
        "style_order": list(names),
        "markers": {name: look.marker for name, look in of.items()},
        "dashes": {name: look.dash or "" for name, look in of.items()},
    }
