"""Trajectory files: one run at a time appends, links are kept, and errors name the damage."""

import os
import signal
import struct

import gsd.hoomd
import numpy as np
import pytest

import md
from md.io import atomic_write as whole
from md.io.trajectory import TrajectoryError, append_frame
from tests.md.io.test_trajectory import Now, cloud, frames
from tests.processes import started


def write_on(path, pipe) -> None:
    """Append a frame as a run does, send a message, and wait until the process is killed."""
    trajectory = md.Trajectory(path, 5, append=True)
    trajectory.report(Now(cloud(seed=5), 20))
    pipe.send("written")
    signal.pause()
    del trajectory


def gsd_frame(step: int) -> gsd.hoomd.Frame:
    """Make a frame with a step only, everything else as in the first."""
    frame = gsd.hoomd.Frame()
    frame.configuration.step, frame.particles.N = step, 40
    return frame


@pytest.fixture
def path(tmp_path):
    """Write a trajectory of two frames."""
    for step in (0, 10):
        append_frame(tmp_path / "run.gsd", cloud(seed=step), step)
    return tmp_path / "run.gsd"


class TestTwoRuns:
    def test_the_second_is_refused_while_the_first_writes(self, path):
        process, heard = started(write_on, path)
        assert heard.recv() == "written"
        before = path.read_bytes()
        for refused in (
            lambda: append_frame(path, cloud(seed=6), 30),
            lambda: md.Trajectory(path, 5, append=True).report(Now(cloud(seed=6), 15)),
        ):
            with pytest.raises(BlockingIOError, match=r"another process .*another name.*step.*run\.gsd"):
                refused()
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]
        process.kill()
        process.join()
        append_frame(path, cloud(seed=6), 30)
        assert [frame.configuration.step for frame in frames(path)] == [0, 10, 20, 30]

    def test_a_run_that_releases_the_file_lets_another_write(self, path):
        trajectory = md.Trajectory(path, 5, append=True)
        trajectory.report(Now(cloud(seed=5), 15))
        trajectory.release()
        process, heard = started(write_on, path)
        assert heard.recv() == "written"
        with pytest.raises(BlockingIOError, match="`release` its Trajectory"):
            trajectory.report(Now(cloud(seed=5), 25))
        process.kill()
        process.join()
        trajectory.report(Now(cloud(seed=5), 25))
        assert [frame.configuration.step for frame in frames(path)] == [0, 10, 15, 20, 25]

    def test_one_process_may_append_by_several_reporters(self, path):
        kept = [md.Trajectory(path, 5, append=True) for _ in range(2)]
        for k in range(4):
            kept[k % 2].report(Now(cloud(seed=k), 20 + k))
        append_frame(path, cloud(), 40)
        assert [frame.configuration.step for frame in frames(path)] == [0, 10, 20, 21, 22, 23, 40]

    @pytest.mark.parametrize("append", [False, True])
    def test_a_file_that_another_process_creates_in_the_meantime_is_not_replaced(
        self, append, path, tmp_path, monkeypatch
    ):
        place, move = tmp_path / "new.gsd", whole._move

        def create_before(*arguments):
            place.write_bytes(path.read_bytes())
            return move(*arguments)

        monkeypatch.setattr(whole, "_move", create_before)
        trajectory = md.Trajectory(place, 5, append)
        if append:
            trajectory.report(Now(cloud(seed=1), 15))
            assert [frame.configuration.step for frame in frames(place)] == [0, 10, 15]
        else:
            with pytest.raises(FileExistsError, match=r"step 15 was not written.*new\.gsd"):
                trajectory.report(Now(cloud(seed=1), 15))
            assert place.read_bytes() == path.read_bytes()
        assert sorted(os.listdir(tmp_path)) == ["new.gsd", "run.gsd"]


class TestLinks:
    def test_the_targets_of_partial_names_are_not_written(self, path, tmp_path, monkeypatch):
        victim, names = tmp_path / "victim", iter(f"{k:016x}" for k in (1, 2, 1, 3))
        victim.write_text("mine")
        monkeypatch.setattr(whole.secrets, "token_hex", lambda _: next(names))
        for name in ("new", "run"):
            for partial in (f".{name}.gsd.partial", f".{name}.gsd.{1:016x}.partial"):
                (tmp_path / partial).symlink_to(victim)
        append_frame(tmp_path / "new.gsd", cloud(), 0)
        with pytest.warns(RuntimeWarning):
            md.Trajectory(path, 5, append=True).report(Now(cloud(seed=99), 10))
        assert victim.read_text() == "mine"
        assert [len(frames(tmp_path / f"{name}.gsd")) for name in ("new", "run")] == [1, 2]

    def test_the_target_of_a_link_is_created_and_truncated(self, tmp_path):
        (tmp_path / "deep").mkdir()
        link, path = tmp_path / "deep" / "latest.gsd", tmp_path / "run.gsd"
        link.symlink_to(path)
        for step in (0, 10):
            append_frame(link, cloud(seed=step), step)
        before = path.read_bytes()
        with pytest.warns(RuntimeWarning):
            md.Trajectory(link, 5, append=True).report(Now(cloud(seed=99), 10))
        assert link.is_symlink()
        assert len(frames(path)) == 2
        assert (tmp_path / "deep" / "latest.before-10.gsd").read_bytes() == before


