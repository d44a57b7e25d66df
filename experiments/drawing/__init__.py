"""Figures: their style and axes, pictures of orders and of flows, films.

Everything here takes arrays, tables and axes, and imports no experiment: a figure of one can be part of another.
"""
