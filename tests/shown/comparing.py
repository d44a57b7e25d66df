"""Differences of two records by place, and the digests of a record by place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.shown.arrays import digest


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
        gone = [item for item in old if item not in new]
        come = [item for item in new if item not in old]
        yield (
            " / ".join(at),
            f"{len(old)} -> {len(new)} items; only before: {_short(gone)}; only now: {_short(come)}",
        )
        return
    for number, (before, now) in enumerate(zip(old, new, strict=True), 1):
        yield from differences(before, now, (*at, str(number)))


def _of_arrays(old: dict, new: dict, at: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the rows in which two arrays differ, or that many numbers do."""
    place = " / ".join(at)
    if old["shape"] != new["shape"]:
        only = ""
        if "values" in old and "values" in new:
            before, now = ([json.dumps(row) for row in array["values"]] for array in (old, new))
            gone, come = [r for r in before if r not in now], [r for r in now if r not in before]
            only = f"; only before: {_short(gone)}; only now: {_short(come)}"
        yield place, f"shape {old['shape']} -> {new['shape']}{only}"
    elif "values" in old:
        rows = zip(np.atleast_1d(_rows(old)), np.atleast_1d(_rows(new)), strict=True)
        for number, (before, now) in enumerate(rows, 1):
            if before != now:
                yield f"{place} / point {number}", f"{before} -> {now}"
    elif {**old, "first": 0, "last": 0} != {**new, "first": 0, "last": 0}:
        many = "differ in 7 digits" if old["rounded"] != new["rounded"] else "differ beyond 7 digits"
        ends = f"; first: {old['first']} -> {new['first']}" if "first" in old and "first" in new else ""
        yield place, f"the {old['shape']} numbers {many}{ends}"


def _rows(array: dict) -> list[str]:
    values = array["values"]
    return [json.dumps(row) for row in values] if isinstance(values, list) else [json.dumps(values)]


def _is_array(record: Any) -> bool:
    return isinstance(record, dict) and "shape" in record and ("values" in record or "rounded" in record)


def _short(value: Any, most: int = 300) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}..."


def coarse(record: Any) -> Any:
    """Return the part of a record that another library's chart has too: points, and cells of maps.

    Tables, answers and texts stay; of figures and charts only `drawn` is left.
    """
    if not isinstance(record, dict):
        return record
    made = dict(record)
    if "figures" in record:
        made["figures"] = {
            name: {panel: of["drawn"] for panel, of in figure.get("panels", {}).items()}
            for name, figure in record["figures"].items()
        }
        made.pop("files", None)
    if "charts" in record:
        made["charts"] = {name: chart["drawn"] for name, chart in record["charts"].items()}
        made.pop("parts", None)
    return made


def to_digits(record: Any, digits: int, name: str = "") -> Any:
    """Return a record with rounded numbers; points that are the same then are one point.

    Args:
        record: or a part of one.
        digits: significant ones. Arrays that have hashes alone are compared by the hash of 7 digits.
        name: of the part.
    """
    if isinstance(record, dict):
        made = {key: to_digits(part, digits, key) for key, part in record.items()}
        if "exact" in made:
            return {"shape": made["shape"], "rounded": made["rounded"]}
        if name == "points" and "values" in made:
            rows = sorted({tuple(row) for row in made["values"]}) if made["values"] else []
            return {"shape": [len(rows), *made["shape"][1:]], "values": [list(row) for row in rows]}
        return made
    if isinstance(record, list):
        parts = [to_digits(part, digits) for part in record]
        if name in ("points", "drawn") and all(isinstance(part, list) for part in parts):
            return [json.loads(text) for text in sorted({json.dumps(part) for part in parts})]
        return parts
    return float(f"{record:.{digits - 1}e}") if isinstance(record, float) else record


def renamed(records: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return records with other names of runs, `<experiment>/<name>`, and of figures below a run.

    Args:
        records: by name.
        names: old name of a run, or of a figure as `<experiment>/<name>/<figure>`, -> new name.
    """
    made = {}
    for name, record in records.items():
        if "figures" in record:
            figure_names = {
                old.removeprefix(f"{name}/"): new for old, new in names.items() if old.startswith(f"{name}/")
            }
            figures = {figure_names.get(figure, figure): of for figure, of in record["figures"].items()}
            record = record | {"figures": figures}
        made[names.get(name, name)] = record
    return made


def digests(record: dict[str, Any]) -> dict[str, str]:
    """Return place -> digest for a record: of figures by panel, of others by their parts.

    Pages in markdown have none, for they are kept themselves.
    """
    return {place: digest(part) for place, part in _parts(record)}


def _parts(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in record.items():
        if name == "figures":
            for figure, shown in part.items():
                words = {key: of for key, of in shown.items() if key != "panels"}
                yield f"{figure}, words", words
                yield from ((f"{figure}, {panel}", of) for panel, of in shown.get("panels", {}).items())
        elif name in ("tables", "charts", "claims", "answers"):
            yield from ((f"{name}, {key}", of) for key, of in part.items())
        elif name == "parts":
            yield from ((f"{key}, {what}", of) for key, each in part.items() for what, of in each.items())
        elif name != "pages":
            yield name, part
