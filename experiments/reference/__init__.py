"""Runs kept for reference in `results/reference/`.

The commands are `python -m experiments.reference keep`, `list` and `shrink`; each has a `--help`.
"""
