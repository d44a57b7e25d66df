"""Pictures of a 2D grammar's replacement of symbols: boxes with letters, rotated with the turtle.

Along the turtle's path a symbol is drawn as a box, a step as a stroke and a turn as a bent arrow. After
Fig. 4.4 of [thesis].
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, Polygon, Rectangle
from matplotlib.transforms import Affine2D

from sfc.automaton.lsystem import FORWARD, TURNS

_FILLS = ("#CFE3F2", "#FBE0CC", "#CDEBDF", "#F3E0EB", "#FBEBC8", "#DDF0FB")
_INKS = ("#00517F", "#9C4500", "#00674B", "#8C4A6F", "#8A5F00", "#2A6E94")
_TURN = "#B3123F"
_HEADS = ("rule", "boxes replaced by their patterns", "boxes removed")


class Box(NamedTuple):
    """Place of a symbol on the turtle's path.

    Attributes:
        symbol: the letter.
        place: (2,) cell.
        heading: (2,) unit vector.
    """

    symbol: str
    place: np.ndarray
    heading: np.ndarray

    @property
    def degrees(self) -> float:
        """Return the angle of the heading from the x axis: 0, 90, 180 or 270 degrees."""
        return float(np.degrees(np.arctan2(self.heading[1], self.heading[0])) % 360)


class Turn(NamedTuple):
    """Place of a turn on the turtle's path.

    Attributes:
        place: (2,) cell.
        before: (2,) heading before the turn.
        after: (2,) heading after it.
        towards: (2,) direction in which the step of this turn lies, from the cell.
    """

    place: np.ndarray
    before: np.ndarray
    after: np.ndarray
    towards: np.ndarray


def read(text: str, symbols: Iterable[str]) -> tuple[list[Box], list[Turn]]:
    """Follow the turtle along a pattern.

    Args:
        text: symbols and turtle commands of the plane.
        symbols: the letters that stand for boxes.

    Returns:
        The boxes in the order met, moved so that the least coordinates are 0, and the turns.
    """
    frame, place = np.eye(2, dtype=int), np.zeros(2, int)
    boxes, turns, arrived = [], [], -frame[:, 0]
    waiting: list[
        tuple[np.ndarray, np.ndarray]
    ] = []  # turns since the last step: on which side of the cell they lie, the next step decides
    for character in text:
        if character in symbols:
            turns += [Turn(place, before, after, arrived) for before, after in waiting]
            waiting = []
            boxes.append(Box(character, place, frame[:, 0]))
        elif character in FORWARD:
            turns += [Turn(place, before, after, frame[:, 0]) for before, after in waiting]
            waiting, arrived = [], -frame[:, 0]
            place = place + frame[:, 0]
        else:
            turned = frame @ TURNS[2][character]
            waiting.append((frame[:, 0], turned[:, 0]))
            frame = turned
    turns += [Turn(place, before, after, frame[:, 0]) for before, after in waiting]
    least = np.min([box.place for box in boxes], axis=0)
    boxes = [box._replace(place=box.place - least) for box in boxes]
    return boxes, [turn._replace(place=turn.place - least) for turn in turns]


def replaced(text: str, rules: Mapping[str, str]) -> str:
    """Rewrite every symbol of a pattern once."""
    return "".join(rules.get(character, character) for character in text)


def draw_grammar(name: str, axiom: str, rules: Mapping[str, str]) -> plt.Figure:
    """Draw each rule with its boxes, the rule refined once more, and the path without the boxes.

    Args:
        name: of the curve.
        axiom: its first pattern; drawn in a row of its own if it is no symbol.
        rules: pattern of each symbol.

    Returns:
        A figure with three panels to a row.
    """
    rows = dict(rules) if axiom in rules else {"axiom": axiom, **rules}
    figure, panels = plt.subplots(len(rows), 3, figsize=(9, 3.0 * len(rows) + 0.7), squeeze=False)
    inks = {symbol: i % len(_INKS) for i, symbol in enumerate(rules)}
    for line, (symbol, text) in zip(panels, rows.items(), strict=True):
        boxes, turns = read(text, rules)
        fine, _ = read(replaced(text, rules), rules)
        base, side = (int(np.max([box.place for box in some])) + 1 for some in (boxes, fine))
        _draw_rule(line[0], boxes, turns, inks, points=34 / base)
        for panel in line[1:]:
            _draw_outlines(panel, boxes, side // base)
        _draw_steps(line[1], fine, "0.35", 6.4 / side)
        _draw_boxes(line[1], fine, inks, half=0.33, points=max(44 / side, 4))
        _draw_steps(line[2], boxes, "0.88", 9, scale=side // base)
        _draw_steps(line[2], fine, _INKS[0], 2.4)
        for panel, cells in zip(line, (base, side, side), strict=True):
            around = (-0.03 * cells, 1.03 * cells)
            panel.set(xlim=around, ylim=around, aspect="equal", xticks=[], yticks=[], frame_on=False)
        label = "\n".join(re.findall(".{1,30}", f"{symbol} → {text}"))
        line[0].set_ylabel(label, fontsize=9, family="monospace", labelpad=8)
    for panel, head in zip(panels[0], _HEADS, strict=True):
        panel.set_title(head, fontsize=9)
    figure.suptitle(
        f"{name}: replacement of symbols\n"
        "(triangle: heading of the turtle at the symbol; red: its turns; number: place along the curve)",
        fontsize=9,
    )
    return figure


def _draw_rule(panel: plt.Axes, boxes: list[Box], turns: list[Turn], inks: dict, points: float) -> None:
    half = 0.26
    _draw_steps(panel, boxes, "0.35", 3.2)
    _draw_boxes(panel, boxes, inks, half, points)
    for turn in turns:
        _draw_turn(panel, turn)
    for number, box in enumerate(boxes, 1):
        corner = box.place + 0.5 + np.array([-half - 0.05, half + 0.05])
        panel.text(corner[0], corner[1], f"{number}", fontsize=6.5, color="0.4", ha="center", va="center")


def _draw_steps(panel: plt.Axes, boxes: list[Box], colour: str, width: float, scale: int = 1) -> None:
    path = (np.array([box.place for box in boxes]) + 0.5) * scale
    panel.plot(
        *path.T, color=colour, linewidth=width, zorder=2, solid_joinstyle="round", solid_capstyle="round"
    )


def _draw_boxes(panel: plt.Axes, boxes: list[Box], inks: dict[str, int], half: float, points: float) -> None:
    for box in boxes:
        ink, fill = _INKS[inks[box.symbol]], _FILLS[inks[box.symbol]]
        centre = box.place + 0.5
        turned = Affine2D().rotate_deg(box.degrees).translate(*centre) + panel.transData
        look: dict[str, Any] = {"facecolor": fill, "edgecolor": ink, "linewidth": 0.06 * points, "zorder": 3}
        panel.add_patch(Rectangle((-half, -half), 2 * half, 2 * half, transform=turned, **look))
        tip = half * np.array([(0.62, -0.24), (0.92, 0), (0.62, 0.24)])
        panel.add_patch(Polygon(tip, transform=turned, facecolor=ink, linewidth=0, zorder=4))
        look = {"ha": "center", "va": "center_baseline", "rotation_mode": "anchor", "weight": "bold"}
        look |= {"rotation": box.degrees, "fontsize": points, "color": ink, "zorder": 4}
        x, y = centre - 0.14 * half * box.heading
        panel.text(x, y, box.symbol, **look)


def _draw_turn(panel: plt.Axes, turn: Turn) -> None:
    """Draw a bent arrow from the old heading to the new one, beside its step."""
    centre = turn.place + 0.5 + 0.37 * turn.towards
    beside = np.array([turn.towards[1], -turn.towards[0]])
    centre = centre + 0.13 * (-beside if np.dot(beside, turn.after) > 0 else beside)
    start, end = centre - 0.08 * turn.before, centre + 0.08 * turn.after
    angles = f"angleA={_degrees(turn.before)},angleB={_degrees(turn.after)}"
    bent = f"angle,{angles},rad=4" if turn.before @ turn.after == 0 else "arc3,rad=0.9"
    look: dict[str, Any] = {"color": _TURN, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0, "zorder": 5}
    look |= {"arrowstyle": "-|>", "mutation_scale": 6}
    panel.add_patch(FancyArrowPatch(tuple(start), tuple(end), connectionstyle=bent, **look))


def _degrees(heading: np.ndarray) -> float:
    return float(np.degrees(np.arctan2(heading[1], heading[0])))


def _draw_outlines(panel: plt.Axes, boxes: list[Box], side: int) -> None:
    for box in boxes:
        x, y = side * box.place + 0.06
        look: dict[str, Any] = {"edgecolor": "0.75", "linewidth": 0.8, "linestyle": (0, (4, 2)), "zorder": 1}
        panel.add_patch(Rectangle((x, y), side - 0.12, side - 0.12, facecolor="none", **look))
