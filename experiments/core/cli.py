"""The command line of an experiment, made from its Config."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import tyro

import sfc
from experiments.core import style
from experiments.core.provenance import provenance
from experiments.core.record import Record, read_provenance, read_table
from experiments.core.settings import Settings, UsageError, cases
from experiments.core.sweep import Measure, sweep
from md import BackendUnavailableError, SimulationFault

Draw = Callable[[pd.DataFrame, Path], Any]


@dataclass(frozen=True)
class Options:
    """Options of every experiment."""

    quick: bool = False
    """A small sweep that ends within a minute on two cores; flags given beside it still hold."""
    results: Path = Path("results")
    """Folder for results; the run makes <experiment>/<utc>-<hash> inside."""
    replot: Path | None = None
    """Draw the figures of an earlier run again, from its folder, and measure nothing."""
    curve_file: tuple[Path, ...] = ()
    """Curves of your own: files with a grammar each (TOML, see the README); their names then stand beside the
    built-in ones in every flag that takes an ordering or a curve."""


def main(
    config_type: type[Settings],
    measure: Measure,
    draw: Draw,
    quick: dict[str, Any],
    arguments: Sequence[str] | None = None,
) -> None:
    """Run an experiment from its command line, and exit.

    The exit status is 0 after a complete run, 1 after a failure, 2 for a mistake of the user's, 130 after
    Ctrl-C.

    Args:
        config_type: the experiment's Config; its fields become flags, their docstrings the help.
        measure: rows of one case.
        draw: figures of a table, into a folder.
        quick: Config fields that `--quick` changes.
        arguments: the command line, `sys.argv[1:]` if not given.
    """
    module = sys.modules[config_type.__module__]
    experiment = Path(module.__file__).stem
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        grammars = _register_curves(arguments)
        config, options = _parse(config_type, quick, arguments, experiment, module.__doc__)
        if options.replot is not None:
            _draw(draw, _table_to_replot(options.replot, experiment), options.replot)
            sys.exit(0)
        cases(config)  # refuse a bad value before anything is measured or written
        origin = provenance(experiment, config, arguments) | {"grammars": grammars}
        record = Record(options.results, experiment)
    except (ValueError, BackendUnavailableError) as error:
        _fail(error, 2)
    print(f"{experiment} on {origin['backend']['device']}; results in {record.folder}", flush=True)
    complete, failure = False, None
    try:
        complete = sweep(config, measure, record, origin)
    except (ValueError, BackendUnavailableError, SimulationFault, MemoryError) as error:
        failure = error
        (record.folder / "error.txt").write_text(traceback.format_exc())
    if len(record.table):
        _draw(draw, record.table, record.folder)
    elif complete:
        _fail(f"no case gave a row, so there is nothing in {record.folder}; widen the axes", 1)
    if failure is not None:
        _fail(f"{failure}\n(finished cases and error.txt are in {record.folder})", 1)
    if not complete:
        _fail(f"interrupted; the finished cases are in {record.folder}", 130)


def _table_to_replot(run: Path, experiment: str) -> pd.DataFrame:
    measured = read_provenance(run).get("experiment", experiment)
    if measured != experiment:
        raise UsageError(
            f"--replot {run} is a run of {measured}; allowed: one of {experiment}; take "
            f"python -m experiments.{measured} --replot {run}"
        )
    return read_table(run)


def _register_curves(arguments: Sequence[str]) -> dict[str, str]:
    """Make the curves of `--curve-file` and of a run to draw again known before the Config is checked.

    Returns:
        Name -> text of each file.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--curve-file", "--curve_file", nargs="+", action="extend", type=Path, default=[])
    parser.add_argument("--replot", type=Path)
    given, _ = parser.parse_known_args(list(arguments))
    grammars = {}
    for path in given.curve_file:
        curve = sfc.read_curve(path)
        sfc.register(curve)
        grammars[curve.name] = path.read_text(encoding="utf-8")
    for name, text in read_provenance(given.replot).get("grammars", {}).items() if given.replot else ():
        sfc.register(sfc.parse_curve(text, f"grammar {name!r} of {given.replot}"))
    return grammars


def _parse(config_type, quick, arguments, experiment, description) -> tuple[Settings, Options]:
    default = config_type(**(quick if "--quick" in arguments else {}))
    flat = tyro.conf.OmitArgPrefixes
    command_type = make_dataclass(
        "Command",
        [
            ("config", flat[config_type], field(default=default)),
            ("options", flat[Options], field(default=Options())),
        ],
    )
    command = tyro.cli(
        command_type, args=arguments, prog=f"python -m experiments.{experiment}", description=description
    )
    return replace(command.config), command.options


def _draw(draw: Draw, table: pd.DataFrame, folder: Path) -> None:
    style.use()
    draw(table, folder)
    for path in sorted(folder.glob("*.png")):
        print(path)


def _fail(reason: object, status: int) -> None:
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(status)


__all__ = ["Draw", "Options", "UsageError", "main"]
