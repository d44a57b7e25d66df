"""Runs kept for reference in `results/reference/`.

The commands are `python -m experiments.results.kept keep`, `list`, `redraw` and `shrink`; each has a
`--help`.
"""
