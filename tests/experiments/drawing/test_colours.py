"""The colours of families of orders are far apart, for normal and for colour-blind readers."""

import itertools

import numpy as np
import pytest

from experiments.drawing.style.looks import FAMILIES, OWN_COLOURS

pytestmark = pytest.mark.quick

# Machado, Oliveira and Fernandes (2009), A Physiologically-based Model for Simulation of Color Vision
# Deficiency, severity 1.0: applied to linear red, green and blue.
VISION = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
TO_XYZ = np.array(  # IEC 61966-2-1, with the white of D65
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = TO_XYZ.sum(axis=1)
BETWEEN, WITHIN, STEP = 17.0, 12.0, 3.0  # CIELAB: of families, in a small family, of two of Hilbert's kin
PALEST = 82.0  # lightness that is still seen on white
DARK = 30.0  # lightness of a baseline
HUES = {family: [ink for ink, _ in of.members.values()] for family, of in FAMILIES.items()}
HUES["own"] = list(OWN_COLOURS)


def linear(ink: str) -> np.ndarray:
    """Red, green and blue of a colour of the web, in proportion to light."""
    values = np.array([int(ink[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(ink: str, vision: str = "normal") -> np.ndarray:
    """CIELAB of a colour: lightness, red over green, yellow over blue."""
    x = TO_XYZ @ np.clip(VISION[vision] @ linear(ink), 0, 1) / WHITE
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, vision: str) -> float:
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def test_the_simulation_leaves_white_and_mixes_red_with_green():
    for vision in VISION:
        assert lab("#FFFFFF", vision) == pytest.approx([100, 0, 0], abs=0.01)
    assert distance("#C00000", "#007A00", "normal") > 100
    assert distance("#C00000", "#007A00", "deuteranopia") < 25


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(HUES, 2)))
def test_colours_of_two_families_are_far_apart(one, other, vision):
    nearest = min((distance(a, b, vision), a, b) for a, b in itertools.product(HUES[one], HUES[other]))
    assert nearest[0] >= BETWEEN, nearest


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("family", HUES)
def test_colours_of_a_family_differ(family, vision):
    least = STEP if family == "Hilbert" else WITHIN
    for one, other in itertools.combinations(HUES[family], 2):
        assert distance(one, other, vision) >= least, (one, other)


def test_hilbert_s_kin_has_one_hue_in_steps_of_lightness():
    found = np.array([lab(ink) for ink in HUES["Hilbert"]])
    hue = np.degrees(np.arctan2(found[:, 2], found[:, 1]))
    assert np.ptp(hue) < 25
    assert np.diff(np.sort(found[:, 0])).min() >= STEP


@pytest.mark.parametrize("family", HUES)
def test_colours_are_seen_on_white_and_none_is_grey(family):
    for ink in HUES[family]:
        lightness, red, yellow = lab(ink)
        assert lightness < PALEST
        assert np.hypot(red, yellow) > 15 or lightness < DARK, ink


def test_baselines_are_dark():
    assert all(lab(ink)[0] < DARK for ink in HUES["baselines"])
