"""Curves: the catalogue, automata of one's own, encode, decode, traversal; grammars and their files."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

import sfc
from sfc.automaton.lsystem import expand
from sfc.registry import ALIASES
from tests.fuzz import references
from tests.fuzz.drawing import INTEGER_TYPES, Draw, laid
from tests.fuzz.families import Family
from tests.fuzz.judge import SAYS, Case, made_case, require, same
from tests.fuzz.kinds import AnyPath, Array, Integer, Is, Kind, Maybe, Text, Word

LISTED = 4096  # cells of a traversal that is looked at
GRAMMARS = {
    2: ("A", {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"}),
    3: (
        "A",
        {
            "A": "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<",
            "B": "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<",
            "C": "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<",
            "D": "|C#B-#+B|#A&#^A&&#B-#+B|#C<<",
        },
    ),
}
REASON = re.compile(f"{SAYS.pattern}|, rule ")  # a message names the rule and the reason
PEANO = ("A", {"A": "AFBFA+F+BFAFB-F-AFBFA", "B": "BFAFB-F-AFBFA+F+BFAFB"})


@functools.cache
def known() -> list[sfc.Curve]:
    """Curves of the catalogue."""
    every = (sfc.curve(name, dim) for dim in (2, 3, 4) for name in sfc.curves(dim))
    return [curve for curve in every if isinstance(curve, sfc.Curve)]


@functools.cache
def automaton(name: str, dim: int) -> references.Automaton:
    """The reference of a curve of the catalogue."""
    return reference(sfc.curve(name, dim))


def reference(curve: sfc.Curve) -> references.Automaton:
    """The walk of a curve's tables."""
    return references.Automaton(curve.dim, curve.base, curve.rank.tolist(), curve.next.tolist(), curve.start)


def as_stored(draw: Draw, values: list, highest: int) -> np.ndarray | list:
    """Integers as a list or as an array of some dtype that holds them, in some layout."""
    if draw.chance(0.15) and values:
        return values
    fits = [kind for kind in INTEGER_TYPES if np.iinfo(kind).max >= highest - 1]
    found = np.array(values, draw.choice(fits))
    other = laid(draw, found) if draw.chance(0.3) else found
    return found if isinstance(other, np.ma.MaskedArray) else other


def coordinate(draw: Draw, side: int) -> int:
    """One of a grid, often at its ends."""
    return draw.choice((0, side - 1, draw.randrange(side), draw.randrange(side)))


def encode(draw: Draw) -> Case:
    """Indices of cells, as the walk of the automaton has them."""
    curve = draw.choice(known())
    order = draw.choice((0, 1, 2, 3, draw.randint(0, curve.max_order), curve.max_order))
    side = curve.base**order
    cells = [[coordinate(draw, side) for _ in range(curve.dim)] for _ in range(draw.randrange(8))]
    array = np.array(cells, np.int64).reshape(-1, curve.dim) if not cells else as_stored(draw, cells, side)
    walk = automaton(curve.name, curve.dim)

    def inside(plain: dict) -> bool:
        edge = curve.base ** plain["order"]
        return all(0 <= int(c) < edge for c in plain["cells"].ravel().tolist())

    def check(found, plain):
        require(inside(plain), "a cell outside the grid was taken")
        right = [walk.encode(list(map(int, cell)), plain["order"]) for cell in plain["cells"].tolist()]
        require(found.dtype == np.uint64, f"dtype {found.dtype}")
        require(found.tolist() == right, f"{found.tolist()}, and by the reference {right}")

    kinds = {
        "cells": Array(lambda _: array, "iu", (None, curve.dim)),
        "order": Integer(0, curve.max_order, (order, order)),
    }
    return made_case(draw, f"{curve!r}.encode", curve.encode, kinds, check=check, sure=inside)


