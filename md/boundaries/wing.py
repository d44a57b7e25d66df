"""Wing in a stream of discs: contacts of particles with segments of its outline, by the search's tree if any.

A disc touches the point of the outline that is nearest to its centre. So it has at most one contact with the
wing, at an edge too, and the order of the discs does not change its force. The force on it is that of a wall:
K (r - s) along the outward normal for a centre at s < r from the outline (less than 0 inside), with a dashpot
against its velocity along the normal. There is no force on a centre deeper inside than `depth`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from md.backend.base import Array
from md.boundaries.airfoil import LONGEST, Airfoil, placement
from md.boundaries.base import RADIUS, ActiveBoundary, Boundary
from md.boundaries.polygon import STRAIGHT, distances, from_outline, packed, segments_of
from md.checks import array, instance, number, refuse_value, set_fields
from md.laws.spring_dashpot import contact_frequency
from md.particles.system import System
from md.search.base import Search
from sfc.compile import callee, kernel

LANES = 32  # parts of a segment's box; a device has a thread for each
STRONGEST = 1e150  # largest stiffness and damping; their squares are finite
SLACK = 1e-3  # margin of the boxes of segments, in d


@dataclass(frozen=True, kw_only=True)
class Wing(Boundary):
    """Configuration of an airfoil at rest in a stream along +x, in 2D.

    Args:
        airfoil: section of the wing.
        chord: in d.
        angle: angle of attack, in degrees; positive with the nose up.
        at: (x, y) of the quarter-chord point, in d.
        stiffness: K, in m / time^2: force a length of overlap.
        damping: mu, in m / time.
        depth: largest depth of a centre inside at which it is pushed out, in d.

    Raises:
        TypeError: an argument of another class.
        ValueError: a value outside its range.
    """

    airfoil: Airfoil
    chord: float
    at: tuple[float, float]
    angle: float = 0.0
    stiffness: float
    damping: float = 0.0
    depth: float = 2.0

    def __post_init__(self):
        instance("airfoil", self.airfoil, Airfoil, "an md.Airfoil", "md.naca('2412') makes one")
        chord, angle, at = placement(self.chord, self.angle, self.at)
        set_fields(
            self,
            chord=chord,
            angle=angle,
            at=at,
            stiffness=number("stiffness of a wing", self.stiffness, 0, STRONGEST),
            damping=number("damping of a wing", self.damping, 0, STRONGEST),
            depth=number("depth of a wing", self.depth, 0, LONGEST, unit="d"),
        )

    @property
    def contact_time(self) -> float:
        """Duration of a disc's contact with the wing, in time units; infinite without a spring.

        Raises:
            ValueError: an overdamped contact, which never ends.
        """
        if not self.stiffness:
            return math.inf
        return math.pi / contact_frequency(" of a wing", self.stiffness, self.damping, 1.0)

    @property
    def restitution(self) -> float:
        """Coefficient of restitution of a disc and the wing.

        Raises:
            ValueError: an overdamped contact.
        """
        return math.exp(-self.damping / 2 * self.contact_time) if self.damping else 1.0

    @property
    def outline(self) -> np.ndarray:
        """(m, 2) points in d, counter-clockwise."""
        return self.airfoil.placed(self.chord, self.angle, self.at)

    def segments(self) -> np.ndarray:
        """Return the segments, (m, 8) float64: start, end, outward normal, turn at start, length^2.

        The turn is 1 for a convex corner, -1 for a concave one, 0 for none.
        """
        return segments_of(self.outline)

    def distance(self, pos: npt.ArrayLike) -> np.ndarray:
        """Return the distance of points from the outline, negative inside: (p,) float64, in d.

        Args:
            pos: (p, 2) in d, up to 1e100.

        Raises:
            TypeError: positions that are no array.
            ValueError: another shape, a dtype that is not of real numbers, or a number that is not finite.
        """
        bounds: dict[str, Any] = {
            "low": -LONGEST,
            "high": LONGEST,
            "finite": True,
            "outside": "they are in d",
        }
        pos = array("pos", pos, "fiu", "real numbers, in d", ("p", 2), **bounds)
        return distances(self.outline, np.ascontiguousarray(pos, np.float64))

    def build(self, system: System, search: Search) -> WingContact:
        """Make the wing that acts on the particles of a system.

        Raises:
            ValueError: a box in 3D, an outline nearer than a diameter to a side of the box, or particles of
                given radius.
        """
        box, particles = system.box, system.particles
        if box.dim != 2:
            raise ValueError(f"a wing in a box of {box.dim} axes; allowed: 2")
        if len(particles.radius):
            raise ValueError(
                "a wing among particles of given radius; allowed: State(radius=None), all of 0.5"
            )
        low, high = self.outline.min(axis=0), self.outline.max(axis=0)
        if (low < 1).any() or (high > np.array(box.lengths) - 1).any():
            raise ValueError(
                f"a wing from {low.round(3).tolist()} to {high.round(3).tolist()} in a box of {box.lengths}; "
                "allowed: at least 1 d from every side; move it, or take a larger box or a smaller chord"
            )
        return WingContact(self, system, search)


class WingContact(ActiveBoundary):
    """Wing that exerts forces on the particles of a system.

    Args:
        wing: its configuration.
        system: shared state of the simulation.
        search: finds the particles near the wing if it has a tree; else all particles are tested.

    Attributes:
        wing: as given.
    """

    def __init__(self, wing: Wing, system: System, search: Search):
        self.wing, self._system, self._search = wing, system, search
        self._backend = backend = system.backend
        segments, real = wing.segments(), system.precision
        self._segments = backend.upload(packed(segments.astype(real)))
        self._boxes = backend.upload(_boxes(segments, wing.depth).astype(real).ravel())
        low, high = _reach(segments)
        fields = ["left", "down", "right", "up", "spring", "damping", "radius", "depth", "within2"]
        within2 = (max(RADIUS, wing.depth) + SLACK) ** 2
        values = *low, *high, wing.stiffness, wing.damping, RADIUS, wing.depth, within2
        self._foil = np.array([values], np.dtype([(name, real) for name in fields], align=True))
        self._force, self._given = (backend.zeros(2 * len(segments), np.float64) for _ in range(2))

    def __repr__(self) -> str:
        return f"<WingContact of {self.wing!r}>"

    @property
    def force(self) -> np.ndarray:
        """(m, 2) force of the gas on each segment at the last computation of forces, in m d / time^2."""
        return self._backend.download(self._force).reshape(-1, 2)

    @property
    def momentum(self) -> np.ndarray:
        """(m, 2) momentum transferred by the gas to each segment so far, in m d / time; waits for the device.

        Its change over a time interval is the mean force: along x the drag, along y the lift. The gas has
        lost as much momentum, by the velocities that the integrator stores: those of `velocity_verlet` are
        half a step behind. On a device it is summed in no fixed order, except with `lbvh` and `reflexive`.
        """
        return self._backend.download(self._given).reshape(-1, 2)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the momentum transferred so far: `given`, (2 m,) float64."""
        return {"given": self._backend.download(self._given)}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the momentum transferred before.

        Raises:
            ValueError: `given` is missing, or does not fit this wing.
        """
        found = state.get("given")
        if found is None:
            raise refuse_value("given", found, f"{self._given.shape} finite numbers")
        found = array("given", found, "fiu", "finite numbers", self._given.shape, finite=True)
        self._given[...] = self._backend.upload(found.astype(np.float64))

    def add_forces(self, force: Array) -> None:
        """Add the force of the wing on each disc, and store the reaction on each segment."""
        p, kernels, count = self._system.particles, self._backend.kernels(__name__), len(self._force) // 2
        wing, tree = (self._segments, self._foil), self._search.boxes
        if tree is None or p.n == 0:
            self._backend.fill(self._force, 0)
            parts = 4 * self._backend.workers
            kernels.touch_each(p.n, count, parts, p.pos, p.vel, *wing, force, self._force)
        else:
            at = p.pos, p.vel, *tree, self._boxes, *wing, self._system.grid.record
            kernels.touch_near(LANES * count, p.n, count, *at, force, self._force)

    def after_step(self, step_times: Array) -> None:
        """Add the momentum that the kick of the step has transferred."""
        kernels = self._backend.kernels(__name__)
        kernels.give(len(self._force), self._force, step_times, self._given)


def _reach(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper corner of the box that holds all centres in contact with the wing."""
    return segments[:, :2].min(axis=0) - RADIUS - SLACK, segments[:, :2].max(axis=0) + RADIUS + SLACK


