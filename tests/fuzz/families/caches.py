"""Models of a cache: streams, blocks, stack distances, sets, addresses."""

from __future__ import annotations

import math

import numpy as np

import sfc
from sfc.cache import AccessStream, HitRatio, StackDistances
from tests.fuzz import references
from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family
from tests.fuzz.families.curves import as_stored
from tests.fuzz.judge import Case, made_case, require, same
from tests.fuzz.kinds import Array, Either, Integer, Is, Maybe, Number, Word

TOP = 2**63 - 1


def items(draw: Draw) -> list[int]:
    """What is read, near and far."""
    spread = draw.choice((3, 10, 1000, 2**40, TOP))
    few = [draw.randrange(spread) for _ in range(draw.randint(1, 12))]
    return [
        draw.choice(few) if draw.chance(0.7) else draw.randrange(spread) for _ in range(draw.randrange(60))
    ]


def lines(draw: Draw) -> Array:
    """Items as an array."""
    found = items(draw)
    return Array(lambda d: as_stored(d, found, max([*found, 0]) + 1), "iu", (None,))


def raw_stream(draw: Draw) -> dict[str, list[int]]:
    """Offsets, reads and readers that go together."""
    n = draw.randint(0, 8)
    rows = [[draw.randrange(max(n, 1)) for _ in range(draw.randrange(5))] for _ in range(n)]
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    return {
        "offsets": offsets,
        "reads": [slot for row in rows for slot in row],
        "readers": draw.sample(range(n), n),
    }


def fits(plain: dict) -> bool:
    """Whether offsets, reads and readers are a stream."""
    offsets = [int(v) for v in plain["offsets"].tolist()]
    reads = [int(v) for v in plain["reads"].tolist()]
    readers = plain.get("readers")
    readers = range(len(offsets) - 1) if readers is None else [int(v) for v in readers.tolist()]
    good = bool(offsets) and offsets[0] == 0 and offsets[-1] == len(reads) and sorted(offsets) == offsets
    good = good and all(0 <= slot <= TOP for slot in (*reads, *readers))
    return good and len(readers) == len(offsets) - 1


def streams(draw: Draw) -> Case:
    """Access streams."""
    raw = raw_stream(draw)

    def kind(name: str) -> Array:
        return Array(lambda d: as_stored(d, raw[name], max([*raw[name], 0]) + 1), "iu", (None,))

    def check(found, plain):
        require(fits(plain), "it is no stream")
        for name in ("offsets", "reads"):
            same(getattr(found, name), [int(v) for v in plain[name].tolist()], name)
        capacity = 3
        readers = found.readers.tolist()
        if plain.get("readers") is not None:
            same(readers, [int(v) for v in plain["readers"].tolist()], "readers")
        right = references.block_hits(found.offsets.tolist(), found.reads.tolist(), readers, capacity)
        same(sfc.cache.block_hits(found, capacity), right, "hits of blocks")

    kinds = {"offsets": kind("offsets"), "reads": kind("reads")}
    return made_case(
        draw,
        "AccessStream",
        AccessStream,
        kinds,
        optional={"readers": Maybe(kind("readers"))},
        check=check,
        sure=fits,
    )


def a_stream(draw: Draw) -> AccessStream:
    """A stream that is one."""
    raw = raw_stream(draw)
    return AccessStream(np.array(raw["offsets"]), np.array(raw["reads"], int), np.array(raw["readers"], int))


def block(draw: Draw) -> Case:
    """Blocks."""
    stream = a_stream(draw)
    whole = draw.chance(0.5)

    def check(found, plain):
        right = references.block_hits(
            stream.offsets.tolist(), stream.reads.tolist(), stream.readers.tolist(), plain["capacity"]
        )
        if whole:
            require(
                (found.hits, found.reads) == (sum(right), len(stream.reads)), f"{found}, and {sum(right)}"
            )
        else:
            same(found, right, "hits")

    kinds = {"stream": Is(AccessStream, lambda _: stream), "capacity": Integer(1)}
    call = sfc.cache.block if whole else sfc.cache.block_hits
    return made_case(draw, call.__name__, call, kinds, check=check, sure=True)


def distances(draw: Draw) -> Case:
    """Stack distances, at some capacities."""

    def check(found, plain):
        given = plain["items"]
        given = given.reads if isinstance(given, AccessStream) else given
        given = [int(v) for v in given.tolist()]
        require(found.reads == len(given), f"{found.reads} reads")
        require(found.distinct == len(set(given)), f"{found.distinct} lines")
        for capacity in (1, 2, 3, 7, 50):
            right = references.lru_hits(given, capacity)
            require(found.hits(capacity).hits == right, f"{found.hits(capacity)}, and {right} at {capacity}")

    kinds = [lines(draw), Is(AccessStream, a_stream)]
    items = Either(*(kinds[::-1] if draw.chance(0.15) else kinds))
    items.valid = items.kinds[0].valid  # type: ignore[method-assign]
    return made_case(draw, "lru", sfc.cache.lru, {"items": items}, check=check, sure=True)