def decode(draw: Draw) -> Case:
    """Cells of indices."""
    curve = draw.choice(known())
    order = draw.choice((0, 1, 2, 3, draw.randint(0, curve.max_order), curve.max_order))
    length = curve.base ** (curve.dim * order)
    index = [coordinate(draw, length) for _ in range(draw.randrange(8))]
    array = as_stored(draw, index, length) if index else np.zeros(0)
    walk = automaton(curve.name, curve.dim)

    def inside(plain: dict) -> bool:
        end = curve.base ** (curve.dim * plain["order"])
        return all(0 <= int(i) < end for i in plain["index"].tolist())

    def check(found, plain):
        require(inside(plain), "an index past the end was taken")
        right = [walk.decode(int(i), plain["order"]) for i in plain["index"].tolist()]
        require(
            found.dtype == np.int64 and found.shape == (len(right), curve.dim), f"{found.dtype} {found.shape}"
        )
        require(found.tolist() == right, f"{found.tolist()}, and by the reference {right}")

    kinds = {
        "index": Array(lambda _: array, "iu", (None,)),
        "order": Integer(0, curve.max_order, (order, order)),
    }
    return made_case(draw, f"{curve!r}.decode", curve.decode, kinds, check=check, sure=inside)


def traversal(draw: Draw) -> Case:
    """All cells in turn."""
    curve = draw.choice(known())
    most = max(k for k in range(8) if curve.base ** (curve.dim * k) <= LISTED)
    walk = automaton(curve.name, curve.dim)

    def check(found, plain):
        right = [walk.decode(i, plain["order"]) for i in range(curve.base ** (curve.dim * plain["order"]))]
        require(found.tolist() == right, "another path than the reference's")

    class Order(Integer):
        def too_large(self, value: Any) -> bool:
            return self.admits(value) and most < int(value) and curve.base ** (curve.dim * int(value)) < 2**41

    return made_case(
        draw, f"{curve!r}.traversal", curve.traversal, {"order": Order(0, 10**9, (0, most))}, check=check
    )


def small(draw: Draw) -> Case:
    """Sides, names and what else a curve says of itself."""
    curve = draw.choice(known())

    def check(found, plain):
        require(found == curve.base ** plain["order"], f"side {found}")

    if draw.chance(0.5):
        kinds = {"order": Integer(0, curve.max_order)}
        return made_case(draw, f"{curve!r}.side", curve.side, kinds, check=check, sure=True)
    named = draw.choice((sfc.curves, sfc.orderings))
    return made_case(
        draw,
        named.__name__,
        named,
        {},
        optional={"dim": Maybe(Kind(lambda d: d.randint(1, 5)))},
        check=lambda found, _: require(isinstance(found, tuple), "no tuple"),
    )


def by_name(draw: Draw) -> Case:
    """Curves by name and dimension."""
    curve = draw.choice(known())

    def check(found, plain):
        require(isinstance(found, sfc.AnyCurve), "no curve")
        own = plain["name"] in sfc.curves(plain["dim"])
        named = plain["name"] if own else ALIASES.get(plain["name"])
        require((found.name, found.dim) == (named, plain["dim"]), f"{found!r}")

    def there(plain):
        return "axiom" not in plain and plain["name"] in sfc.curves(plain["dim"])

    optional = {"axiom": Text("A")} if draw.chance(0.3) else {}
    kinds = {"name": Word(curve.name, "nothing"), "dim": Integer(1, 10**9, (curve.dim, curve.dim))}
    kinds["name"].valid = lambda _: curve.name  # type: ignore[method-assign]
    kinds["name"].admits = lambda value: isinstance(value, str)  # type: ignore[method-assign]
    return made_case(draw, "curve", sfc.curve, kinds, optional=optional, check=check, sure=there)


