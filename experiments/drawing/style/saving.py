"""Settings of matplotlib, and files of figures with a line on their origin.

A PNG has a palette of `COLOURS`, chosen by Pillow without dithering: it takes a third of the room, lines and
letters keep their edges, and similar shades merge. So a kept picture is the file that a run has.
"""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from experiments.drawing.style import labels
from experiments.drawing.style.clipped import mark_clipped
from experiments.drawing.style.looks import TURNS
from experiments.drawing.style.origin import UNKNOWN, Origin
from experiments.results import reliability
from md.checks import path as as_path
from md.io.atomic_write import write_atomically
from sfc import checks

if TYPE_CHECKING:
    import matplotlib.pyplot as plt
    import pandas as pd

SETTINGS: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 120,
    "savefig.dpi": 130,
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "figure.titlesize": 9,
    "legend.frameon": False,
}
COLOURS = 192  # of a PNG; a figure has a dozen and their shades
_FOOTER_SIZE, _LETTERS_AN_INCH = 6, 20  # points, and how many letters of that size
_TITLE_LETTERS_AN_INCH = 14
_LINE, _MARGIN = 1.3 * _FOOTER_SIZE / 72, 0.04  # inches
_WARNING_COLOUR, _ORIGIN_COLOUR = "#A00000", "#333333"

_warnings, _origin, _pdf = "", UNKNOWN, False


def use(warnings: str = "", origin: Origin = UNKNOWN, pdf: bool = False) -> None:
    """Set the style; `main` calls it before every `draw`.

    Args:
        warnings: a line under every figure from now on; empty for none.
        origin: of the table that is drawn: a second line under every figure, and in its metadata.
        pdf: whether every figure is written as PDF too.
    """
    import matplotlib as mpl  # here, because the imports take a second, which --help and workers save
    import seaborn as sns

    global _warnings, _origin, _pdf
    _warnings, _origin, _pdf = warnings, origin, pdf
    mpl.use("Agg")
    sns.set_theme(context="paper", style="ticks", palette=list(TURNS), font_scale=1.0)
    mpl.rcParams.update(SETTINGS)  # type: ignore[arg-type]  # the stubs want a type of all keys


def save(figure: plt.Figure, folder: Path, name: str, rows: pd.DataFrame | None = None) -> list[Path]:
    """Write a figure as PNG, and as PDF if `use` asked for it, with its lines and metadata, and close it.

    Intervals that leave a panel get an arrowhead at its frame.

    Args:
        figure: made after `use`.
        folder: of the files.
        name: of the files, without an ending.
        rows: of the table that the figure shows: of the sizes and the warnings in its lines only theirs
            remain, if they have columns of them. None for all rows.

    Returns:
        The paths: of the PNG, and of the PDF if there is one.

    Raises:
        TypeError: rows that are no table.
        ValueError: a name with a folder, as the table of a run could hold it.
        OSError: a file cannot be written; the error names the file.
    """
    import matplotlib.pyplot as plt
    from matplotlib.image import AxesImage

    folder = as_path("folder", folder)
    if Path(name).name != name:
        plt.close(figure)
        raise checks.refuse_value("name of a figure", name, "a name without a folder")
    paths = [folder / f"{name}.png", *([folder / f"{name}.pdf"] if _pdf else [])]
    try:
        _wrap_title(figure)
        mark_clipped(figure)
        add_footer(figure, rows)
        labels.settle(figure)
        write_figure(figure, paths[0], rows)
        if _pdf:
            figure.set_layout_engine("none")  # the second looks like the first
            for picture in figure.findobj(AxesImage):
                picture.set_interpolation("none")  # its pixels as they are: smoothed ones take more room
            write_figure(figure, paths[1], rows)
    finally:
        plt.close(figure)
    return paths


