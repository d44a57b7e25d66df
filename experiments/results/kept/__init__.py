"""Runs kept for reference in `results/reference/`.

The commands are `python -m experiments.results.kept keep`, `list` and `redraw`; each has a
`--help`.
"""
