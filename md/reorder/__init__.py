"""Reordering particles in memory: along what, when, and what moves. A new trigger is one line here."""

from md.errors import NotYetReordered
from md.reorder.adaptive import Decayed
from md.reorder.reorder import MODES, Reorder
from md.reorder.triggers import Every, Moved, Never, Trigger

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

TRIGGERS: dict[str, type[Trigger]] = {
    "never": Never,
    "every": Every,
    "moved": Moved,
    "decayed": Decayed,
}
