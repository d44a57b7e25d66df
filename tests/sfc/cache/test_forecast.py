"""Numbers of a GPU from a file, the blocks that fit on it, and what a launch is foreseen to take."""

import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from sfc import cache
from sfc.cache.forecast import foresee_on, time_of
from sfc.cache.machine import FOLDER, KNOWN

ROOT = Path(__file__).parents[3]

MACHINE = cache.Machine(
    name="a GPU", multiprocessors=132, clock=1.7, threads=2048, blocks=32, registers=65536,
    shared_bytes=233_472, l1_bytes=262_144, l1_ways=8, l1_line=128, sector=32, granule=64,
    l2_bytes=52_428_800, l2_halves=2, l2_rate=135.0, l2_latency=150.0, memory_rate=3000.0,
    random_rate=30.0, memory_latency=350.0,
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


def few(held: float, **options) -> cache.Fitted:
    """Fitted numbers with so many bytes of the second cache of `MACHINE`."""
    return cache.Fitted(held=held / MACHINE.l2_bytes, **options)


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
        ("l2_latency = 150.0", "l2_latency = 0", "l2_latency of a GPU = 0; .* above 0 .ns"),
        ("memory_latency = 350.0", "memory_latency = -1", "memory_latency of a GPU = -1; .* above 0 .ns"),
        ("memory_latency", "latency", "latency, memory_latency missing or unknown"),
        ("l2_halves = 2", "l2_halves = 0", "l2_halves of a GPU = 0"),
        ("l2_halves = 2", "l2_halves = 3", "l2_halves of a GPU = 3"),
        ("[machine]", "[chip]", "machine"),
        ("[machine]", "[[machine]]", "missing or unknown"),
        ("[machine]", "[machine", "allowed: h100, h200, or a TOML file"),
        ("l1_ways = 8", "l1_ways = 3", "size = 262144"),
        ("random_rate = 30.0", "random_rate = 0", "random_rate of a GPU = 0; .*granules"),
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
    ("name", "chip", "megabytes"), [("h100", "NVIDIA H100 80GB HBM3", 50), ("h200", "NVIDIA H200", 60)]
)
def test_known_machines_are_read_by_their_names(name, chip, megabytes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine = cache.Machine.read(name)
    assert machine == cache.Machine.read(FOLDER / f"{name}.toml")
    assert (machine.name, machine.l2_bytes, machine.l2_halves) == (chip, megabytes * 2**20, 2)
    assert machine.multiprocessors == 132
    assert 0 < machine.l2_latency < machine.memory_latency < 1000


def test_every_file_of_a_machine_is_known_and_goes_into_a_wheel():
    assert sorted(KNOWN) == sorted(file.stem for file in FOLDER.iterdir()) == ["h100", "h200"]
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    package = ROOT / "sfc" / "cache"
    packed = {file for pattern in data["sfc.cache"] for file in package.glob(pattern)}
    assert packed == {ROOT / "sfc" / "cache" / "machines" / file.name for file in FOLDER.iterdir()}


def test_a_name_that_is_not_known_is_a_path():
    with pytest.raises(ValueError, match=r"machine 'h300': .*h300.*; allowed: h100, h200, or a TOML file"):
        cache.Machine.read("h300")


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
    left = MACHINE.l1_bytes - first.size  # the least step that has room, and a part of a set
    steps = [1024 * step for step in (8, 16, 32, 64, 100, 132, 164, 196, 228)]
    assert 0 <= left - next(step for step in steps if step >= blocks * (shared + 1024)) < 1024


@pytest.mark.parametrize(("registers", "shared"), [(80, 0), (32, 233_473)])
def test_a_block_that_does_not_fit_is_told(registers, shared):
    with pytest.raises(ValueError, match="allowed on a GPU: 2048 threads"):
        MACHINE.resident(gather(np.arange(64), block=1024, registers=registers, shared=shared))


def test_the_parts_of_a_launch_are_those_of_the_caches():
    places = np.random.default_rng(0).permutation(2**18)
    stream, fitted = gather(places), few(2**19)
    capacity, at_once = int(fitted.held * MACHINE.l2_bytes), [8 * 132]
    found = cache.foresee(stream, MACHINE, fitted, sample=2**16)
    asked = cache.warps(stream)
    memory = cache.l2(stream, [capacity], halves=2, at_once=at_once, sample=2**16)[0]
    assert found.sectors == asked.read
    assert found.missed == cache.l1(stream, MACHINE.first_cache(stream)).missed
    assert found.bytes == (pytest.approx(memory.read + memory.written), memory.error)
    assert found.bytes.error > 0
    assert found.written == memory.written > 0
    assert found.rounds == asked.rounds == (3, 0)
    served = 2**18 * (found.missed.mean + asked.written.mean)
    given = stream, MACHINE, fitted, 3, served, 2**18 * found.bytes.mean, 2**18 * memory.opened
    assert memory.opened > 0
    assert found.time == pytest.approx(time_of(*given))


def test_an_atomic_operation_takes_two_accesses_and_equal_numbers_take_turns():
    n = 2**16
    for equal, expected in ((1, 4), (16, 16)):  # four sectors, once each; one sector, for 16 equal numbers
        stream = cache.LoadStream.of([cache.Access("sums", np.arange(n) // equal, 4, "added")])
        added = cache.warps(stream).added.mean
        assert added == pytest.approx(expected / 32)
        found = cache.foresee(stream, MACHINE, few(2**24)).time
        assert found == pytest.approx(time_of(stream, MACHINE, few(2**24), 1, 2 * n * added, 0, 0))


@pytest.mark.parametrize(
    ("block", "registers", "rounds", "served", "moved", "opened", "us"),
    # with 40 registers 12 blocks of 4 warps on each of 100 multiprocessors: 4800 warps at once
    [
        (128, 40, 6, 0, 0, 0, 2 + 6 * 0.25 + 9600 * 6 * 500 / 4800 / 1e3),  # 2 turns of the warps: 6 us
        (128, 80, 6, 0, 0, 0, 2 + 6 * 0.25 + 12),  # 6 blocks
        (128, 40, 0, 4e6, 0, 0, 2 + 4e6 / (0.5 * 100e3)),  # 80 us
        (128, 40, 0, 0, 3e6, 0, 2 + 3e6 / 1e6),  # 3 us
        (128, 40, 0, 0, 64e3, 1e3, 2 + 1e3 / 10e3),  # 0.1 us: granules in no order
        (128, 40, 0, 0, 128e3, 1e3, 2 + 0.1 + 64e3 / 1e6),  # as many more in opened pages
        (128, 40, 6, 4e5, 4e6, 0, 2 + (7.5**2 + 8**2 + 4**2) ** 0.5),
    ],
)  # fmt: skip
def test_the_time_is_that_of_a_sum_by_hand(block, registers, rounds, served, moved, opened, us):
    rates = {"l2_rate": 100.0, "memory_rate": 1000.0, "random_rate": 10.0}
    machine = replace(MACHINE, multiprocessors=100, l2_latency=250.0, **rates)
    fitted = cache.Fitted(round=500, launch=2, rate=0.5, power=2)
    stream = gather(np.zeros(9600 * 32, int), block=block, registers=registers)
    assert time_of(stream, machine, fitted, rounds, served, moved, opened) == pytest.approx(us, rel=1e-12)


def test_the_time_is_near_the_longest_part():
    stream, fitted = gather(np.arange(2**16)), cache.Fitted(launch=0, rate=1, power=5)
    parts = [time_of(stream, MACHINE, fitted, *one) for one in ((0, 3e6, 0, 0), (0, 0, 4e7, 0))]
    assert max(parts) < time_of(stream, MACHINE, fitted, 0, 3e6, 4e7, 0) < 1.2 * max(parts) < sum(parts)


def test_several_machines_are_foreseen_as_each_alone():
    random = np.random.default_rng(0)
    stream, before = gather(random.permutation(2**14)), gather(random.permutation(2**14), registers=64)
    machines = [
        MACHINE, replace(MACHINE, granule=32), replace(MACHINE, l2_halves=1),
        replace(MACHINE, l2_bytes=2**17), replace(MACHINE, l1_bytes=2**16, threads=1024),
        replace(MACHINE, sector=64), MACHINE,
        *map(cache.Machine.read, KNOWN),
    ]  # fmt: skip
    given = few(2**18), [before, stream], 2**12, 3
    found = foresee_on(stream, machines, *given)
    assert found == [cache.foresee(stream, machine, *given) for machine in machines]
    assert len({one.time for one in found}) == len(machines) - 1
    assert len({one.bytes for one in found}) == 5
    assert foresee_on(stream, [], cache.Fitted()) == []


def test_a_share_of_the_second_cache_holds_what_a_kernel_takes():
    stream = gather(np.random.default_rng(0).permutation(2**14))
    less = replace(MACHINE, l2_bytes=2**18)
    found = [
        cache.foresee(stream, one, few(2**17)._replace(held=held))
        for one, held in ((less, 1), (MACHINE, 2**18 / MACHINE.l2_bytes))
    ]
    assert found[0].bytes == found[1].bytes
    assert found[0].bytes.mean > cache.foresee(stream, MACHINE, few(2**20)).bytes.mean


def test_memory_in_order_is_foreseen_to_be_faster():
    element = np.arange(2**18)
    ordered, shuffled = (
        cache.foresee(gather(one), MACHINE, few(2**19, round=10, launch=0))
        for one in (element, np.random.default_rng(0).permutation(element))
    )
    assert ordered.bytes.mean == pytest.approx(36, rel=0.1)  # each once
    assert shuffled.bytes.mean == pytest.approx(36 + 48, rel=0.15)  # three quarters of a granule are not used
    assert 1.6 < shuffled.time / ordered.time < 2.5
    still = cache.foresee(gather(element[: 2**10]), MACHINE, cache.Fitted())
    assert (still.bytes.mean, still.written) == (0, 0)
    assert still.time == pytest.approx(
        cache.Fitted().launch + 3 * 0.15, abs=0.1
    )  # a launch, and three rounds


def test_the_launch_before_decides_what_is_there():
    stream, other = gather(np.arange(2**12)), gather(np.random.default_rng(0).permutation(2**22)[: 2**18])
    alone, after = (
        cache.foresee(stream, MACHINE, few(2**20), before=one).bytes.mean for one in ([], [stream, other])
    )
    assert alone == 0
    assert after > 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("round", 0),
        ("held", 0),
        ("rate", 0),
        ("power", 0),
        ("launch", -1),
        ("rate", -0.5),
        ("power", 0.5),
        ("held", 1.1),
    ],
)
def test_fitted_numbers_that_cannot_be_are_told(name, value):
    with pytest.raises(ValueError, match=rf"{name} of Fitted = {value}"):
        cache.foresee(gather(np.arange(3)), MACHINE, cache.Fitted()._replace(**{name: value}))


@pytest.mark.parametrize("name", cache.Fitted._fields)
def test_fitted_numbers_of_other_classes_are_told(name):
    with pytest.raises(TypeError, match=f"{name} of Fitted"):
        cache.foresee(gather(np.arange(3)), MACHINE, cache.Fitted()._replace(**{name: "1"}))


def test_objects_of_other_classes_are_told():
    for given in ((np.arange(3), MACHINE, cache.Fitted()), (gather(np.arange(3)), "h100", cache.Fitted()),
                  (gather(np.arange(3)), MACHINE, 58.0)):  # fmt: skip
        with pytest.raises(TypeError, match=r"allowed: an sfc\.cache\."):
            cache.foresee(*given)
    with pytest.raises(TypeError, match=r"allowed: LoadStreams"):
        cache.foresee(gather(np.arange(3)), MACHINE, cache.Fitted(), before=[3])
    with pytest.raises(TypeError, match="machines"):
        foresee_on(gather(np.arange(3)), MACHINE, cache.Fitted())
