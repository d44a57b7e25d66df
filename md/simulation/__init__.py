"""The simulation: configuration, step loop, forces, and monitors of faults and energy."""

from md.simulation.config import PRECISIONS, SimulationConfig
from md.simulation.simulation import Simulation

__all__ = ["PRECISIONS", "Simulation", "SimulationConfig"]
