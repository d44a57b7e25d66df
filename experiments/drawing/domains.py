"""Domains of ranks in a layer of cells, in few colours, neighbours in different ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap

# Okabe and Ito's palette, Color Universal Design (2008), black left out.
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")

Layer = tuple[
    Sequence[Sequence[int]], str
]  # rank that owns each cell, row after row, the lowest first; words


def draw_domains(layers: Mapping[str, Mapping[str, Layer]], title: str) -> plt.Figure:
    """Draw a panel for each layer of cells, with lines between domains.

    Args:
        layers: name of a line of panels -> name of a column of panels -> the layer.
        title: of the figure.
    """
    names = list(dict.fromkeys(name for line in layers.values() for name in line))
    size = (1.2 * len(names) + 0.6, 1.4 * len(layers) + 0.5)
    figure, grid = plt.subplots(len(layers), len(names), figsize=size, squeeze=False)
    for number, (panels, (line, of_line)) in enumerate(zip(grid, layers.items(), strict=True)):
        panels[0].set_ylabel(line)
        for panel, name in zip(panels, names, strict=True):
            panel.set(xticks=[], yticks=[])
            if number == 0:
                panel.set_title(name)
            if name in of_line:
                _draw_layer(panel, *of_line[name])
    figure.suptitle(title)
    return figure


def _draw_layer(panel: plt.Axes, owners: Sequence[Sequence[int]], words: str) -> None:
    """Draw one layer, with words below it."""
    owner = np.array(owners)
    panel.imshow(
        colours_of(owner)[owner], origin="lower", cmap=ListedColormap(COLOURS), vmin=-0.5,
        vmax=len(COLOURS) - 0.5, extent=(0, owner.shape[1], 0, owner.shape[0]), interpolation="nearest",
    )  # fmt: skip
    panel.add_collection(LineCollection(borders(owner), colors="black", linewidths=0.7))
    panel.set_xlabel(words, fontsize=7)


def borders(owner: np.ndarray) -> list[list[tuple[int, int]]]:
    """List the edges between cells of different ranks, as pairs of points (x, y).

    Args:
        owner: (ny, nx) ranks.
    """
    rows, columns = np.nonzero(owner[:, 1:] != owner[:, :-1])
    upright = [[(x + 1, y), (x + 1, y + 1)] for y, x in zip(rows.tolist(), columns.tolist(), strict=True)]
    rows, columns = np.nonzero(owner[1:] != owner[:-1])
    return upright + [
        [(x, y + 1), (x + 1, y + 1)] for y, x in zip(rows.tolist(), columns.tolist(), strict=True)
    ]


def colours_of(owner: np.ndarray) -> np.ndarray:
    """Choose the number of a colour for each rank: the first that no neighbour has, or else the rarest there.

    Args:
        owner: (ny, nx) ranks.

    Returns:
        (ranks,) integers below the number of `COLOURS`.
    """
    touching = np.zeros((owner.max() + 1,) * 2, int)
    for one, other in ((owner[:, 1:], owner[:, :-1]), (owner[1:], owner[:-1])):
        np.add.at(touching, (one.ravel(), other.ravel()), 1)
    touching += touching.T
    found = np.full(len(touching), -1)
    for rank in np.argsort(-(touching > 0).sum(axis=1), kind="stable"):
        near = found[np.flatnonzero(touching[rank])]
        used = np.bincount(near[near >= 0], minlength=len(COLOURS))
        found[rank] = np.argmin(used)
    return found
