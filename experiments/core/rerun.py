"""Resume and repeat runs from their provenance, and check the names in it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from experiments.core.old_names import settings_now
from experiments.core.provenance import UNTIMED
from experiments.core.record import PROVENANCE, read_provenance
from experiments.core.settings import Settings, UsageError
from sfc import checks

COMPARED = {  # entries of a provenance on which times depend -> those in it that are not compared
    "python": set(),
    "packages": set(UNTIMED),
    "environment": set(),
    "backend": {"clocks.sm", "clocks.mem"},  # of the moment
    "machine": {"system", "memory_GiB"},
}
_ABSENT = {"packages": "not installed", "environment": "not set"}  # of None, by entry; else: not known
_SAMPLES = ("runs", "repeats", "rounds")  # settings that are no sizes


@cache
def experiment_names() -> tuple[str, ...]:
    """Return the names of all experiments, sorted."""
    files = Path(__file__).parents[1].glob("*.py")
    return tuple(sorted(path.stem for path in files if not path.stem.startswith("_")))


def experiment_of(run: Path, provenance: Mapping[str, Any]) -> str:
    """Return the name of the experiment of a run, which can be imported and be the name of a folder.

    Args:
        run: its folder, for the message.
        provenance: of the run.

    Raises:
        UsageError: another word, or none.
    """
    found = provenance.get("experiment")
    if found not in experiment_names():
        raise UsageError(
            f"{Path(run) / PROVENANCE} names the experiment {checks.shown(found)}; allowed: one of "
            f"{', '.join(experiment_names())}; restore a copy of the file"
        )
    return str(found)


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
    known = {f.name for f in fields(config_type)}
    config = settings_now(recorded["config"], experiment, timed=config_type.CHANCE == "run")
    unknown = sorted(set(config) - known)
    if unknown:
        raise UsageError(
            f"{flag} {run} has settings that no longer exist: {', '.join(unknown)}; allowed: "
            f"a run of this code; its commit is {recorded.get('code', {}).get('commit')}"
        )
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}
    try:
        build: Any = config_type
        return build(**settings)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{flag} {run}: its settings are refused: {error}; they are in {Path(run) / PROVENANCE}, which "
            "is damaged, or of older code"
        ) from error


def check_experiment(run: Path, flag: str, experiment: str) -> None:
    """Check that a run is of this experiment.

    Raises:
        UsageError: it is of another experiment.
    """
    recorded = read_provenance(run)
    if recorded.get("experiment", experiment) != experiment:
        measured = experiment_of(run, recorded)
        raise UsageError(
            f"{flag} {run} is a run of {measured}; allowed: one of {experiment}; take "
            f"python -m experiments.{measured} {flag} {run}"
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
    if not spreads and (differences := [*_differences(own, origin, ("backend", "machine"))]):
        raise UsageError(
            f"--resume {run} was started on another machine ({'; '.join(differences)}): times of two "
            "machines do not belong in one table; resume it there, or take --from to measure all of it here"
        )
    if not spreads and (differences := [*_differences(own, origin, ("python", "packages", "environment"))]):
        raise UsageError(
            f"--resume {run} was started with other packages or environment variables "
            f"({'; '.join(differences)}): times of two programs do not belong in one table; resume it with "
            "those, or take --from to measure all of it again"
        )
    sources = [of.get("code", {}).get("sources") for of in (own, origin)]
    if not spreads and sources[0] is None:
        raise UsageError(
            f"--resume {run} was started by older code, which kept no hash of its sources: it cannot be "
            "compared with this program; take --from to measure all of it again"
        )
    if not spreads and sources[0] != sources[1]:
        raise UsageError(
            f"--resume {run} was started with sources of hash {sources[0]!s:.12}, and these have "
            f"{sources[1]:.12}: times of two programs do not belong in one table; resume it with those "
            f"(their commit was {own['code'].get('commit')}), or take --from to measure all of it again"
        )
    entry = {name: origin[name] for name in ("started", "code", *COMPARED)}
    return own | {"resumed": [*own.get("resumed", []), entry]}


def _differences(own: Mapping[str, Any], now: Mapping[str, Any], groups: Iterable[str]) -> Iterator[str]:
    """Yield what differs between a run and this process, of what times depend on.

    What the run does not record, because it is of older code, is not compared.
    """
    for group in groups:
        if group not in own:
            continue
        before, here = ({"Python": of[group]} if group == "python" else of[group] for of in (own, now))
        known = before.keys() if group in ("backend", "machine") else before.keys() | here.keys()
        for name in sorted(known - COMPARED[group]):
            was, is_now = (_worded(group, of.get(name)) for of in (before, here))
            if was != is_now:
                yield f"{name} {was}, here {is_now}"


def _worded(group: str, value: Any) -> str:
    """Format a value of an entry of a provenance as JSON has it, without the quotes of a word."""
    if value is None:
        return _ABSENT.get(group, "not known")
    return json.dumps(value, default=str).strip('"')
