"""Sizes and entries that no checkpoint has, or there is no memory for, are refused before they are read."""

import zipfile

import numpy as np
import pytest

import md
from md.io.checkpoint import BUILT_IN, blamed_on
from tests.md.io.test_checkpoint_file import changed, path, refused

__all__ = ["path"]  # the fixture


def with_entry(path, name: str, content: bytes, how: int = zipfile.ZIP_STORED) -> None:
    """Add an entry to a file, an array of bytes."""
    with zipfile.ZipFile(path, "a", how) as file, file.open(f"{name}.npy", "w") as entry:
        np.lib.format.write_array_header_1_0(
            entry, {"descr": "|u1", "fortran_order": False, "shape": (len(content),)}
        )
        entry.write(content)


class TestMemory:
    """What a file asks for is judged before it is taken."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """The entries that are unpacked."""
        names, taken = [], np.lib.npyio.NpzFile.__getitem__
        monkeypatch.setattr(
            np.lib.npyio.NpzFile, "__getitem__", lambda file, name: (names.append(name), taken(file, name))[1]
        )
        return names

    @pytest.mark.parametrize("name", ["reorder_bomb", "integrator_bomb", "surroundings_0_given", "pos"])
    def test_what_is_compressed_is_not_unpacked(self, name, path, asked):
        if name == "pos":
            with np.load(path) as file:
                held = dict(file)
            asked.clear()
            np.savez_compressed(path, **held)
            refused(path, "is compressed", "numpy.savez")
        else:
            with_entry(path, name, bytes(3_000_000), zipfile.ZIP_DEFLATED)
            assert path.stat().st_size < 100_000
            refused(path, f"entry '{name}.npy' is compressed", "bytes for 3000128", "take the one before")
        assert asked == []

    @pytest.mark.parametrize(
        "name",
        ["reorder_bomb", "reorder_0_given", "integrator_order", "surroundings_0_given", "bomb", "radius"],
    )
    def test_an_entry_that_no_checkpoint_has_is_refused_by_name(self, name, path):
        with_entry(path, name, bytes(100))
        refused(path, f"'{name}', which no checkpoint has")

    def test_entries_that_share_their_bytes_are_not_unpacked(self, path, asked):
        with zipfile.ZipFile(path, "a") as file:
            order = file.getinfo("reorder_order.npy")
            for k in range(100):
                copy = zipfile.ZipInfo(f"integrator_{k}.npy")
                for name in ("compress_size", "file_size", "CRC", "header_offset"):
                    setattr(copy, name, getattr(order, name))
                file.filelist.append(copy)
            file._didModify = True
        refused(path, "and its entries ask for", "bytes")
        assert asked == []

    def test_a_config_of_many_bytes_is_not_unpacked(self, path, asked, monkeypatch):
        monkeypatch.setattr(md.io.archive, "MOST_CONFIG", 1000)
        refused(path, "its config has", "bytes; allowed: up to 1000")
        assert asked == []

    def test_a_shape_that_there_is_no_memory_for_is_refused(self, path):
        with zipfile.ZipFile(path) as file:
            held = {entry: file.read(entry) for entry in file.namelist()}
        for shape in ((2**50, 3), (2**62, 2**62)):
            with zipfile.ZipFile(path, "w") as file:
                for name, content in held.items():
                    with file.open(name, "w") as entry:
                        if name == "pos.npy":
                            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                            np.lib.format.write_array_header_1_0(entry, header)
                        else:
                            entry.write(content)
            refused(path)

    def test_a_config_that_asks_for_what_there_is_not_is_refused_with_the_bytes(self, path):
        search = {"name": "reflexive", "with": {"room": 2**31 - 1, "contacts": "listed"}}
        changed(path, [(("simulation", "search"), search), (("simulation", "reorder"), None)])
        refused(path, "makes no simulation", "1,0", "bytes", "are needed")
        assert md.Simulation.load(path, search="lbvh").step == 3

    def test_memory_that_there_is_not_is_named_with_the_remedy(self, path):
        with (
            pytest.raises(
                md.CheckpointError, match=r"run\.npz makes .*8 TiB; .*load\(\.\.\., search='lbvh'\)"
            ),
            blamed_on(path),
        ):
            raise MemoryError("Unable to allocate 8 TiB")

    def test_arrays_that_there_is_no_memory_for_are_not_unpacked(self, path, asked, monkeypatch):
        monkeypatch.setattr(md.io.archive, "host_memory", lambda: 5000)
        refused(path, "bytes", "allowed: up to 5,000", "are free; load it on a larger machine")
        assert asked == []


@pytest.mark.quick
def test_the_classes_whose_entries_are_known_are_those_of_the_package():
    named = {*md.integrate.INTEGRATORS, *md.reorder.TRIGGERS, *md.boundaries.BOUNDARIES}
    assert BUILT_IN == named | {"reorder", "airfoil"}
