"""Atomic writes and claims of files, with several processes."""

import errno
import os
import signal
import stat
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from md.io import atomic_write as whole
from md.io.atomic_write import claimed, write_atomically
from md.io.checkpoint import SavedRun
from tests.md.io.test_checkpoint_file import simulated
from tests.processes import all_heard, started

SAVES = 50


def save_often(path: Path, n: int, pipe: Connection) -> None:
    """Save a simulation of n particles repeatedly, and send the errors."""
    simulation, failed = simulated(n), []
    pipe.send("started")
    for _ in range(SAVES):
        try:
            simulation.save(path)
        except OSError as error:
            failed.append(str(error))
    pipe.send(failed)


def claim(path: Path, pipe: Connection) -> None:
    """Claim a file, send a message, and wait until the process is killed."""
    kept = claimed(path)
    pipe.send("claimed" if kept else "")
    signal.pause()


def fork(path: Path, pipe: Connection) -> None:
    """Claim a file, and send whether a forked process can claim it too."""
    kept = claimed(path)
    child = os.fork()
    if not child:
        try:
            claimed(path)
        except BlockingIOError:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    pipe.send((os.waitstatus_to_exitcode(status), bool(kept)))


@contextmanager
def umask(mask: int):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def put(path, content: bytes = b"new") -> None:
    write_atomically(path, lambda file: file.write(content))


def test_two_processes_that_save_to_one_path_leave_a_whole_file_at_any_time(tmp_path):
    path, sizes, reads = tmp_path / "run.npz", (27, 343), 0
    writers = [started(save_often, path, n) for n in sizes]
    assert [heard.recv() for _, heard in writers] == ["started"] * 2
    while any(not heard.poll() for _, heard in writers):
        if path.exists():
            assert len(SavedRun.read(path).state) in sizes
            reads += 1
    assert [all_heard(heard) for _, heard in writers] == [[[]], [[]]]
    assert reads > 20
    assert os.listdir(tmp_path) == [path.name]


class TestLinks:
    @pytest.fixture
    def victim(self, tmp_path):
        (tmp_path / "victim.txt").write_text("mine")
        return tmp_path / "victim.txt"

    @pytest.mark.quick
    @pytest.mark.parametrize("name", [".run.npz.partial", f".run.npz.{'a' * 16}.partial"])
    def test_the_target_of_a_partial_name_is_not_written(self, name, victim, tmp_path, monkeypatch):
        names = iter(["a" * 16, "b" * 16])
        monkeypatch.setattr(whole.secrets, "token_hex", lambda _: next(names))
        (tmp_path / name).symlink_to(victim)
        put(tmp_path / "run.npz")
        assert victim.read_text() == "mine"
        assert not (tmp_path / "run.npz").is_symlink()
        assert (tmp_path / "run.npz").read_bytes() == b"new"

    def test_a_path_that_is_a_link_stays_a_link(self, victim, tmp_path):
        (tmp_path / "deep").mkdir()
        link = tmp_path / "deep" / "latest"
        link.symlink_to(victim)
        put(link)
        assert link.is_symlink()
        assert victim.read_bytes() == b"new"
        assert os.listdir(tmp_path / "deep") == ["latest"]

    def test_a_dangling_link_gets_a_target(self, tmp_path):
        (tmp_path / "latest").symlink_to(tmp_path / "run.npz")
        put(tmp_path / "latest")
        assert (tmp_path / "run.npz").read_bytes() == b"new"

    def test_a_link_to_itself_is_an_error(self, tmp_path):
        (tmp_path / "latest").symlink_to("latest")
        with pytest.raises(OSError, match="latest") as caught:
            put(tmp_path / "latest")
        assert caught.value.errno == errno.ELOOP


class TestPermissions:
    @pytest.mark.parametrize("mask", [0o022, 0o077])
    def test_a_new_file_has_those_of_any_new_file(self, mask, tmp_path):
        with umask(mask):
            put(tmp_path / "run.npz")
            (tmp_path / "other").touch()
        assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o666 & ~mask
        assert (tmp_path / "other").stat().st_mode == (tmp_path / "run.npz").stat().st_mode

    @pytest.mark.parametrize("mode", [0o600, 0o664, 0o777])
    def test_a_file_that_replaces_another_has_the_permissions_of_that_one(self, mode, tmp_path):
        (tmp_path / "run.npz").touch()
        (tmp_path / "run.npz").chmod(mode)
        meanwhile = []
        with umask(0o022):
            write_atomically(
                tmp_path / "run.npz", lambda file: meanwhile.append(os.fstat(file.fileno()).st_mode)
            )
        assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == stat.S_IMODE(meanwhile[0]) == mode