def at_capacities(draw: Draw) -> Case:
    """Hits of stack distances."""
    given = items(draw)
    found = sfc.cache.lru(np.array(given, np.int64))
    if draw.chance(0.5):

        def check(hits, plain):
            require(hits.hits == references.lru_hits(given, plain["capacity"]), f"{hits}")

        return made_case(draw, "lru(...).hits", found.hits, {"capacity": Integer(1)}, check=check, sure=True)

    def check_all(ratios, plain):
        capacities = [int(c) for c in plain["capacities"].tolist()]
        require(all(c >= 1 for c in capacities), "a capacity below 1")
        right = [references.lru_hits(given, c) / len(given) if given else math.nan for c in capacities]
        same(ratios, right, "ratios", 1e-12)

    capacities = [draw.randint(1, 30) for _ in range(draw.randrange(6))]
    kinds = {"capacities": Array(lambda d: as_stored(d, capacities, 31), "iu", (None,))}
    return made_case(draw, "lru(...).ratios", found.ratios, kinds, check=check_all)


def sets(draw: Draw) -> Case:
    """Caches of sets."""
    line, ways, count = draw.choice((1, 4, 32, 64)), draw.choice((1, 2, 3, 8)), draw.choice((1, 2, 5, 16))

    def check(found, plain):
        given = [int(v) for v in plain.pop("addresses").tolist()]
        require(all(address >= 0 for address in given), "a negative address")
        require(plain["size"] % (plain["line"] * plain["ways"]) == 0, "an impossible cache")
        right = references.set_hits(given, **plain)
        require((found.hits, found.reads) == (right, len(given)), f"{found}, and {right} by the reference")

    class Line(Integer):
        def admits(self, value):
            return super().admits(value) and int(value) & (int(value) - 1) == 0

    kinds = {
        "addresses": lines(draw),
        "size": Integer(1, 2**40, (line * ways * count,) * 2, most=2**26),
        "line": Line(1, usual=(line, line)),
        "ways": Integer(1, usual=(ways, ways)),
    }
    return made_case(draw, "set_associative", sfc.cache.set_associative, kinds, check=check)


def loads(draw: Draw) -> Case:
    """Byte addresses."""
    n = draw.randint(1, 20)
    slots = [draw.randrange(n) for _ in range(draw.randrange(6))]

    def check(found, plain):
        given = plain.pop("slots")
        given = given.reads if isinstance(given, AccessStream) else given
        given = [int(v) for v in given.tolist()]
        require(all(0 <= slot < plain["n"] for slot in given), "a slot outside the array")
        right = references.addresses(given, **plain)
        require(found.dtype == np.int64 and found.tolist() == right, f"{found}, and {right} by the reference")

    kinds = {
        "slots": Array(lambda d: as_stored(d, slots, n), "iu", (None,)),
        "layout": Word("soa", "aos", "aos4"),
        "dim": Integer(1, usual=(1, 4), most=10**5),
        "itemsize": Integer(1, usual=(4, 4) if draw.chance(0.5) else (8, 8)),
        "n": Integer(0, TOP, (n, n)),
    }
    return made_case(draw, "addresses", sfc.cache.addresses, kinds, check=check)


def ratios(draw: Draw) -> Case:
    """Hit ratios, what they save, and results made by hand."""
    hits, reads = sorted((draw.randrange(100), draw.randint(1, 100)))

    def check(found, plain):
        cost = plain.get("miss_cost", 100.0)
        share = hits / reads
        same(found, cost / (share + (1 - share) * cost), "speed-up", 1e-12)

    if draw.chance(0.6):
        kinds = {"miss_cost": Number(above=0)}
        call = HitRatio(hits, reads).speed_up
        return made_case(draw, "HitRatio.speed_up", call, {}, optional=kinds, check=check)
    if draw.chance(0.5):
        kinds = {"hits": Integer(0, usual=(hits, hits)), "reads": Integer(0, usual=(reads, reads))}
        return made_case(
            draw,
            "HitRatio",
            HitRatio,
            kinds,
            check=lambda found, plain: same(
                found.ratio, plain["hits"] / plain["reads"] if plain["reads"] else math.nan, "ratio"
            ),
        )
    kinds = {
        "histogram": Array(lambda _: np.array([1, 2, 3]), "iu", (None,)),
        "cold": Integer(0, usual=(3, 3)),
        "reads": Integer(0, usual=(9, 9)),
    }
    return made_case(draw, "StackDistances", StackDistances, kinds)


KINDS = ((streams, 3), (block, 3), (distances, 3), (at_capacities, 2), (sets, 3), (loads, 3), (ratios, 2))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


FAMILIES = [Family("caches", one_of, 10)]
