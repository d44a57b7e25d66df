"""Arrowheads where error bars leave the frame."""

import matplotlib.pyplot as plt
import pytest

from experiments.drawing.style.clipped import mark_clipped

pytestmark = pytest.mark.quick


def heads(panel) -> set:
    found = [line for line in panel.lines if line.get_label() == "_clipped"]
    return {(line.get_marker(), line.get_xdata()[0], line.get_ydata()[0]) for line in found}


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_bars_that_leave_the_frame_have_a_head_at_it_and_others_none(scale):
    figure, (upright, lying) = plt.subplots(2)
    upright.errorbar([2, 3, 4, 20], [5.0] * 4, yerr=[[1, 4.5, 4.5, 1], [1, 1, 9, 9]])
    upright.set(xscale=scale, yscale=scale, xlim=(1, 10), ylim=(2, 10))
    lying.errorbar([5.0] * 3, [2, 3, 20], xerr=[[4.5, 1, 4.5], [1, 9, 9]])
    lying.set(xlim=(2, 10), ylim=(10, 1))
    mark_clipped(figure)
    assert heads(upright) == {("v", 3, 2), ("v", 4, 2), ("^", 4, 10)}
    assert heads(lying) == {("<", 2, 2), (">", 10, 3)}
    assert (upright.get_xlim(), upright.get_ylim(), lying.get_ylim()) == ((1, 10), (2, 10), (10, 1))
    plt.close(figure)


def test_an_inverted_axis_has_its_heads_at_the_right_ends():
    figure, panel = plt.subplots()
    panel.errorbar([1], [5], yerr=[[9], [1]])
    panel.set(xlim=(0, 2), ylim=(10, 2))
    mark_clipped(figure)
    assert heads(panel) == {("^", 1, 2)}
    plt.close(figure)
