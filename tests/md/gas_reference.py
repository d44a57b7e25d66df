"""Gas in plain numpy, by all pairs: forces, steps and sums, written from their definitions alone."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import md

LEAD = {"position_verlet": 0.5}  # of the positions at which the force is computed, in steps


def radii(state: md.State) -> np.ndarray:
    """(n,) radii."""
    return np.full(len(state), 0.5) if state.radius is None else state.radius.astype(np.float64)


def apart(state: md.State) -> tuple[np.ndarray, np.ndarray]:
    """Differences r_i - r_j of nearest images, (n, n, dim), and sums of two radii, (n, n)."""
    lengths, pos, radius = np.array(state.box.lengths), state.pos.astype(np.float64), radii(state)
    difference = pos[:, None] - pos[None]
    difference -= np.where(state.box.periodic, lengths * np.round(difference / lengths), 0)
    return difference, radius[:, None] + radius[None]


def overlaps(state: md.State) -> np.ndarray:
    """(n, n) overlaps of pairs, negative where two spheres do not touch; -inf of a sphere with itself."""
    difference, size = apart(state)
    found = size - np.sqrt((difference**2).sum(axis=2))
    np.fill_diagonal(found, -np.inf)
    return found


def touching(state: md.State) -> set[tuple[int, int]]:
    """Pairs of ids that touch, the smaller id first."""
    pairs = np.argwhere(np.triu(overlaps(state) > 0))
    return set(map(tuple, np.sort(state.id[pairs], axis=1).tolist()))


def contact_energy(state: md.State, law: md.laws.SpringDashpot) -> float:
    """Energy in the springs of touching pairs."""
    energies = law.stiffness * np.maximum(overlaps(state), 0) ** 2 / 2
    return float(np.triu(energies, 1).sum())


@dataclass
class Gas:
    """Spheres that move by a law, walls and gravity.

    Attributes:
        state: positions, and the velocities that the scheme stores.
        law: a spring-dashpot, with friction or not, of diameter 1.
        dt: longest time step.
        integrator: its name.
        walls: or None.
        gravity: or None.
        time: passed.
        steps: taken.
    """

    state: md.State
    law: md.laws.SpringDashpot
    dt: float
    integrator: str = "velocity_verlet"
    walls: md.Walls | None = None
    gravity: Any = None
    time: float = 0.0
    steps: int = 0

    def forces(self, time: float | None = None) -> np.ndarray:
        """(n, dim) force on each particle by the present positions and stored velocities."""
        law, vel = self.law, self.state.vel.astype(np.float64)
        difference, size = apart(self.state)
        r = np.sqrt((difference**2).sum(axis=2))
        touch = (r < size) & (r > 0)
        n = difference / np.where(touch, r, 1)[..., None]
        relative = vel[:, None] - vel[None]
        along = (relative * n).sum(axis=2)
        normal = law.stiffness * (size - r) - law.damping * along
        pushes = normal[..., None] * n
        if isinstance(law, md.laws.FrictionalSpringDashpot):
            sliding = relative - along[..., None] * n
            speed = np.sqrt((sliding**2).sum(axis=2))
            drag = np.minimum(law.tangential_damping * speed, law.friction * np.maximum(normal, 0))
            pushes -= (drag / np.where(speed > 0, speed, 1))[..., None] * sliding
        found = np.where(touch[..., None], pushes, 0).sum(axis=1)
        return found + self._outside(vel, self.time if time is None else time)

    def _outside(self, vel: np.ndarray, time: float) -> np.ndarray:
        """(n, dim) gravity, walls, and the reversed acceleration of shaken ones."""
        pos, found = self.state.pos.astype(np.float64), np.zeros(self.state.pos.shape)
        found += 0 if self.gravity is None else np.array(self.gravity)
        if self.walls is None:
            return found
        if isinstance(self.walls, md.ShakenWalls):
            turn = 2 * math.pi * self.walls.frequency
            found[:, self.walls.axis] -= self.walls.amplitude * turn**2 * math.cos(turn * time)
        duration, box = self.walls.contact_time, self.state.box
        if duration is None:
            duration = math.pi / math.sqrt(2 * self.law.stiffness - self.law.damping**2)
        rate = -math.log(self.walls.restitution) / duration
        spring, damping = (math.pi / duration) ** 2 + rate**2, 2 * rate
        walled = ~np.array(box.periodic) & ~np.array(box.open)
        reach = radii(self.state)[:, None]
        for way, overlap in ((1, reach - pos), (-1, pos + reach - np.array(box.lengths))):
            found += np.where(walled & (overlap > 0), way * spring * overlap - damping * vel, 0)
        return found

    @np.errstate(all="ignore")
    def outcome(self, steps: int) -> tuple:
        """Positions, velocities, forces and pairs by id, the time and the steps, after some steps."""
        self.run(steps)
        pos, pairs = self.state.pos, touching(self.state)
        return pos, self.velocities(), self.forces(), pairs, self.time, self.steps

    def run(self, steps: int) -> None:
        """Take steps in double precision; the particles are in the order of their ids after it."""
        start = self.state.by_id()
        pos, vel = start.pos.astype(np.float64), start.vel.astype(np.float64)
        self.state = md.State(pos, vel, start.box, start.id, start.radius)
        for _ in range(steps):
            dt, kick, ahead = self.dt, self.dt, LEAD.get(self.integrator, 0.0)
            if ahead:
                self._move(ahead * dt * self.state.vel)
            force = self.forces(self.time + ahead * dt)
            if self.integrator == "steepest_descent":
                self._move(dt**2 * force)
            else:
                fastest = np.sqrt((self.state.vel**2).sum(axis=1)).max(initial=0)
                if self.integrator == "adaptive_euler" and fastest > 0:
                    dt = kick = min(dt, radii(self.state).min() / fastest)
                if self.integrator == "velocity_verlet" and self.steps == 0:
                    kick = dt / 2
                self.state.vel = self.state.vel + kick * force
                self._move((1 - ahead) * dt * self.state.vel)
            self.steps, self.time = self.steps + 1, self.time + dt

    def _move(self, way: np.ndarray) -> None:
        """Move the particles; they come back at the other end of periodic axes."""
        lengths, pos = np.array(self.state.box.lengths), self.state.pos + way
        folded = np.where(np.mod(pos, lengths) < lengths, np.mod(pos, lengths), 0)  # -1e-20 mod 1 is 1
        self.state.pos = np.where(self.state.box.periodic, folded, pos)

    def velocities(self) -> np.ndarray:
        """(n, dim) velocities at the time of the positions."""
        behind = self.dt / 2 if self.integrator == "velocity_verlet" and self.steps else 0.0
        return self.state.vel + behind * self.forces()

    def looked_at(self, begun: int | None = None, cells: tuple[int, ...] | None = None) -> dict[str, Any]:
        """Compute what `md.observe.look` gives, but for profiles.

        Args:
            begun: contacts begun in the last step; None where that is unknown.
            cells: for the temperature about the local mean; None for one.
        """
        n, dim = self.state.pos.shape
        vel, pairs = self.velocities(), len(touching(self.state))
        square, speed = (vel**2).sum(), np.sqrt((vel**2).sum(axis=1)).sum()
        held = [vel[rows] for rows in in_cells(self.state, cells or (1,) * dim).values() if len(rows)]
        with np.errstate(divide="ignore", invalid="ignore"):
            time = np.float64(n) * contact_time(self.law)
            rate = math.nan if begun is None else np.float64(2 * begun) / (n * self.dt)
            return {
                "kinetic_energy_per_particle": square / 2 / np.float64(n),
                "contact_energy_per_particle": contact_energy(self.state, self.law) / np.float64(n),
                "temperature": square / dim / np.float64(n),
                "temperature_about_local_mean": sum(len(v) * v.var(axis=0).mean() for v in held)
                / np.float64(sum(map(len, held))),
                "momentum": vel.sum(axis=0),
                "mean_speed": speed / np.float64(n),
                "touching_pairs": pairs,
                "contacts_begun": begun or 0,
                "collision_rate_per_particle": rate,
                "collision_rate_by_touching": 2 * pairs / time,
                "mean_free_path_d": speed / n / rate if n else math.nan,
            }


def contact_time(law: md.laws.SpringDashpot) -> float:
    """Duration of a contact; NaN without a finite one."""
    squared = 2 * law.stiffness - law.damping**2
    return math.pi / math.sqrt(squared) if squared > 0 else math.nan


def in_cells(state: md.State, cells: tuple[int, ...]) -> dict[tuple[int, ...], np.ndarray]:
    """Rows of the particles in each cell of the box; a particle outside the box is in none."""
    lengths, pos = np.array(state.box.lengths), state.pos
    inside = ((pos >= 0) & (pos <= lengths.astype(pos.dtype))).all(axis=1)
    at = np.minimum((pos * (np.array(cells) / lengths).astype(pos.dtype)).astype(int), np.array(cells) - 1)
    return {cell: np.flatnonzero(inside & (at == cell).all(axis=1)) for cell in np.ndindex(cells)}


def profile(state: md.State, axis: int, bins: int) -> dict[str, np.ndarray]:
    """Compute a profile slice by slice; velocities are those of the state."""
    dim, along = state.box.dim, tuple(bins if k == axis else 1 for k in range(state.box.dim))
    members = [state.vel[rows].astype(np.float64) for rows in in_cells(state, along).values()]
    count, volume = np.array([len(vel) for vel in members]), state.box.volume / bins
    sphere = {2: math.pi / 4, 3: math.pi / 6}[dim] if state.radius is None else math.nan
    empty = np.full(dim, math.nan)
    return {
        "centre": (np.arange(bins) + 0.5) * state.box.lengths[axis] / bins,
        "particles": count,
        "number_density": count / volume,
        "filling_fraction": count * sphere / volume,
        "velocity": np.array([vel.mean(axis=0) if len(vel) else empty for vel in members]),
        "temperature": np.array([vel.var(axis=0).mean() if len(vel) else math.nan for vel in members]),
    }
