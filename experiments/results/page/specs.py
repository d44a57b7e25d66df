"""Vega-Lite specifications of the charts by Altair, their static pictures, and the script that draws them.

Altair and vl-convert, of the Vega project, are taken because one bundle of 0.9 MB draws all charts without a
network and without `eval`, and vl-convert draws the same specification where scripts are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert as vlc

from experiments.results.charts import DOTS, Chart, Scale
from experiments.results.page.charts import Row
from experiments.results.page.screen_colours import in_turn, of_orders

VERSION = ".".join(alt.SCHEMA_VERSION.split(".")[:2])  # of Vega-Lite: v6.4
ROWS = "rows"  # name of the data, which the page replaces
WIDTH, HEIGHT, STEP = 660, 300, 22  # of a static picture, of lines, and of a name, in pixels
POINT, CONTAINER = 70, "container"
PADDING = {"left": 30, "right": 10, "top": 5, "bottom": 5}  # names may be wider in the font of the page
LONG_NAME = 14  # characters in a legend
ORDER = "order"
_INK = "currentColor"  # of the page, light or dark
_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _INK, "titleColor": _INK, "tickColor": _INK, "domainColor": _INK, "gridColor": _INK,
        "gridOpacity": 0.15, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "labelLimit": 210,
    },
    "legend": {
        "labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "top", "labelLimit": 260, "symbolSize": 70,
    },
}  # fmt: skip


def bundle() -> str:
    """Return the script of Vega, Vega-Lite and vega-embed."""
    return vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)


def specification(chart: Chart, every: Sequence[Row]) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, without data.

    Args:
        chart: which.
        every: all its rows, whose series get a colour and a shape each.
    """
    names = list(dict.fromkeys(row[chart.series] for row in every))
    colours, shapes = of_orders(names) if chart.series == ORDER else in_turn(len(names))
    dots = chart.form == DOTS
    values = alt.X if dots else alt.Y
    places = alt.Y if dots else alt.X
    scale = _scale(chart.values)
    value = values(
        "value:Q", title=chart.values.title, scale=scale, axis=alt.Axis(tickCount=6, format="~g", grid=True)
    )
    at = _names(places) if dots else _numbers(places, chart)
    to = {("x2" if dots else "y2"): "high:Q"}
    channel = "x" if dots else "y"
    low = values("low:Q", title=chart.values.title, scale=scale)
    series = f"{chart.series}:N"
    columns = 1 if max(map(len, names)) > LONG_NAME else 3  # so that a phone shows all of it
    legend = alt.Legend(title=chart.title_of_series, columns=columns) if len(names) > 1 else None
    colour = alt.Color(series, scale=alt.Scale(domain=names, range=colours), legend=legend)
    shape = alt.Shape(series, scale=alt.Scale(domain=names, range=shapes), legend=legend)
    other = "y" if dots else "x"
    data = alt.Chart(alt.NamedData(name=ROWS))
    detail = "device:N" if "device" in chart.columns else "run:N"
    intervals = data.mark_rule(strokeWidth=1.5).encode(**{channel: low, other: at}, color=colour, **to)
    layers: list[Any] = [intervals]
    if not dots and not any(points.across for points in chart.measures):
        layers.append(
            data.mark_line(strokeWidth=1.5).encode(**{channel: value, other: at}, color=colour, detail=detail)
        )
    tip = [alt.Tooltip("text:N", title=chart.values.title), alt.Tooltip("of:N", title="interval")]
    tip += [alt.Tooltip(f"{column}:N", title=column) for column in chart.columns] + [alt.Tooltip("run:N")]
    layers.append(
        data.mark_point(filled=True, size=POINT, opacity=1, cursor="pointer").encode(
            **{channel: value, other: at}, color=colour, shape=shape, tooltip=tip
        )
    )
    if chart.values.line is not None:
        datum = {channel: alt.datum(chart.values.line)}
        layers.insert(0, data.mark_rule(strokeDash=[4, 3], opacity=0.6, color=_INK).encode(**datum))
    layered = alt.layer(*layers).properties(width=CONTAINER, height=alt.Step(STEP) if dots else HEIGHT)
    made = layered.configure(**_CONFIG).to_dict(validate=False)
    made["layer"][-1]["name"] = "points"
    return made if dots else made | {"autosize": {"type": "fit-x", "contains": "padding"}}


def picture(specified: dict[str, Any], rows: Sequence[Row]) -> str:
    """Draw a chart as SVG, in the colours of the page around it.

    Args:
        specified: of `specification`.
        rows: those that are shown.
    """
    static = specified | {"width": WIDTH, "padding": PADDING, "datasets": {ROWS: list(rows)}}
    return vlc.vegalite_to_svg(static, vl_version=VERSION)


def _scale(axis: Scale) -> Any:
    return alt.Scale(type="log", nice=False, padding=12) if axis.log else alt.Scale(zero=False, padding=12)


def _names(places: Any) -> Any:
    order = alt.EncodingSortField(field="value", op="max", order="descending")
    return places("at:N", title=None, sort=order, axis=alt.Axis(grid=True))


def _numbers(places: Any, chart: Chart) -> Any:
    axis = alt.Axis(tickCount=6, format="%" if chart.names.column == "filling" else "~s", grid=True)
    scale = _scale(chart.names)
    return places("at:Q", title=chart.names.title, scale=scale, axis=axis)
