"""Scenes: initial states that follow from their numbers. A new scene is its own file and one line here.

Those that need runs of the engine are in `md.preparation`; its names can be read here too.
"""

from importlib import import_module
from typing import Any

from md.scenes.benchmark import BENCHMARK_DT, BENCHMARK_LAW, BENCHMARK_TEMPERATURE, benchmark_gas
from md.scenes.clusters import in_clusters
from md.scenes.flock import SOURCE_DT, flock
from md.scenes.lattice import lattice_sites
from md.scenes.maxwell import maxwell_velocities
from md.scenes.spheres import box_for, in_memory_order

# The names of the benchmark gas until version 0.3.
SHARED_DT, SHARED_LAW, SHARED_TEMPERATURE = BENCHMARK_DT, BENCHMARK_LAW, BENCHMARK_TEMPERATURE
shared_gas = benchmark_gas

__all__ = [
    "BENCHMARK_DT",
    "BENCHMARK_LAW",
    "BENCHMARK_TEMPERATURE",
    "SHARED_DT",
    "SHARED_LAW",
    "SHARED_TEMPERATURE",
    "SOURCE_DT",
    "benchmark_gas",
    "box_for",
    "flock",
    "in_clusters",
    "in_memory_order",
    "lattice_sites",
    "maxwell_velocities",
    "shared_gas",
]


def __getattr__(name: str) -> Any:
    prepared = import_module("md.preparation")  # above this room, and read by name alone
    if name in prepared.__all__:
        return getattr(prepared, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
