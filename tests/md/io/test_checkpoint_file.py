"""The file of a checkpoint: whole or as it was, no code in it, and refused where it cannot be one."""

import errno
import json
import os
import pickle
import resource
import tomllib
import zipfile
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.io import atomic_write as whole
from md.io.checkpoint import CHOICES, FORMAT, PACKAGE

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
NESTED = reduce(lambda inner, _: [inner], range(500), [])


def simulated(n: int = 125, **options) -> md.Simulation:
    options = {"search": "scattered", "backend": "cpu", "dt": DT} | options
    return md.Simulation(md.scenes.benchmark_gas(n, 0.2), options.pop("law", LAW), **options)


@pytest.fixture
def path(tmp_path):
    """A checkpoint of step 3."""
    simulation = simulated(reorder=md.Reorder("hilbert", md.Moved(0.5), mode="threads"))
    simulation.run(3)
    simulation.save(tmp_path / "run.npz")
    return tmp_path / "run.npz"


def changed(path, entries=(), **arrays) -> None:
    """Write a checkpoint again with other arrays, None for without, and entries of its config."""
    with np.load(path) as file:
        held = dict(file)
    plain = json.loads(str(held["config"]))
    for keys, value in entries:
        place = plain
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
    held |= {"config": np.array(json.dumps(plain))} | arrays
    np.savez(path, **{name: array for name, array in held.items() if array is not None})


def refused(path, *expected: str) -> None:
    with pytest.raises(md.CheckpointError) as caught:
        md.Simulation.load(path)
    for words in (path.name, *expected):
        assert words in str(caught.value)


class TestWriting:
    def test_a_disk_that_fills_up_leaves_the_file_that_was_there(self, path, monkeypatch):
        before, room = path.read_bytes(), 3000

        class Full:
            def __init__(self, file):
                self.file, self.left = file, room

            def __getattr__(self, name):
                return getattr(self.file, name)

            def __enter__(self):
                return self

            def __exit__(self, *raised):
                self.file.close()

            def write(self, data):
                self.left -= len(data)
                if self.left < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return self.file.write(data)

        simulation = md.Simulation.load(path)
        simulation.run(1)
        monkeypatch.setattr(whole, "open", lambda *given, **how: Full(open(*given, **how)), raising=False)
        with pytest.raises(
            OSError, match=r"No space left on device; nothing was written, .* is as it was"
        ) as caught:
            simulation.save(path)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]
        monkeypatch.undo()
        simulation.save(path)
        assert md.Simulation.load(path).step == 4

    @pytest.mark.parametrize("room", [0, 100, 5000, 9000])
    def test_so_does_a_limit_of_the_system(self, path, room):
        before = path.read_bytes()
        assert len(before) > 9000
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        simulation = md.Simulation.load(path)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
            with pytest.raises(OSError, match="nothing was written") as caught:
                simulation.save(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.errno == errno.EFBIG
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]

    def test_a_folder_that_is_not_there_or_no_folder_is_named(self, path):
        simulation = md.Simulation.load(path)
        for place in (path / "run.npz", path.parent / "none" / "run.npz", path.parent):
            with pytest.raises(OSError, match="nothing was written") as caught:
                simulation.save(place)
            assert caught.value.filename == str(place)

    def test_what_a_killed_run_left_half_written_goes(self, path):
        (path.parent / ".run.npz.0123456789abcdef.partial").write_bytes(b"half")
        md.Simulation.load(path).save(path)
        assert os.listdir(path.parent) == [path.name]
        assert md.Simulation.load(path).step == 3

    def test_a_link_stays_a_link(self, path):
        link = path.parent / "latest.npz"
        link.symlink_to(path)
        simulation = md.Simulation.load(link)
        simulation.run(2)
        simulation.save(link)
        assert link.is_symlink()
        assert md.Simulation.load(path).step == 5

    def test_a_velocity_that_is_not_finite_is_not_saved(self, path):
        simulation, before = md.Simulation.load(path), path.read_bytes()
        simulation.system.particles.vel[7] = np.nan
        with pytest.raises(ValueError, match=r"vel\[7, 0\] = nan; allowed: finite"):
            simulation.save(path)
        assert path.read_bytes() == before


