"""Energy balance of a run: energy input, dissipation and stored energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from md import checks
from md.boundaries.external_field import radius_of
from md.laws import SpringDashpot
from md.observe.pair_tally import PairTally
from md.observe.sums import total
from md.simulation import Simulation
from sfc.compile import in_parts, kernel


class EnergyBalance:
    """A reporter that integrates the energy input of walls and gravity, and the dissipation of dashpots.

    Powers are force times velocity at the time of the positions, with each force as used by the step. They
    are integrated by the trapezoidal rule: at an interval of 1 only the energy of the springs is not exact,
    by second order in dt. The frame of reference is the container: the input is the work of its reversed
    acceleration, and of gravity. On the CPU each thread sums its part, so that the last bits depend on the
    number of threads.

    Args:
        interval: in steps, at least 1; take at least ten reports in a contact.

    Raises:
        TypeError: an interval that is not an integer.
        ValueError: an interval below 1; (by `report`) another law than `SpringDashpot`, boundaries other than
            walls, or another integrator than `velocity_verlet`, the only one with forces at the time of the
            positions.
    """

    def __init__(self, interval: int = 1):
        self.interval = checks.integer("interval of EnergyBalance", interval, unit="steps")
        self._rows: list[dict[str, float]] = []

    def __repr__(self) -> str:
        return f"<EnergyBalance(interval={self.interval}), {len(self._rows)} rows>"

    def report(self, simulation: Simulation) -> None:
        """Add the energies and powers of a simulation at its step."""
        view = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
        law, p, backend = view.law, view.particles, view.backend
        if type(law) is not SpringDashpot:
            raise ValueError(f"no energy balance of {law}; allowed: a SpringDashpot")
        if simulation.surroundings:
            raise ValueError("no energy balance with surroundings, as their work is not measured; take none")
        if view.integrator != "velocity_verlet":
            raise ValueError(f"no energy balance of {view.integrator!r} steps; allowed: velocity_verlet")
        lost = p.spare[0]  # rows for the output of a force kernel
        view.search.force(replace(law, stiffness=0.0), lost)
        sums = backend.zeros(5, np.float64)
        outside = view.outside
        backend.kernels(__name__).flows(
            p.n, p.pos, p.vel, view.vel, lost, p.radius, view.search.grid.record, outside.record,
            outside.now, 4 * backend.workers, sums,
        )  # fmt: skip
        kinetic, walls, lost_in_pairs, lost_at_walls, power_in = view.across(backend.download(sums)).tolist()
        tally = PairTally(law, 0.0, p.n, backend)
        view.search.force(tally, lost)
        contact, _, _ = total(tally, view)
        row = {
            "step": view.step,
            "time": view.time,
            "kinetic_energy": kinetic,
            "contact_energy": contact,
            "wall_energy": walls,
            "power_in": power_in,
            "power_lost_in_pairs": lost_in_pairs,
            "power_lost_at_walls": lost_at_walls,
        }
        self._rows.append(row)

    def table(self) -> dict[str, np.ndarray]:
        """Return the columns, a row for each report: energies in m d^2 / time^2, powers in that per time.

        `energy_in`, `energy_lost_in_pairs` and `energy_lost_at_walls` are integrals since the first report.
        `energy_missing` is the input less the losses and less the increase of the stored energy.

        Returns:
            Column -> (reports,) array.
        """
        if not self._rows:
            return {}
        table = {name: np.array([row[name] for row in self._rows]) for name in self._rows[0]}
        half = np.diff(table["time"]) / 2
        for flow in ("in", "lost_in_pairs", "lost_at_walls"):
            power = table[f"power_{flow}"]
            table[f"energy_{flow}"] = np.append(0.0, np.cumsum(half * (power[:-1] + power[1:])))
        stored = sum(table[k] - table[k][0] for k in ("kinetic_energy", "contact_energy", "wall_energy"))
        missing = table["energy_in"] - table["energy_lost_in_pairs"] - table["energy_lost_at_walls"] - stored
        return table | {"energy_missing": missing}


def flows(n, pos, vel, vel_now, lost, radius, grid, field, now, parts, sums):
    """Add to five sums: energy of motion, of walls, power lost in pairs, lost at walls, and power put in.

    `vel` are the velocities with which forces were computed, `vel_now` those at the time of the positions,
    `lost` the dashpot forces of the pairs.
    """
    partial, given = np.zeros((parts, 5)), (pos, vel, vel_now, lost, radius, grid, field, now)
    in_parts(lambda part: _flows(part.start, part.stop, n, *given, partial), parts, rows=n)
    for one in partial:
        sums += one


@kernel
def _flows(first, last, n, pos, vel, vel_now, lost, radius, grid, field, now, partial):
    """Add the particles of parts first .. last - 1 to their sums of `flows`."""
    parts, g, o = len(partial), grid[0], field[0]
    for p in range(first, last):
        for i in range(p * n // parts, (p + 1) * n // parts):
            for axis in range(pos.shape[1]):
                v = np.float64(vel_now[i, axis])  # float() leaves a float32 as it is
                partial[p, 0] += v * v / 2
                partial[p, 2] -= lost[i, axis] * v
                carried, pull = 0.0, np.float64(o.pull[axis])
                if axis == o.axis:
                    carried, pull = now[1], pull + now[0]
                partial[p, 4] += pull * v
                if o.spring[axis] > 0:
                    x = pos[i, axis]
                    reach = radius_of(o, radius, i)
                    for overlap in (reach - x, reach - (g.length[axis] - x)):
                        if overlap > 0:
                            partial[p, 1] += np.float64(o.spring[axis]) * overlap * overlap / 2
                            partial[p, 3] += o.damping[axis] * (vel[i, axis] + carried) * v
