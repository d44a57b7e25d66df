"""Flock in plain numpy, by all pairs: increments of velocity and steps, written from the rules of [flock]."""

import numpy as np

import md


def differences(pos: np.ndarray, box: md.Box) -> np.ndarray:
    """(n, n, dim) vectors x_j - x_i to the nearest image."""
    d = pos[None, :] - pos[:, None]
    lengths = np.array(box.lengths)
    return d - np.where(box.periodic, lengths * np.round(d / lengths), 0.0)


def increments(pos: np.ndarray, vel: np.ndarray, box: md.Box, law: md.laws.Boids) -> np.ndarray:
    """(n, dim) increments of velocity in a step."""
    d = differences(pos, box)
    r = np.sqrt((d**2).sum(axis=-1))
    np.fill_diagonal(r, np.inf)

    def summed(within: np.ndarray, of: np.ndarray) -> np.ndarray:
        return (within[..., None] * of).sum(axis=1)

    def mean(within: np.ndarray, of: np.ndarray) -> np.ndarray:
        return summed(within, of) / np.maximum(within.sum(axis=1), 1)[:, None]

    return (
        law.cohesion * mean(r < law.cohesion_radius, d)
        - law.separation * summed(r < law.separation_radius, d)
        + law.alignment * mean(r < law.alignment_radius, vel[None, :] - vel[:, None])
    )


def field(pos, vel, box, gravity, walls) -> np.ndarray:
    """(n, dim) accelerations by gravity and by walls, which touch a boid within 0.5 of an end."""
    found = np.zeros_like(pos) + (0.0 if gravity is None else np.array(gravity))
    if walls is None:
        return found
    time, rate = walls.contact_time, -np.log(walls.restitution) / walls.contact_time
    stiffness, damping = (np.pi / time) ** 2 + rate**2, 2 * rate
    for axis, (length, is_periodic) in enumerate(zip(box.lengths, box.periodic, strict=True)):
        if is_periodic:
            continue
        x, v = pos[:, axis], vel[:, axis]
        found[:, axis] += np.where(x < 0.5, stiffness * (0.5 - x) - damping * v, 0.0)
        found[:, axis] -= np.where(x > length - 0.5, stiffness * (x - (length - 0.5)) + damping * v, 0.0)
    return found


def flown(state: md.State, law, steps: int, dt: float, max_speed=1.0, gravity=None, walls=None):
    """Positions and velocities after some steps, by id: each step from the old state alone."""
    start = state.by_id()
    pos, vel, box = start.pos.copy(), start.vel.copy(), start.box
    for _ in range(steps):
        pull = field(pos, vel, box, gravity, walls)
        vel = vel + increments(pos, vel, box, law) + dt * pull
        speed = np.linalg.norm(vel, axis=1, keepdims=True)
        vel = np.where(speed > max_speed, vel * (max_speed / np.maximum(speed, max_speed)), vel)
        pos = pos + dt * vel
        pos = np.where(box.periodic, np.mod(pos, box.lengths), pos)
    return pos, vel


def outcome(start: md.State, law: md.laws.Boids, steps: int, dt: float, walls=None) -> tuple:
    """Positions, velocities, next increments and pairs by id, the time and the steps, after some steps."""
    pos, vel = flown(start, law, steps, dt, walls=walls)
    push = increments(pos, vel, start.box, law) + dt * field(pos, vel, start.box, None, walls)
    close = np.sqrt((differences(pos, start.box) ** 2).sum(axis=-1)) < law.cutoff
    pairs = np.sort(start.id)[np.argwhere(np.triu(close, 1))]
    return pos, vel, push, set(map(tuple, pairs.tolist())), steps * dt, steps
