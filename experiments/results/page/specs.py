"""Vega-Lite specifications of the charts, their static pictures, and the script that draws them.

A specification is JSON, written here as Vega-Lite documents it (https://vega.github.io/vega-lite/docs).
vl-convert, of the Vega project, is taken because one bundle of 0.9 MB draws all charts without a network and
without `eval`, and it draws the same specification where scripts are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vl_convert as vlc

from experiments.results.charts import BARS, LINES, Chart, Scale
from experiments.results.page.charts import Row
from experiments.results.page.screen_colours import in_turn, of_orders

VERSION, SCHEMA = "6.4", "https://vega.github.io/schema/vega-lite/v6.4.1.json"
FORMATS = {"filling": "%", "w": "~g"}  # of an axis of numbers, by its column; others count
ROWS = "rows"  # name of the data, which the page replaces
WIDTH, HEIGHT, STEP = 660, 300, 22  # of a static picture, of lines, and of a name, in pixels
POINT, CONTAINER = 70, "container"
PADDING = {"left": 30, "right": 10, "top": 5, "bottom": 5}  # names may be wider in the font of the page
LONG_NAME = 14  # characters in a legend
ORDER = "order"
_INK = "currentColor"  # of the page, light or dark
_INKS = {f"{part}Color": _INK for part in ("label", "title")}
_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
    "axis": {
        **_INKS, "tickColor": _INK, "domainColor": _INK, "gridColor": _INK, "gridOpacity": 0.15,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 210,
    },
    "legend": {
        **_INKS, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "orient": "top",
        "labelLimit": 260, "symbolSize": 70,
    },
}  # fmt: skip


def bundle() -> str:
    """Return the script of Vega, Vega-Lite and vega-embed."""
    return vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)


def specification(chart: Chart, every: Sequence[Row]) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, without data.

    Args:
        chart: which. The values of its series are points with intervals, joined over numbers, or the parts of
            a bar.
        every: all its rows, whose series get a colour and a shape each.
    """
    names = list(dict.fromkeys(row[chart.series] for row in every))
    colours, shapes = of_orders(names) if chart.series == ORDER else in_turn(len(names))
    is_over_numbers, is_bars = chart.form == LINES, chart.form == BARS
    along, other = ("y", "x") if is_over_numbers else ("x", "y")
    columns = 1 if max(map(len, names)) > LONG_NAME else 3  # so that a phone shows all of it
    legend = {"columns": columns, "title": chart.title_of_series} if len(names) > 1 else None

    def series(looks: Sequence[str]) -> dict[str, Any]:
        return _nominal(chart.series, scale={"domain": names, "range": looks}, legend=legend)

    title: dict[str, Any] = {"title": chart.values.title, "type": "quantitative"}
    title |= {"stack": "zero"} if is_bars else {"scale": _scale(chart.values)}
    value = title | {"field": "value", "axis": {"format": "~g", "grid": True, "tickCount": 6}}
    common = {other: _numbers(chart) if is_over_numbers else _names(chart), "color": series(colours)}
    layers: list[dict[str, Any]] = []
    if chart.values.line is not None:
        dashed = {"type": "rule", "color": _INK, "opacity": 0.6, "strokeDash": [4, 3]}
        layers.append({"mark": dashed, "encoding": {along: {"datum": chart.values.line}}})
    if not is_bars:
        ends = {along: title | {"field": "low"}, f"{along}2": {"field": "high"}}
        layers.append({"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": common | ends})
    if is_over_numbers and not any(points.across for points in chart.measures):
        detail = {"detail": _nominal("device" if "device" in chart.columns else "run")}
        joined = {"type": "line", "strokeWidth": 1.5}
        layers.append({"mark": joined, "encoding": common | {along: value} | detail})
    tips = [_nominal("text", title=chart.values.title), _nominal("of", title="interval")]
    tips += [*(_nominal(column, title=column) for column in chart.columns), _nominal("run")]
    mark: dict[str, Any] = {"type": "bar"} if is_bars else {"type": "point", "filled": True, "size": POINT}
    shown = common | {along: value, "tooltip": tips} | ({} if is_bars else {"shape": series(shapes)})
    layers.append({"mark": mark | {"opacity": 1, "cursor": "pointer"}, "encoding": shown, "name": "points"})
    made = {
        "$schema": SCHEMA,
        "config": _CONFIG,
        "data": {"name": ROWS},
        "layer": layers,
        "width": CONTAINER,
        "height": HEIGHT if is_over_numbers else {"step": STEP},
    }
    return made | ({"autosize": {"type": "fit-x", "contains": "padding"}} if is_over_numbers else {})


def picture(specified: dict[str, Any], rows: Sequence[Row]) -> str:
    """Draw a chart as SVG, in the colours of the page around it.

    Args:
        specified: of `specification`.
        rows: those that are shown.
    """
    static = specified | {"width": WIDTH, "padding": PADDING, "datasets": {ROWS: list(rows)}}
    return vlc.vegalite_to_svg(static, vl_version=VERSION)


def _nominal(column: str, **fields: Any) -> dict[str, Any]:
    return {"field": column, "type": "nominal", **fields}


def _scale(axis: Scale) -> dict[str, Any]:
    return {"padding": 12} | ({"type": "log", "nice": False} if axis.log else {"zero": False})


def _names(chart: Chart) -> dict[str, Any]:
    sort = {"field": "value", "op": "sum" if chart.form == BARS else "max", "order": "descending"}
    return _nominal("at", title=None, sort=sort, axis={"grid": True})


def _numbers(chart: Chart) -> dict[str, Any]:
    axis = {"format": FORMATS.get(chart.names.column, "~s"), "grid": True, "tickCount": 6}
    return {"field": "at", "type": "quantitative", "title": chart.names.title, "scale": _scale(chart.names),
            "axis": axis}  # fmt: skip
