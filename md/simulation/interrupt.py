"""Deferred interrupts for what stands above the simulation; see `md.io.interrupt`."""

from md.io.interrupt import defer_sigint

__all__ = ["defer_sigint"]
