"""Stacked bars of phases: each share is written in its bar, or beside the bars where it is wider."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from experiments.drawing.phases import stacked_phases

pytestmark = pytest.mark.quick


def test_shares_are_in_their_bars_or_beside_them():
    ms = {
        "long": {"force": 60.0, "build": 39.0, "integrate": 1.0},
        "short": {"force": 7.0, "build": 1.5, "integrate": 1.5},
    }
    rows = [
        {"ordering": name, "part": part, "centre": time, "low": time, "high": time}
        for name, parts in ms.items()
        for part, time in (parts | {"total": sum(parts.values())}).items()
    ]
    figure = stacked_phases(pd.DataFrame(rows), {"long": "a", "short": "b"}, "title")
    (panel,) = figure.axes
    texts = {text.get_text(): text for text in panel.texts}
    assert set(texts) == {"60%", "39%", "70%", "build 15%, integrate 15%"}  # no room beside the long bar
    beside = texts["build 15%, integrate 15%"]
    assert beside.xy == (10.0, 1)
    assert beside.get_window_extent().x1 < panel.get_window_extent().x1
    plt.close(figure)
