"""Observer: measures observables at intervals of a run and makes tables of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from md import checks
from md.observe.observation import Observation, look
from md.observe.profile import Profile, profiles_of
from md.observe.sums import MOST_BINS, cells_of
from md.simulation import Simulation

AXES = "xyz"


class Observer:
    """A reporter that measures observables; for `Simulation.run(reporters=[observer])` of one simulation.

    As for `look`, the last bits of the observables depend on the number of threads.

    Args:
        interval: in steps, at least 1.
        profiles: a `Profile`, or several, to measure at each report.
        cells: for `temperature_about_local_mean`; see `look`.

    Raises:
        TypeError: an interval or cells that are not integers, or profiles that are not `md.Profile`.
        ValueError: an interval below 1, or cells out of range.

    Attributes:
        observations: an `Observation` for each report, in order.
    """

    def __init__(
        self,
        interval: int = 100,
        profiles: Profile | Sequence[Profile] = (),
        cells: int | tuple[int, ...] = 1,
    ):
        self.interval = checks.integer("interval of Observer", interval, unit="steps")
        self.profiles, self.cells = profiles_of(profiles), cells_of(cells, MOST_BINS)
        self.observations: list[Observation] = []

    def __repr__(self) -> str:
        options = f"interval={self.interval}, profiles={self.profiles}, cells={self.cells}"
        return f"<Observer({options}), {len(self.observations)} observations>"

    def report(self, simulation: Simulation) -> None:
        """Measure the observables of a simulation at its step."""
        self.observations.append(look(simulation, self.profiles, self.cells))

    def table(self) -> dict[str, np.ndarray]:
        """Return the observables, one row for each report, in a form for `pandas.DataFrame`.

        Columns are the fields of `Observation` by their names and units; the momentum is in `momentum_x` and
        so on, and profiles are in `profile_table`. Without a report there are no columns.

        Returns:
            Column -> (reports,) array.
        """
        rows = [seen._asdict() | _components("momentum", seen.momentum) for seen in self.observations]
        names = [name for name in (rows[0] if rows else ()) if name not in ("momentum", "profiles")]
        return {name: np.array([row[name] for row in rows]) for name in names}

    def profile_table(self) -> dict[str, np.ndarray]:
        """Return the profiles, one row for each report and slice: column -> array.

        Columns are `step`, `time`, `axis`, `slice`, `centre_d`, `particles`, `number_density_per_d3`
        (`_per_d2` in 2D), `filling_fraction`, `velocity_x` and so on, and `temperature`: those of `Profiled`.
        Without a report, or profiles, there are no columns.
        """
        tables = [
            {
                "step": np.full(len(profile.centre), seen.step),
                "time": np.full(len(profile.centre), seen.time),
                "axis": np.full(len(profile.centre), profile.axis),
                "slice": np.arange(len(profile.centre)),
                "centre_d": profile.centre,
                "particles": profile.particles,
                f"number_density_per_d{len(seen.momentum)}": profile.number_density,
                "filling_fraction": profile.filling_fraction,
                **_components("velocity", profile.velocity),
                "temperature": profile.temperature,
            }
            for seen in self.observations
            for profile in seen.profiles
        ]
        names = tables[0] if tables else ()
        return {name: np.concatenate([table[name] for table in tables]) for name in names}


def _components(name: str, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """Return the components of (..., dim) vectors: name_x and so on -> (...) array."""
    return {f"{name}_{AXES[k]}": vectors[..., k] for k in range(vectors.shape[-1])}
