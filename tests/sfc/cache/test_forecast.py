"""Numbers of a GPU from a file, the blocks that fit on it, and what a launch is foreseen to take."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from sfc import cache

MACHINE = cache.Machine(
    name="a GPU", multiprocessors=132, clock=1.7, threads=2048, blocks=32, registers=65536,
    shared_bytes=233_472, l1_bytes=262_144, l1_ways=4, l1_line=128, sector=32, granule=64,
    l2_bytes=52_428_800, l2_halves=1_214_400, l2_rate=135.0, memory_rate=3000.0,
)  # fmt: skip


def gather(element: np.ndarray, **options) -> cache.LoadStream:
    """y[i] = x[element[i]] for rows of 16 bytes."""
    n = len(element)
    return cache.LoadStream.of(
        [
            cache.Access("element", np.arange(n), 4),
            cache.Access("x", element, 16, waits=True),
            cache.Access("y", np.arange(n), 16, "written", waits=True),
        ],
        **options,
    )


@pytest.fixture
def path(tmp_path):
    """A file of the machine."""
    place = tmp_path / "gpu.toml"
    lines = (f"{name} = {value!r}" for name, value in asdict(MACHINE).items())
    place.write_text("[measured]\nby = 'hand'\n[machine]\n" + "\n".join(lines).replace("'", '"'))
    return place


def test_a_file_gives_the_machine(path):
    assert cache.Machine.read(path) == MACHINE


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("clock = 1.7\n", "", "clock missing"),
        ("clock", "speed", "clock, speed missing or unknown"),
        ("clock = 1.7", "clock = 0", "clock of a GPU = 0"),
        ("threads = 2048", "threads = 0", "threads of a GPU = 0"),
        ("[machine]", "[chip]", "machine"),
        ("[machine]", "[[machine]]", "missing or unknown"),
        ("[machine]", "[machine", "allowed: a TOML file"),
        ("l1_ways = 4", "l1_ways = 3", "size = 262144"),
    ],
)
def test_a_file_that_is_wrong_is_told(path, before, after, message):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(ValueError, match=message):
        cache.Machine.read(path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"no\.toml"):
        cache.Machine.read(tmp_path / "no.toml")


@pytest.mark.parametrize(
    ("block", "registers", "shared", "blocks"),
    # by CUDA's occupancy calculator for compute capability 9.0
    [
        (256, 32, 0, 8), (256, 40, 0, 6), (256, 54, 0, 4), (128, 40, 0, 12), (64, 16, 0, 32),
        (1024, 64, 0, 1), (256, 32, 100_000, 2), (160, 80, 0, 4), (256, 32, 116_736, 1), (256, 33, 0, 6),
    ],
)  # fmt: skip
def test_as_many_blocks_are_resident_as_have_room(block, registers, shared, blocks):
    stream = gather(np.arange(64), block=block, registers=registers, shared=shared)
    assert MACHINE.resident(stream) == blocks
    first = MACHINE.first_cache(stream)
    assert first.threads == blocks * block
    assert first.size == (MACHINE.l1_bytes - blocks * shared) // 512 * 512


@pytest.mark.parametrize(("registers", "shared"), [(80, 0), (32, 233_473)])
def test_a_block_that_does_not_fit_is_told(registers, shared):
    with pytest.raises(ValueError, match="allowed on a GPU: 2048 threads"):
        MACHINE.resident(gather(np.arange(64), block=1024, registers=registers, shared=shared))


def test_the_parts_of_a_launch_are_those_of_the_caches_and_the_time_is_near_the_longest():
    stream = gather(np.random.default_rng(0).permutation(2**16))
    small = replace(MACHINE, l2_halves=1)
    fitted = cache.Fitted(cycles=50, launch=3, latency=0.1, share=0.8, power=5)
    found = cache.foresee(stream, small, fitted, sample=2**14)
    asked, memory = cache.warps(stream), cache.l2(stream, [2**19], sample=2**14)[0]
    assert found.sectors == asked.read
    assert found.missed == cache.l1(stream, small.first_cache(stream)).missed
    assert found.bytes == (pytest.approx(memory.read + memory.written), memory.error)
    assert found.bytes.error > 0
    assert found.rounds.mean == pytest.approx(3)
    us = [
        2**11 * 3 * 50 / (4 * 132 * 1.7e3),
        2**16 * (found.missed.mean + asked.written.mean) / 135e3,
        2**16 * found.bytes.mean / (0.8 * 3e6),
    ]
    assert found.time == pytest.approx(3 + 0.3 + sum(x**5 for x in us) ** 0.2)
    assert max(us) < found.time - 3.3 < sum(us)


def test_memory_in_order_is_foreseen_to_be_faster():
    element, small = np.arange(2**18), replace(MACHINE, l2_halves=1)
    ordered, shuffled = (
        cache.foresee(gather(one), small, cache.Fitted(cycles=5, launch=0, latency=0))
        for one in (element, np.random.default_rng(0).permutation(element))
    )
    assert ordered.bytes.mean == pytest.approx(36, rel=0.1)  # each once
    assert shuffled.bytes.mean == pytest.approx(36 + 48, rel=0.15)  # three quarters of a granule are not used
    assert 1.6 < shuffled.time / ordered.time < 2.5
    still = cache.foresee(gather(element[: 2**10]), MACHINE, cache.Fitted())
    assert still.bytes.mean == 0
    assert still.time == pytest.approx(4 + 0.45, abs=0.5)


def test_the_launch_before_decides_what_is_there():
    stream, other = gather(np.arange(2**12)), gather(np.random.default_rng(0).permutation(2**22)[: 2**18])
    small, fitted = replace(MACHINE, l2_halves=1), cache.Fitted()
    alone, after = (
        cache.foresee(stream, small, fitted, before=one).bytes.mean for one in ([], [stream, other])
    )
    assert alone == 0
    assert after > 20


@pytest.mark.parametrize(("name", "value"), [("share", 0), ("power", 0), ("cycles", 0), ("launch", -1)])
def test_fitted_numbers_that_cannot_be_are_told(name, value):
    with pytest.raises(ValueError, match=f"{name} of Fitted = {value}"):
        cache.foresee(gather(np.arange(3)), MACHINE, cache.Fitted()._replace(**{name: value}))


def test_objects_of_other_classes_are_told():
    for given in ((np.arange(3), MACHINE, cache.Fitted()), (gather(np.arange(3)), "h100", cache.Fitted()),
                  (gather(np.arange(3)), MACHINE, 58.0)):  # fmt: skip
        with pytest.raises(TypeError):
            cache.foresee(*given)
