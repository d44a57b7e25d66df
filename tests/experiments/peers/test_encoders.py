"""Encoders: each package decodes what it encodes, along the curve that it is said to have."""

import numpy as np
import pytest

import sfc
from experiments.measurement.correctness import check_same_curve
from experiments.peers import ENCODERS, Encoder

GRIDS = [(2, 1), (2, 10), (2, 16), (2, 31), (2, 32), (3, 10), (3, 21), (5, 12)]


def cells_of(dim: int, bits: int, dtype: np.dtype) -> np.ndarray:
    """Random cells, and both ends of the diagonal."""
    cells = np.random.default_rng(bits).integers(0, 2**bits, (300, dim), dtype)
    cells[0], cells[-1] = 0, 2**bits - 1
    return cells


@pytest.mark.parametrize("dtype", ["narrowest", "int64"])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_package_decodes_what_it_encodes_along_its_curves(name, dtype):
    kind = ENCODERS[name]
    if not kind.is_installed():
        pytest.skip(f"pip install {name}")
    for dim, bits in GRIDS:
        narrow, most = dtype == "narrowest", 2 ** (dim * bits) - 1
        cells = cells_of(dim, bits, np.min_scalar_type(2**bits - 1) if narrow else np.dtype(dtype))
        before = cells.copy()
        for curve in kind.curves(dim, bits):
            encoder = kind(curve, cells, bits, np.min_scalar_type(most) if narrow else np.uint64)
            keys = encoder.encode()
            assert len(np.unique(keys)) == len(np.unique(cells, axis=0))
            assert int(keys.max()) <= most
            if dim == 2:
                check_same_curve(name, sfc.curve(curve, 2), bits, cells, keys)
            if encoder.decodes:
                assert np.array_equal(np.stack(list(encoder.decode()), axis=1), before)
            else:
                with pytest.raises(
                    NotImplementedError, match=f"{name} does not decode; take another package"
                ):
                    encoder.decode()
            assert np.array_equal(cells, before)


def test_each_package_has_the_grids_that_it_documents():
    known = {name: [grid for grid in GRIDS if kind.curves(*grid)] for name, kind in ENCODERS.items()}
    assert known == {
        "hilbertsfc": [grid for grid in GRIDS if grid[0] < 4],
        "numpy-hilbert-curve": GRIDS,
        "geopandas": [(2, 1), (2, 10), (2, 16)],
    }
    assert ENCODERS["hilbertsfc"].curves(3, 22) == ()
    assert ENCODERS["numpy-hilbert-curve"].curves(2, 33) == ()


class Package(Encoder):
    """A package with one curve in 2D, which keeps its cells."""

    name, module = "package", "sfc"

    @classmethod
    def curves(cls, dim, bits):
        return ("hilbert",) if dim == 2 else ()

    def _prepare(self, cells):
        self.cells = cells

    def encode(self):
        raise NotImplementedError

    decode = encode


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hilbert", np.zeros((3, 3), int), 4), "unknown curve 'hilbert'; allowed: one of ; as package has"),
        (("morton", np.zeros((3, 2), int), 4), "unknown curve 'morton'; allowed: one of hilbert"),
        (("hilbert", np.zeros((3, 2)), 4), "cells of dtype float64; allowed: any integer dtype"),
        (("hilbert", np.zeros(3, int), 4), r"cells of shape \(3,\); allowed: \(n, dim\)"),
        (("hilbert", np.zeros((3, 2), int), 0), "bits = 0; allowed: an integer of at least 1"),
        (("hilbert", np.zeros((3, 2), int), 4, np.uint64, 0), "threads = 0; allowed: an integer"),
    ],
)
def test_cells_that_a_package_cannot_encode_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Package(*arguments)


def test_a_package_that_cannot_be_imported_is_not_installed(monkeypatch):
    assert Package.is_installed()
    monkeypatch.setattr(Package, "module", "no_package_of_this_name")
    assert not Package.is_installed()
    with pytest.raises(ImportError):
        Package("hilbert", np.zeros((3, 2), int), 4)
