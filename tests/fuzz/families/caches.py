"""Models of a cache: streams, blocks, stack distances, sets, addresses."""

from __future__ import annotations

import collections
import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, sampled_from

import sfc
from sfc.cache import AccessStream, HitRatio, StackDistances
from tests.fuzz import references
from tests.fuzz.drawing import RNG, among, stored
from tests.fuzz.families import Family
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, array, either, integer, maybe, number, word
from tests.sfc.cache.test_models import brute_lru_hits

TOP = 2**63 - 1


@st.composite
def items(draw) -> list[int]:
    """What is read, near and far."""
    spread, rng = draw(sampled_from((3, 10, 1000, 2**40, TOP))), draw(RNG)
    near = rng.integers(spread, size=draw(integers(1, 12)))
    far = rng.integers(spread, size=draw(integers(0, 59)))
    return np.where(rng.random(len(far)) < 0.7, rng.choice(near, len(far)), far).tolist()


def integers_of(values: list[int]) -> Kind:
    """An array of integers of one axis, stored in any way that holds them."""
    return array(stored(values, max(values, default=0) + 1), "iu", (None,))


@st.composite
def raw_streams(draw) -> dict[str, list[int]]:
    """Offsets, reads and readers that go together."""
    n = draw(integers(0, 8))
    rows = [draw(st.lists(integers(0, n - 1), max_size=4)) for _ in range(n)]
    return {
        "offsets": [0, *np.cumsum([len(row) for row in rows], dtype=int).tolist()],
        "reads": [slot for row in rows for slot in row],
        "readers": draw(st.permutations(range(n))),
    }


STREAMS = raw_streams().map(lambda raw: AccessStream(**{k: np.array(v, int) for k, v in raw.items()}))


def fits(plain: dict) -> bool:
    """Whether offsets, reads and readers are a stream."""
    offsets, reads = plain["offsets"].tolist(), plain["reads"].tolist()
    readers = plain.get("readers")
    readers = range(len(offsets) - 1) if readers is None else readers.tolist()
    good = bool(offsets) and offsets[0] == 0 and offsets[-1] == len(reads) and sorted(offsets) == offsets
    return good and len(readers) == len(offsets) - 1 and all(0 <= slot <= TOP for slot in (*reads, *readers))


def streams(draw) -> Cases:
    """Access streams."""
    kinds = {name: integers_of(values) for name, values in draw(raw_streams()).items()}

    def check(found, plain):
        require(fits(plain), "it is no stream")
        for name in plain:
            if plain[name] is not None:
                same(getattr(found, name), plain[name], name)
        same(sfc.cache.block_hits(found, 3), references.block_hits(found, 3), "hits of blocks")

    optional = {"readers": maybe(kinds.pop("readers"))}
    return cases(AccessStream, kinds, optional, check=check, sure=fits)


def blocks(draw) -> Cases:
    """Blocks."""
    stream, call = draw(STREAMS), draw(sampled_from((sfc.cache.block, sfc.cache.block_hits)))

    def check(found, plain):
        right = references.block_hits(stream, plain["capacity"])
        if call is sfc.cache.block:
            equal((found.hits, found.reads), (sum(right), len(stream.reads)), "hits and reads")
        else:
            same(found, right, "hits")

    kinds = {"stream": an(AccessStream, stream), "capacity": integer(1)}
    return cases(call, kinds, check=check, sure=True)


def distances(draw) -> Cases:
    """Stack distances, at some capacities."""

    def check(found, plain):
        given = plain["items"]
        given = (given.reads if isinstance(given, AccessStream) else given).tolist()
        equal((found.reads, found.distinct), (len(given), len(set(given))), "reads and lines")
        for capacity in (1, 2, 3, 7, 50):
            equal(found.hits(capacity).hits, brute_lru_hits(given, capacity), f"hits at {capacity}")

    lines = integers_of(draw(items()))
    kind = either(lines, an(AccessStream, STREAMS)).but(valid=among(*[lines.strategy] * 9, STREAMS))
    return cases(sfc.cache.lru, {"items": kind}, check=check, sure=True)


