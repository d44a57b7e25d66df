"""Checkpoints of cavities: the run resumes to the last bit, and what is no such file is refused."""

import json
import zipfile

import numpy as np
import pytest

import md
import sfc
from md.cavity import Inlet, Outlet, Solver, Strategy
from md.cavity.strategies import Blocked

CHOICES = {
    "default": {},
    "serial along a curve": {"strategy": "serial", "order": "hilbert", "layout": "structs"},
    "a curve of one's own": {"strategy": "threads", "order": sfc.curve("peano", 2)},
    "a depth": {"strategy": Blocked(3)},
    "a time step": {"dt": 0.003},
    "sides": {
        "sides": {"left": Inlet((0.0, 0.5, 1.0, 1.5, 1.0, 0.5, 0.0)), "right": Outlet(0.25)},
        "sweeps": 3,
    },
    "float32": {"strategy": "serial", "precision": "float32", "density": 1.5, "lid": 0.5, "size": 3.0},
}


def cavity(**options) -> md.Cavity:
    return md.Cavity((7, 9), **{"viscosity": 0.1, "backend": "cpu"} | options)


def fields(one: md.Cavity) -> list[np.ndarray]:
    return [one.u, one.v, one.p]


@pytest.fixture
def path(tmp_path):
    """A checkpoint of step 7."""
    one = cavity()
    one.run(7)
    one.save(tmp_path / "run.npz")
    return tmp_path / "run.npz"


