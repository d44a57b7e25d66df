"""A film holds the pictures that were shown, each in its turn."""

import subprocess

import matplotlib.pyplot as plt
import numpy as np
import pytest

from experiments.drawing import style
from experiments.drawing.discs import Discs
from experiments.drawing.film import film

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="films need the extra video")

SHADES = (0.0, 0.5, 1.0)


@pytest.fixture
def figure():
    style.use()
    return plt.subplots(figsize=(1.01, 0.83), dpi=100, layout="none")


def frames(path, height: int, width: int) -> np.ndarray:
    """The frames of a film: (frames, height, width, 3)."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(decoded, np.uint8).reshape(-1, height, width, 3)


def test_every_picture_is_in_it(figure, tmp_path):
    drawn, panel = figure
    panel.set_position((0, 0, 1, 1))
    panel.axis("off")

    def pictures():
        for shade in SHADES:
            drawn.set_facecolor(str(shade))
            yield

    shown = frames(film(drawn, pictures(), tmp_path / "shades.mp4", rate=5), 82, 100)
    assert len(shown) == len(SHADES)
    assert np.allclose([frame.mean() for frame in shown], 255 * np.array(SHADES), atol=6)
    assert [path.name for path in tmp_path.iterdir()] == ["shades.mp4"]


@pytest.mark.parametrize("shown", [0, 1])
def test_one_that_fails_leaves_nothing(figure, tmp_path, shown):
    def pictures():
        yield from range(shown)
        if shown:
            raise KeyError("no more")

    with pytest.raises(KeyError if shown else ValueError, match=r"no more|no pictures"):
        film(figure[0], pictures(), tmp_path / "none.mp4")
    assert not list(tmp_path.iterdir())


def test_a_disc_over_a_side_is_drawn_at_both(figure):
    discs = Discs(figure[1], length=10.0, height=5.0, fastest=2.0, swing=1.0)
    x, z, radius, speed = np.array([[0.2, 5.0, 9.9], [1.0, 2.0, 3.0], [0.5, 0.5, 0.3], [0.0, 1.0, 2.0]])
    discs.show(x, z, radius, speed, lift=0.5)
    (drawn,) = figure[1].collections
    assert sorted(map(tuple, drawn.get_offsets().round(9).tolist())) == [
        (-0.1, 3.5),
        (0.2, 1.5),
        (5.0, 2.5),
        (9.9, 3.5),
        (10.2, 1.5),
    ]
    assert [line.get_ydata()[0] for line in figure[1].lines] == [0.5, 5.5]
    discs.show(x[:1], z[:1], np.array([0.1]), speed[:1])
    (drawn,) = figure[1].collections
    assert drawn.get_offsets().tolist() == [[0.2, 1.0]]
