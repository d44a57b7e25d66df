"""Pictures of domains: borders, and colours of neighbours."""

import matplotlib.pyplot as plt
import numpy as np

from experiments.drawing.domains import COLOURS, borders, colours_of, draw_domains


def test_borders_are_the_edges_between_ranks():
    assert borders(np.array([[0, 0], [0, 1]])) == [[(1, 1), (1, 2)], [(1, 1), (2, 1)]]
    assert borders(np.zeros((3, 4), int)) == []


def test_neighbours_have_different_colours():
    owner = np.add.outer(np.arange(12) // 3 * 4, np.arange(12) // 3)
    found = colours_of(owner)
    assert len(found) == 16
    assert found.min() >= 0
    for one, other in ((owner[1:], owner[:-1]), (owner[:, 1:], owner[:, :-1])):
        apart = one != other
        assert (found[one[apart]] != found[other[apart]]).all()


def test_more_neighbours_than_colours_share_some():
    owner = np.repeat(np.arange(2 * len(COLOURS)), 3).reshape(-1, 3)
    assert set(colours_of(owner)) <= set(range(len(COLOURS)))


def test_each_layer_has_a_panel_in_its_line_and_column():
    layers = {
        "uniform": {"row": ([[0, 1], [2, 3]], "halo 1"), "bricks": ([[0, 0]], "halo 2")},
        "gravity": {"bricks": ([[1]], "halo 3")},
    }
    figure = draw_domains(layers, "domains")
    found = [(panel.get_title(), panel.get_ylabel(), panel.get_xlabel()) for panel in figure.axes]
    assert found == [
        ("row", "uniform", "halo 1"), ("bricks", "", "halo 2"), ("", "gravity", ""), ("", "", "halo 3")
    ]  # fmt: skip
    plt.close(figure)