class TestReading:
    def test_no_file_is_an_error_of_its_own(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"none\.npz"):
            md.Simulation.load(tmp_path / "none.npz")

    @given(data=st.data())
    def test_a_file_cut_short_anywhere_is_refused(self, data, tmp_path_factory):
        path = tmp_path_factory.mktemp("cut") / "run.npz"
        simulated(27).save(path)
        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        refused(path, "cut short")

    @given(data=st.data())
    def test_a_file_with_a_bad_byte_is_refused_or_means_the_same(self, data, tmp_path_factory):
        path = tmp_path_factory.mktemp("bad") / "run.npz"
        simulation = simulated(27)
        simulation.save(path)
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        try:
            loaded = md.Simulation.load(path)
        except md.CheckpointError as error:
            assert "run.npz" in str(error)  # noqa: PT017 - many bytes of a zip mean nothing
        else:
            assert np.array_equal(loaded.state.pos, simulation.state.pos)
            assert np.array_equal(loaded.state.vel, simulation.state.vel)

    def test_the_error_of_another_npz_names_what_it_holds(self, path):
        np.savez(path, mass=np.ones(3), radius=np.ones(3))
        refused(path, "holds mass, radius, and no checkpoint")

    @pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps([1, 2]), b"\x93NUMPY" + bytes(200)])
    def test_what_is_no_npz_is_refused(self, path, content):
        path.write_bytes(content)
        refused(path, "never was a checkpoint")

    def test_a_newer_version_names_the_package_version_that_wrote_it(self, path):
        changed(path, [(("package",), "0.7.0")], version=np.array(5))
        refused(
            path,
            "version 5, written by spatial-locality 0.7.0; allowed: 2, 3, 4, which version 0.3.0",
            "load it with the version that wrote it",
        )

    @pytest.mark.parametrize("package", [None, "0.1.5", 7, [], {"of": "others"}])
    def test_an_older_version_names_the_package_version_that_wrote_it(self, path, package):
        changed(path, [(("package",), package)], version=np.array(1))
        writer = package if isinstance(package, str) else "0.1.0"
        refused(path, f"version 1, written by spatial-locality {writer}; allowed: 2, 3, 4,", "that wrote it")

    def test_a_file_of_a_package_that_named_no_version_is_read(self, path):
        with np.load(path) as file:
            held = dict(file)
        plain = json.loads(str(held["config"]))
        assert plain.pop("package") == PACKAGE
        old = path.parent / "old.npz"
        np.savez(old, **held | {"config": np.array(json.dumps(plain))})
        runs = [md.Simulation.load(place) for place in (path, old)]
        for run in runs:
            run.run(4)
        assert np.array_equal(*(run.system.particles.pos for run in runs))
        changed(old, version=np.array(1))
        with np.load(old) as file:
            assert "package" not in json.loads(str(file["config"]))
        refused(old, "written by spatial-locality 0.1.0;")

    def test_the_version_it_holds_is_that_of_the_package(self):
        project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
        assert project["version"] == PACKAGE

    @pytest.mark.parametrize("version", [[1, 2], 1j, np.inf, 2.5, True, "2"])
    def test_a_version_that_is_no_number_is_refused(self, path, version):
        changed(path, version=np.array(version))
        refused(path, "version = ", "allowed: an integer")

    @pytest.mark.parametrize("name", ["pos", "id", "version", "config", "reorder_home"])
    def test_an_entry_that_is_no_array_is_refused(self, path, name):
        with zipfile.ZipFile(path) as file:
            held = {entry: file.read(entry) for entry in file.namelist()}
        held[f"{name}.npy"] = b"no array"
        with zipfile.ZipFile(path, "w") as file:
            for entry, content in held.items():
                file.writestr(entry, content)
        refused(path, name)

    def test_another_format_is_refused(self, path):
        changed(path, format=np.array(FORMAT + "s"))
        refused(path, "no checkpoint")

    @pytest.mark.parametrize("slot", ["integrator", "reorder", "search", "law"])
    def test_what_a_config_leaves_out_is_as_the_constructor_has_it_but_for_the_law(self, path, slot):
        with np.load(path) as file:
            plain = json.loads(str(file["config"]))
        del plain["simulation"][slot]
        changed(path, config=np.array(json.dumps(plain)))
        if slot == "law":
            refused(path, "law = None; allowed: one of the registry, by name; the file is damaged")
        else:
            assert md.Simulation.load(path).step == 3

    @pytest.mark.parametrize(
        "name", ["pos", "vel", "id", "config", "version", "reorder_order", "reorder_home"]
    )
    def test_an_array_that_is_missing_is_named(self, path, name):
        changed(path, **{name: None})
        refused(path, name.removeprefix("reorder_"))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"pos": np.ones((125, 2))}, "pos of shape (125, 2); allowed: (n, 3)"),
            ({"vel": np.ones((124, 3))}, "vel of shape (124, 3); allowed: that of pos, (125, 3)"),
            ({"vel": np.full((125, 3), np.inf)}, "vel[0, 0] = inf; allowed: finite numbers"),
            ({"pos": np.full((125, 3), np.nan)}, "pos[0, 0] = nan; allowed: finite numbers"),
            ({"pos": np.full((125, 3), 1e9)}, "outside the box"),
            ({"pos": np.ones((125, 3), np.float32)}, "dtype of pos"),
            ({"vel": np.ones((125, 3), complex)}, "dtype of vel"),
            ({"id": np.zeros(125, np.int32)}, "id holds a repeated value"),
            ({"id": np.zeros(3, np.int32)}, "id of shape (3,)"),
            ({"reorder_order": np.zeros(125, np.int32)}, "allowed: a permutation of 125 slots"),
            ({"reorder_order": np.arange(1, 126, dtype=np.int32)}, "allowed: a permutation of 125 slots"),
            ({"reorder_order": np.arange(5, dtype=np.int32)}, "allowed: a permutation of 125 slots"),
            ({"reorder_home": np.zeros(4, np.int32)}, "allowed: 125 of int32"),
            ({"reorder_last": np.array(-4)}, "last reorder before step"),
            ({"reorder_last": np.array([1.5])}, "last reorder before step"),
            ({"config": np.array("[]")}, "its config cannot be read"),
            ({"config": np.array("[" * 100_000)}, "its config cannot be read"),
            ({"config": np.array([1.0])}, "its config cannot be read"),
        ],
    )
    def test_arrays_that_cannot_be_are_refused(self, path, arrays, message):
        changed(path, **arrays)
        refused(path, message)

    @pytest.mark.parametrize(
        ("keys", "value", "message"),
        [
            (("step",), -1, "step = -1; allowed: an integer from 0"),
            (("step",), 2.5, "step = 2.5"),
            (("step",), 2**70, "step = 1180591620717411303424"),
            (("start_energy",), "much", "start_energy = 'much'"),
            (("start_energy",), float("nan"), "start_energy = nan"),
            (("start_energy",), True, "start_energy = True"),
            (("simulation", "fused"), "yes", "fused = 'yes'; allowed: true or false"),
            (("simulation", "allow_overlap"), 1, "allow_overlap = 1; allowed: true or false"),
            (("simulation", "gravity"), NESTED, "gravity"),
            (("box", "lengths"), [1, 2], "periodic"),
            (("box", "lengths"), None, "its config cannot be read"),
            (("simulation", "dt"), -1.0, "dt = -1.0; allowed: a finite number above 0"),
            (("simulation", "dt"), "x", "dt = 'x'"),
            (("simulation", "dt"), {"what": 1}, "dt = {'what': 1}"),
            (("simulation", "precision"), "float16", "dtype of"),
            (("simulation", "law"), None, "law = None; known: spring_dashpot"),
            (("simulation", "law", "name"), "os.system", "known: spring_dashpot"),
            (("simulation", "law", "with"), {"stiffness": "x", "damping": 0}, "law 'spring_dashpot'"),
            (
                ("simulation", "law", "with"),
                {"mass": 1},
                "does not take ['mass']; allowed: stiffness, damping",
            ),
            (("simulation", "law", "with"), {}, "missing"),
            (("simulation", "search"), "linked", "search = 'linked'"),
            (("simulation", "search", "name"), ["linked"], "known: naive, linked"),
            (("simulation", "search", "name"), "octree", "known: naive, linked"),
            (("simulation", "reorder", "with", "schedule", "with"), {"fraction": 7}, "fraction of Moved = 7"),
            (("simulation", "reorder", "with", "ordering"), "hilbrt", "unknown ordering 'hilbrt'"),
            (("simulation", "reorder", "with", "ordering"), {"curve": {"name": "x"}}, "ordering = "),
            (
                ("simulation", "post_mortem"),
                "somewhere",
                "unknown choice 'post_mortem'; allowed: law",
            ),
            (("simulation", "gravitas"), [0, 0, -1], "unknown choice 'gravitas'; allowed: law, search"),
            (("simulation", "cuda"), None, "unknown choice 'cuda'; allowed: law, search, integrator, dt"),
            (("simulation", "backend", "name"), "tpu", "known: cpu, cuda"),
        ],
    )
    def test_a_config_that_cannot_be_is_refused(self, path, keys, value, message):
        changed(path, [(keys, value)])
        refused(path, message)
        assert os.listdir(path.parent) == [path.name]

    def test_every_choice_that_is_kept_is_known(self):
        assert set(simulated().config.to_plain()) == set(CHOICES)

    def test_numbers_that_overflow_are_blamed_on_the_file(self, path):
        walls = {"name": "walls", "with": {"contact_time": 1e-200}}
        changed(path, [(("box", "periodic"), [False] * 3), (("simulation", "walls"), walls)])
        refused(path, "contact_time of walls = 1e-200")

    def test_a_pickle_inside_runs_no_code(self, path):
        class Mischief:
            def __reduce__(self):
                return os.mkdir, (str(path.parent / "mischief"),)

        for name in ("pos", "config", "format", "reorder_home"):
            other = path.parent / "other.npz"
            other.write_bytes(path.read_bytes())
            changed(other, **{name: np.array([Mischief()], dtype=object)})
            with zipfile.ZipFile(other) as file:
                assert b"mkdir" in file.read(f"{name}.npy")
            refused(other)
        assert not (path.parent / "mischief").exists()

    def test_a_backend_that_is_not_here_is_named_with_the_remedy(self, path, monkeypatch):
        monkeypatch.setattr("md.backend.cuda.why_not", lambda: "no CUDA device is visible")
        changed(
            path, [(("simulation", "backend"), {"name": "cuda", "with": {"layout": "aos4", "fmad": True}})]
        )
        with pytest.raises(
            md.BackendUnavailableError, match=r"no CUDA device .*load\(\.\.\., backend='cpu'\)"
        ):
            md.Simulation.load(path)
        assert md.Simulation.load(path, backend="cpu").step == 3


