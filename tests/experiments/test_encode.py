"""experiments.encode: every curve and package on the same cells, in the same rounds, none that is wrong."""

import math

import numba
import numpy as np
import pandas as pd
import pytest

import sfc
from experiments import encode
from experiments.core.settings import cases
from experiments.drawing.charts import draw
from experiments.measurement.correctness import WrongResultError
from experiments.peers import ENCODERS, Encoder
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again
from md.backend import Cpu
from tests.experiments.runs import one


class Ourselves(Encoder):
    """A package that is our own code, and takes few points; at fault, it changes the result."""

    name, module, most_points, fault, calls = "ourselves", "sfc", 100, 0, 0

    @classmethod
    def curves(cls, dim, bits):
        return ("hilbert",) if dim < 4 else ()

    def _prepare(self, cells):
        self._cells = cells[:, ::-1]

    def encode(self):
        type(self).calls += 1
        self._keys = self._package.curve(self.curve, self.dim).encode(self._cells, self.bits)
        return self._keys ^ np.uint64(self.fault)

    def decode(self):
        cells = self._package.curve(self.curve, self.dim).decode(self._keys, self.bits)
        return (cells[:, ::-1] ^ self.fault).T


@pytest.fixture
def package(monkeypatch):
    """A package that is always installed, and no other."""
    for name in tuple(ENCODERS):
        monkeypatch.delitem(ENCODERS, name)
    kind = type("Package", (Ourselves,), {"calls": 0})
    monkeypatch.setitem(ENCODERS, "ourselves", kind)
    return kind


def case(**options) -> encode.Config:
    """One case of a sweep."""
    fields = {"n": (500,), "dim": (3,), "bits": (5,), "dtype": ("narrowest",), "direction": ("encode",)}
    return one(encode, **fields | {"rounds": 2, "peers": []} | options)


def rows(**options) -> pd.DataFrame:
    return pd.DataFrame(all_rows(encode.measure(case(**options))))


@pytest.mark.parametrize("direction", encode.DIRECTIONS)
def test_a_round_has_every_curve_and_package_once_and_each_copy_twice(direction, package):
    found = rows(direction=(direction,), peers=["ourselves"])
    for _, same in found.groupby("round"):
        ours = same[same["package"] == "sfc"]
        assert set(ours["encoder"]) == set(sfc.curves(3))
        assert "hilbert, ourselves" in set(same["encoder"])
        copies = same[same["package"] == "memory"]
        for size in ours["bytes_per_point"].unique():
            own = copies[copies["bytes_per_point"] == size]
            assert sorted(own["encoder"]) == ["copy", again("copy")]
        assert len(same) == len(ours) + 1 + len(copies)
    assert set(found.loc[found["package"] == "ourselves", "points"]) == {100}
    assert np.allclose(found["sample_ms"], 3 * found["time_ms"])
    assert np.allclose(found["ns_per_point"], 1e6 * found["time_ms"] / found["points"])
    assert np.allclose(found["Mpoints_per_s"] * found["ns_per_point"], 1e3)
    assert package.calls == 1 + 4 * 3 * (direction == "encode")  # the check; a settling round, two rounds


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ({"bits": (5,)}, {2: 3 * 1 + 2, 3: 3 * 1 + 4}),  # 32 cells a side, 15 bits; 243, and 3**15 keys
        ({"bits": (13,)}, {2: 3 * 2 + 8, 3: 3 * 4 + 8}),
        ({"bits": (5,), "dtype": ("int64",)}, {2: 3 * 8 + 8, 3: 3 * 8 + 8}),
        ({"bits": (32,), "dim": (2,)}, {2: 2 * 4 + 8}),
    ],
)
def test_bytes_are_those_of_cells_and_keys(fields, sizes):
    for direction in encode.DIRECTIONS:
        found = rows(direction=(direction,), rounds=1, **fields).dropna(subset="base")
        assert found.groupby("base")["bytes_per_point"].unique().map(list).to_dict() == {
            base: [size] for base, size in sizes.items()
        }