class TestWhatIsLeft:
    @pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
    def test_nothing_where_writing_fails(self, raised, tmp_path):
        put(tmp_path / "run.npz", b"old")

        def fail(file):
            file.write(b"half")
            raise raised

        with pytest.raises(raised):
            write_atomically(tmp_path / "run.npz", fail)
        assert (tmp_path / "run.npz").read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["run.npz"]

    def test_the_file_is_on_the_disk_before_it_is_moved(self, tmp_path, monkeypatch):
        done = []
        monkeypatch.setattr(os, "fsync", lambda handle: done.append(os.readlink(f"/proc/self/fd/{handle}")))
        move = os.replace
        monkeypatch.setattr(os, "replace", lambda *paths: (done.append("moved"), move(*paths)))
        put(tmp_path / "run.npz")
        assert done[0].endswith(".partial")
        assert done[1:] == ["moved", str(tmp_path)]

    def test_a_partial_file_that_is_being_written_is_not_removed(self, tmp_path):
        def write(file):
            put(tmp_path / "run.npz", b"second")
            file.write(b"first")

        write_atomically(tmp_path / "run.npz", write)
        assert (tmp_path / "run.npz").read_bytes() == b"first"
        assert os.listdir(tmp_path) == ["run.npz"]

    def test_files_of_like_names_are_left_alone(self, tmp_path):
        others = [".run.npz.partial", ".run.npz.mine.partial", f".other.{'0' * 16}.partial"]
        for name in others:
            (tmp_path / name).touch()
        put(tmp_path / "run.npz")
        assert sorted(os.listdir(tmp_path)) == sorted([*others, "run.npz"])

    def test_the_error_of_a_read_only_folder_names_the_file(self, tmp_path):
        (tmp_path / "closed").mkdir(mode=0o555)
        if os.geteuid() == 0:  # root has all permissions
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError, match=r"nothing was written.*closed/run\.npz"):
                put(tmp_path / "closed" / "run.npz")
        finally:
            os.seteuid(os.getuid())

    @pytest.mark.quick
    def test_a_device_is_not_replaced(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="no regular file; give another name; nothing was written"):
            put(tmp_path / "pipe")
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

    def test_a_name_as_long_as_names_may_be_is_one(self, tmp_path):
        put(tmp_path / ("ä" * 127))
        assert len(os.listdir(tmp_path)) == 1


class TestClaims:
    @pytest.fixture
    def path(self, tmp_path):
        (tmp_path / "run.gsd").touch()
        return tmp_path / "run.gsd"

    def test_one_process_has_a_claim_until_it_ends(self, path):
        process, heard = started(claim, path)
        assert heard.recv() == "claimed"
        with pytest.raises(BlockingIOError, match=r"another process is appending.*another name.*run\.gsd"):
            claimed(path)
        process.kill()
        process.join()
        assert claimed(path)

    def test_a_process_may_claim_a_file_twice_and_after_it_was_replaced(self, path):
        one = claimed(path)
        assert claimed(path) is one
        put(path)
        assert claimed(path) is not one

    def test_a_copy_of_the_process_has_none(self, path):
        process, heard = started(fork, path)
        assert heard.recv() == (7, True)
        process.join()

    def test_a_file_that_was_replaced_between_opening_and_locking_is_opened_again(self, path, monkeypatch):
        lock = whole._lock

        def replaced_first(handle):
            monkeypatch.setattr(whole, "_lock", lock)
            put(path)
            lock(handle)

        monkeypatch.setattr(whole, "_lock", replaced_first)
        assert whole._is_at(claimed(path)._handle, path)


@pytest.mark.quick
@pytest.mark.parametrize("path", [1, True, None, b"run.npz", 2.5])
def test_another_class_than_a_path_is_a_type_error(path):
    with pytest.raises(TypeError, match=r"path = .*allowed: a path, as a str or a pathlib.Path"):
        put(path)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_an_invalid_path_is_a_value_error(path):
    with pytest.raises(ValueError, match=r"path = .*allowed: a path"):
        put(path)
