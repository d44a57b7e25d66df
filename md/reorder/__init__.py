"""Reordering particles in memory: along what, when, and what moves. A new trigger is one line here."""

from md.errors import NotYetReordered
from md.reorder.adaptive import Decayed
from md.reorder.reorder import MODES, Reorder
from md.reorder.triggers import Every, Moved, Never, Schedule

__all__ = [
    "MODES",
    "SCHEDULES",
    "Decayed",
    "Every",
    "Moved",
    "Never",
    "NotYetReordered",
    "Reorder",
    "Schedule",
]

SCHEDULES: dict[str, type[Schedule]] = {
    "never": Never,
    "every": Every,
    "moved": Moved,
    "decayed": Decayed,
}
