"""Draw a kept run without pixels, and record its figures, its tables and its answer."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.animation import MovieWriter
from matplotlib.figure import Figure

from experiments.drawing.style import saving
from tests.shown import figures
from tests.shown.arrays import node
from tests.shown.entries import PNG, output_of, replot

PICTURES = (".png", ".pdf", ".svg", ".jpg", ".mp4", ".gif")
_SIGN = b"recorded figure "


class NothingShownError(Exception):
    """A run that gives no figure and no answer, or a figure that was drawn past the record."""


class Caught:
    """Figures that were saved, by number; the files have the number instead of pixels."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._numbers: WeakKeyDictionary[Figure, int] = WeakKeyDictionary()

    def save(self, figure: Figure, target: Any, **options: Any) -> None:
        """Stand in for `Figure.savefig`; a PDF shows what was saved before it."""
        ending = str(options.get("format") or Path(str(target)).suffix[1:])
        if ending != "pdf" or figure not in self._numbers:
            self.add(figure, figures.record(figure))
        self.sign(target, self._numbers[figure])

    def add(self, figure: Figure, record: dict[str, Any]) -> int:
        """Keep a record, and return its number."""
        self.records.append(record)
        self._numbers[figure] = len(self.records) - 1
        return self._numbers[figure]

    @staticmethod
    def sign(target: Any, number: int) -> None:
        """Write the number of a record to a file, or to its path."""
        sign = _SIGN + str(number).encode()
        target.write(sign) if hasattr(target, "write") else Path(target).write_bytes(sign)

    def of_file(self, path: Path) -> dict[str, Any]:
        """Return the record of a file.

        Raises:
            NothingShownError: a file that no `savefig` wrote.
        """
        data = path.read_bytes()
        if not data.startswith(_SIGN):
            raise NothingShownError(f"{path} was not written by savefig; catch its writer in {__name__}")
        return self.records[int(data[len(_SIGN) :])]


@contextlib.contextmanager
def catching() -> Iterator[Caught]:
    """Catch every figure and film that is saved in the context."""
    caught = Caught()

    def setup(writer: Any, fig: Figure, outfile: Any, dpi: Any = None) -> None:
        writer.fig, writer.outfile, writer.shown = fig, outfile, []

    def grab_frame(writer: Any, **_: Any) -> None:
        writer.shown.append(figures.record(writer.fig))

    def finish(writer: Any) -> None:
        ends = {"first": writer.shown[0], "last": writer.shown[-1]} if writer.shown else {}
        sums = [hashlib.sha256(repr(picture).encode()).hexdigest()[:16] for picture in writer.shown]
        film = {"pictures": len(sums), **ends, "every": {"bytes": sums}}
        caught.sign(writer.outfile, caught.add(writer.fig, film))

    def png(figure: Figure, file: Any, about: dict) -> None:
        figure.savefig(file, format="png", metadata=about)  # there are no colours to be reduced

    with (
        mock.patch(PNG, png),
        mock.patch.object(Figure, "savefig", lambda figure, target, **of: caught.save(figure, target, **of)),
        mock.patch.object(saving, "_write_png", lambda figure, file, _: figure.savefig(file, format="png")),
        mock.patch.multiple(MovieWriter, setup=setup, grab_frame=grab_frame, finish=finish),
    ):
        yield caught


def record_run(run: Path) -> dict[str, Any]:
    """Draw a kept run again, and return the record of what it shows.

    Args:
        run: its folder, `<experiment>/<name>`.

    Raises:
        NothingShownError: no figure and no answer.
        ProgramFailedError: it cannot be drawn.
    """
    with tempfile.TemporaryDirectory() as folder, catching() as caught:
        out = Path(folder) / "out"
        out.mkdir()
        answer = without_paths(output_of(*replot(run, out)), folder)
        files = [path for path in sorted(out.rglob("*")) if path.is_file()]
        drawn = {}
        for path in files:
            name = path.relative_to(out).with_suffix("").as_posix()
            if path.suffix in PICTURES and (name not in drawn or path.suffix == ".png"):
                drawn[name] = caught.of_file(path)
        tables = {path.relative_to(out).as_posix(): table(path) for path in files if path.suffix == ".csv"}
        others = {
            path.relative_to(out).as_posix(): {"bytes": hashlib.sha256(path.read_bytes()).hexdigest()}
            for path in files
            if path.suffix not in (*PICTURES, ".csv")
        }
    if not drawn and not answer:
        raise NothingShownError(f"{run} gives no figure and no answer")
    return {
        "answer": answer,
        "files": [path.relative_to(out).as_posix() for path in files],
        "figures": drawn,
        "tables": tables,
        "others": others,
    }


def without_paths(text: str, folder: str) -> list[str]:
    """Return the lines of an answer without the one that names the folder of the figures."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if folder not in line and not re.match(r"figures: ", line)]


def table(path: Path) -> dict[str, Any]:
    """Return the hash of a table in CSV and its columns: numbers as arrays, others as words."""
    data = path.read_bytes()
    heading, *rows = csv.reader(io.StringIO(data.decode("utf-8")))
    columns = {}
    for number, name in enumerate(heading):
        cells = [row[number] for row in rows]
        try:
            columns[name] = node(np.array([float(cell) if cell else np.nan for cell in cells]))
        except ValueError:
            columns[name] = cells
    return {
        "bytes": hashlib.sha256(data).hexdigest(),
        "order": heading,
        "rows": len(rows),
        "columns": columns,
    }
