"""Colours of the charts: those of the figures, made readable on a light and on a dark page."""

from __future__ import annotations

from matplotlib.colors import to_hex, to_rgb
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path

from experiments.drawing import style
from sfc import checks

LIGHT, DARK = "#f3f5f7", "#1f242a"  # --panel of `page.css`, behind the charts
LEAST_CONTRAST = 3.05  # of graphics, WCAG 2.2, 1.4.11, with room for rounding
CIRCLE = "o"  # marker of matplotlib for which Vega has a shorter name than its path
COMMANDS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, 0 to 1 (WCAG 2.2).

    Args:
        colour: `#rrggbb`, or a name that matplotlib has.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def on_both_pages(colour: str) -> str:
    """Mix a colour with as little black or white as gives it enough contrast on both backgrounds.

    Args:
        colour: `#rrggbb`, or a name that matplotlib has.
    """
    for step in range(101):
        for end in (0.0, 1.0):
            share = step / 100
            red, green, blue = (c + share * (end - c) for c in to_rgb(colour))
            mixed = to_hex((red, green, blue))
            if min(contrast(mixed, LIGHT), contrast(mixed, DARK)) >= LEAST_CONTRAST:
                return mixed
    raise checks.refuse_value("colour", colour, f"a colour between {LIGHT} and {DARK}")


def shape(marker: str) -> str:
    """Return the shape of Vega for a marker of matplotlib: a path in a square from -1 to 1.

    Args:
        marker: such as `s`.
    """
    if marker == CIRCLE:
        return "circle"
    drawn = MarkerStyle(marker)
    found = []
    for numbers, code in drawn.get_path().transformed(drawn.get_transform()).iter_segments():
        points = (
            ""
            if code == Path.CLOSEPOLY
            else ",".join(f"{2 * x * (-1) ** k:.3g}" for k, x in enumerate(numbers))
        )
        found.append(COMMANDS[code] + points)  # y grows downwards on a page
    return "".join(found)


def of_orders(names: list[str]) -> tuple[list[str], list[str]]:
    """Return the colours and the shapes of orders, those that they have in the figures."""
    colours = [on_both_pages(style.look(name).colour) for name in names]
    return colours, [shape(style.look(name).marker) for name in names]


def in_turn(count: int) -> tuple[list[str], list[str]]:
    """Return colours and shapes for names that are no orders, by their place in a list."""
    look = style.lines_in_turn([str(k) for k in range(count)], "name")
    colours = [on_both_pages(colour) for colour in look["palette"].values()]
    return colours, [shape(marker) for marker in look["markers"].values()]
