"""Differences of two records by place, and the digests of a record by place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.shown.arrays import digest

COARSE = ("drawn", "tables", "cells")  # of figures and pages, for another library's charts
_DEPTH = {"figures": 4, "tables": 2, "charts": 2, "parts": 3, "pages": 3, "claims": 2, "answers": 2}
_ABSENT = "(absent)"


def differences(old: Any, new: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield each place where two records differ, and what is there in either.

    Args:
        old: record.
        new: record.
        at: names of the place so far.
    """
    if _is_array(old) and _is_array(new):
        yield from _of_arrays(old, new, at)
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in new or name not in old:
                word = "is missing" if name not in new else "is new"
                yield " / ".join((*at, name)), f"{word}: {_short(old.get(name, new.get(name)))}"
            else:
                yield from differences(old[name], new[name], (*at, name))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(old, new, at)
    elif json.dumps(old) != json.dumps(new):
        yield " / ".join(at), f"{_short(old)} -> {_short(new)}"


def _of_lists(old: list[Any], new: list[Any], at: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if len(old) != len(new):
        gone = [one for one in old if one not in new]
        come = [one for one in new if one not in old]
        yield (
            " / ".join(at),
            f"{len(old)} -> {len(new)} items; only before: {_short(gone)}; only now: {_short(come)}",
        )
        return
    for number, (one, other) in enumerate(zip(old, new, strict=True), 1):
        yield from differences(one, other, (*at, str(number)))


def _of_arrays(old: dict, new: dict, at: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the rows in which two arrays differ, or that many numbers do."""
    place = " / ".join(at)
    if old["shape"] != new["shape"]:
        only = ""
        if "values" in old and "values" in new:
            before, now = ([json.dumps(row) for row in one["values"]] for one in (old, new))
            gone, come = [r for r in before if r not in now], [r for r in now if r not in before]
            only = f"; only before: {_short(gone)}; only now: {_short(come)}"
        yield place, f"shape {old['shape']} -> {new['shape']}{only}"
    elif "values" in old:
        rows = zip(np.atleast_1d(_rows(old)), np.atleast_1d(_rows(new)), strict=True)
        for number, (one, other) in enumerate(rows, 1):
            if one != other:
                yield f"{place} / point {number}", f"{one} -> {other}"
    elif old["exact"] != new["exact"]:
        many = "differ in 7 digits" if old["rounded"] != new["rounded"] else "differ beyond 7 digits"
        yield place, f"the {old['shape']} numbers {many}; first: {old['first']} -> {new['first']}"


def _rows(array: dict) -> list[str]:
    values = array["values"]
    return [json.dumps(row) for row in values] if isinstance(values, list) else [json.dumps(values)]


def _is_array(record: Any) -> bool:
    return isinstance(record, dict) and "shape" in record and ("values" in record or "exact" in record)


def _short(value: Any, most: int = 300) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}..."


def coarse(record: Any) -> Any:
    """Return the part of a record that another library's chart has too: points, and cells of maps.

    Tables, answers and texts stay; of figures and charts only `drawn` is left.
    """
    if not isinstance(record, dict):
        return record
    found = dict(record)
    if "figures" in record:
        found["figures"] = {
            name: {panel: of["drawn"] for panel, of in figure.get("panels", {}).items()}
            for name, figure in record["figures"].items()
        }
        found.pop("files", None)
    if "charts" in record:
        found["charts"] = {name: chart["drawn"] for name, chart in record["charts"].items()}
        found.pop("parts", None)
    return found


def renamed(records: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return records with other names of runs, `<experiment>/<name>`, and of figures below a run.

    Args:
        records: by name.
        names: old name of a run, or of a figure as `<experiment>/<name>/<figure>`, -> new name.
    """
    found = {}
    for name, record in records.items():
        if "figures" in record:
            own = {
                old.removeprefix(f"{name}/"): new for old, new in names.items() if old.startswith(f"{name}/")
            }
            figures = {own.get(figure, figure): of for figure, of in record["figures"].items()}
            record = record | {"figures": figures}
        found[names.get(name, name)] = record
    return found


def digests(record: Any, depth: int = 1) -> dict[str, str]:
    """Return place -> digest for a record: of figures and charts by panel, of others by their parts."""
    found: dict[str, str] = {}
    for name, part in record.items():
        levels = _DEPTH.get(name, 1)
        for place, one in _leaves(part, levels - 1, name):
            found[place] = digest(one)
    return found


def _leaves(part: Any, levels: int, name: str) -> Iterator[tuple[str, Any]]:
    if levels == 0 or not isinstance(part, dict) or _is_array(part):
        yield name, part
        return
    for key, one in part.items():
        yield from _leaves(one, levels - 1, f"{name}/{key}")
