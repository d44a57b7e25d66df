"""Write figures that change as films (MP4, H.264), which browsers and slides play.

The encoder is part of imageio-ffmpeg, the extra `video`. Without it a message replaces the film.
"""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.animation import FFMpegWriter

from md.checks import path as as_path
from sfc import checks

WITHOUT = "no film without imageio-ffmpeg; in the checkout: pip install -e '.[video]', then --replot this run"
_QUALITY = ["-crf", "20"]  # on the encoder's scale: no visible loss


def can_film() -> bool:
    """Return whether the encoder is installed."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        return False
    return True


def film_or_say(figure: plt.Figure, pictures: Iterable, path: Path, rate: float = 25.0) -> None:
    """Write a film as `film` does, or say that it cannot be written; the figure shows the last picture."""
    if can_film():
        film(figure, pictures, path, rate)
        return
    print(WITHOUT, file=sys.stderr)
    for _ in pictures:
        pass


def film(figure: plt.Figure, pictures: Iterable, path: Path, rate: float = 25.0) -> Path:
    """Write a film of a figure, and close the figure.

    Args:
        figure: the one to be filmed. Its size in pixels is made even.
        pictures: iterator that changes the figure; after each item a picture is taken.
        path: of the film, ending in .mp4; the file appears when it is complete.
        rate: pictures a second.

    Returns:
        The path.

    Raises:
        TypeError: a rate that is no number.
        ValueError: there are no pictures, or a rate that is not above 0.
        ImportError: the extra `video` is not installed.
        OSError: the film cannot be written; the error names the file.
    """
    import imageio_ffmpeg

    rate = checks.number("rate", rate, above=0, unit="pictures a second")
    path, shown = as_path("path", path), 0
    fps: Any = rate  # ffmpeg takes fractions
    writer = FFMpegWriter(fps=fps, codec="h264", extra_args=_QUALITY)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            partial = Path(folder) / path.name
            with (
                mpl.rc_context({"animation.ffmpeg_path": imageio_ffmpeg.get_ffmpeg_exe()}),
                writer.saving(figure, str(partial), dpi=figure.dpi),
            ):
                for _ in pictures:
                    writer.grab_frame()
                    shown += 1
            if not shown:
                raise ValueError(f"no pictures for {path}; give at least one")
            os.replace(partial, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    except subprocess.CalledProcessError as error:  # for example on a full disk
        raise OSError(errno.EIO, f"the encoder ended with status {error.returncode}", str(path)) from error
    finally:
        plt.close(figure)
    return path
