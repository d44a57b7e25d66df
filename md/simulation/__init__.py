"""The simulation: configuration, step loop, and monitors of faults and energy."""

from md.simulation.simulation import PRECISIONS, Simulation

__all__ = ["PRECISIONS", "Simulation"]
