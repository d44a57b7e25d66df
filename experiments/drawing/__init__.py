"""Figures: their style and axes, pictures of orders and of flows, films.

Everything here takes arrays, tables and axes and imports no experiment, so that a figure of one experiment
can be part of another.
"""
