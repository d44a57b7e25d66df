"""A run that was loaded has its faults at the step, and by the energy, of the run that was saved."""

import json

import numpy as np
import pytest

import md
from md.simulation.energy_monitor import GROWTH
from tests.md.io.test_checkpoint import DT, LAW


def test_an_energy_that_explodes_after_a_restart_is_seen(backend, tmp_path, start_energy):
    """Compared with that of the start, which is long gone: what is left of it would hide nothing."""
    slow = md.State([[2, 2, 2], [3.2, 2, 2]], [[0, 0, 0], [1.0, 0, 0]], md.Box((6, 6, 6)))
    simulation = md.Simulation(slow, LAW, dt=DT, backend=backend)
    simulation.run(5)
    assert start_energy(simulation) == pytest.approx(0.5)
    simulation.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    arrays["vel"] = arrays["vel"] * 100 * GROWTH
    np.savez(tmp_path / "hot.npz", **arrays)
    hot = md.Simulation.load(tmp_path / "hot.npz", post_mortem=tmp_path / "left")
    with pytest.raises(md.EnergyExploded) as caught:
        hot.run(30)
    assert caught.value.start == pytest.approx(0.25)  # a particle
    assert caught.value.saved.parent == tmp_path / "left"
    assert not hasattr(simulation, "post_mortem")


def leaving(backend: str, fused: bool) -> md.Simulation:
    """A run at step 60 whose particle 7 leaves the box at step 99."""
    box = md.Box((40.0, 5, 5), periodic=(False, True, True))
    state = md.State([[39.005, 2, 2], [5.0, 2, 2]], [[1.0, 0, 0], [0.0, 0, 0]], box, id=[7, 3])
    free = md.laws.SpringDashpot(0.0, 0.0)
    simulation = md.Simulation(state, free, search="verlet", dt=0.01, backend=backend, fused=fused)
    simulation.run(60)
    return simulation


@pytest.mark.quick
def test_a_fault_after_a_restart_tells_the_step_of_the_run(backend, tmp_path):
    for fused in (False, True):
        leaving(backend, fused).save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        with pytest.raises(md.ParticleEscaped) as caught:
            loaded.run(100, phases=False)
        assert (caught.value.step, caught.value.particle) == (99, 7)
        with pytest.raises(md.ParticleEscaped):
            loaded.save(tmp_path / "run.npz")
        assert md.Simulation.load(tmp_path / "run.npz").step == 60


def test_a_fault_past_the_reach_of_its_word_tells_its_step(backend, tmp_path):
    for fused in (False, True):
        leaving(backend, fused).save(tmp_path / "run.npz")
        with np.load(tmp_path / "run.npz") as file:
            arrays = dict(file)
        config = json.loads(str(arrays["config"]))
        for step in (2**31 - 70, 2**31 + 60, 2**33 + 5):
            arrays["config"] = np.array(json.dumps(config | {"step": step}))
            np.savez(tmp_path / "late.npz", **arrays)
            with pytest.raises(md.ParticleEscaped) as caught:
                md.Simulation.load(tmp_path / "late.npz").run(100, phases=False)
            assert (caught.value.step, caught.value.particle) == (step + 39, 7)
