"""Reordering of particles in memory: ordering, trigger and mode. A new trigger is one line here."""

from md.particles.capabilities import TriggerCapabilities as Capabilities
from md.registry import Registry
from md.reorder.adaptive import Decayed
from md.reorder.base import ActiveTrigger, ChosenInterval, RunTrigger, Trigger, require_trigger
from md.reorder.reorder import MODES, ActiveReorder, Reorder
from md.reorder.triggers import Every, Moved, Never

__all__ = [
    "MODES",
    "TRIGGERS",
    "ActiveReorder",
    "ActiveTrigger",
    "Capabilities",
    "ChosenInterval",
    "Decayed",
    "Every",
    "Moved",
    "Never",
    "Reorder",
    "RunTrigger",
    "Trigger",
    "register",
]

TRIGGERS: Registry[object] = Registry(
    "trigger",
    None,
    {"never": Never, "every": Every, "moved": Moved, "decayed": Decayed},
    check=require_trigger,
)
register = TRIGGERS.register