def test_curves_that_do_not_exist_in_a_grid_are_left_out():
    assert set(rows(dim=(4,), bits=(16,))["curve"]) == {*sfc.curves(4), "copy"} - {"peano"}
    assert "peano" not in set(rows(dim=(3,), bits=(14,))["curve"])
    assert list(encode.measure(case(dim=(4, 2), bits=(17,)))) == []


def test_a_curve_whose_keys_are_wrong_is_not_timed(monkeypatch):
    right = sfc.Curve.encode

    def wrong(curve, cells, order, out=None):
        index = right(curve, cells, order, out)
        if curve.name == "gray":
            index[-1] ^= 1
        return index

    monkeypatch.setattr(sfc.Curve, "encode", wrong)
    with pytest.raises(WrongResultError, match=r"keys of gray in 3D differ from a walk .* by 1 of 500 keys"):
        next(encode.measure(case()))
    assert rows(curve=("hilbert", "morton")).shape[0] > 0


def test_a_curve_that_does_not_decode_its_keys_is_not_timed(monkeypatch):
    right = sfc.Curve.decode

    def wrong(curve, index, order, out=None):
        cells = right(curve, index, order, out)
        cells[-1] ^= 1
        return cells

    monkeypatch.setattr(sfc.Curve, "decode", wrong)
    with pytest.raises(
        WrongResultError, match="cells that hilbert decodes differ from those encoded by 1 of"
    ):
        next(encode.measure(case(curve=("hilbert",))))


@pytest.mark.parametrize(
    ("dim", "message"),
    [
        (2, "keys of ourselves's hilbert differ .* in every orientation"),
        (3, "cells that ourselves's hilbert"),
    ],
)
def test_a_package_that_is_wrong_is_not_timed(dim, message, package):
    package.fault = 1
    with pytest.raises(WrongResultError, match=message):
        next(encode.measure(case(dim=(dim,), peers=["ourselves"])))


def test_a_package_that_is_not_installed_is_left_out_with_a_message(package, capsys):
    package.module = "no_package_of_this_name"
    encode._is_here.cache_clear()
    found = rows(peers=["ourselves"])
    encode._is_here.cache_clear()
    assert set(found["package"]) == {"sfc", "memory"}
    message = "ourselves is not measured: it is not installed; pip install ourselves\n"
    assert capsys.readouterr().err == message


def test_a_package_that_does_not_decode_has_rows_of_encode_alone(package):
    package.decodes = False
    for direction, known in (("encode", True), ("decode", False)):
        found = rows(direction=(direction,), peers=["ourselves"], dim=(2,))
        assert ("ourselves" in set(found["package"])) == known


def test_a_sample_has_its_threads_and_leaves_the_others_to_the_next():
    seen, before = [], numba.get_num_threads()

    def call():
        seen.append(numba.get_num_threads())

    entry = encode._entry(case(calls=2), Cpu(), call, 4, 8, {"threads": 1})
    assert len(list(entry.sample())) == 1
    assert seen == [1, 1, 1]
    assert numba.get_num_threads() == before
    assert entry.threads == 1


class Device(Cpu):
    """A backend of numpy arrays that is called a device, of no known caches."""

    name = "cuda"

    def describe(self):
        return {"compute_capability": "0.0"}


def test_a_device_encodes_by_its_own_functions(monkeypatch):
    calls = []

    def filling(curve, array, order, out=None):
        calls.append(out is not None)
        function = curve.decode if array.ndim == 1 else curve.encode
        return function(array, order, out=out)

    for name in encode.DIRECTIONS:
        monkeypatch.setattr(sfc.device, name, filling)
    own, place = case(direction=("decode",)), Device()
    entry = encode._curve_entry(own, place, encode._Grid(own, place, 32), sfc.curve("hilbert", 3))
    list(entry.sample())
    assert calls == [True] * 6  # both for the check; one call that is not timed, and three
    assert entry.columns["bytes_per_point"] == 5
    assert math.isnan(entry.columns["threads"])
    assert entry.threads_on(place) == 1


