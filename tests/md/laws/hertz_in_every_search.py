"""Check the README's law in every search against a numpy loop; run in the folder of a file `hertz.py`.

Prints, for each search and way of stepping, the largest differences of forces (unfused), positions and
velocities from those of the loop, and the largest force.
"""

import json
import sys

import numpy as np
from hertz import Hertz

import md
from md.search import Reflexive

POWER, STEPS, DT, STIFFNESS = float(sys.argv[1]), 10, 1e-3, 1000.0
BOX = md.Box((3.9, 3.4, 3.7), periodic=True)


def forces(pos: np.ndarray) -> np.ndarray:
    """Compute the force of each pair in closed form."""
    dr = pos[:, None] - pos
    dr -= BOX.lengths * np.round(dr / BOX.lengths)
    r = np.linalg.norm(dr, axis=2) + np.eye(len(pos))
    return (STIFFNESS * np.maximum(1 - r, 0) ** POWER / r)[..., None] * dr


generator = np.random.default_rng(0)
start = generator.random((60, 3)) * BOX.lengths
velocity = generator.normal(0, 1, start.shape)
pos, vel = start.copy(), velocity.copy()
for step in range(STEPS):  # kick and drift; the first kick is of half a step
    vel += (0.5 if step == 0 else 1.0) * DT * forces(pos).sum(axis=1)
    pos = np.mod(pos + DT * vel, BOX.lengths)
vel += 0.5 * DT * forces(pos).sum(axis=1)

found = {}
for name in sys.argv[2].split(","):
    twice = Reflexive(met="twice", atomics="none", data="sorted")
    for search, fused in ((name, False), (twice if name == "reflexive" else name, True)):
        state = md.State(start, velocity, BOX)
        options = {"backend": sys.argv[3], "fused": fused, "dt": DT, "allow_overlap": True}
        simulation = md.Simulation(state, Hertz(stiffness=STIFFNESS), search=search, **options)
        first = np.abs(simulation.forces() - forces(start).sum(axis=1)).max() if not fused else 0.0
        simulation.run(STEPS)
        end = simulation.state
        order = np.argsort(end.id)
        error = end.pos[order] - pos
        error -= BOX.lengths * np.round(error / BOX.lengths)
        found[f"{name} fused={fused}"] = [first, np.abs(error).max(), np.abs(end.vel[order] - vel).max()]
print(json.dumps([float(np.abs(forces(start)).max()), found]))