def at_capacities(draw) -> Cases:
    """Hits of stack distances, or their ratios, at some capacities."""
    given = draw(items())
    found = sfc.cache.lru(np.array(given, np.int64))
    if draw(booleans()):

        def check(hits, plain):
            equal(hits.hits, brute_lru_hits(given, plain["capacity"]), "hits")

        return cases(found.hits, {"capacity": integer(1)}, name="lru(...).hits", check=check, sure=True)

    def right(capacities):
        require((capacities >= 1).all(), "a capacity below 1")
        return [brute_lru_hits(given, c) / len(given) if given else math.nan for c in capacities.tolist()]

    kinds = {"capacities": integers_of(draw(st.lists(integers(1, 30), max_size=5)))}
    return cases(found.ratios, kinds, name="lru(...).ratios", right=right, near=1e-12)


def sets(draw) -> Cases:
    """Caches of sets."""
    line, ways, count = (draw(sampled_from(of)) for of in ((1, 4, 32, 64), (1, 2, 3, 8), (1, 2, 5, 16)))

    def check(found, plain):
        given = plain["addresses"].tolist()
        size, line, ways = (plain[name] for name in ("size", "line", "ways"))
        require(all(address >= 0 for address in given), "a negative address")
        require(size % (line * ways) == 0, "an impossible cache")
        held = collections.defaultdict(list)
        for address in given:
            held[address // line % (size // (line * ways))].append(address // line)
        right = sum(brute_lru_hits(lines, ways) for lines in held.values())
        equal((found.hits, found.reads), (right, len(given)), "hits and reads")

    power = integer(1, usual=(line, line))
    kinds = {
        "addresses": integers_of(draw(items())),
        "size": integer(1, 2**40, (line * ways * count,) * 2, most=2**26),
        "line": power.but(admits=lambda v: power.admits(v) and int(v) & (int(v) - 1) == 0),
        "ways": integer(1, usual=(ways, ways)),
    }
    return cases(sfc.cache.set_associative, kinds, check=check)


def loads(draw) -> Cases:
    """Byte addresses."""
    n = draw(integers(1, 20))

    def check(found, plain):
        given = plain.pop("slots").tolist()
        require(all(0 <= slot < plain["n"] for slot in given), "a slot outside the array")
        equal((found.dtype, found.tolist()), (np.int64, references.addresses(given, **plain)), "addresses")

    kinds = {
        "slots": array(stored(draw(st.lists(integers(0, n - 1), max_size=5)), n), "iu", (None,)),
        "layout": word("soa", "aos", "aos4"),
        "dim": integer(1, usual=(1, 4), most=10**5),
        "itemsize": integer(1).but(valid=sampled_from((4, 8))),
        "n": integer(0, TOP, (n, n)),
    }
    return cases(sfc.cache.addresses, kinds, check=check)


def speed_ups(draw) -> Cases:
    """What hits save."""
    hits, reads = sorted((draw(integers(0, 99)), draw(integers(1, 100))))

    def right(miss_cost=100.0):
        return miss_cost / (hits / reads + (1 - hits / reads) * miss_cost)

    return cases(HitRatio(hits, reads).speed_up, {}, {"miss_cost": number(above=0)}, right=right, near=1e-12)


def check_ratio(found: HitRatio, plain: dict) -> None:
    """A ratio is that of its numbers."""
    same(found.ratio, plain["hits"] / plain["reads"] if plain["reads"] else math.nan, "ratio")


COUNTS = {"hits": integer(0, usual=(0, 50)), "reads": integer(0, usual=(50, 99))}
DISTANCES = {"histogram": array(np.array([1, 2, 3]), "iu", (None,)), "cold": integer(0, usual=(3, 3))}
HISTOGRAMS = cases(StackDistances, DISTANCES | {"reads": integer(0, usual=(9, 9))})
EQUAL = dict.fromkeys((streams, blocks, distances, sets, loads), 5)
REST = {at_capacities: 4, speed_ups: 2, cases(HitRatio, COUNTS, check=check_ratio): 1, HISTOGRAMS: 1}
FAMILY = Family(EQUAL | REST)