def table(draw: Draw, states: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables of any automaton."""
    rank = np.array([draw.sample(range(cells), cells) for _ in range(states)])
    return rank, np.array([[draw.randrange(states) for _ in range(cells)] for _ in range(states)])


def automata(draw: Draw) -> Case:
    """Automata of one's own, encoded along."""
    dim, base, states = draw.choice((1, 2, 2, 3)), draw.choice((2, 2, 3)), draw.randint(1, 5)
    rank, following = table(draw, states, base**dim)
    kinds = {
        "name": Text("mine"),
        "dim": Integer(1, 10**9, (dim, dim)),
        "base": Integer(2, 10**9, (base, base)),
        "rank": Array(lambda _: rank, "iu", (None, None)),
        "next": Array(lambda _: following, "iu", (None, None)),
    }

    def check(curve, plain):
        tables = [np.asarray(plain[name]).tolist() for name in ("rank", "next")]
        walk = references.Automaton(plain["dim"], plain["base"], *tables, plain.get("start", 0))
        for name, given in zip(("rank", "next"), tables, strict=True):
            same(getattr(curve, name), given, name)
        for order in (1, 2):
            cells = np.random.default_rng(0).integers(0, plain["base"] ** order, (9, plain["dim"]))
            found = curve.encode(cells, order).tolist()
            require(found == [walk.encode(cell, order) for cell in cells.tolist()], f"encodes {found}")
            require(curve.decode(found, order).tolist() == cells.tolist(), "decode does not undo encode")

    optional = {"start": Integer(0, states - 1, (0, states - 1))}
    return made_case(draw, "Curve", sfc.Curve, kinds, optional=optional, check=check)


def checks(draw: Draw) -> Case:
    """What must hold for every curve, as `check_curve` and `check_ordering` say."""
    curve = draw.choice(known())
    kinds = {"curve": Is(sfc.Curve, lambda _: curve)}
    optional = {
        "cells": Integer(0, usual=(1, 64), most=10**4),
        "samples": Integer(0, usual=(1, 20), most=10**4),
        "seed": Integer(0),
        "continuous": Maybe(Kind(lambda d: d.chance(0.5))),
        "closed": Maybe(Kind(lambda d: d.chance(0.5))),
    }
    return made_case(
        draw, "check_curve", sfc.testing.check_curve, kinds, optional=optional, documented=(AssertionError,)
    )


def registered(draw: Draw) -> Case:
    """Curves made known; the name is one's own, so that no other input is changed by it."""
    name = f"own{draw.getrandbits(60)}"
    mine = sfc.Curve(name, 2, 2, *table(draw, 1, 4))

    def check(_, plain):
        curve = plain["curve"]
        require(sfc.curve(curve.name, curve.dim) is curve or curve in known(), "not known by its name")

    kinds = {"curve": Is(sfc.Curve, lambda d: d.choice((mine, mine, d.choice(known()))))}
    return made_case(draw, "register", sfc.register, kinds, check=check)


def grammar(draw: Draw) -> tuple[int, str, dict[str, str]]:
    """One of a few, often with a character changed."""
    dim = draw.choice((2, 2, 3))
    axiom, rules = draw.choice([GRAMMARS[dim], GRAMMARS[dim], PEANO if dim == 2 else GRAMMARS[3]])
    rules = dict(rules)
    if draw.chance(0.5):
        symbol = draw.choice(sorted(rules))
        text = rules[symbol]
        at = draw.randrange(len(text))
        new = draw.choice((*"AB<>+-|F#^&C", "", "FF", "é", "\x00", text))
        rules[symbol] = text[:at] + new + text[at + draw.randrange(2) :]
    if draw.chance(0.15):
        axiom = draw.choice((axiom * 4, "AFA<", "A>A", "".join(sorted(rules)), "AFB>FBFA", "Z"))
    return dim, axiom, rules


def grammar_check(curve: sfc.Curve, axiom: str, rules: dict[str, str]) -> None:
    """A curve walks as its turtle does, mirrored along some axes."""
    walk = reference(curve)
    length = curve.base ** (curve.dim * 2)
    path = [tuple(walk.decode(i, 2)) for i in range(length)]
    require(len(set(path)) == length, "a cell is visited twice")
    depth = 2 if axiom in rules else 1
    turtle = references.turtle(axiom, rules, depth, curve.dim)
    require(
        expand(axiom, rules, depth).count("F") + expand(axiom, rules, depth).count("#") == length - 1, "steps"
    )
    top = curve.base**2 - 1
    mirrored = [c for c in range(curve.dim) if turtle[0][c] != 0]
    turtle = [tuple(top - c if k in mirrored else c for k, c in enumerate(cell)) for cell in turtle]
    require(path == turtle, "another path than the turtle's")


def grammars(draw: Draw) -> Case:
    """Grammars as arguments."""
    dim, axiom, rules = grammar(draw)
    kinds = {
        "name": Text("mine"),
        "dim": Integer(2, 3, (dim, dim)),
        "axiom": Text(axiom),
        "rules": Kind(lambda _: rules),
    }
    return made_case(
        draw,
        "curve_from_grammar",
        sfc.curve_from_grammar,
        kinds,
        calm=0.6,
        says=REASON,
        check=lambda found, plain: grammar_check(found, plain["axiom"], dict(plain["rules"])),
    )


def text_of(draw: Draw) -> tuple[str, str, dict[str, str]]:
    """A grammar file's text, often damaged."""
    dim, axiom, rules = grammar(draw)
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in rules.items()}
    lines = [f'name = "own{draw.randrange(100)}"', f"dim = {dim}", f'axiom = "{axiom}"', "[rules]"]
    lines += [f'{symbol} = "{pattern}"' for symbol, pattern in quoted.items()]
    if draw.chance(0.35):
        at = draw.randrange(len(lines))
        value = draw.choice(
            (
                "true",
                "1",
                "2.5",
                '""',
                "[1, 2]",
                '"A"',
                "nan",
                "1979-05-27",
                "{}",
                "9" * 5000,
                "[" * 3000,
                "{a=" * 2000,
                "0x7f",
                "-1",
                '"\\u0000"',
                "64",
                "65",
                "1e400",
            )
        )
        if draw.chance(0.5):
            lines[at] = f"{lines[at].split('=')[0]}= {value}"
        else:
            lines.insert(
                at, f"{draw.choice(('name', 'base', 'rules', 'a.b', 'AB', '[x]', '[[x]]'))} = {value}"
            )
    text = "\n".join(lines)
    if draw.chance(0.25):
        at = draw.randrange(len(text))
        text = draw.choice((text[:at], text[:at] + chr(draw.randrange(1, 0x300)) + text[at + 1 :], text * 2))
    return text, axiom, rules


