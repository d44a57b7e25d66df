"""Make the files of a kept run small without loss of data or of what a figure shows.

A table is written again with Zstandard, each column in the encoding of Parquet that takes the least room;
its values, types and metadata stay as they are. A picture with more colours than `COLOURS` is reduced to that
many by Pillow, without dithering: lines and letters keep their edges, and similar shades merge.
"""

import io
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from experiments.core.provenance import TABLE_CRC, read_provenance, write_provenance
from experiments.core.record import TABLE, read_table, write_bytes
from md.checks import path as as_path

COLOURS = 128  # of a picture; a figure has a dozen and their shades
LARGE_PICTURE = 8_000  # bytes from which a picture is reduced
LARGE_CSV = 100_000  # bytes from which a CSV is left out: table.parquet has its numbers
ENDINGS = (".png", ".csv")  # of what a kept run has beside table and provenance
FILM = ".mp4"


def shrink(folder: Path) -> int:
    """Shrink the table and the pictures of a run, and delete a CSV that is large.

    Args:
        folder: of the run.

    Returns:
        Number of bytes saved.

    Raises:
        UsageError: a table that is missing or damaged; nothing has been changed then.
        OSError: a file cannot be written; the error names the file.
    """
    folder = as_path("folder", folder)
    before = _bytes_in(folder)
    shrink_table(folder)
    for path in sorted(folder.glob("*.png")):
        if path.stat().st_size >= LARGE_PICTURE:
            shrink_picture(path)
    for path in folder.glob("*.csv"):
        if path.stat().st_size >= LARGE_CSV:
            path.unlink()
    return before - _bytes_in(folder)


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def shrink_table(folder: Path) -> None:
    """Write table.parquet in fewer bytes, and its new CRC-32 into the provenance; keep it if it is small.

    Args:
        folder: of the run.

    Raises:
        UsageError: a table that is missing or damaged.
        OSError: a file cannot be written; the error names the file.
    """
    folder = as_path("folder", folder)
    read_table(folder)  # checks the CRC-32
    before = (folder / TABLE).read_bytes()
    after = _compressed(pq.read_table(io.BytesIO(before)))
    replace_table(folder, after if len(after) < len(before) else before)


def replace_table(run: Path, data: bytes) -> None:
    """Replace the table of a run, and its CRC-32 in the provenance if that has one.

    The provenance allows the old and the new table while one replaces the other. So after a kill, or on a
    full disk, the run has one of the two, and the next call completes the change.

    Args:
        run: its folder.
        data: the new table, as Parquet.

    Raises:
        OSError: a file cannot be written; the error names the file, and the old or the new table is there.
    """
    path = as_path("run", run) / TABLE
    origin, old, new = read_provenance(run), zlib.crc32(path.read_bytes()), zlib.crc32(data)
    if TABLE_CRC not in origin:
        return write_bytes(path, data)
    if old != new:
        write_provenance(run, origin | {TABLE_CRC: [old, new]})
        write_bytes(path, data)
    if origin[TABLE_CRC] != new:
        write_provenance(run, origin | {TABLE_CRC: new})
    return None


def _compressed(table: pa.Table) -> bytes:
    """Return the table as Parquet, each column by a dictionary, by streams of bytes, or plain."""
    by_dictionary, by_streams = [], []
    for name in table.column_names:
        column = table.select([name])
        sizes = {"dictionary": len(_parquet(column)), "plain": len(_parquet(column, use_dictionary=False))}
        if pa.types.is_floating(column.schema[0].type):
            streams = _parquet(column, use_dictionary=False, use_byte_stream_split=True)
            sizes["streams"] = len(streams)
        best = min(sizes, key=lambda encoding: sizes[encoding])
        by_dictionary += [name] if best == "dictionary" else []
        by_streams += [name] if best == "streams" else []
    return _parquet(table, use_dictionary=by_dictionary, use_byte_stream_split=by_streams)


def _parquet(table: pa.Table, **options: bool | list[str]) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", compression_level=19, write_page_checksum=True, **options)
    return file.getvalue()


def shrink_picture(path: Path) -> None:
    """Reduce the colours of a PNG; keep it if it has few, if it is transparent, or if that saves nothing.

    Args:
        path: of the file.

    Raises:
        OSError: it is no picture, or cannot be written; the error names the file.
    """
    path, reduced = as_path("path", path), io.BytesIO()
    with Image.open(path) as picture:
        opaque, alpha = picture.convert("RGB"), picture.convert("RGBA").getchannel("A")
        if alpha.tobytes().strip(b"\xff") or opaque.getcolors(COLOURS) is not None:
            return
        few = opaque.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        about = PngInfo()
        for name, value in getattr(picture, "text", {}).items():
            about.add_itxt(name, value)
        few.save(reduced, "PNG", optimize=True, dpi=picture.info.get("dpi", (72, 72)), pnginfo=about)
    if len(reduced.getvalue()) < path.stat().st_size:
        write_bytes(path, reduced.getvalue())
