"""Strategy "spectral": all Jacobi sweeps of a step as one linear operator.

With constant coefficients a sweep is diagonal in a cosine basis that has the boundary values of the pressure:
cos(pi k (i + 1/2) / n) along x (zero gradient at both sides; DCT-II), and
cos(pi (2 m + 1) (j + 1/2) / (2 n + 1)) along y (zero gradient below, 0 above; DCT-VIII), i and j from the
first of n points inside. So S sweeps multiply a mode by lambda^S and add (1 - lambda^S) / (1 - lambda) of the
right-hand side, lambda being the mean of the cosines of the two wave numbers. Bases: Strang (1999).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from md.backend import Backend, OnDevice
from md.cavity.base import Order, Solver, Strategy, Values
from md.cavity.boundary import apply, require_boundary_values
from md.cavity.pressure.poisson import basis
from md.cavity.resident import ResidentSolver, at_rest
from md.cavity.scheme import Scheme
from md.cavity.strategies.reference import NumpySolver

LARGEST = 42  # points a side of a cavity whose bases fit in the registers of a block
BLOCK = 8  # matrices are padded to multiples of so many rows and columns
TILE = 16  # rows of the part of a product that a warp has; it has BLOCK columns
LANES = 32
SCHEDULERS = 4  # of a multiprocessor; each has as many warps

advance = OnDevice("RESIDENT_THREADS", shared=lambda bytes: bytes, is_resident=True)


class Operator(NamedTuple):
    """The sweeps of a step in the cosine basis, for ny by nx points inside the boundary.

    Attributes:
        basis_x: (nx, nx) float64, orthonormal, a row a mode.
        basis_y: (ny, ny) float64, likewise.
        decay: (ny, nx) factors of the transformed pressure.
        gain: (ny, nx) factors of the transform of what a sweep adds.
    """

    basis_x: np.ndarray
    basis_y: np.ndarray
    decay: np.ndarray
    gain: np.ndarray

    def transform(self, field: np.ndarray) -> np.ndarray:
        """Return the modes of a (ny, nx) field: (ny, nx) float64."""
        return self.basis_y @ field.astype(np.float64) @ self.basis_x.T

    def field(self, modes: np.ndarray) -> np.ndarray:
        """Return the (ny, nx) float64 field of modes."""
        return self.basis_y.T @ modes @ self.basis_x


def operator_of(shape: tuple[int, int], sweeps: int) -> Operator:
    """Return the operator of `sweeps` Jacobi sweeps for a (ny, nx) cavity, boundary included."""
    ny, nx = shape[0] - 2, shape[1] - 2
    wave_x, wave_y = np.pi * np.arange(nx) / nx, np.pi * (2 * np.arange(ny) + 1) / (2 * ny + 1)
    basis_x, basis_y = basis(nx, ("neumann", "neumann")).T, basis(ny, ("neumann", "dirichlet")).T
    factor = (np.cos(wave_x) + np.cos(wave_y)[:, None]) / 2
    decay, gain = np.ones_like(factor), np.zeros_like(factor)
    for bit in f"{sweeps:b}":  # of twice as many sweeps, and of one more
        decay, gain = decay * decay, gain + decay * gain
        if bit == "1":
            decay, gain = decay * factor, gain * factor + 1
    return Operator(basis_x, basis_y, decay, gain)


@dataclass(frozen=True)
class Spectral(Strategy):
    """Configuration of the strategy that takes all sweeps as one operator; for the default sides.

    In float32 it differs from the reference by at most 2e-6 of the largest value after 1000 steps of 41 x 41.
    """

    name = "spectral"
    tolerance = 1e-12
    work = 2**29
    backends = ("cpu", "cuda")
    any_sides = False

    @classmethod
    def allowed_shapes(cls, shape: tuple[int, int], backend: Backend) -> str:
        """Describe the shapes that fit in one block of a device, if `shape` does not; see `Strategy`."""
        if backend.name == "cpu":
            return ""
        needed = shared_bytes((LARGEST, LARGEST), 8)
        if backend.staging_memory < needed:
            return (
                f"none on this device: {needed} bytes of shared memory a block and tensor cores are needed, "
                f"and {backend.staging_memory} bytes are there"
            )
        return "" if max(shape) <= LARGEST else f"at most {LARGEST} points a side on backend {backend.name!r}"

    def needed_bytes(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> int:
        """Return the bytes of the fields, the bases with their angles, and the modes; see `Strategy`."""
        ny, nx = scheme.shape
        operator = 8 * (2 * (nx * nx + ny * ny) + 5 * nx * ny)
        return super().needed_bytes(scheme, layout, order, backend) + operator

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> Solver:
        """Make the solver, with all fields 0."""
        if backend.name == "cpu":
            return SpectralSolver(scheme)
        return DeviceSolver(scheme, backend)


class SpectralSolver(NumpySolver):
    """Fields on the host, with the modes of the pressure."""

    def __init__(self, scheme: Scheme):
        super().__init__(scheme)
        self._operator = operator_of(scheme.shape, scheme.sweeps)
        self._modes = np.zeros_like(self._operator.decay)

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields; see `Solver.load`.

        Raises:
            ValueError: a pressure without its boundary values.
        """
        if p is not None:
            require_boundary_values(p, self.scheme, "numpy")
            self._modes = self._operator.transform(p[1:-1, 1:-1])
        super().load(u, v, p)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the fields and the modes of the pressure."""
        return super().state_dict() | {"modes": self._modes.copy()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `state_dict` returned."""
        super().load_state(state)
        self._modes = state["modes"].copy()

    def _solve_pressure(self, source: np.ndarray) -> None:
        """Take all sweeps at once; see `NumpySolver`."""
        added = self._operator.transform(-0.25 * source)
        self._modes = self._operator.decay * self._modes + self._operator.gain * added
        self._p[1:-1, 1:-1] = self._operator.field(self._modes)
        apply(self._p, "p", self._conditions)


