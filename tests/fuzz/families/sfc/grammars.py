"""Grammars of curves: as arguments, as texts and as files, often damaged."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, sampled_from

import sfc
from sfc.automaton.lsystem import expand, walk
from tests.fuzz.drawing import chance
from tests.fuzz.families import Family
from tests.fuzz.judge import SAYS, Cases, cases, equal, same
from tests.fuzz.kinds import Kind, integer, path, text
from tests.sfc.automaton.test_curve import walked

REASON = re.compile(f"{SAYS.pattern}|, rule ")  # a message names the rule and the reason
# fmt: off
GRAMMARS = (
    *[(2, "A", {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"})] * 2,
    (2, "A", {"A": "AFBFA+F+BFAFB-F-AFBFA", "B": "BFAFB-F-AFBFA+F+BFAFB"}),
    (3, "A", {
        "A": "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<",
        "B": "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<",
        "C": "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<",
        "D": "|C#B-#+B|#A&#^A&&#B-#+B|#C<<",
    }),
)
VALUES = (
    "true", "1", "2.5", '""', "[1, 2]", '"A"', "nan", "1979-05-27", "{}", "9" * 5000, "[" * 3000,
    "{a=" * 2000, "0x7f", "-1", '"\\u0000"', "64", "65", "1e400",
)
# fmt: on


@st.composite
def grammars(draw) -> tuple[int, str, dict[str, str]]:
    """One of a few, often with a character changed."""
    dim, axiom, rules = draw(sampled_from(GRAMMARS))
    rules = dict(rules)
    if draw(booleans()):
        symbol = draw(sampled_from(sorted(rules)))
        pattern = rules[symbol]
        at = draw(integers(0, len(pattern) - 1))
        new = draw(sampled_from((*"AB<>+-|F#^&C", "", "FF", "é", "\x00", pattern)))
        rules[symbol] = pattern[:at] + new + pattern[at + draw(booleans()) :]
    if draw(chance(0.15)):
        axiom = draw(sampled_from((axiom * 4, "AFA<", "A>A", "".join(sorted(rules)), "AFB>FBFA", "Z")))
    return dim, axiom, rules


def check_walk(curve: sfc.Curve, plain: dict) -> None:
    """A curve walks as the turtle of its own grammar does, mirrored along some axes."""
    axiom, rules = curve.grammar.axiom, dict(curve.grammar.rules)
    equal((axiom, rules), (plain.get("axiom", axiom), dict(plain.get("rules", rules))), "axiom and rules")
    side, depth = curve.base**2, 2 if axiom in rules else 1
    index = np.arange(side**curve.dim)
    found, right = curve.decode(index, 2), walk(expand(axiom, rules, depth), curve.dim)
    equal([walked(curve, cell, 2) for cell in found.tolist()], index.tolist(), "indices walked")
    right = right - right.min(axis=0)
    same(found, np.where(right[0] > 0, side - 1 - right, right), "path")


def given(draw) -> Cases:
    """Grammars as arguments."""
    dim, axiom, rules = draw(grammars())
    kinds = {
        "name": text("mine"),
        "dim": integer(2, 3, (dim, dim)),
        "axiom": text(axiom),
        "rules": Kind(rules),
    }

    return cases(sfc.curve_from_grammar, kinds, calm=0.6, says=REASON, check=check_walk)


@st.composite
def texts(draw) -> str:
    """A grammar file's text, often damaged."""
    dim, axiom, rules = draw(grammars())
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in rules.items()}
    lines = [f'name = "own{draw(integers(0, 99))}"', f"dim = {dim}", f'axiom = "{axiom}"', "[rules]"]
    lines += [f'{symbol} = "{pattern}"' for symbol, pattern in quoted.items()]
    if draw(chance(0.35)):
        at, value = draw(integers(0, len(lines) - 1)), draw(sampled_from(VALUES))
        if draw(booleans()):
            lines[at] = f"{lines[at].split('=')[0]}= {value}"
        else:
            word = draw(sampled_from(("name", "base", "rules", "a.b", "AB", "[x]", "[[x]]")))
            lines.insert(at, f"{word} = {value}")
    whole = "\n".join(lines)
    if draw(chance(0.25)):
        at, other = draw(integers(0, len(whole) - 1)), chr(draw(integers(1, 0x2FF)))
        return draw(sampled_from((whole[:at], whole[:at] + other + whole[at + 1 :], whole * 2)))
    return whole


@st.composite
def files(draw) -> str:
    """The path of a grammar file, its bytes often damaged."""
    raw = draw(texts()).encode("utf-8", errors="replace")
    if raw and draw(chance(0.3)):
        at = draw(integers(0, len(raw) - 1))
        raw = raw[:at] + bytes([draw(integers(0, 255))]) * draw(integers(1, 4)) + raw[at + 1 :]
    Path("mine.toml").write_bytes(raw)
    if draw(chance(0.002)):
        return Path("/dev/zero")
    return draw(sampled_from((Path("mine.toml"), Path("mine.toml"), "mine.toml")))


COMMON = {"calm": 0.8, "says": REASON, "check": check_walk}
PARSED = cases(sfc.parse_curve, {"text": text(texts()), "where": text("my file")}, **COMMON)
READ = cases(sfc.read_curve, {"path": path(files())}, **COMMON)
FAMILY = Family({given: 1, PARSED: 2, READ: 1})
