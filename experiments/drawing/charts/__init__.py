"""The one room that draws a `Chart` of `experiments.results.charts` as a figure, for PNG and PDF."""

from experiments.drawing.charts.figure import Draw, draw, draw_chart, drawer

__all__ = ["Draw", "draw", "draw_chart", "drawer"]
