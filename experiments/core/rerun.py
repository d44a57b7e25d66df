"""Runs that are taken up where they ended, and runs that are done again, from their provenance."""

from dataclasses import fields
from pathlib import Path

from experiments.core.old_names import settings_now
from experiments.core.record import PROVENANCE, read_provenance
from experiments.core.settings import Settings, UsageError


def config_of(run: Path, flag: str, config_type: type[Settings], experiment: str) -> Settings:
    """The Config that a run was asked for.

    Args:
        run: its folder.
        flag: that named it, for messages.
        config_type: the experiment's.
        experiment: its name.

    Raises:
        UsageError: a folder without provenance or with a damaged one, a run of another experiment, or one of
            settings that this code does not know or does not allow.
    """
    told = read_provenance(run)
    if "config" not in told:
        raise UsageError(
            f"{flag} {run} has no provenance.json with a config; allowed: the folder of a run, "
            "results/<experiment>/<utc>-<hash>"
        )
    check_experiment(run, flag, experiment)
    known = {f.name for f in fields(config_type)}
    config = settings_now(told["config"], experiment, timed=config_type.CHANCE == "run")
    unknown = sorted(set(config) - known)
    if unknown:
        raise UsageError(
            f"{flag} {run} was run with settings that are not known any more: {', '.join(unknown)}; allowed: "
            f"a run of this code; its commit is {told.get('code', {}).get('commit')}"
        )
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}
    try:
        return config_type(**settings)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{flag} {run}: its settings are refused: {error}; they stand in {Path(run) / PROVENANCE}, which "
            "is damaged, or of older code"
        ) from error


def check_experiment(run: Path, flag: str, experiment: str) -> None:
    """Look whether a run is of this experiment.

    Raises:
        UsageError: it is of another.
    """
    measured = read_provenance(run).get("experiment", experiment)
    if measured != experiment:
        raise UsageError(
            f"{flag} {run} is a run of {measured}; allowed: one of {experiment}; take "
            f"python -m experiments.{measured} {flag} {run}"
        )


def taken_up(run: Path, origin: dict, spreads: bool) -> dict:
    """The provenance of a run that goes on: its own, with a line for each time it was taken up.

    Args:
        run: its folder.
        origin: provenance of what goes on now.
        spreads: whether its rows are the same wherever they are measured.

    Raises:
        UsageError: rows that are times, and another machine or other code.
    """
    own = read_provenance(run)
    machines = [
        (told.get("backend", {}).get("device"), told.get("machine", {}).get("cpu")) for told in (own, origin)
    ]
    if not spreads and machines[0] != machines[1]:
        raise UsageError(
            f"--resume {run} was begun on {machines[0]}, and this is {machines[1]}: rows of times of two "
            "machines do not belong in one table; go on there, or take --from to measure all of it here"
        )
    sources = [told.get("code", {}).get("sources") for told in (own, origin)]
    if not spreads and sources[0] is None:
        raise UsageError(
            f"--resume {run} was begun by older code, which kept no hash of its sources: whether this is the "
            "same program cannot be told; take --from to measure all of it again"
        )
    if not spreads and sources[0] != sources[1]:
        raise UsageError(
            f"--resume {run} was begun with sources of hash {sources[0]!s:.12}, and these have "
            f"{sources[1]:.12}: times of two programs do not belong in one table; go on with those (their "
            f"commit was {own['code'].get('commit')}), or take --from to measure all of it again"
        )
    told = {name: origin[name] for name in ("started", "code", "packages", "backend", "machine")}
    return own | {"resumed": [*own.get("resumed", []), told]}