GRAY = sfc.curve("gray", 3)


class Plain:
    """A curve of base 2 without tables."""

    name, base, dim, max_order = "plain", 2, 3, 21

    def __init__(self, fault=0):
        self._curve, self._fault = GRAY, fault

    def encode(self, cells, order, out):
        return self._curve.encode(cells, order, out=out)

    def decode(self, keys, order, out):
        self._curve.decode(keys, order, out=out)
        out[-1] ^= self._fault
        return out


def test_a_curve_without_tables_is_on_the_host_alone_and_must_decode_its_keys(monkeypatch):
    monkeypatch.setattr(sfc, "curve", lambda *_: Plain())
    found = rows(curve=("hilbert",))
    assert set(found["curve"]) == {"plain", "copy"}
    assert found["states"].isna().all()
    monkeypatch.setattr(sfc, "curve", lambda *_: Plain(fault=1))
    with pytest.raises(WrongResultError, match="cells that plain decodes"):
        next(encode.measure(case(curve=("hilbert",))))
    monkeypatch.setattr("md.backend.get", lambda _: Device())
    assert list(encode.measure(case(curve=("hilbert",)))) == []


def table(ms: dict[tuple[str, str], list[float]], n: int = 1000) -> pd.DataFrame:
    """A table of one case in 2D of 10 bits: (package, curve) -> ms of each run."""
    common = {
        "threads": 1,
        "n": n,
        "dtype": "narrowest",
        "direction": "encode",
        "dim": 2,
        "bits": 10,
        "round": 0,
    }
    found = []
    for (package, curve), runs in ms.items():
        name = curve if package in ("sfc", "memory") else f"{curve}, {package}"
        points = n // 10 if package == "slow" else n
        for run, time in enumerate(runs):
            ns = 1e6 * time / points
            rates = {"ns_per_point": ns, "Mpoints_per_s": 1e3 / ns, "GB_per_s": 8 / ns, "time_ms": time}
            columns = {"encoder": name, "package": package, "curve": curve.removesuffix(" again"), "run": run}
            found.append(common | columns | rates | {"points": points, "bytes_per_point": 8})
    return pd.DataFrame(found)


TIMES = {
    ("sfc", "hilbert"): [2.0, 2.0],
    ("sfc", "morton"): [1.0, 1.1],
    ("hilbertsfc", "hilbert"): [6.0, 6.0],
    ("hilbertsfc", "morton"): [1.0, 1.0],
    ("slow", "hilbert"): [20.0, 20.0],
    ("memory", "copy"): [1.0, 1.0],
    ("memory", "copy again"): [1.0, 1.05],
}


def test_gains_are_over_the_copy_and_the_same_curve_of_each_package_by_the_time_of_a_point(tmp_path):
    given = table(TIMES)
    found = encode.summary(given).set_index("encoder")
    assert list(found.index) == [
        "hilbert", "morton", "hilbert, hilbertsfc", "morton, hilbertsfc", "hilbert, slow", "copy",
    ]  # fmt: skip
    assert found.loc["hilbert", "Mpoints_per_s"] == pytest.approx(0.5)
    assert found.loc["hilbert", "gain_over_copy"] == pytest.approx(0.5)
    assert found.loc["hilbert, slow", "gain_over_copy"] == pytest.approx(1 / 200)
    assert found.loc["hilbert", "gain_over_hilbertsfc"] == pytest.approx(3)
    assert found.loc["hilbert", "gain_over_slow"] == pytest.approx(100)
    assert found.loc["morton", "gain_over_hilbertsfc"] == pytest.approx(1 / math.sqrt(1.1))
    assert found.loc["morton", "difference_from_hilbertsfc"] == "no difference"
    assert math.isnan(found.loc["morton", "gain_over_slow"])
    assert found.loc["hilbert", "noise_floor_copy"] == pytest.approx(1.05)
    draw(encode.VIEWS, given, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"encode", "gains"}
    draw(encode.VIEWS, given.assign(threads=math.nan), tmp_path)  # of a device
    assert len(pd.read_csv(tmp_path / "summary.csv")) == 6


