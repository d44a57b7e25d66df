"""Models of a cache: streams, blocks, stack distances, sets, addresses."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, sampled_from

import sfc
from sfc.cache import AccessStream, HitRatio, StackDistances
from tests.fuzz.drawing import RNG, among, stored
from tests.fuzz.families import Family
from tests.fuzz.judge import Cases, again, cases, equal, require
from tests.fuzz.kinds import Kind, an, array, either, integer, maybe, number, word
from tests.sfc.cache.test_models import plain_addresses

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
        again(AccessStream)(found, plain)

    kinds["readers"] = maybe(kinds["readers"])
    return cases(AccessStream, kinds, check=check, sure=fits)


BLOCKED = {"stream": an(AccessStream, STREAMS), "capacity": integer(1)}
BLOCKS = among(*[cases(call, BLOCKED, sure=True) for call in (sfc.cache.block, sfc.cache.block_hits)])


def distances(draw) -> Cases:
    """Stack distances."""
    lines = integers_of(draw(items()))
    kind = either(lines, an(AccessStream, STREAMS)).but(valid=among(*[lines.strategy] * 9, STREAMS))
    return cases(sfc.cache.lru, {"items": kind}, sure=True)


def at_capacities(draw) -> Cases:
    """Hits of stack distances, or their ratios, at some capacities."""
    found = sfc.cache.lru(np.array(draw(items()), np.int64))
    if draw(booleans()):
        return cases(found.hits, {"capacity": integer(1)}, name="lru(...).hits", sure=True)
    given = stored(draw(st.lists(integers(1, 30), max_size=5)), 31)
    kind = array(given, "iu", (None,), lambda of: (of >= 1).all())
    return cases(found.ratios, {"capacities": kind}, name="lru(...).ratios")


def sets(draw) -> Cases:
    """Caches of sets."""
    line, ways, count = (draw(sampled_from(of)) for of in ((1, 4, 32, 64), (1, 2, 3, 8), (1, 2, 5, 16)))

    def check(found, plain):
        require(plain["size"] % (plain["line"] * plain["ways"]) == 0, "an impossible cache")
        again(sfc.cache.set_associative)(found, plain)

    power = integer(1, usual=(line, line))
    kinds = {
        "addresses": array(stored(draw(items()), 2**63), "iu", (None,), lambda of: (of >= 0).all()),
        "size": integer(1, 2**40, (line * ways * count,) * 2, most=2**26),
        "ways": integer(1, usual=(ways, ways)),
        "line": power.but(admits=lambda v: power.admits(v) and int(v) & (int(v) - 1) == 0),
    }  # fmt: skip
    return cases(sfc.cache.set_associative, kinds, check=check)


def loads(draw) -> Cases:
    """Byte addresses."""
    n = draw(integers(1, 20))

    def check(found, plain):
        given = plain.pop("slots").tolist()
        require(all(0 <= slot < plain["n"] for slot in given), "a slot outside the array")
        equal((found.dtype, found.tolist()), (np.int64, plain_addresses(given, **plain)), "addresses")

    slots = stored(draw(st.lists(integers(0, n - 1), max_size=5)), n)
    kinds = {
        "slots": array(slots, "iu", (None,)), "layout": word("soa", "aos", "aos4"),
        "n": integer(0, TOP, (n, n)), "dim": integer(1, usual=(1, 4), most=10**5),
        "itemsize": integer(1).but(valid=sampled_from((4, 8))),
    }  # fmt: skip
    return cases(sfc.cache.addresses, kinds, check=check)


COST, DISTANCES = {"miss_cost": number(above=0)}, array(np.array([1, 2, 3]), "iu", (None,))
RATIO = cases(HitRatio, {"hits": integer(0, usual=(0, 50)), "reads": integer(0, usual=(50, 99))})
SPEED_UP = cases(HitRatio(42, 99).speed_up, COST, name="HitRatio.speed_up")
HISTOGRAM = {"histogram": DISTANCES, "cold": integer(0, usual=(3, 3)), "reads": integer(0, usual=(9, 9))}
EQUAL = dict.fromkeys((streams, BLOCKS, distances, sets, loads), 5)
FAMILY = Family(EQUAL | {at_capacities: 4, SPEED_UP: 2, RATIO: 1, cases(StackDistances, HISTOGRAM): 1})
