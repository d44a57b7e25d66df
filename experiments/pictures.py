"""What does a reorder do? A small gas, the curve through its cells, and its memory before and after.

These are figures 2.3, 2.4, 3.1 and 3.2 of [thesis], drawn from a run: discs between walls start in the memory
order of the lattice, move for some steps while their slots stay, and are then reordered along a curve. A row
is a particle: its place, its cell, the index of the cell along the curve (`key`), its slot before and after,
and the particles that it touches. A contact is drawn as an arc between two slots.

The force on a particle reads all particles of its own and the adjacent cells. Memory is divided into blocks
of `block` slots. As in the block model of `sfc.cache`, a read hits if both particles lie in one block: the
block is in the cache, all other memory is not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import EllipseCollection, LineCollection, PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke

import md
import sfc
from experiments.core import Axis, Settings, figures, main, style
from experiments.core.terminal import SMALL_SYSTEM
from experiments.results.answers import Answer, percent, rounded
from experiments.results.charts import Table

RESTITUTION = 1.0  # an elastic gas, so that it does not freeze
CONTACT_TIME, STEPS_A_CONTACT = 0.2, 20  # soft discs: several touch at any time
TEMPERATURE = 1.0
WHEN = ("before", "after")
_CASE = ["ordering", "repeat"]
MAP = "viridis"
_HIT, _MISS, _CURVE = "#0072B2", "#D55E00", "#D55E00"  # Okabe and Ito (2008)
_OWN, _REST, _EDGE = "0.15", "0.93", "0.25"
_RISE = 0.5  # of an arc over the distance of its slots
_FONT, _SMALL = 14, 12  # points; a figure is 8 inches wide


@dataclass(frozen=True)
class Config(Settings):
    """Gases and curves to be drawn."""

    ordering: Axis[str] = ("hilbert",)
    """Memory orders after the reorder: any 2D ordering of `sfc`."""
    side: int = 8
    """Cells a side, each of 1 d."""
    filling_fraction: float = 0.6
    """Area of the discs over that of the box."""
    steps: int = 5000
    """Steps before the reorder, in which the particles move and their slots stay."""
    block: int = 8
    """Slots of a block of memory that is in the cache at once."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"ordering": sfc.orderings(2)})
        self.check("filling_fraction", low=0.2, high=0.7, remedy="few discs do not touch, many do not move")
        self.check_least({"steps": 0, "block": 1})
        self.check("side", low=4, high=32, remedy="more cells cannot be told apart in a picture")


