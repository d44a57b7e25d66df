"""Tests of sfc.automaton: automata, L-systems and grammar files."""
