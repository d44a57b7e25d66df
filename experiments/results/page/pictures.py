"""Pictures of kept runs for the page: made small, and held in it."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from sfc import checks

WIDEST, QUALITY, EFFORT = 1200, 82, 2  # pixels; of WebP: a higher effort saves 3 % of bytes in twice the time
FORMAT = "webp"


@dataclass(frozen=True)
class Picture:
    """Picture on the page.

    Args:
        path: of the file, as the page names it.
        data: as a URL that holds it.
        width: in pixels.
        height: in pixels.
    """

    path: str
    data: str
    width: int
    height: int


def embed(root: Path, path: str, shown: str = "results/reference") -> Picture:
    """Read a picture, shrink it to at most 1200 pixels in width, and encode it for the page.

    Args:
        root: folder of the runs.
        path: of the picture below it.
        shown: name of the folder on the page.

    Raises:
        ValueError: a file that is missing or no picture; the error names it.
    """
    file = root / checks.text("path", path)
    try:
        with Image.open(file) as picture:
            opaque = Image.new("RGB", picture.size, "white")
            coloured = picture.convert("RGBA")
            opaque.paste(coloured, mask=coloured.getchannel("A"))
    except OSError as error:
        raise ValueError(
            f"picture {file} cannot be read: {error}; allowed: a picture of a kept run; draw it again with "
            "--replot, or change sections.py"
        ) from error
    if opaque.width > WIDEST:
        opaque = opaque.resize(
            (WIDEST, round(opaque.height * WIDEST / opaque.width)), Image.Resampling.LANCZOS
        )
    made = io.BytesIO()
    opaque.save(made, FORMAT, quality=QUALITY, method=EFFORT)
    data = base64.b64encode(made.getvalue()).decode()
    return Picture(f"{shown}/{path}", f"data:image/{FORMAT};base64,{data}", opaque.width, opaque.height)
