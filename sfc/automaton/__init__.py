"""Space-filling curves as finite automata: tables, encoding and decoding, and curves from L-systems.

A `Curve` holds the tables of an automaton, which `tables` checks and inverts. `walk` merges several levels of
the tables and encodes or decodes arrays with compiled loops; `device` does so on a CUDA device. `descent`
lists the cells of a box in the order of a curve. `lsystem` makes the tables from a grammar, and
`grammar_file` reads a grammar from a file.
"""

from sfc.automaton.curve import Curve, Grammar
from sfc.automaton.grammar_file import parse_curve, read_curve
from sfc.automaton.lsystem import GrammarError, curve_from_grammar

__all__ = ["Curve", "Grammar", "GrammarError", "curve_from_grammar", "parse_curve", "read_curve"]
