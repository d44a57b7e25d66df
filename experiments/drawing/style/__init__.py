"""Style of all figures: fit for print, safe for the colour-blind, one look for each memory order.

`use` sets the style and the origin of what is drawn, `lines` and its like give the looks of lines, `save`
writes a figure as PNG, and as PDF on demand.
"""

from experiments.drawing.style.labels import label_ends, last_point
from experiments.drawing.style.looks import (
    FAMILIES,
    MOST_LINES,
    TURNS,
    few,
    lines,
    lines_in_turn,
    look,
    peers_in_turn,
    steps_in_turn,
)
from experiments.drawing.style.origin import UNKNOWN, Origin, commit_of, device_of, origin_of
from experiments.drawing.style.saving import SETTINGS, add_footer, save, use, write_figure

__all__ = [
    "FAMILIES",
    "MOST_LINES",
    "SETTINGS",
    "TURNS",
    "UNKNOWN",
    "Origin",
    "add_footer",
    "commit_of",
    "device_of",
    "few",
    "label_ends",
    "last_point",
    "lines",
    "lines_in_turn",
    "look",
    "origin_of",
    "peers_in_turn",
    "save",
    "steps_in_turn",
    "use",
    "write_figure",
]
