"""What a fault leaves behind: the arrays as they lay, in the error and in a file."""

import os
from pathlib import Path

import numpy as np
import pytest

import md
from tests.md.simulation.test_faults import BOX, both_precisions, near


class TestPostMortem:
    def escaping(self, backend, folder=None, **options) -> md.Simulation:
        state = md.State(
            [[1, 1, 1], [4.5, 3, 1 / 3]], [[0, 0, 0], [8, 0, 0.1]], md.Box((5, 5, 5), False), id=[7, 3]
        )
        law = md.laws.SpringDashpot(0, 0)
        return md.Simulation(state, law, dt=0.03125, backend=backend, post_mortem=folder, **options)

    @both_precisions
    def test_the_error_holds_the_arrays_as_they_lay(self, backend, precision):
        simulation = self.escaping(backend, precision=precision)
        with pytest.raises(md.ParticleEscaped) as fault:
            simulation.run(50)
        error, left = fault.value, fault.value.state
        assert (error.step, error.particle, error.saved) == (2, 3, None)
        assert left.pos.dtype == left.vel.dtype == precision
        assert left.id.tolist() == [7, 3]
        assert left.pos[:, 0].tolist() == [1.0, 5.0]  # where it was before it left
        assert left.vel[:, 0].tolist() == [0.0, 8.0]
        assert left.box == md.Box((5, 5, 5), False)
        assert left.dt == 0.03125
        assert left.step > error.step

    @pytest.mark.quick
    def test_the_file_holds_the_same_to_the_last_bit(self, backend, tmp_path):
        simulation = self.escaping(backend, tmp_path / "deep" / "down")
        with pytest.raises(md.ParticleEscaped, match=r"; the state is in .*fault-2\.npz$") as fault:
            simulation.run(50)
        left = fault.value.state
        assert fault.value.saved == tmp_path / "deep" / "down" / "fault-2.npz"
        assert os.listdir(fault.value.saved.parent) == ["fault-2.npz"]
        with np.load(fault.value.saved, allow_pickle=False) as saved:
            assert set(saved) == {"pos", "vel", "id", "lengths", "periodic", "open", "step", "dt"}
            for name in ("pos", "vel", "id"):
                assert np.array_equal(saved[name], getattr(left, name))
                assert saved[name].dtype == getattr(left, name).dtype
            assert (saved["step"], saved["dt"]) == (left.step, left.dt)
            box = md.Box(*(tuple(saved[name]) for name in ("lengths", "periodic", "open")))
            assert box == left.box
            md.State(saved["pos"], saved["vel"], box, saved["id"])

    def test_velocities_that_are_not_finite_are_saved_too(self, backend, tmp_path):
        state = md.State([[1, 1, 1]], [[1e300, 0, 0]], BOX)
        law = md.laws.SpringDashpot(0, 0)
        simulation = md.Simulation(state, law, dt=1e10, backend=backend, post_mortem=tmp_path)
        with pytest.raises(md.NonFiniteState) as fault:
            simulation.run(1)
        assert np.load(fault.value.saved)["vel"][0, 0] == 1e300

    def test_an_overlapping_start_is_saved(self, backend, tmp_path):
        with pytest.raises(md.OverlappingStart, match=r"fault-0\.npz"):
            near(0.25, backend=backend, post_mortem=str(tmp_path)).run(1)
        assert np.load(tmp_path / "fault-0.npz")["id"].tolist() == [9, 2, 4, 8]

    def test_a_file_that_cannot_be_written_hides_no_fault(self, backend, tmp_path):
        simulation = self.escaping(backend, tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        with pytest.raises(md.ParticleEscaped, match=r"could not be saved as .*No such file") as fault:
            simulation.run(50)
        assert fault.value.saved is None
        assert fault.value.state is not None

    def test_a_write_that_is_cut_short_leaves_no_half_file(self, backend, tmp_path, monkeypatch):
        def full(file, **arrays):
            file.write(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(np, "savez", full)
        with pytest.raises(md.ParticleEscaped, match="No space left"):
            self.escaping(backend, tmp_path).run(50)
        assert not list(Path(tmp_path).glob("*.npz"))

    def test_a_folder_that_cannot_be_made_is_refused_at_once(self, backend, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ValueError, match=r"post_mortem = '.*file'.*allowed: a folder"):
            self.escaping(backend, tmp_path / "file")
