"""Recorded hashes of final arrays: what differs from them, and adding to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "md" / "final_arrays.json"
Hashes = dict[str, dict[str, str]]  # by case, by what they are of


def read(path: Path = RECORDED) -> dict[str, Hashes]:
    """The hashes by environment (`tests.final_arrays.environment`); none where there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def faults(result: dict[str, Any]) -> list[str]:
    """A line for each thing that should have happened in a run and has not; and one if there was no run.

    Args:
        result: of `tests.final_arrays.run_all`.
    """
    ran = [name for name, one in result["cases"].items() if one.get("hashes")]
    wrong = [f"{name}: {what}" for name, one in result["cases"].items() for what in one.get("wrong", ())]
    return wrong if ran else [*wrong, "no case has run"]


def hashes_in(result: dict[str, Any]) -> Hashes:
    """The hashes of the cases that have run."""
    return {name: one["hashes"] for name, one in result["cases"].items() if "hashes" in one}


def differences(found: Hashes, known: Hashes) -> list[str]:
    """A line for each case that differs, is in one of the two alone, or has hashes of other things.

    Args:
        found: of the present code.
        known: to compare with.
    """
    lines = [
        f"{name}: not among the known; python -m tests.final_arrays --update" for name in found.keys() - known
    ]
    lines += [f"{name}: known, and has not run" for name in known.keys() - found]
    for name in found.keys() & known:
        one, other = found[name], known[name]
        parts = sorted(part for part in one.keys() | other if one.get(part) != other.get(part))
        lines += [f"{name}: another {', '.join(parts)}"] if parts else []
    return sorted(lines)


def record(
    result: dict[str, Any], overwritten: Sequence[str] = (), names: Sequence[str] = (), path: Path = RECORDED
) -> None:
    """Add the hashes of new cases to the file, for the environment of the run alone.

    Args:
        result: of `tests.final_arrays.run_all`.
        overwritten: names of the cases that are recorded although they differ from what the file has.
        names: of all cases that there are; the environment's others are taken out. None if not given.
        path: of the file.

    Raises:
        SystemExit: a fault, or a case that differs and is not named; the file is as it was.
    """
    recorded, found = read(path), hashes_in(result)
    known = recorded.setdefault(result["environment"], {})
    refused = faults(result) + [
        f"{name}: differs from what is recorded; if that is meant, name it after --overwrite"
        for name in sorted(found.keys() & known)
        if found[name] != known[name] and name not in overwritten
    ]
    if refused:
        raise SystemExit("\n".join(["nothing is recorded:", *refused]))
    known |= found
    for name in known.keys() - set(names) if names else ():
        del known[name]
    path.write_text(text_of(recorded))


def text_of(recorded: dict[str, Hashes]) -> str:
    """JSON with a line for each case."""
    blocks = (
        f"{json.dumps(environment)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(cases.items()))
        + "\n}"
        for environment, cases in sorted(recorded.items())
    )
    return "{\n" + ",\n".join(blocks) + "\n}\n"