class Fields(NamedTuple):
    """Arrays of the kernel, and the speed of the lid.

    Attributes:
        u, v, p: (ny, nx).
        transform, decay, gain: modes of the pressure and their factors, padded to multiples of `BLOCK`.
        basis_x, basis_y: bases, padded likewise.
        lid: speed of the top.
    """

    u: Any
    v: Any
    p: Any
    transform: Any
    decay: Any
    gain: Any
    basis_x: Any
    basis_y: Any
    lid: np.floating


class DeviceSolver(ResidentSolver):
    """Fields in device memory between launches of `spectral.cu`, each of one block for many steps."""

    def __init__(self, scheme: Scheme, backend: Backend):
        constants = constants_of(scheme.shape[1] - 2, scheme.shape[0] - 2)
        kernels = backend.kernels(__name__, constants=constants)
        shared = shared_bytes(scheme.shape, scheme.dtype.itemsize)
        super().__init__(scheme, backend, kernels, constants["RESIDENT_THREADS"], shared)
        self._operator = operator_of(scheme.shape, scheme.sweeps)
        matrices = self._operator._asdict() | {"transform": np.zeros_like(self._operator.decay)}
        uploaded = {name: backend.upload(padded(matrix)) for name, matrix in matrices.items()}
        self._fields = Fields(**at_rest(scheme, backend), **uploaded)

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields, and the modes of the pressure; see `ResidentSolver.load`."""
        super().load(u, v, p)
        if p is not None:
            self._set_modes(self._operator.transform(p[1:-1, 1:-1]))

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the fields and the modes of the pressure."""
        ny, nx = self._operator.decay.shape
        modes = self._backend.download(self._fields.transform)[:ny, :nx]
        return super().state_dict() | {"modes": modes.copy()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `state_dict` returned."""
        super().load_state(state)
        self._set_modes(state["modes"])

    def advance(self, steps: int) -> int:
        """Take steps in one launch; see `Solver.advance`."""
        return self._launch(steps)[0]

    def _set_modes(self, modes: np.ndarray) -> None:
        self._fields = self._fields._replace(transform=self._backend.upload(padded(modes)))


def padded(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix with rows and columns of zeros up to multiples of `BLOCK`."""
    return np.pad(matrix, [(0, -size % BLOCK) for size in matrix.shape])


def constants_of(nx: int, ny: int) -> dict[str, int]:
    """Return the constants for which the kernel is compiled, for nx by ny points inside the boundary."""
    warps = max(-(-nx // BLOCK) * -(-ny // TILE), -(-ny // BLOCK) * -(-nx // TILE))
    threads = LANES * SCHEDULERS * -(-warps // SCHEDULERS)
    points = points_of_a_thread(nx, ny, threads)
    return {"INNER_X": nx, "INNER_Y": ny, "RESIDENT_THREADS": threads, "POINTS": points}


def points_of_a_thread(nx: int, ny: int, threads: int) -> int:
    """Return the smallest number of points of a column so that `threads` such parts cover nx by ny points."""
    return next(points for points in range(1, ny + 1) if nx * -(-ny // points) <= threads)


def shared_bytes(shape: tuple[int, int], itemsize: int) -> int:
    """Return the bytes of shared memory of the kernel: two bases, two matrices, four velocities.

    Args:
        shape: (ny, nx), boundary included.
        itemsize: bytes of a number of the fields.
    """
    ny, nx = shape
    wide, high = (-(-(size - 2) // BLOCK) * BLOCK for size in (nx, ny))
    matrix = max(high * (wide + 4), wide * (high + 4))
    doubles = wide * (wide + 4) + high * (high + 4) + 2 * matrix
    return 8 * doubles + 4 * nx * ny * itemsize