class TestDamaged:
    def refused(self, path, message):
        before = path.read_bytes()
        for append in (append_frame, lambda *now: md.Trajectory(path, 1, append=True).report(Now(*now[1:]))):
            with pytest.raises(TrajectoryError, match=rf"run\.gsd .*{message}.*(another|a new) name"):
                append(path, cloud(seed=3), 10)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]

    @pytest.mark.parametrize("bytes_", [1, 8, 40])
    def test_a_truncated_file_is_an_error(self, bytes_, path):
        path.write_bytes(path.read_bytes()[:-bytes_])
        self.refused(path, r"is no trajectory to append to \(Corrupt GSD file")

    @pytest.mark.parametrize(
        ("block", "field", "value"),
        [
            ("index", 1, 0),  # in the header itself
            ("index", 1, 7335),  # at the end of the file
            ("index", 1, 2**64 - 8),  # times 32, plus 32 or 256, modulo 2^64 these are in the file
            ("index", 2, 0),
            ("index", 2, 2**7 + 2**61),
            ("index", 2, 2**7 + 2**59),
            ("namelist", 3, 255),
            ("namelist", 3, 2**64 - 8),
            ("namelist", 4, 0),
            ("namelist", 4, 2**4 + 2**58),
        ],
    )
    def test_a_header_with_a_block_beyond_the_file_is_refused(self, block, field, value, path):
        """The package gsd computes the ends of blocks in 64 bits, and reads there."""
        data = bytearray(path.read_bytes())
        struct.pack_into("<Q", data, 8 * field, value)
        path.write_bytes(data)
        place, count = struct.unpack_from("<2Q", data, 8 if block == "index" else 24)
        size = 32 if block == "index" else 64
        self.refused(
            path,
            rf"is no trajectory to append to \(Corrupt GSD file: {block} of {count} entries of {size} bytes "
            rf"from byte {place} on, in a file of {len(data)} bytes\)",
        )

    @pytest.mark.parametrize(
        ("field", "value", "index", "namelist"),
        [
            (1, 768, (768, 4864), (4352, 5376)),  # of which the entries are 0, as of a file without frames
            (2, 129, (256, 4384), (4352, 5376)),
            (3, 4096, (256, 4352), (4096, 5120)),
        ],
    )
    def test_a_header_with_blocks_over_each_other_is_refused(self, field, value, index, namelist, path):
        """The package gsd would write the next frame over the first."""
        data = bytearray(path.read_bytes())
        struct.pack_into("<Q", data, 8 * field, value)
        path.write_bytes(data)
        self.refused(
            path,
            rf"index in the bytes of range\({index[0]}, {index[1]}\), namelist in those of "
            rf"range\({namelist[0]}, {namelist[1]}\)",
        )

    def test_a_flipped_bit_of_the_header_is_an_error_or_harms_no_frame(self, path):
        whole = path.read_bytes()
        for bit in range(8 * 48):
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            path.write_bytes(data)
            try:
                append_frame(path, cloud(seed=3), 20)
            except ValueError:
                assert path.read_bytes() == data, bit
            else:
                assert [frame.configuration.step for frame in frames(path)] == [0, 10, 20], bit

    def test_the_error_of_a_truncated_frame_names_the_frame(self, path):
        for step in range(11, 50):  # so that the index of the file is not at its end
            append_frame(path, cloud(seed=step), step)
        path.write_bytes(path.read_bytes()[:-8])
        self.refused(path, r"is damaged: frame 40 cannot be read \(RuntimeError\('Corrupt GSD file")

    def test_the_error_of_an_incomplete_frame_names_the_frame(self, path):
        with gsd.hoomd.open(path, "r+") as file:
            file.file.write_chunk("configuration/step", np.array([], np.uint64))
            file.file.end_frame()
        self.refused(path, "is damaged: frame 2 cannot be read .IndexError")

    def test_no_memory_is_allocated_for_more_particles_than_the_file_can_hold(self, path):
        with gsd.hoomd.open(path, "w") as file:
            frame = gsd.hoomd.Frame()
            frame.particles.N = 2**32 - 1
            file.file.write_chunk("particles/N", np.array([2**32 - 1], np.uint32))
            file.file.end_frame()
        with pytest.raises(ValueError, match=r"run\.gsd holds 4294967295 particles, and this frame 40"):
            append_frame(path, cloud(), 20)

    def test_no_memory_is_allocated_for_more_bonds_than_the_file_can_hold(self, path):
        with gsd.hoomd.open(path, "w") as file:
            file.file.write_chunk("particles/N", np.array([40], np.uint32))
            file.file.write_chunk("bonds/N", np.array([2**32 - 1], np.uint32))
            file.file.end_frame()
        with pytest.raises(ValueError, match=r"run\.gsd .* frame 0 holds the chunk 'bonds/N'; allowed: "):
            append_frame(path, cloud(), 20)