def _wrap_title(figure: plt.Figure) -> None:
    """Break the lines of a title that are wider than the figure."""
    wide, title = int(_TITLE_LETTERS_AN_INCH * figure.get_figwidth()), figure.get_suptitle()
    wrapped = "\n".join(part for line in title.splitlines() for part in _broken(line, wide))
    if wrapped != title:
        figure.suptitle(wrapped)


def _broken(line: str, wide: int) -> list[str]:
    """Break a line into as few as possible, each as short as that allows: no last line of one word."""
    parts = textwrap.wrap(line, wide, break_on_hyphens=False)
    for narrower in range(wide - 1, len(line) // max(1, len(parts)) - 1, -1):
        found = textwrap.wrap(line, max(1, narrower), break_on_hyphens=False)
        if len(found) > len(parts):
            break
        parts = found
    return parts


def _lines_of(rows: pd.DataFrame | None) -> tuple[str, Origin]:
    """Return warnings and origin of the rows of a figure: those of `use` as far as they concern them."""
    if rows is None:
        return _warnings, _origin
    own = reliability.footer(rows) if _warnings and "warning" in rows else _warnings
    return own, _origin.of_rows(rows)


def add_footer(figure: plt.Figure, rows: pd.DataFrame | None = None) -> None:
    """Add the lines of `use` below a figure, which grows by their height.

    Args:
        figure: to be saved.
        rows: that it shows, as for `save`.
    """
    wide = int(_LETTERS_AN_INCH * figure.get_figwidth())
    warnings, origin = _lines_of(rows)
    parts = [(warnings, _WARNING_COLOUR), (origin.text, _ORIGIN_COLOUR)]
    written = [(line, ink) for text, ink in parts for line in _broken(text, wide)]
    if not written:
        return
    before = figure.get_figheight()
    foot = _LINE * len(written) + _MARGIN
    after = before + foot
    engine = figure.get_layout_engine()
    figure.set_figheight(after)
    if engine is None:
        for panel in figure.axes:
            left, low, width, height = panel.get_position(original=True).bounds
            panel.set_position((left, (foot + low * before) / after, width, height * before / after))
    else:
        room: Any = engine  # the stubs do not know that of constrained layout
        room.set(rect=(0, foot / after, 1, before / after))
        for legend in figure.legends:  # those outside at the bottom stand above the lines
            if getattr(legend, "_outside_loc", None) == "lower":  # matplotlib has no public name for it
                legend.borderaxespad += 72 * foot / legend.prop.get_size_in_points()
    for number, (line, ink) in enumerate(reversed(written)):
        low = (_MARGIN / 2 + number * _LINE) / after
        figure.text(
            0.01, low, line, fontsize=_FOOTER_SIZE, color=ink, ha="left", va="bottom", in_layout=False
        )


def write_figure(figure: plt.Figure, path: Path, rows: pd.DataFrame | None = None) -> None:
    """Write a figure to a file atomically, with the origin of `use` in its metadata.

    Args:
        figure: remains open.
        path: of the file, PNG or PDF; its ending sets the format.
        rows: that the figure shows, as for `save`.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    path = as_path("path", path)
    about = _lines_of(rows)[1].metadata(path)

    def write(file: IO[bytes]) -> None:
        if path.suffix == ".png":
            _write_png(figure, file, about)
        else:
            figure.savefig(file, format=path.suffix[1:], metadata=about)

    write_atomically(path, write)


def _write_png(figure: plt.Figure, file: IO[bytes], about: dict[str, Any]) -> None:
    """Write a figure with few colours; one that is transparent keeps all of its colours."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata=about, pil_kwargs={"compress_level": 1})
    with Image.open(drawn) as picture:
        found: Image.Image = picture
        if picture.getchannel("A").getextrema() == (255, 255):
            found = picture.convert("RGB").quantize(
                COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
            )
        texts = PngInfo()
        for name, text in getattr(picture, "text", {}).items():
            texts.add_itxt(name, text)
        found.save(file, "PNG", optimize=True, dpi=picture.info["dpi"], pnginfo=texts)