def texts(draw: Draw) -> Case:
    """Texts of grammar files."""
    text, _, _ = text_of(draw)

    def check(curve, plain):
        rules = dict(curve.grammar.rules)
        grammar_check(curve, curve.grammar.axiom, rules)

    kinds = {"text": Text(text)}
    return made_case(
        draw,
        "parse_curve",
        sfc.parse_curve,
        kinds,
        optional={"where": Text("my file")},
        calm=0.8,
        check=check,
        says=REASON,
    )


def files(draw: Draw) -> Case:
    """Grammar files, as bytes."""
    raw = text_of(draw)[0].encode("utf-8", errors="replace")
    if raw and draw.chance(0.3):
        at = draw.randrange(len(raw))
        raw = raw[:at] + bytes([draw.randrange(256)]) * draw.randint(1, 4) + raw[at + 1 :]
    path = Path("mine.toml")
    path.write_bytes(raw)
    kinds = {
        "path": AnyPath(lambda d: Path("/dev/zero") if d.chance(0.002) else d.choice((path, path, str(path))))
    }
    return made_case(
        draw,
        "read_curve",
        sfc.read_curve,
        kinds,
        calm=0.8,
        says=REASON,
        check=lambda curve, _: grammar_check(curve, curve.grammar.axiom, dict(curve.grammar.rules)),
    )


KINDS = (
    (encode, 5),
    (decode, 5),
    (traversal, 2),
    (small, 1),
    (by_name, 2),
    (automata, 3),
    (checks, 1),
    (registered, 1),
)
TEXTS = (grammars, texts, texts, files)


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


FAMILIES = [
    Family("curves", one_of, 12, known),
    Family("grammars", lambda draw: draw.choice(TEXTS)(draw), 6, known),
]
