"""Processors, streams and the time of an item."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.machine import CORE_SOURCES, text_of
from sfc.cache import READ, end, note
from sfc.cache.core import CoreFitted, CoreStream, Processor, foresee, one_by_one
from sfc.cache.core.forecast import time_of
from sfc.cache.core.lines import CoreLines, LevelLines
from sfc.cache.core.processor import FOLDER, KNOWN
from sfc.compile import kernel
from tests.sfc.cache.core.test_lines import SMALL, stream_of

FOUND = CoreLines(20.0, LevelLines(4.0, 1.0), LevelLines(3.0, 2.0), LevelLines(0.5, 0.25))


def test_lines_in_no_order_of_known_addresses_take_the_time_of_a_line():
    found = time_of(FOUND, False, SMALL, CoreFitted(load=1.0))
    assert found == pytest.approx(20 + 4 * 0.1 + 3 * 0.4 + 0.5 * 9 + 0.25 * 2)


def test_a_core_with_a_slower_first_cache_takes_longer_for_its_loads_alone():
    slow = replace(SMALL, l1_latency=1.5)
    more = time_of(FOUND, True, slow, CoreFitted(load=2.0)) - time_of(
        FOUND, True, SMALL, CoreFitted(load=2.0)
    )
    assert more == pytest.approx(20 * 2.0 * 0.5)


def test_a_core_that_branches_on_what_it_loads_waits_for_a_share_of_the_latency():
    found = time_of(FOUND, True, SMALL, CoreFitted(load=1.0, waits=0.5))
    assert found == pytest.approx(20 + 4 * 1.5 + 3 * 7 + 0.5 * 75 + 0.25 * 2)
    slow = replace(SMALL, memory_line=500.0)
    found = time_of(FOUND, True, slow, CoreFitted(load=1.0, waits=0.5))
    assert found == pytest.approx(20 + 4 * 1.5 + 3 * 7 + 0.5 * 500 + 0.25 * 2)


def test_threads_share_the_items():
    fitted = CoreFitted(load=1.0)
    two = replace(SMALL, threads=2, l3_bytes=10**6)
    assert time_of(FOUND, True, two, fitted) == pytest.approx(time_of(FOUND, True, SMALL, fitted) / 2)


def test_a_forecast_has_the_lines_and_their_time():
    stream = stream_of(np.random.default_rng(0).integers(0, 200, 500), branches=False)
    fitted = CoreFitted(load=2.0)
    found = foresee(stream, SMALL, fitted)
    assert found.time == time_of(found.lines, False, SMALL, fitted) > 2


def test_a_kernel_that_runs_once_finds_the_caches_empty():
    stream = stream_of(np.arange(4), branches=False)
    once, again = (foresee(stream, SMALL, CoreFitted(), passes).lines for passes in (1, 2))
    assert once.memory.mean > again.memory.mean == 0


@pytest.mark.parametrize(
    ("fitted", "message"),
    [
        (CoreFitted(load=0.0), "load of CoreFitted"),
        (CoreFitted(waits=1.1), "waits of CoreFitted"),
    ],
)
def test_fitted_numbers_out_of_range_are_refused(fitted, message):
    with pytest.raises(ValueError, match=message):
        foresee(stream_of([1]), SMALL, fitted)


@kernel
def _pairs(items, partner, noted):
    for k in range(len(items)):
        note(noted, 3, 8 * items[k], READ, False)
        for _ in range(items[k] % 3):
            note(noted, 5, 10_000 + partner[items[k]], READ, True)
        end(noted, k)


def test_a_walk_notes_item_after_item():
    partner = np.arange(50)[::-1].copy()
    stream = one_by_one(_pairs, (partner,), 50, branches=False)
    expected = [a for i in range(7, 31) for a in [8 * i] + [10_000 + 49 - i] * (i % 3)]
    addresses, instructions = stream.loads_of(7, 31)
    assert addresses.tolist() == expected
    assert instructions.tolist() == [3 if one < 10_000 else 5 for one in expected]
    assert (stream.items, stream.branches) == (50, False)


def test_a_stream_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="items = 0"):
        CoreStream(0, lambda a, b: (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    with pytest.raises(TypeError, match="loads_of"):
        CoreStream(1, 3)
    with pytest.raises(TypeError, match="branches"):
        CoreStream(1, lambda a, b: None, 1)


@pytest.mark.parametrize("name", KNOWN)
def test_the_files_of_known_cpus_are_as_they_are_written(name):
    assert (FOLDER / f"{name}.toml").read_text() == text_of(Processor.read(name), CORE_SOURCES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"line": 48}, "line of small = 48 bytes; allowed: a power of two"),
        ({"threads": 9, "l3_bytes": 64 * 24}, "l3_bytes of small = 1536; allowed: a set of 3 lines"),
        ({"l1_bytes": 64}, "l1_bytes of small = 64; allowed: a set of 2 lines"),
        ({"memory_latency": -1.0}, "memory_latency of small = -1.0"),
    ],
)
def test_a_processor_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)


def test_a_file_without_a_processor_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"processor 'none': .*allowed: .*\[processor\]"):
        Processor.read("none")
    (tmp_path / "one.toml").write_text('[processor]\nname = "one"\n')
    with pytest.raises(ValueError, match="missing or unknown"):
        Processor.read(tmp_path / "one.toml")