@pytest.mark.parametrize("name", CHOICES)
def test_a_run_resumes_to_the_last_bit(name, tmp_path):
    one = cavity(**CHOICES[name])
    one.run(7)
    one.save(tmp_path / "run.npz")
    again = md.Cavity.load(tmp_path / "run.npz")
    assert (again.step, again.scheme, again.strategy) == (7, one.scheme, one.strategy)
    assert (again.layout, repr(again.order), again.backend) == (one.layout, repr(one.order), one.backend)
    one.run(5)
    again.run(5)
    for found, expected in zip(fields(again), fields(one), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.quick
def test_another_strategy_resumes_to_the_last_bit(path):
    one, again = md.Cavity.load(path), md.Cavity.load(path, strategy="serial", order="hilbert")
    assert again.order == "hilbert"
    one.run(5)
    again.run(5)
    for found, expected in zip(fields(again), fields(one), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.quick
def test_saving_does_not_change_the_run(tmp_path):
    one, other = cavity(), cavity()
    for _ in range(3):
        one.run(2)
        one.save(tmp_path / "run.npz")
    other.run(6)
    np.testing.assert_array_equal(one.p, other.p)


class Counting(Strategy):
    """Strategy that keeps a count of steps beside the fields."""

    name = "counting"

    def build(self, scheme, layout, order, backend):
        return CountingSolver(scheme)


class CountingSolver(Solver):
    def __init__(self, scheme):
        super().__init__(scheme)
        self.count = np.zeros(2, np.int64)

    def load(self, u, v, p):
        pass

    def advance(self, steps):
        self.count += steps
        return steps

    def fields(self):
        return tuple(np.full((3, *self.scheme.shape), float(self.count[0])))

    def state_dict(self):
        return super().state_dict() | {"count": self.count}

    def load_state(self, state):
        self.count = state["count"]


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A checkpoint of a strategy with a state of its own."""
    registry = md.cavity.STRATEGIES
    monkeypatch.setattr(registry, "_classes", dict(registry._classes) | {"counting": Counting})
    one = cavity(strategy="counting", dt=0.003)
    one.run(4)
    one.save(tmp_path / "run.npz")
    return tmp_path / "run.npz"


@pytest.mark.quick
def test_the_state_of_a_strategy_is_saved_too(counted):
    again = md.Cavity.load(counted)
    again.run(1)
    assert again._solver.count.tolist() == [5, 5]
    assert md.Cavity.load(counted, strategy="serial").u[0, 0] == 4.0


@pytest.mark.quick
def test_a_state_that_is_missing_is_refused(counted):
    changed(counted, state_count=None)
    refused(counted, "makes no cavity", "state_count = None")


@pytest.mark.quick
@pytest.mark.parametrize("name", ["counted", "path"])
def test_a_state_that_no_strategy_keeps_is_refused(name, request):
    path = request.getfixturevalue(name)
    changed(path, state_other=np.zeros(3))
    refused(
        path,
        "makes no cavity",
        "array state_other",
        "allowed: " + {"counted": "state_count", "path": "none"}[name],
    )


@pytest.mark.quick
def test_a_state_of_another_shape_is_refused(counted):
    changed(counted, state_count=np.zeros(3, np.int64))
    refused(counted, "makes no cavity", "state_count = ", "int64")


def changed(path, config=(), **arrays) -> None:
    """Write a checkpoint again with other arrays, None for without, and entries of its config."""
    with np.load(path) as file:
        held = dict(file)
    plain = json.loads(str(held["config"]))
    for keys, value in config:
        place = plain
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
    held |= {"config": np.array(json.dumps(plain))} | arrays
    np.savez(path, **{name: array for name, array in held.items() if array is not None})


def refused(path, *expected: str) -> None:
    with pytest.raises(md.CheckpointError) as caught:
        md.Cavity.load(path)
    for words in (path.name, *expected):
        assert words in str(caught.value)


BAD = [
    ([(("step",), -1)], "step = -1; allowed: an integer from 0"),
    ([(("step",), True)], "step = True"),
    ([(("step",), 2**62)], "step = 4611686018427387904"),
    ([(("cavity", "shape"), [8, 9])], "of shape [8, 9], as its config has it"),
    ([(("cavity", "shape"), [2, 9])], "of shape [2, 9]"),
    ([(("cavity", "precision"), "float32")], "float32 of shape [7, 9]"),
    ([(("cavity", "viscosity"), -1.0)], "makes no cavity: viscosity = -1.0; allowed"),
    ([(("cavity", "viscosity"), None)], "makes no cavity: viscosity = None"),
    ([(("cavity", "strategy", "name"), "openmp")], "unknown strategy 'openmp'"),
    ([(("cavity", "strategy", "with"), {"depth": 0})], "depth = 0; allowed"),
    ([(("cavity", "strategy", "with"), {"width": 3})], "width"),
    ([(("cavity", "strategy"), "blocked")], "its config: "),
    ([(("cavity", "sides"), {"top": {"kind": "door"}})], "door"),
    ([(("cavity", "sides"), {"top": {"kind": "wall", "speed": "fast"}})], "speed of Wall = 'fast'"),
    ([(("cavity", "order"), {"curve": {}})], "its config: "),
    ([(("cavity", "order"), "hilbert")], "makes no cavity: strategy 'blocked' does not support order"),
    ([(("cavity", "colour"), "red")], "arguments = 'colour'; allowed: shape, viscosity"),
    ([(("cavity",), 3)], "its config cannot be read"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("config", "message"), BAD)
def test_a_config_that_makes_no_cavity_is_refused(config, message, path):
    changed(path, config)
    refused(path, message)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"u": np.zeros((7, 8))}, "u = 'an array of float64 and shape (7, 8)'"),
        ({"p": np.zeros((7, 9), np.float32)}, "p = 'an array of float32"),
        ({"v": None}, "is damaged"),
        ({"w": np.zeros(3)}, "'w', which no checkpoint has; allowed: a file that Cavity.save wrote"),
        ({"version": np.array(2)}, "version = 2; allowed: 1"),
        ({"format": np.array("spatial-locality checkpoint")}, "and no cavity; allowed: a file that Cavity"),
        ({"format": None}, "and no cavity"),
    ],
)
def test_arrays_that_are_no_cavity_are_refused(arrays, message, path):
    changed(path, **arrays)
    refused(path, message)


@pytest.mark.quick
def test_a_file_that_is_cut_short_is_refused(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "is cut short")


@pytest.mark.quick
def test_a_compressed_entry_is_not_unpacked(path):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("state_bomb.npy", bytes(3_000_000))
    refused(path, "entry 'state_bomb.npy' is compressed", "what Cavity.save wrote")


@pytest.mark.quick
def test_a_checkpoint_of_particles_is_no_cavity(tmp_path):
    law, dt = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
    gas = md.Simulation(md.scenes.benchmark_gas(8, 0.2), law, dt=dt, search="naive", backend="cpu")
    gas.save(tmp_path / "gas.npz")
    refused(tmp_path / "gas.npz", "and no cavity")


@pytest.mark.quick
def test_a_file_that_is_there_is_replaced_only_by_a_whole_one(path, monkeypatch):
    before = path.read_bytes()

    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="nothing was written"):
        md.Cavity.load(path).save(path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["run.npz"]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("instead", "kind", "message"),
    [
        ({"viscosity": 1.0}, ValueError, "unknown argument of load 'viscosity'; allowed: one of strategy"),
        ({"strategy": "openmp"}, ValueError, "unknown strategy 'openmp'"),
        ({"layout": "structs"}, ValueError, "strategy 'blocked' does not support layout='structs'"),
    ],
)
def test_arguments_that_load_does_not_take_are_refused(instead, kind, message, path):
    with pytest.raises(kind, match=message):
        md.Cavity.load(path, **instead)
