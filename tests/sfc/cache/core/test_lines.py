"""Lines of a core: those of plain dictionaries that are kept in the order of their use."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfc.cache.core import CoreStream, Processor, lines
from sfc.cache.core.lines import PART, SEQUENCES, STRIDE
from tests.tiers import examples

SMALL = Processor(
    "small", 1, 64, 64 * 4, 2, 64 * 8, 2, 64 * 24, 3, 1.0, 3.0, 14.0, 150.0, 0.1, 0.4, 9.0, 2.0
)  # sets: 2, 4 and 8


def stream_of(numbers, each: int = 1, instructions=None, **more) -> CoreStream:
    """Items that load so many lines each, in the order of their numbers; by instructions of their own."""
    addresses = 64 * np.asarray(numbers, np.int64) + 17
    by = np.zeros(len(addresses), np.int64) if instructions is None else np.asarray(instructions, np.int64)
    return CoreStream(
        len(addresses) // each, lambda a, b: (addresses[each * a : each * b], by[each * a : each * b]), **more
    )


class Cache:
    """Sets of lines with the time of their last use; lines of a sequence are the first to go."""

    def __init__(self, sets: int, ways: int, keeps_sequences: bool):
        self.sets, self.ways, self.keeps = [{} for _ in range(sets)], ways, keeps_sequences
        self.time = 0

    def finds(self, line: int, in_sequence: bool) -> bool:
        own, self.time = self.sets[line % len(self.sets)], self.time + 1
        found = line in own
        if not found and len(own) == self.ways:
            del own[min(own, key=own.__getitem__)]
        own[line] = self.time if self.keeps or not in_sequence else self.time - 10**9
        return found


def plain(numbers, instructions, processor: Processor, passes: int) -> list[int]:
    """Lines of the second cache, the last one and memory: random, and in sequence, of each."""
    caches = [
        Cache(processor.sets(level), getattr(processor, f"{level}_ways"), level != "l3")
        for level in ("l1", "l2", "l3")
    ]
    clock, missed = count(), {}
    ends = [{"line": -9, "way": 0, "time": -1} for _ in range(SEQUENCES)]
    counts = [0] * 6
    for _ in range(passes):
        counts = [0] * 6
        for line, instruction in zip(numbers, instructions, strict=True):
            if caches[0].finds(line, False):
                continue
            steps = np.diff([*missed.get(instruction, [])[-2:], line])
            missed.setdefault(instruction, []).append(line)
            is_next = (
                len(steps) == 2 and steps.prod() > 0 and 0 < abs(steps).min() <= abs(steps).max() <= STRIDE
            )
            near = [end for end in ends if 0 < abs(line - end["line"]) <= STRIDE]
            goes_on = False
            if near:
                step = line - near[0]["line"]
                goes_on = near[0]["way"] * step > 0
                near[0].update(line=line, way=1 if step > 0 else -1, time=next(clock))
            else:
                min(ends, key=lambda end: end["time"]).update(line=line, way=0, time=next(clock))
            goes_on |= is_next
            level = next((k for k in (1, 2) if caches[k].finds(line, goes_on)), 3)
            counts[2 * (level - 1) + goes_on] += 1
    return counts


@examples(40)
@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(1, 2))
def test_lines_are_those_of_dictionaries(seed, most, passes):
    random = np.random.default_rng(seed)
    walk = np.cumsum(random.integers(-3, 4, 200)) % most  # back and forth, through sequences
    numbers = np.where(random.random(200) < 0.5, walk, random.integers(0, most, 200)).tolist()
    instructions = random.integers(0, 3, 200).tolist()
    found = lines(stream_of(numbers, instructions=instructions), SMALL, passes)
    expected = [each / len(numbers) for each in plain(numbers, instructions, SMALL, passes)]
    assert found.loads == 1
    levels = found.second, found.last, found.memory
    assert [each for level in levels for each in level] == pytest.approx(expected)


def test_lines_one_after_the_other_are_a_sequence_in_both_directions():
    for numbers in (np.arange(1000), np.arange(1000)[::-1], np.arange(0, 2000, 2)):
        memory = lines(stream_of(numbers), SMALL, 1).memory
        assert memory.random == 2 / 1000  # the first, and the second, which gives the direction
        assert memory.sequence == 998 / 1000
    memory = lines(stream_of(np.arange(0, 3000, 3)), SMALL, 1).memory
    assert memory.sequence == 0


def test_a_sequence_of_an_instruction_is_known_among_many_lines_in_no_order():
    scattered = 10 * np.random.default_rng(0).permutation(40_000).reshape(1000, 40)
    numbers = np.column_stack([10**6 + np.arange(1000), scattered]).ravel()
    instructions = np.tile([1] + [2] * 40, 1000)
    found = lines(stream_of(numbers, 41, instructions), SMALL, 1).memory
    assert found.sequence == pytest.approx(998 / 1000, abs=0.01)
    assert lines(stream_of(numbers, 41), SMALL, 1).memory.sequence < 0.01


def test_items_in_parts_are_followed_as_one():
    numbers = np.random.default_rng(0).integers(0, 40, 3 * PART)
    one = lines(stream_of(numbers, 3), SMALL, 1)
    other = lines(stream_of(numbers, PART), SMALL, 1)
    assert one.memory.mean == pytest.approx(other.memory.mean * 3 / PART)
    assert other.loads == PART


def test_what_a_pass_leaves_in_the_caches_is_found_by_the_next():
    numbers = list(range(20))
    assert lines(stream_of(numbers), SMALL, 1).memory.mean == 1
    assert lines(stream_of(numbers), SMALL, 2).memory.mean < 1
    assert lines(stream_of(range(2)), SMALL, 2).second.mean == 0  # in the first cache


def test_threads_have_shares_of_the_items_and_of_the_last_cache():
    numbers = (3 * np.random.default_rng(0).permutation(20)).tolist() * 4
    alone = lines(stream_of(numbers[:40]), SMALL)
    assert lines(stream_of(numbers), replace(SMALL, threads=2, l3_bytes=2 * SMALL.l3_bytes)) == alone
    assert lines(stream_of(numbers), replace(SMALL, threads=2)).memory.mean > alone.memory.mean


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(TypeError, match=r"stream = 3 of class int; allowed: an sfc\.cache\.core\.CoreStream"):
        lines(3, SMALL)
    with pytest.raises(TypeError, match="processor = 'epyc' of class str; allowed"):
        lines(stream_of([1]), "epyc")
    with pytest.raises(ValueError, match="passes = 0"):
        lines(stream_of([1]), SMALL, 0)
    for loads, error in (
        (None, TypeError), ((np.zeros(2, np.int64), np.zeros(1, np.int64)), ValueError),
        ((np.array([-1]), np.array([0])), ValueError), ((np.zeros(1), np.zeros(1, np.int64)), ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match="allowed"):
            lines(CoreStream(1, lambda a, b, loads=loads: loads), SMALL)
    with pytest.raises(ValueError, match="1 items; allowed: one or more for each of 2 threads"):
        lines(stream_of([1]), replace(SMALL, threads=2, l3_bytes=10**6))
