"""Style of all figures: fit for print, safe for the colour-blind, one colour for each name."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from md.checks import path as as_path
from md.io.atomic_write import write_atomically
from sfc import checks

if TYPE_CHECKING:
    import matplotlib.pyplot as plt

# Okabe and Ito's palette, Color Universal Design (2008), without its yellow, which is too pale for lines.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# A name's place gives its colour and marker, so a new one goes to the end.
_KNOWN: tuple[str, ...] = ("hilbert", "morton", "row", "zigzag", "lattice", "shuffled", "random", "peano")
_KNOWN += ("butz", "compact", "gilbert", "gray", "moore", "pancake", "tiled")
_KNOWN += (
    "ar2w2",
    "betaomega",
    "harmonious",
    "haverkort_a26",
    "haverkort_f",
    "hindex",
    "meander",
    "skilling",
)
SETTINGS: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 120,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_FOOTER_SIZE, _LETTERS_AN_INCH = 7, 18  # points, and how many letters of that size
_PAIRS = len(_COLOURS) * len(_MARKERS)  # each place below has its own, as 7 and 8 share no divisor


_footer = ""


def use(footer: str = "") -> None:
    """Set the style; `main` calls it before every `draw`.

    Args:
        footer: a line under every figure from now on, such as warnings; empty for none.
    """
    import matplotlib as mpl  # here, because the imports take a second, which --help and workers save
    import seaborn as sns

    global _footer
    _footer = footer
    mpl.use("Agg")
    sns.set_theme(context="paper", style="ticks", palette=list(_COLOURS), font_scale=1.0)
    mpl.rcParams.update(SETTINGS)  # type: ignore[arg-type]  # the stubs want a type of all keys


def colour(name: str) -> str:
    """Return the colour of an ordering, the same in every figure."""
    return _COLOURS[_place(checks.instance("name", name, str, "the name of an ordering")) % len(_COLOURS)]


def marker(name: str) -> str:
    """Return the marker of an ordering, the same in every figure, so that colour is never the only sign."""
    return _MARKERS[_place(checks.instance("name", name, str, "the name of an ordering")) % len(_MARKERS)]


def lines(names: list[str], column: str = "ordering") -> dict:
    """Return the options of `seaborn.lineplot` for a line for each ordering, the same in every panel."""
    return _lines(names, column, [_place(name) for name in names])


def lines_in_turn(names: list[str], column: str) -> dict:
    """Return options as `lines` does for names that are no orderings, by their place in the list."""
    return _lines(names, column, range(len(names)))


def peers_in_turn(names: list[str], column: str) -> dict:
    """Return options as `lines_in_turn` does for other codes: black and dashed, with different markers."""
    look = _lines(names, column, range(len(_MARKERS) - 1, len(_MARKERS) - 1 - len(names), -1))
    return look | {
        "palette": dict.fromkeys(names, "black"),
        "dashes": dict.fromkeys(names, (4, 2)),
        "markersize": 9,
    }


def _lines(names: list[str], column: str, places: Iterable[int]) -> dict:
    looks = dict(zip(names, places, strict=True))
    return {
        "hue": column,
        "hue_order": names,
        "palette": {name: _COLOURS[place % len(_COLOURS)] for name, place in looks.items()},
        "style": column,
        "style_order": names,
        "markers": {name: _MARKERS[place % len(_MARKERS)] for name, place in looks.items()},
        "dashes": False,
    }


def _place(name: str) -> int:
    """Return a number below `_PAIRS`; a user's curve never gets that of a known name."""
    if name in _KNOWN:
        return _KNOWN.index(name)
    return len(_KNOWN) + sum(map(ord, name)) % (_PAIRS - len(_KNOWN))


def save(figure: plt.Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and PDF, with the footer of `use`, and close it.

    Returns:
        The two paths.

    Raises:
        OSError: a file cannot be written; the error names the file.
    """
    import matplotlib.pyplot as plt

    folder = as_path("folder", folder)
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    if _footer:
        wide = int(_LETTERS_AN_INCH * figure.get_figwidth())
        text = "\n".join(textwrap.wrap(_footer, wide))
        figure.supxlabel(text, x=0.01, ha="left", fontsize=_FOOTER_SIZE, color="#A00000")
    try:
        for path in paths:
            write_figure(figure, path)
            figure.set_layout_engine("none")  # the second looks like the first
    finally:
        plt.close(figure)
    return paths


def write_figure(figure: plt.Figure, path: Path) -> None:
    """Write a figure to a file atomically.

    Args:
        figure: remains open.
        path: of the file; its ending sets the format.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    path = as_path("path", path)
    write_atomically(path, lambda file: figure.savefig(file, format=path.suffix[1:]))
