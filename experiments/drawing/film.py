"""Films: figures that change, written as MP4 (H.264), which browsers and slides play.

The encoder comes with imageio-ffmpeg, the extra `video`. Without it there is no film, and a word why.
"""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.animation import FFMpegWriter

from md.checks import path as as_path
from sfc import checks

WITHOUT = "no film without imageio-ffmpeg; in the checkout: pip install -e '.[video]', then --replot this run"
_QUALITY = ["-crf", "20"]  # of the encoder's own scale: hardly to be told from the figure


def can_film() -> bool:
    """Whether the encoder is there."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        return False
    return True


def film(figure: plt.Figure, pictures: Iterable, path: Path, rate: float = 25.0) -> Path:
    """Write a figure as a film and close it.

    Args:
        figure: what is filmed. Its size in pixels is made even.
        pictures: whatever, one for each picture; the figure is taken once it has been asked for.
        path: of the film, ending in .mp4; it stands there once it is whole.
        rate: pictures a second.

    Returns:
        The path.

    Raises:
        TypeError: a rate that is no number.
        ValueError: there are no pictures, or a rate that is not above 0.
        ImportError: the extra `video` is not installed.
        OSError: the film cannot be written; tells the file.
    """
    import imageio_ffmpeg

    rate = checks.number("rate", rate, above=0, unit="pictures a second")
    path, shown = as_path("path", path), 0
    writer = FFMpegWriter(fps=rate, codec="h264", extra_args=_QUALITY)
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
    except subprocess.CalledProcessError as error:  # the encoder found no room, say
        raise OSError(errno.EIO, f"the encoder ended with status {error.returncode}", str(path)) from error
    finally:
        plt.close(figure)
    return path
