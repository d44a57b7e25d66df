"""Random numbers of the scenes: known answers of the generator, and normal deviates of full accuracy."""

import numpy as np
import pytest
from scipy import special, stats

from md.scenes import deviates
from sfc.compile import kernel
from tests.md.scenes.header_on_host import computed

ALL = 2**32 - 1
KNOWN = [  # counter, key and block of Philox4x32-10: kat_vectors of Random123, the code of its authors
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ALL,) * 4, (ALL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@kernel
def block(words, found):
    """Fill `found` with the block of a counter and a key."""
    w = words
    found[0], found[1], found[2], found[3] = deviates.philox(w[0], w[1], w[2], w[3], w[4], w[5])


@kernel
def fill(n, stream, key, found):
    """Fill (n, 3) with the uniform numbers of the particles 0 .. n - 1."""
    for i in range(n):
        u = deviates.uniforms(np.uint64(i), np.uint64(stream), np.uint64(key), np.uint64(7))
        found[i, 0], found[i, 1], found[i, 2] = u


@kernel
def fill_normal(u, found):
    """Fill with the normal deviates of uniform numbers."""
    for i in range(len(u)):
        found[i] = deviates.normal(u[i])


def uniforms(n: int, stream: int = 0, key: int = 3) -> np.ndarray:
    found = np.empty((n, 3))
    fill(n, stream, key, found)
    return found


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_blocks_are_those_of_the_authors(counter, key, expected):
    found = np.empty(4, np.uint64)
    block(np.array([*counter, *key], np.uint64), found)
    assert tuple(found.tolist()) == expected


def test_uniform_numbers_are_uniform_independent_and_of_42_bits():
    u = uniforms(200_000)
    assert np.abs(u).max() < 0.5
    assert stats.kstest(u.ravel() + 0.5, "uniform").pvalue > 1e-4
    whole = (u * 2.0**43).astype(np.int64)
    assert ((whole & 1) == 1).all()  # odd multiples of 2^-43
    bits = whole[..., None] >> np.arange(1, 43) & 1
    assert np.abs(bits.mean(axis=(0, 1)) - 0.5).max() < 0.005
    assert (
        np.abs(
            np.corrcoef(np.column_stack([u, uniforms(200_000, 1), np.roll(u, 1, axis=0)]).T) - np.eye(9)
        ).max()
        < 0.012
    )


@pytest.mark.parametrize("other", [{"stream": 1}, {"key": 4}])
def test_another_stream_or_key_gives_other_numbers(other):
    assert np.array_equal(uniforms(100), uniforms(100))
    assert not (uniforms(100) == uniforms(100, **other)).any()


def probes() -> np.ndarray:
    """Uniform numbers in the middle, in the tails and far out, with the ends of each part."""
    powers = 2.0 ** -np.arange(2, 44)
    edges = np.array([0.425, np.nextafter(0.425, 1), 0.5 - np.exp(-25)])
    far = 0.5 - np.arange(1, 2001) * 2.0**-43
    u = np.concatenate([uniforms(100_000).ravel(), powers, 0.5 - powers, edges, far])
    return np.concatenate([u, -u])


def test_normal_deviates_are_those_of_the_inverse_distribution():
    u = probes()
    found = np.empty_like(u)
    fill_normal(u, found)
    expected = np.sign(u) * -special.ndtri(0.5 - np.abs(u))
    small = np.abs(u) < 0.01  # where scipy subtracts 1/2 twice
    assert np.abs(found / expected - 1)[~small].max() < 4e-15
    assert np.abs(found - expected)[small].max() < 4e-15
    assert np.array_equal(found, np.concatenate([-found[len(u) // 2 :], -found[: len(u) // 2]]))
    assert np.abs(found).max() < 7.4


def test_cuda_gives_the_same_bits(tmp_path):
    u = probes()
    found = np.empty_like(u)
    fill_normal(u, found)
    (tmp_path / "x.bin").write_bytes(u.tobytes())
    assert computed(tmp_path, "deviates.cuh", np.float64, "normal(x)").tobytes() == found.tobytes()