def _boxes(segments: np.ndarray, depth: float) -> np.ndarray:
    """Return, for each segment, lower and upper corner of the box of the centres in contact with it: (m, 4).

    No box extends beyond that of the wing, so that it holds at most one image of a disc, at any depth.
    """
    start, end, normal = segments[:, :2], segments[:, 2:4], segments[:, 4:6]
    turns_in, corners = segments[:, 6] < 0, []
    for at, turns in ((start, turns_in), (end, np.roll(turns_in, -1))):
        grown = np.where(turns, max(RADIUS, depth), RADIUS)[:, None]
        corners += [at - grown, at + grown, at - depth * normal]
    slack = SLACK + depth * STRAIGHT  # a turn within STRAIGHT is neglected
    least, most = np.min(corners, axis=0) - slack, np.max(corners, axis=0) + slack
    low, high = _reach(segments)
    return np.column_stack([np.maximum(least, low), np.minimum(most, high)])


@callee
def pushed(count, segments, foil, x, y, vx, vy):
    """Return the segment in contact with a disc, or -1, and the force on the disc."""
    if not (foil.left < x < foil.right and foil.down < y < foil.up):
        return -1, x - x, x - x
    s, distance, nx, ny = from_outline(count, segments, foil.within2, x, y)
    if s < 0 or not (-foil.depth <= distance < foil.radius):
        return -1, x - x, x - x
    size = foil.spring * (foil.radius - distance) - foil.damping * (vx * nx + vy * ny)
    return s, size * nx, size * ny