QUICK = {"steps": 500}
MINUTES = 0.5  # measured


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each particle, in the order of memory before the reorder."""
    box = md.Box((case.side, case.side), periodic=(False, False))
    state = md.preparation.granular_gas(
        case.filling_fraction, box, TEMPERATURE, case.seed, "lattice", backend=case.backend
    )
    sim = md.Simulation(
        state, md.laws.SpringDashpot.from_restitution(RESTITUTION, CONTACT_TIME), search="linked",
        dt=CONTACT_TIME / STEPS_A_CONTACT, walls=md.Walls(restitution=RESTITUTION),
        reorder=md.Reorder(case.ordering, md.Never()), backend=case.backend, precision="float64",
    )  # fmt: skip
    sim.run(case.steps, phases=False)
    before, pairs = sim.state, sim.pairs()
    sim.reorder()
    after = np.argsort(sim.state.id)
    cells = before.pos.astype(np.int64)
    keys = sfc.covering(case.ordering, (case.side, case.side)).rank(cells)
    for slot, particle in enumerate(before.id):
        yield {
            "particle": int(particle),
            "x_d": before.pos[slot, 0],
            "y_d": before.pos[slot, 1],
            "cell_x": int(cells[slot, 0]),
            "cell_y": int(cells[slot, 1]),
            "cells_a_side": case.side,
            "key": int(keys[slot]),
            "slot_before": slot,
            "slot_after": int(after[particle]),
            "touches": " ".join(str(other) for other in pairs[pairs[:, 0] == particle, 1]),
            "block_slots": case.block,
            "steps": case.steps,
        }


def contacts_of(rows: pd.DataFrame) -> pd.DataFrame:
    """List the contacts of a gas and how far apart their slots are.

    Args:
        rows: of one case.

    Returns:
        A row for each pair: the columns of the case, `particle`, `other`, and their `distance_before` and
        `distance_after`, in slots.
    """
    named = rows.assign(other=rows["touches"].fillna("").str.split()).explode("other").dropna(subset="other")
    pairs = named[[*_CASE, "particle", "other"]].astype({"other": np.int64}).reset_index(drop=True)
    for when in WHEN:
        pairs[f"distance_{when}"] = np.abs(np.diff(_slots_of(rows, pairs, when), axis=1)).ravel()
    return pairs


def _slots_of(rows: pd.DataFrame, pairs: pd.DataFrame, when: str) -> np.ndarray:
    """Return the slots of both particles of each contact: (p, 2)."""
    slots = rows.set_index("particle")[f"slot_{when}"]
    return np.column_stack([slots[pairs[name]].to_numpy() for name in ("particle", "other")])


def reads_of(rows: pd.DataFrame, when: str) -> np.ndarray:
    """List the reads of the force kernel: every particle of the same cell and of the adjacent ones.

    Args:
        rows: of one case.
        when: "before" or "after" the reorder.

    Returns:
        (r, 2) slots: that of the reader, and that of the particle read.
    """
    cells = rows[["cell_x", "cell_y"]].to_numpy()
    near = (np.abs(cells[:, None] - cells) <= 1).all(axis=2)
    np.fill_diagonal(near, False)
    return rows[f"slot_{when}"].to_numpy()[np.argwhere(near)]


def hits_of(reads: np.ndarray, block: int) -> np.ndarray:
    """Return whether each read stays in the block of its reader.

    Args:
        reads: (r, 2) slots.
        block: slots of a block.
    """
    return reads[:, 0] // block == reads[:, 1] // block


def _draw(table: pd.DataFrame, out: Path) -> None:
    """Draw memory and reads of the first gas of each order, before and after."""
    first = table[table["repeat"] == 0]
    for key, rows in first.groupby(["ordering"], sort=False):
        for name, picture in (("memory", _memory), ("reads", _reads)):
            style.save(picture(rows), out, figures.file_name(name, first, ["ordering"], key))


def _contacts(table: pd.DataFrame) -> pd.DataFrame:
    pairs = [contacts_of(rows) for _, rows in table.groupby(_CASE, sort=False)]
    return pd.concat(pairs, ignore_index=True)


def _summaries(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame([_summary(rows) for _, rows in table.groupby(_CASE, sort=False)])


def _summary(rows: pd.DataFrame) -> dict:
    """Return the distances in memory between contacts, and the hits, of one case."""
    pairs, block = contacts_of(rows), int(rows["block_slots"].iloc[0])
    found = rows[[*_CASE, "block_slots", "steps"]].iloc[0].to_dict()
    found |= {"particles": len(rows), "contacts": len(pairs)}
    for when in WHEN:
        found[f"median_distance_{when}"] = pairs[f"distance_{when}"].median()
        found[f"hit_ratio_{when}"] = float(hits_of(reads_of(rows, when), block).mean())
    return found


def _memory(rows: pd.DataFrame) -> plt.Figure:
    """Draw the gas, the curve, the way through memory and the contacts, before and after."""
    pairs, side = contacts_of(rows), int(rows["cells_a_side"].iloc[0])
    figure, panels = _panels(rows, pairs[["distance_before", "distance_after"]].to_numpy().max(initial=0))
    path = sfc.covering(rows["ordering"].iloc[0], (side, side)).traversal() + 0.5
    for when, (gas, strip) in zip(WHEN, panels, strict=True):
        inside = rows.sort_values(f"slot_{when}")
        pos = inside[["x_d", "y_d"]].to_numpy()
        colours = plt.get_cmap(MAP)(inside["key"].to_numpy() / (side**2 - 1))
        _discs(gas, pos, colours)
        _way(gas, path, color=_CURVE, width=2.5, label="curve through the cells")
        _way(gas, pos, color="black", width=1.6, label="order of memory")
        _slots(strip, colours, _thickness(rows))
        _arcs(strip, _slots_of(rows, pairs, when), 0, _RISE, _OWN)
        apart = f"contacts {pairs[f'distance_{when}'].median():g} slots apart (median)"
        strip.set_xlabel(f"memory: {apart if len(pairs) else 'no contacts'}", fontsize=_SMALL)
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=_SMALL
    )
    return figure


def _reads(rows: pd.DataFrame) -> plt.Figure:
    """Draw what one block of memory reads for its forces, before and after."""
    block, slots = int(rows["block_slots"].iloc[0]), np.arange(len(rows))
    chosen = len(rows) // block // 2
    reads = {when: reads_of(rows, when) for when in WHEN}
    reads = {when: pairs[pairs[:, 0] // block == chosen] for when, pairs in reads.items()}
    farthest = max(int(np.ptp(pairs, axis=1).max(initial=0)) for pairs in reads.values())
    figure, panels = _panels(rows, farthest, block)
    looks = {"block in the cache": _HIT, "read from global memory": _MISS, "not read": _REST}
    in_cache, outside, unread = (to_rgba(colour) for colour in looks.values())
    for when, (gas, strip) in zip(WHEN, panels, strict=True):
        inside = rows.sort_values(f"slot_{when}")
        hits = hits_of(reads[when], block)
        own, missed = slots // block == chosen, np.isin(slots, reads[when][~hits, 1])
        colours = np.select([own[:, None], missed[:, None]], [in_cache, outside], unread)
        pos = inside[["x_d", "y_d"]].to_numpy()
        _discs(gas, pos, colours)
        gas.plot(*pos[own].T, linestyle="", marker="o", color="white", markersize=4, zorder=4)
        _slots(strip, colours, _thickness(rows))
        _arcs(strip, reads[when][~hits], 0, _RISE, _MISS)
        _arcs(strip, reads[when][hits], -_thickness(rows), -_RISE, _HIT)
        strip.set_xlabel(f"memory: {hits.sum()} of {len(hits)} reads in the cache", fontsize=_SMALL)
    marks = [Patch(facecolor=colour, edgecolor=_OWN, label=label) for label, colour in looks.items()]
    figure.legend(handles=marks, loc="outside upper center", ncols=3, fontsize=_SMALL)
    return figure


def _panels(
    rows: pd.DataFrame, farthest: float, below: float = 0.0
) -> tuple[plt.Figure, list[tuple[plt.Axes, plt.Axes]]]:
    """Make a column for before and one for after, under its memory order: the box above, memory below.

    Args:
        rows: of one case.
        farthest: largest distance of an arc above the slots.
        below: largest distance of an arc below them.
    """
    figure, grid = plt.subplots(2, 2, figsize=(8, 6.2), height_ratios=(2.7, 1))
    side, n, first = int(rows["cells_a_side"].iloc[0]), len(rows), rows.iloc[0]
    grid[0, 0].set_title(f"before: order of {first['steps']:,} steps ago", fontsize=_FONT)
    grid[0, 1].set_title(f"after: reordered along {first['ordering']}", fontsize=_FONT)
    for gas, strip in grid.T:
        gas.set(xlim=(0, side), ylim=(0, side), aspect="equal", xticks=range(side), yticks=range(side))
        gas.tick_params(length=0, labelbottom=False, labelleft=False)
        gas.grid(color="0.85", linewidth=0.6)
        strip.set(xlim=(-0.2, n + 0.2), xticks=[], yticks=[])
        strip.set_ylim(-_thickness(rows) - _RISE * below - 0.3, _RISE * farthest + 0.5)
        gas.spines[:].set(visible=True, color="0.3")
        strip.spines[:].set_visible(False)
    return figure, [(gas, strip) for gas, strip in grid.T]


def _discs(panel: plt.Axes, pos: np.ndarray, colours: np.ndarray) -> None:
    """Draw discs of diameter 1 at their places (n, 2), each in its colour (n, 4)."""
    size = np.ones(len(pos))
    discs = EllipseCollection(
        size, size, np.zeros(len(pos)), units="xy", offsets=pos, offset_transform=panel.transData,
        facecolors=colours, edgecolors=_EDGE, linewidths=0.6, zorder=2,
    )  # fmt: skip
    panel.add_collection(discs)


def _way(panel: plt.Axes, points: np.ndarray, color: str, width: float, label: str) -> None:
    """Draw a line through points (n, 2) in their order; its white edge sets it off from any colour."""
    (line,) = panel.plot(*points.T, color=color, linewidth=width, label=label, zorder=3)
    line.set_path_effects([Stroke(linewidth=width + 1.4, foreground="white"), Normal()])


def _slots(panel: plt.Axes, colours: np.ndarray, thickness: float) -> None:
    """Draw slot k in its colour (n, 4) from k to k + 1, and from 0 down to minus the thickness."""
    slots = [Rectangle((k, -thickness), 1, thickness) for k in range(len(colours))]
    panel.add_collection(PatchCollection(slots, facecolors=colours, edgecolors=_EDGE, linewidths=0.4))


def _arcs(panel: plt.Axes, pairs: np.ndarray, base: float, rise: float, colour: str) -> None:
    """Draw half an ellipse on a base between the slots of each pair (p, 2); below 0 of `rise` it hangs."""
    angle = np.linspace(0, np.pi, 40)
    middle, reach = pairs.mean(axis=1)[:, None] + 0.5, np.abs(np.diff(pairs, axis=1)) / 2
    arcs = [middle - reach * np.cos(angle), base + 2 * rise * reach * np.sin(angle)]
    panel.add_collection(LineCollection(list(np.stack(arcs, axis=2)), colors=colour, linewidths=1.2))


def _thickness(rows: pd.DataFrame) -> float:
    """Return the thickness of a row of slots, in slots, so that it is as thick in any picture."""
    return 0.08 * len(rows)


VIEWS = (_draw, Table("contacts", _contacts), Table("summary", _summaries))


def answer(table: pd.DataFrame) -> Answer:
    """Say how near in memory the particles are that touch, and which reads hit, before and after."""
    found = _summaries(table[table["repeat"] == 0]).set_index("ordering")
    rows = found[["particles"]].assign(
        **{
            "slots between contacts": _change(found, "median_distance", rounded),
            "reads that hit": _change(found, "hit_ratio", percent),
        }
    )
    first = rows.iloc[0]
    sentence = (
        f"A reorder along {rows.index[0]} brings particles that touch from "
        f"{first['slots between contacts']} slots apart (median), and reads that hit a block of "
        f"{found['block_slots'].iloc[0]} slots from {first['reads that hit']}."
    )
    return Answer(rows, sentence)


def _change(found: pd.DataFrame, name: str, word: Callable[[float], str]) -> pd.Series:
    """Describe a column before and after the reorder."""
    ends = (found[f"{name}_{when}"].map(word) for when in WHEN)
    return next(ends) + " to " + next(ends)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=SMALL_SYSTEM, minutes=MINUTES)
