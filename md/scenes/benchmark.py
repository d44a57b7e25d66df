"""The benchmark gas: a jittered simple-cubic lattice in shuffled memory, made where it is needed.

Each particle is a function of the seed and its lattice site (`md.scenes.deviates`), and its slot in memory
one of the seed and the site (`md.scenes.permutation`). So the state holds no arrays: a simulation lets a
kernel write them on its own backend, in its own precision and layout. The bits are the same on each.

Velocities of zero momentum and exact temperature need two sums over all particles. Deviates are rounded to
multiples of 2^-28, so that these are sums of integers, which do not depend on the order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from md import checks
from md.backend import Backend, Cpu, get, why_not
from md.backend import checked as checked_backend
from md.backend.base import Array
from md.checks import word
from md.laws import SpringDashpot
from md.particles.box import Box
from md.particles.state import State
from md.scenes.deviates import JITTER, LOW, VELOCITY, WORD, normal, uniforms
from md.scenes.permutation import ROUNDS, bits_of, permuted
from md.scenes.spheres import MEMORY_ORDERS, box_for, checked_seed
from sfc.compile import in_parts, inlined, kernel

# Contacts of 50 steps; the fastest particle moves by about 0.0095 d a step.
BENCHMARK_LAW = SpringDashpot(stiffness=1e4, damping=5.0)
BENCHMARK_DT = 4.4e-4
BENCHMARK_TEMPERATURE = 16.0

STEPS = 2.0**28  # of a deviate of 1; deviates below 7.4 are then less than 2^31
THREADS = 2**17  # at most, on a device, in whole blocks; each sums several particles
FEWEST_ON_DEVICE = 2**16  # for fewer particles "auto" does not start a device
FEW = 2**10  # particles for which threads of the CPU are not worth their start
NARROWEST, WIDEST = 28, 52  # bytes of position, velocity and id of a particle in float32 and in float64
RECORD = np.dtype(
    [
        ("spacing", np.float64),  # of the lattice, in d
        ("amplitude", np.float64),  # of the jitter, from end to end, in d
        ("scale", np.float64),  # velocity of a step of a deviate
        ("mean", np.float64, (3,)),  # of the deviates, in steps
        ("key", np.uint32, (2,)),
        ("round_keys", np.uint32, (ROUNDS,)),
        ("side", np.int32),  # sites along each axis
        ("bits", np.int32),  # of the permutation
        ("shuffled", np.int32),
    ],
    align=True,
)
ARRAYS = "pos", "vel", "id"


class BenchmarkGas(State):
    """The benchmark gas as a recipe; its arrays on the host are made when one of them is first read.

    Attributes:
        pos: (n, 3) float64, in d.
        vel: (n, 3) float64, in d per time unit.
        id: (n,) int32 lattice sites.

    Raises:
        ValueError: by reading an array: not enough memory on the host.
    """

    def __init__(self, n: int, box: Box, record: np.ndarray, slots: range | None = None):
        self._n, self._record, self._slots = n, record, range(n) if slots is None else slots
        self.box, self.radius = box, None

    def __len__(self) -> int:
        return len(self._slots) if self._is_recipe else len(self.pos)

    def __getattr__(self, name: str) -> Any:
        if name not in ARRAYS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        n = len(self._slots)
        remedy = "take fewer particles, or only make a simulation on a device, which needs no host arrays"
        checks.require_allocatable(f"arrays of {n} particles on the host", WIDEST * n, remedy)
        host = Cpu()
        made = host.rows(n, 3, np.float64), host.rows(n, 3, np.float64), host.empty(n, np.int32)
        host.kernels(__name__).make(n, self._slots.start, self._n, self._record, *made)
        for one, array in zip(ARRAYS, made, strict=True):
            self.__dict__.setdefault(one, array)  # one may have been assigned
        return self.__dict__[name]

    @property
    def _is_recipe(self) -> bool:
        """Whether no array was read or assigned, so that a kernel may make them."""
        return not any(name in self.__dict__ for name in ARRAYS)

    def part(self, rank: int, size: int) -> State:
        """Make the particles of one of several parts of the slots, without those of the others.

        For `md.Simulation(gas.part(ranks.rank, ranks.size), ..., division=md.Division(is_part=True))`.

        Args:
            rank: number of the part, from 0 on.
            size: number of parts.

        Raises:
            TypeError: a number that is no integer.
            ValueError: no such part.
        """
        size = checks.integer("size", size, 1, unit="parts")
        rank = checks.integer("rank", rank, 0, size - 1)
        n = len(self)
        some = slice(n * rank // size, n * (rank + 1) // size)
        if not self._is_recipe:
            return State(self.pos[some], self.vel[some], self.box, self.id[some])
        return BenchmarkGas(self._n, self.box, self._record, self._slots[some])

    def store(self, backend: Backend, pos: Array, vel: Array, id: Array) -> None:
        """Make the particles in arrays of a backend; those that were read on the host are copied."""
        if not self._is_recipe:
            super().store(backend, pos, vel, id)
            return
        given = len(self), self._slots.start, self._n, self._record
        backend.kernels(__name__).make(*given, pos, vel, id)


def benchmark_gas(
    n: int,
    filling_fraction: float,
    seed: int = 0,
    memory_order: str = "shuffled",
    backend: str | Backend = "auto",
) -> State:
    """Make the benchmark gas for comparison with peers: a jittered simple-cubic lattice in a periodic cube.

    Its temperature is 16. To be run with `BENCHMARK_LAW` and `BENCHMARK_DT`. The state holds no arrays until
    one is read: a simulation on a device makes the particles there, without arrays on the host.

    Args:
        n: number of particles, at least 1.
        filling_fraction: positive, and low enough for a simple-cubic lattice with room to jitter.
        seed: of jitter, velocities and shuffle.
        memory_order: "shuffled" or "lattice".
        backend: on which velocities are summed, for zero momentum and exact temperature; "auto" for CUDA if
            there is a device and n is at least 65,536. A seed gives the same bits on each.

    Returns:
        The state in float64; ids number the lattice sites, axis 0 fastest, in any memory order. No two
        centres are closer than 1; in float32 rounding may bring them closer.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction too high for the simple-cubic lattice, too little memory on the
            backend, or a value outside its range.
        BackendUnavailableError: "cuda" where CUDA cannot run.
    """
    box, n, seed = box_for(n, filling_fraction), int(n), checked_seed(seed)
    word("memory_order", memory_order, MEMORY_ORDERS)
    summing = _summing_backend(backend, n)
    remedy = "take fewer: a smaller n"
    checks.require_allocatable(f"a scene of {n} particles", NARROWEST * n, remedy, summing.free_memory)
    record = _lattice(n, filling_fraction, box)
    words = np.random.SeedSequence(seed).generate_state(2 + ROUNDS)
    record["key"], record["round_keys"] = words[:2], words[2:]
    record["bits"], record["shuffled"] = bits_of(n), memory_order == "shuffled"
    record["mean"], record["scale"] = _moments(n, record, summing)
    return BenchmarkGas(n, box, record)


def _summing_backend(backend: str | Backend, n: int) -> Backend:
    """Return the backend that sums velocities."""
    backend = checked_backend(backend)
    if isinstance(backend, str) and backend == "auto":
        backend = "cuda" if n >= FEWEST_ON_DEVICE and why_not() is None else "cpu"
    return get(backend)


def _lattice(n: int, filling_fraction: float, box: Box) -> np.ndarray:
    """Make the record of a gas, with the lattice filled in.

    Raises:
        ValueError: a spacing of at most 1.
    """
    side = round(n ** (1 / 3))
    side += side**3 < n
    length = box.lengths[0]
    spacing = length / side
    if spacing <= 1:
        raise ValueError(
            f"filling_fraction = {filling_fraction} with n = {n}: a simple-cubic lattice of {side} sites a "
            f"side has a spacing of {spacing:.4f} d; allowed: more than 1; lower it, or take granular_gas"
        )
    record = np.zeros(1, RECORD)
    record["side"], record["spacing"] = side, spacing
    record["amplitude"] = max(0.0, spacing - 1 - length * 2.0**-49)  # despite the rounding of positions
    return record


def _moments(n: int, record: np.ndarray, backend: Backend) -> tuple[tuple[float, ...], float]:
    """Sum the deviates of all particles.

    Returns:
        Their mean along each axis, in steps, and the velocity of a step at which the temperature is exact.
    """
    sums = backend.zeros(5, np.int64)
    threads = min(-(-n // 256) * 256, THREADS)
    backend.kernels(__name__).add_up(threads, n, record, 4 * backend.workers, sums)
    *total, low, high = backend.download(sums).tolist()
    squares = n * (low + 2**32 * high) - sum(one * one for one in total)  # exact: integers of Python
    scale = math.sqrt(BENCHMARK_TEMPERATURE / (squares / (3 * n * n))) if squares else 0.0
    return tuple(one / n for one in total), scale


@inlined
def whole_deviates(gas, site):
    """Return the velocity components of a site before the mean is subtracted, as int64 numbers of steps."""
    u0, u1, u2 = uniforms(np.uint64(site), VELOCITY, np.uint64(gas.key[0]), np.uint64(gas.key[1]))
    return whole(normal(u0)), whole(normal(u1)), whole(normal(u2))


@inlined
def whole(deviate):
    """Round a deviate to an int64 number of steps."""
    return np.int64(math.floor(deviate * STEPS + 0.5))


def add_up(threads, n, gas, parts, sums):
    """Sum the deviates along each axis into sums[0] to sums[2], and their squares into sums[3] and sums[4].

    sums[3] gets the lower 32 bits of the squares of each particle, sums[4] the upper ones. `threads` is the
    number of threads on a device, and `parts` is for other kernels: sums of integers are the same in any.
    """
    for part in in_parts(lambda part: _sums_of(part.start, part.stop, gas), n, FEW):
        sums += part


@kernel
def _sums_of(first, last, gas):
    """Return the sums of `add_up` over the sites first .. last - 1."""
    sums, g = np.zeros(5, np.int64), gas[0]
    for site in range(first, last):
        q0, q1, q2 = whole_deviates(g, site)
        square = np.uint64(q0 * q0) + np.uint64(q1 * q1) + np.uint64(q2 * q2)
        sums[0] += q0
        sums[1] += q1
        sums[2] += q2
        sums[3] += np.int64(square & LOW)
        sums[4] += np.int64(square >> WORD)
    return sums


def make(n, first, total, gas, pos, vel, id):
    """Make position, velocity and id of n particles of `total`, those of the slots from `first` on.

    Slot i has the site of entry i of the permutation.
    """
    in_parts(lambda part: _make(part.start, part.stop, first, total, gas, pos, vel, id), n, FEW)


@kernel
def _make(begin, end, first, n, gas, pos, vel, id):
    """Make the particles of the rows begin .. end - 1, of which row i has slot first + i."""
    real = pos.dtype.type
    for i in range(begin, end):
        g = gas[0]
        site = np.int64(permuted(first + i, n, g.bits, g.round_keys)) if g.shuffled else first + i
        key_0, key_1 = np.uint64(g.key[0]), np.uint64(g.key[1])
        u, q = uniforms(np.uint64(site), JITTER, key_0, key_1), whole_deviates(g, site)
        cell = site % g.side, site // g.side % g.side, site // g.side // g.side
        for k in range(3):
            pos[i, k] = real((cell[k] + 0.5) * g.spacing + u[k] * g.amplitude)
            vel[i, k] = real((q[k] - g.mean[k]) * g.scale)
        id[i] = site