@kernel(parallel=True)
def touch_each(n, count, parts, pos, vel, segments, foil, force, on_wing):
    """Add the force of the wing on every particle; the reactions are added to `on_wing`."""
    sums = np.zeros((parts, len(on_wing)))
    for part in numba.prange(parts):
        f = foil[0]
        for i in range(part * n // parts, (part + 1) * n // parts):
            s, fx, fy = pushed(count, segments, f, pos[i, 0], pos[i, 1], vel[i, 0], vel[i, 1])
            if s >= 0:
                force[i, 0] += fx
                force[i, 1] += fy
                sums[part, 2 * s] -= fx
                sums[part, 2 * s + 1] -= fy
    for part in range(parts):
        on_wing += sums[part]


@kernel(parallel=True)
def touch_near(lanes, n, count, pos, vel, nodes, ropes, order, boxes, segments, foil, grid, force, on_wing):
    """Add the force of every segment on the particles in its box; the reactions are stored in `on_wing`.

    The tree is traversed for the box (on a device for each part of it), and for each image of it along
    periodic axes, because nodes may extend beyond the box of the simulation.
    """
    for item in numba.prange(count):
        s, f, g = np.int64(item), foil[0], grid[0]
        sum_x, sum_y = 0.0, 0.0
        left, down, right, up = boxes[4 * s], boxes[4 * s + 1], boxes[4 * s + 2], boxes[4 * s + 3]
        for image in range(9):
            dx, dy = (image % 3 + 1) % 3 - 1, (image // 3 + 1) % 3 - 1
            if (dx != 0 and g.periodic[0] == 0) or (dy != 0 and g.periodic[1] == 0):
                continue
            mx, my = dx * g.length[0], dy * g.length[1]
            node = 0
            while node >= 0:
                near = (
                    nodes[2 * node, 0] <= right + mx
                    and nodes[2 * node + 1, 0] >= left + mx
                    and nodes[2 * node, 1] <= up + my
                    and nodes[2 * node + 1, 1] >= down + my
                )
                leaf = node - (n - 1)
                node = np.int64(ropes[2 * node + (0 if near else 1)])
                if near and leaf >= 0:
                    i = np.int64(order[leaf]) if len(order) else leaf
                    owner, fx, fy = pushed(count, segments, f, pos[i, 0], pos[i, 1], vel[i, 0], vel[i, 1])
                    if owner == s:
                        force[i, 0] += fx
                        force[i, 1] += fy
                        sum_x -= fx
                        sum_y -= fy
        on_wing[2 * s], on_wing[2 * s + 1] = sum_x, sum_y


@kernel(parallel=True)
def give(entries, on_wing, step_times, given):
    """Add the force times the duration of the kick to the momentum transferred."""
    for k in numba.prange(entries):
        given[k] += on_wing[k] * step_times[0]
