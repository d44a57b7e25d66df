"""Curves from L-systems (grammars): checks, turtle walk, and conversion to the tables of an automaton.

Contract. A rule rewrites a symbol (a letter that has a rule) into a pattern of symbols and turtle
commands; each symbol stands for a sub-cube. Between two symbols the turtle takes exactly one step forward,
the pattern covers base**dim sub-cubes that form a cube, and its turns cancel, so that a symbol can be
refined without turning what follows it. Then one walk of each pattern in each orientation gives the
automaton, for all orders. A grammar that breaks one of these conditions raises an error with the rule and the
reason.

Turtle commands, each a quarter turn but for `|` (a half turn):

    2D   F or # forward     > or + turn left     < or - turn right     | about-turn
    3D   # or F forward     + - turn left, right     ^ & pitch up, down     < > roll left, right
         | about-turn

Lindenmayer, J. Theor. Biol. 18 (1968) 280; turtle in space: Prusinkiewicz and Lindenmayer, The Algorithmic
Beauty of Plants (1990), section 1.5.
"""

import math
from collections.abc import Mapping

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve, Grammar
from sfc.automaton.tables import cells_of_a_state, minimised

State = tuple[str, np.ndarray]  # symbol, and frame in which its pattern is walked
FORWARD = "F#"
MOST_ORDER = 64  # of rewriting; the index of any curve has 64 bits or more there
BYTES = 9  # per command, while the string is built
# A turtle's frame is a matrix with the columns heading, left (and, in 3D, up). A command multiplies it
# from the right, so its columns here are the new heading, left (, up) in terms of the old ones.
_TURNS_2D = {
    ">": ((0, -1), (1, 0)),
    "<": ((0, 1), (-1, 0)),
    "|": ((-1, 0), (0, -1)),
}
_TURNS_2D |= {"+": _TURNS_2D[">"], "-": _TURNS_2D["<"]}
_TURNS_3D = {
    "+": ((0, -1, 0), (1, 0, 0), (0, 0, 1)),
    "-": ((0, 1, 0), (-1, 0, 0), (0, 0, 1)),
    "^": ((0, 0, -1), (0, 1, 0), (1, 0, 0)),
    "&": ((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
    "<": ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ">": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "|": ((-1, 0, 0), (0, -1, 0), (0, 0, 1)),
}
TURNS = {
    2: {command: np.array(turn) for command, turn in _TURNS_2D.items()},
    3: {command: np.array(turn) for command, turn in _TURNS_3D.items()},
}


class GrammarError(ValueError):
    """Error for a grammar that is not a space-filling curve; the message names the rule and the reason."""


def expand(axiom: str, rules: Mapping[str, str], order: int) -> str:
    """Expand a grammar to turtle commands: rewrite every symbol `order` times, then remove the symbols.

    Args:
        axiom: the starting string, usually one symbol.
        rules: symbol -> its pattern.
        order: number of rewritings.

    Returns:
        The commands, without symbols.

    Raises:
        TypeError: an argument of another class.
        ValueError: an order below 0 or above `MOST_ORDER`, or commands that do not fit in memory.
        GrammarError: no rules, or a symbol of more than one character.
    """
    checks.instance("axiom", axiom, str, "a str of symbols and commands")
    rules = checked_rules("expand", rules)
    order = checks.integer("order", order, 0, MOST_ORDER)
    length = dict.fromkeys(rules, 1)
    for _ in range(order):
        length = {symbol: _length(pattern, length) for symbol, pattern in rules.items()}
    characters = _length(axiom, length)
    checks.require_allocatable(
        f"{characters} commands of order {order}", BYTES * characters, "take a lower order"
    )
    for _ in range(order):
        axiom = "".join(rules.get(character, character) for character in axiom)
    return "".join(character for character in axiom if character not in rules)


def walk(commands: str, dim: int) -> np.ndarray:
    """List the cells that a turtle visits: the definition against which the automaton is tested.

    Args:
        commands: a string of turtle commands.
        dim: 2 or 3.

    Returns:
        (steps + 1, dim) int64, from the origin, heading along axis 0, with axis 1 to the left and axis 2 up.

    Raises:
        TypeError: commands that are no str, or a dim that is no integer.
        GrammarError: an unknown command, or another dim.
    """
    checks.instance("commands", commands, str, "a str of turtle commands")
    dim = _checked_dim("walk", dim)
    frame, position = np.eye(dim, dtype=np.int64), np.zeros(dim, np.int64)
    visited = [position]
    for command in commands:
        if command in FORWARD:
            position = position + frame[:, 0]
            visited.append(position)
        else:
            frame = frame @ _turn(command, dim, f"commands {commands!r}")
    return np.array(visited)


def curve_from_grammar(name: str, dim: int, axiom: str, rules: Mapping[str, str]) -> Curve:
    """Make a curve from a grammar.

    The curve starts in the corner at the origin: axes on which the grammar starts at the far side are
    mirrored.

    Args:
        name: the curve's name.
        dim: 2 or 3.
        axiom: one symbol, or a separate pattern for the first level (Moore's closed curve).
        rules: symbol -> its pattern.

    Returns:
        The curve, with the least number of states.

    Raises:
        TypeError: an argument of another class, or a rule that is not of str.
        GrammarError: a dim other than 2 and 3; a symbol of more than one character; a pattern that does not
            cover its cube, does not step by one cell, or has turns that do not cancel; a base or a number of
            states over the limits of a `Curve`. The message names the rule.
    """
    checks.text("name", name)
    dim = _checked_dim(f"grammar of {name!r}", dim)
    checks.instance("axiom", axiom, str, "a str: a symbol, or a pattern of them")
    rules = checked_rules(f"grammar of {name!r}", rules)
    if not any(symbol in axiom for symbol in rules):
        raise GrammarError(
            f"grammar of {name!r}: axiom {axiom!r}; allowed: one of {', '.join(rules)} or a pattern of them"
        )
    grammar = Grammar(axiom, dict(rules))
    start = axiom
    if axiom not in rules:
        start = f"axiom {axiom}"
        rules[start] = axiom
    symbols = set(grammar.rules)
    base = _base(name, dim, start, rules[start], symbols)
    patterns = {symbol: _Pattern(name, symbol, text, dim, base, symbols) for symbol, text in rules.items()}
    identity = np.eye(dim, dtype=np.int64)
    entry = patterns[start].placed(identity)[0]
    mirror = np.diag(np.where(entry > 0, -1, 1))
    states, rank, next = _automaton(patterns, start, mirror, base, dim)
    fewest_rank, fewest_next, group = minimised(rank, next)
    try:
        curve = Curve(name, dim, base, fewest_rank, fewest_next, start=group[0], grammar=grammar)
        jump = Curve(name, dim, base, rank, next).first_jump()
    except ValueError as error:  # too many states
        raise GrammarError(f"grammar of {name!r}: {error}") from error
    if jump is not None:
        state, position = jump
        symbol = states[state][0]
        raise GrammarError(
            f"grammar of {name!r}, rule {symbol!r} -> {rules[symbol]!r}: the step from sub-cube {position} "
            f"to {position + 1} is longer than one cell once they are refined; the last cell of the first is "
            "not adjacent to the first cell of the second"
        )
    return curve


def checked_rules(where: str, rules: Mapping[str, str]) -> dict[str, str]:
    """Check the rules of a grammar; return them as a dict.

    Args:
        where: name of the grammar, for error messages.
        rules: symbol -> its pattern.

    Raises:
        TypeError: no mapping, or one with keys or values other than str.
        GrammarError: no rule, or a symbol of more than one character.
    """
    checks.instance(f"{where}: rules", rules, Mapping, "a mapping of one character to its pattern")
    for symbol, pattern in rules.items():
        checks.instance(f"{where}: symbol", symbol, str, "a str of one character")
        checks.instance(f"{where}: rule {checks.shown(symbol)}", pattern, str, "a str")
        if len(symbol) != 1:
            raise GrammarError(f"{where}: rule {checks.shown(symbol)}; allowed: one character = its pattern")
    if not rules:
        raise GrammarError(f"{where}: no rule; allowed: one character = its pattern, at least once")
    return dict(rules)


def _checked_dim(where: str, dim: object) -> int:
    dim = checks.integer(f"{where}: dim", dim, -math.inf)
    if dim not in TURNS:
        raise GrammarError(f"{where}: dim = {checks.shown(dim)}; allowed: 2 or 3")
    return dim


def _length(text: str, length: Mapping[str, int]) -> int:
    """Count the characters of a text, with `length[symbol]` characters in place of each symbol."""
    return sum(length.get(character, 1) for character in text)


def _base(name: str, dim: int, symbol: str, text: str, symbols: set[str]) -> int:
    count = sum(character in symbols for character in text)
    base = round(count ** (1 / dim))
    if base < 2 or base**dim != count:
        raise GrammarError(
            f"grammar of {name!r}, rule {symbol!r} -> {text!r}: {count} symbols; allowed: base**{dim} for a "
            f"base of 2 or more ({2**dim}, {3**dim}, ...), one symbol per sub-cube"
        )
    try:
        cells_of_a_state(f"grammar of {name!r}, rule {symbol!r}", dim, base)
    except ValueError as error:
        raise GrammarError(str(error)) from error
    return base


def _turn(command: str, dim: int, where: str) -> np.ndarray:
    if command not in TURNS[dim]:
        known = " ".join(TURNS[dim])
        raise GrammarError(
            f"{where}: unknown character {command!r}; known in {dim}D: F # {known} and the symbols"
        )
    return TURNS[dim][command]


class _Pattern:
    """Pattern of one rule: its sub-cubes and their orientations, in the frame of the turtle at its start.

    Attributes:
        cells: (base**dim, dim) sub-cubes in visiting order, relative to the first.
        parts: (symbol, frame) of each sub-cube.
    """

    def __init__(self, name: str, symbol: str, text: str, dim: int, base: int, symbols: set[str]):
        where = f"grammar of {name!r}, rule {symbol!r} -> {text!r}"
        frame, position = np.eye(dim, dtype=np.int64), np.zeros(dim, np.int64)
        cells: list[np.ndarray] = []
        parts: list[State] = []
        steps = 0
        for character in text:
            if character in symbols:
                if parts and steps != 1:
                    raise GrammarError(
                        f"{where}: {steps} steps between symbols {len(parts)} and {len(parts) + 1}; "
                        "allowed: exactly 1"
                    )
                if not parts and steps:
                    raise GrammarError(f"{where}: a step before the first symbol; allowed: none")
                cells.append(position)
                parts.append((character, frame))
                steps = 0
            elif character in FORWARD:
                position = position + frame[:, 0]
                steps += 1
            else:
                frame = frame @ _turn(character, dim, where)
        if len(parts) != base**dim:
            raise GrammarError(f"{where}: {len(parts)} symbols; allowed: {base**dim}, one per sub-cube")
        if steps:
            raise GrammarError(f"{where}: {steps} steps after the last symbol; allowed: none")
        if symbol in symbols and not np.array_equal(frame, np.eye(dim)):
            raise GrammarError(
                f"{where}: its turns do not cancel, so refining it would turn the sub-cubes that follow"
            )
        self.cells, self.parts = np.array(cells), parts
        extent = np.ptp(self.cells, axis=0) + 1
        if (extent != base).any() or len(np.unique(self.cells, axis=0)) != len(cells):
            raise GrammarError(
                f"{where}: it covers {len(np.unique(self.cells, axis=0))} different sub-cubes in a box of "
                f"{' x '.join(map(str, extent))}; allowed: every sub-cube of "
                f"{' x '.join([str(base)] * dim)} once"
            )

    def placed(self, frame: np.ndarray) -> np.ndarray:
        """Rotate the sub-cubes by a frame and shift their least coordinates to 0; return (base**dim, dim)."""
        cells = self.cells @ frame.T
        return cells - cells.min(axis=0)


def _automaton(
    patterns: Mapping[str, _Pattern], start: str, frame: np.ndarray, base: int, dim: int
) -> tuple[list[State], np.ndarray, np.ndarray]:
    """Find all states that follow from the start, as (symbol, frame); return them and their tables."""
    states, number = [(start, frame)], {(start, frame.tobytes()): 0}
    rank, next = [], []
    for symbol, frame in states:  # grows during the loop
        rank.append(np.argsort(patterns[symbol].placed(frame) @ base ** np.arange(dim)))
        inner = []
        for part, turn in patterns[symbol].parts:
            key = (part, (frame @ turn).tobytes())
            if key not in number:
                number[key] = len(states)
                states.append((part, frame @ turn))
            inner.append(number[key])
        next.append(np.array(inner)[rank[-1]])
    return states, np.array(rank), np.array(next)