def test_figures_have_a_copy_beside_each_curve_and_gains_of_the_curves_of_a_package(drawn):
    figures = drawn(
        encode.VIEWS, table(TIMES | {("sfc", "peano"): [4.0, 4.0], ("memory", "copy"): [0.1, 0.1]})
    )
    (rates,) = figures["encode"].axes
    names = [label.get_text() for label in rates.get_yticklabels()]
    assert names == [
        "hilbert",
        "morton",
        "hilbert, hilbertsfc",
        "morton, hilbertsfc",
        "hilbert, slow",
        "peano",
    ]
    curves, copies = (one[0].get_xdata() for one in rates.containers)
    assert curves[[0, 4]] == pytest.approx([1e3 / 2e3, 1e3 / 2e5])
    assert copies == pytest.approx([10.0] * 6)
    assert rates.get_xlim()[1] > 10.0
    assert rates.get_xlabel() == "encoded, million points/s"
    (gains,) = figures["gains"].axes
    assert len(gains.get_yticklabels()) == 2  # no package has peano
    drawn_gains = {one.get_label(): one[0].get_xdata() for one in gains.containers}
    assert drawn_gains["hilbertsfc"] == pytest.approx([3, 1 / math.sqrt(1.1)])
    assert drawn_gains["slow"] == pytest.approx([100])


def test_each_size_dtype_and_direction_has_a_figure_and_none_has_gains_over_nothing(tmp_path):
    alone = {names: ms for names, ms in TIMES.items() if names[0] in ("sfc", "memory")}
    parts = [
        table(alone, n).assign(dtype=dtype, direction=direction)
        for n in (1000, 2000)
        for dtype in encode.DTYPES
        for direction in encode.DIRECTIONS
    ]
    draw(encode.VIEWS, pd.concat(parts, ignore_index=True), tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {
        f"{direction}_{n}_{dtype}"
        for n in (1000, 2000)
        for dtype in encode.DTYPES
        for direction in encode.DIRECTIONS
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"curve": ("hilbrt",)}, "unknown curve 'hilbrt'; allowed: one of ar2w2"),
        (
            {"curve": ("moore",), "dim": (2, 9)},
            "--dim 9 beside --curve moore, which do not exist in 9D; allowed",
        ),
        ({"curve": ("butz",), "dim": (2,)}, "--curve butz, .* allowed: curves in 2D: ar2w2, "),
        ({"bits": (33,)}, "--bits = 33; allowed: an integer of at least 1, up to 32"),
        ({"dim": (3, 4), "bits": (22,)}, "--bits = 22; .* take fewer, so that a key fits 64 bits"),
        ({"bits": (0,)}, "--bits = 0; allowed: an integer of at least 1"),
        ({"threads": 10**6}, "--threads = 1000000; allowed: an integer of at least 1, up to"),
        ({"calls": 0}, "--calls = 0; allowed: an integer of at least 1"),
        ({"dtype": ("int8",)}, "unknown dtype 'int8'; allowed: one of narrowest, int64"),
        ({"peers": ["moon"]}, "unknown peers 'moon'; allowed: one of hilbertsfc"),
    ],
)
def test_what_cannot_be_encoded_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        encode.Config(**fields)


def test_a_sweep_may_have_grids_without_a_curve_but_no_order_without_one():
    assert len(cases(encode.Config(dim=(2, 4), bits=(16, 32), runs=1))) == 2 * 2 * 2 * 2
