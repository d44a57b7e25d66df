"""Resume and repeat runs from their provenance, and check the names in it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.core.old_names import experiment_now, settings_now, table_now
from experiments.core.provenance import UNTIMED
from experiments.core.record import PROVENANCE, read_provenance, read_table
from experiments.core.settings import Settings, UsageError
from experiments.results import reliability
from sfc import checks

COMPARED = {  # entries of a provenance on which times depend -> those in it that are not compared
    "python": set(),
    "packages": set(UNTIMED),
    "environment": set(),
    "backend": {"clocks.sm", "clocks.mem"},  # of the moment
    "machine": {"system", "memory_GiB"},
}
_ABSENT = {"packages": "not installed", "environment": "not set"}  # of None, by entry; else: not known
_OF_TIMES = {"run", "warning", "time_ms"}  # columns, of which a table of times has one or more
_SAMPLES = ("runs", "repeats", "rounds")  # settings that are no sizes


@cache
def experiment_names() -> tuple[str, ...]:
    """Return the names of all experiments, sorted."""
    files = Path(__file__).parents[1].glob("*.py")
    return tuple(sorted(path.stem for path in files if not path.stem.startswith("_")))


def experiment_of(run: Path, provenance: Mapping[str, Any]) -> str:
    """Return the present name of the experiment of a run, which can be imported and be that of a folder.

    Args:
        run: its folder, for the message.
        provenance: of the run.

    Raises:
        UsageError: another word, or none.
    """
    recorded = provenance.get("experiment")
    if isinstance(recorded, str) and experiment_now(recorded) in experiment_names():
        return experiment_now(recorded)
    raise UsageError(
        f"{Path(run) / PROVENANCE} names the experiment {checks.shown(recorded)}; allowed: one of "
        f"{', '.join(experiment_names())}; restore a copy of the file"
    )


def read_table_now(run: Path) -> pd.DataFrame:
    """Read the table of a run under the present names; rows of times get the warnings of this code.

    Args:
        run: its folder.

    Raises:
        UsageError: a table or a provenance that is missing or damaged.
    """
    origin = read_provenance(run)
    table = table_now(read_table(run), str(origin.get("experiment")))
    return reliability.warned(table, was_quick(origin)) if _OF_TIMES & {*table} else table


def was_quick(provenance: Mapping[str, Any]) -> bool:
    """Return whether a run has the sizes of `--quick`; the command of a run of older code says so.

    Args:
        provenance: of the run.
    """
    return bool(provenance.get("quick", "--quick" in provenance.get("command", ())))


def remains_quick(run: Path, before: Settings, now: Settings, quick: Iterable[str]) -> bool:
    """Return whether settings that are taken from a run still have a size of `--quick`.

    Args:
        run: its folder.
        before: its settings.
        now: those of the new run.
        quick: fields that `--quick` sets.
    """
    sizes = [name for name in quick if name not in _SAMPLES]
    same = any(getattr(before, name) == getattr(now, name) for name in sizes)
    return was_quick(read_provenance(run)) and same


def config_of(run: Path, flag: str, config_type: type[Settings], experiment: str) -> Settings:
    """Read the Config of a run.

    Args:
        run: its folder.
        flag: that named it, for messages.
        config_type: the experiment's.
        experiment: its name.

    Raises:
        UsageError: a folder without provenance or with a damaged one, a run of another experiment, or
            settings that are unknown or not allowed in this code.
    """
    recorded = read_provenance(run)
    if "config" not in recorded:
        raise UsageError(
            f"{flag} {run} has no provenance.json with a config; allowed: the folder of a run, "
            "results/<experiment>/<utc>-<hash>"
        )
    check_experiment(run, flag, experiment)
    name = recorded.get("experiment", experiment)
    config = settings_now(recorded["config"], name, timed=config_type.CHANCE == "run")
    if unknown := sorted(set(config) - {f.name for f in fields(config_type)}):
        raise UsageError(
            f"{flag} {run} has settings that no longer exist: {', '.join(unknown)}; allowed: "
            f"a run of this code; its commit is {recorded.get('code', {}).get('commit')}"
        )
    try:
        build: Any = config_type
        return build(**{k: tuple(v) if isinstance(v, list) else v for k, v in config.items()})
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{flag} {run}: its settings are refused: {error}; they are in {Path(run) / PROVENANCE}, which "
            "is damaged, or of older code"
        ) from error


def check_experiment(run: Path, flag: str, experiment: str) -> None:
    """Check that a run is of this experiment.

    Args:
        run: its folder.
        flag: that named it, for the message.
        experiment: its present name.

    Raises:
        UsageError: it is of another experiment, or it is to be resumed and was started under an old name.
    """
    recorded = read_provenance(run)
    name = recorded.get("experiment", experiment)
    if experiment_now(str(name)) != experiment:
        measured = experiment_of(run, recorded)
        raise UsageError(
            f"{flag} {run} is a run of {measured}; allowed: one of {experiment}; take "
            f"python -m experiments.{measured} {flag} {run}"
        )
    if name != experiment and flag == "--resume":
        raise UsageError(
            f"--resume {run} was started as {name}, which is {experiment} now: its rows have not the present "
            "columns; take --from to measure all of it again"
        )


def resumed_provenance(run: Path, origin: dict, spreads: bool) -> dict:
    """Return the provenance of a resumed run: its own, with an entry for each resumption.

    Args:
        run: its folder.
        origin: provenance of the resuming process.
        spreads: whether its rows are the same on any machine.

    Raises:
        UsageError: rows of times, with another machine, other packages, other environment variables that
            change compiled code or times, or other code.
    """
    own = read_provenance(run)
    if not spreads and (differences := "; ".join(_differences(own, origin))):
        raise UsageError(
            f"--resume {run} was started with another machine or program ({differences}): times of both do "
            "not belong in one table; resume it with that one, or take --from to measure all of it again"
        )
    entry = {name: origin[name] for name in ("started", "code", *COMPARED)}
    return own | {"resumed": [*own.get("resumed", []), entry]}


def _differences(own: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between a run and this process, of what times depend on.

    What the run does not record, because it is of older code, is not compared, except the sources.
    """
    for group in filter(own.__contains__, COMPARED):
        before, here = ({"Python": of[group]} if group == "python" else of[group] for of in (own, now))
        known = before.keys() if group in ("backend", "machine") else before.keys() | here.keys()
        for name in sorted(known - COMPARED[group]):
            was, is_now = (_worded(group, of.get(name)) for of in (before, here))
            if was != is_now:
                yield f"{name} {was}, here {is_now}"
    was, is_now = (str(of.get("code", {}).get("sources", "not known")) for of in (own, now))
    if was != is_now:
        commit = own.get("code", {}).get("commit") or "not known"
        yield f"sources of hash {was:.12} (commit {commit}), here {is_now:.12}"


def _worded(group: str, value: Any) -> str:
    """Format a value of an entry of a provenance as JSON has it, without the quotes of a word."""
    if value is None:
        return _ABSENT.get(group, "not known")
    return json.dumps(value, default=str).strip('"')