@pytest.mark.quick
@pytest.mark.parametrize("path", [1, True, np.int64(2), None, 2.5])
def test_what_is_no_path_is_neither_saved_to_nor_loaded(path, capfd):
    """The system takes numbers for open files, and what was opened is closed after reading."""
    for act in (md.Simulation.load, simulated(27).save, lambda path: md.Checkpoint(path, 10)):
        with pytest.raises(TypeError, match=r"path = .*allowed: a path, as a str or a pathlib.Path"):
            act(path)
    os.fstat(1), os.fstat(2)


def test_numbers_of_numpy_that_older_files_hold_are_read_as_numbers(path, start_energy):
    """Flags were kept as given, and could not be read again."""
    changed(
        path,
        [
            (("simulation", "allow_overlap"), {"number": True, "dtype": "|b1"}),
            (("simulation", "law", "with", "damping"), {"number": 5.0, "dtype": "<f4"}),
        ],
    )
    loaded = md.Simulation.load(path)
    assert (loaded.config.allow_overlap, loaded.law) == (True, LAW)
    assert start_energy(loaded) == start_energy(md.Simulation.load(path)) is not None


@pytest.mark.parametrize("kind", [np.longdouble, np.float16, np.float32])
def test_numbers_of_numpy_in_any_choice_are_saved_and_read(kind, tmp_path):
    box = md.Box((24.0, 16.0), (True, False))
    wing = md.Wing(
        airfoil=md.naca("0012", 12), chord=kind(8), at=(kind(9), kind(8)), angle=kind(5), stiffness=kind(100)
    )
    inflow = md.Inflow(
        velocity=(kind(1), kind(0)), temperature=kind(0.5), axis=np.uint8(0), seed=np.uint64(7)
    )
    simulation = md.Simulation(
        md.State([[1.0, 8.0]], [[0.0, 0.0]], box),
        md.laws.SpringDashpot(kind(100), kind(1)),
        walls=md.Walls(restitution=kind(0.5), contact_time=kind(0.25), sides=(np.int8(1),)),
        surroundings=(wing, inflow),
        backend="cpu",
    )
    simulation.save(tmp_path / "run.npz")
    assert md.Simulation.load(tmp_path / "run.npz").config.surroundings[1] == inflow
