"""The command line of an experiment, made from its Config."""

import argparse
import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import tyro

import sfc
from experiments.analysis import reliability
from experiments.analysis.baselines import BASELINES
from experiments.core.executor import SERIAL, Executor, Measure
from experiments.core.provenance import provenance
from experiments.core.record import Record, read_provenance, read_table
from experiments.core.rerun import check_experiment, config_of, taken_up
from experiments.core.settings import Settings, UsageError, cases
from experiments.core.sweep import sweep
from experiments.drawing import style
from experiments.processes.lifetime import Terminated, terminable
from experiments.processes.separate_run import EXPECTED, RunFailed, WorkerDied
from md import BackendUnavailableError
from md import backend as backends
from sfc import checks
from sfc.registry import CURVES, ORDERINGS

Draw = Callable[[pd.DataFrame, Path], Any]
_CURVE = "of TOML with name, dim, axiom and a table [rules], as in the README"
FAILURES = (*EXPECTED, RunFailed, WorkerDied)


@dataclass(frozen=True)
class Options:
    """Options of every experiment."""

    quick: bool = False
    """A small sweep that ends within a minute on two cores; flags given beside it still hold."""
    results: Path = Path("results")
    """Folder for results; the run makes <experiment>/<utc>-<hash> inside."""
    replot: Path | None = None
    """Draw the figures of an earlier run again, from its folder, and measure nothing."""
    resume: Path | None = None
    """Go on with a run that was interrupted, killed or failed, in its folder: only what is missing is
    measured, with the settings it was begun with."""
    from_run: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Do a run again, from its folder, in a new one; flags given beside it still hold."""
    executor: str = SERIAL
    """Where cases are measured: serial, processes, or on a Dask cluster by the address of its scheduler
    (tcp://host:8786; the extra `cluster`). Not where rows are times."""
    workers: int = 0
    """Processes of `--executor processes`; 0 for one a core."""
    curve_file: tuple[Path, ...] = ()
    """Curves of your own: files with a grammar each (TOML, see the README); their names then stand beside the
    built-in ones in every flag that takes an ordering or a curve."""


def main(
    config_type: type[Settings],
    measure: Measure,
    draw: Draw,
    quick: dict[str, Any],
    arguments: Sequence[str] | None = None,
    spreads: bool = False,
) -> None:
    """Run an experiment from its command line, and exit.

    The exit status is 0 after a complete run, 1 after a failure, 2 for a mistake of the user's, 130 after
    Ctrl-C, 143 after SIGTERM.

    Args:
        config_type: the experiment's Config; its fields become flags, their docstrings the help.
        measure: rows of one case.
        draw: figures of a table, into a folder.
        quick: Config fields that `--quick` changes.
        arguments: the command line, `sys.argv[1:]` if not given.
        spreads: whether rows are the same wherever, and beside whatever, they are measured; rows of times are
            not.

    Raises:
        TypeError: an argument of a wrong class.
    """
    if not (isinstance(config_type, type) and issubclass(config_type, Settings)):
        raise checks.refuse_class("config_type", config_type, "a class that extends Settings")
    checks.function("measure", measure, "a function of a Config that yields rows")
    checks.function("draw", draw, "a function of a table and a folder")
    checks.instance("quick", quick, dict, "a dict of fields of the Config")
    spreads = checks.flag("spreads", spreads)
    progress = _Progress()
    try:
        with terminable():
            _run(config_type, measure, draw, quick, arguments, spreads, progress)
    except KeyboardInterrupt:
        _fail(f"interrupted; {progress.left}", 130)
    except Terminated as ended:
        _fail(f"terminated; {progress.left}", ended.code)


@dataclass
class _Progress:
    """What is left where a run is interrupted, for a message."""

    left: str = "nothing was measured"


def _run(config_type, measure, draw, quick, arguments, spreads, progress: _Progress) -> None:
    """What `main` does; Ctrl-C may end it anywhere, and within the sweep it ends the sweep alone."""
    module = sys.modules[config_type.__module__]
    experiment = Path(module.__file__).stem
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        grammars = _register_curves(arguments)
        config, options = _parse(config_type, quick, arguments, experiment, module.__doc__)
        if options.replot is not None:
            check_experiment(options.replot, "--replot", experiment)
            progress.left = f"--replot {options.replot} draws again"
            _draw_again(draw, options.replot, config.CHANCE == "run")
            sys.exit(0)
        # A seed names one gas on each backend, so all cases run on the same, wherever they are measured.
        config = replace(config, backend=backends.get(config.backend).name)
        cases(config)  # refuse a bad value before anything is measured or written
        executor = Executor(options.executor, options.workers, grammars)
        if executor.where != SERIAL and not spreads:
            raise UsageError(
                f"--executor {executor.where}: rows of {experiment} are times, which cases measured side by "
                f"side would spoil; allowed: {SERIAL}"
            )
        executor.check(measure, config)
        origin = provenance(experiment, config, arguments) | {"grammars": grammars}
        origin |= {"executor": options.executor}
        if options.resume is None:
            record = Record.begun(options.results, experiment, origin | {"status": "running"})
        else:
            record, origin = Record.taken_up(options.resume), taken_up(options.resume, origin, spreads)
    except (ValueError, BackendUnavailableError) as error:
        _fail(error, 2)
    if config.CHANCE == "run":
        record.finish = partial(reliability.warned, quick="--quick" in origin["command"])
    print(f"{experiment} on {origin['backend']['device']}; results in {record.folder}", flush=True)
    go_on = f"the finished cases are in {record.folder}; --resume {record.folder} goes on"
    complete, failure = False, None
    progress.left = go_on
    try:
        complete = sweep(config, measure, record, origin, executor)
    except FAILURES as error:
        failure = error
        record.failed(error.trace if isinstance(error, RunFailed) else traceback.format_exc())
    if complete:
        go_on = f"the table is in {record.folder}; --replot {record.folder} draws its figures"
        progress.left = go_on
    try:
        if len(table := record.table):
            for line in reliability.lines(table):
                print(f"warning: {line}", file=sys.stderr)
            _draw(draw, table, record.folder)
        elif complete:
            _fail(f"no case gave a row, so there is nothing in {record.folder}; widen the axes", 1)
    except OSError as error:
        failure = failure or error
    if failure is not None:
        _fail(f"{failure}\n({go_on})", 1)
    if not complete:
        _fail(f"interrupted; {go_on}", 130)


def _register_curves(arguments: Sequence[str]) -> dict[str, str]:
    """Make the curves of `--curve-file` and of a run that is named known before the Config is checked.

    Returns:
        Name -> text of each file; of a name in a second dimension, name-<dim>d.

    Raises:
        UsageError: a file that cannot be read, one that exhausts its reader, or the name of another ordering.
        ValueError: a grammar that is no curve.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--curve-file", "--curve_file", nargs="+", action="extend", type=Path, default=[])
    for flag in ("--replot", "--resume", "--from"):
        parser.add_argument(flag, type=Path, dest="runs", action="append", default=[])
    given, _ = parser.parse_known_args(list(arguments))
    found = []
    for path in given.curve_file:
        with _named(f"curve file {path}"):
            found.append((sfc.read_curve(path), path.read_text(encoding="utf-8-sig"), f"curve file {path}"))
    for run in given.runs:
        for name, text in read_provenance(run).get("grammars", {}).items():
            where = f"grammar {name!r} of {run}"
            with _named(where):
                found.append((sfc.parse_curve(text, where), text, where))
    grammars = {}
    for curve, text, where in found:
        if curve.name in (*BASELINES, *CURVES, *ORDERINGS):
            taken = ", ".join((*BASELINES, *sorted({*CURVES, *ORDERINGS})))
            raise UsageError(
                f"{where}: curve {curve.name!r} has the name of an ordering that is there already, in some "
                f"dimension; allowed: any name but {taken}; choose another name in the file"
            )
        sfc.register(curve)
        known = curve.name in grammars and grammars[curve.name] != text
        grammars[f"{curve.name}-{curve.dim}d" if known else curve.name] = text
    return grammars


@contextlib.contextmanager
def _named(where: str) -> Iterator[None]:
    """Names the text of a grammar that exhausts, or breaks, what reads it."""
    try:
        yield
    except (RecursionError, MemoryError, KeyError, OSError, UnicodeDecodeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise UsageError(f"{where} cannot be read: {told:.200}; allowed: a file {_CURVE}") from error


def _parse(config_type, quick, arguments, experiment, description) -> tuple[Settings, Options]:
    """The command line; the defaults of its settings are those of a run that is named, if one is."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--from", "--resume"):
        parser.add_argument(flag, type=Path)
    named = {flag: run for flag, run in vars(parser.parse_known_args(arguments)[0]).items() if run}
    alone = [*(f"--{flag}" for flag in named), *(["--quick"] if "--quick" in arguments else [])]
    if len(alone) > 1:
        raise UsageError(f"{' and '.join(alone)}; allowed: one of them, for each says what is measured")
    default = config_type(**(quick if "--quick" in arguments else {}))
    for flag, run in named.items():
        default = config_of(run, f"--{flag}", config_type, experiment)
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
    config = replace(command.config)
    if "resume" in named and (config != default or _elsewhere(command.options)):
        raise UsageError(
            f"--resume {named['resume']} beside other settings or folders; allowed: alone, for it goes on "
            "with those it was begun with, in its folder; --from takes others"
        )
    return config, command.options


def _elsewhere(options: Options) -> bool:
    """Whether another folder is named too."""
    return options.replot is not None or options.results != Options().results


def _draw(draw: Draw, table: pd.DataFrame, folder: Path) -> None:
    style.use(reliability.footer(table))
    draw(table, folder)
    for path in sorted(folder.glob("*.png")):
        print(path)


def _draw_again(draw: Draw, run: Path, timed: bool) -> None:
    """Draw the figures of an earlier run.

    Args:
        draw: of the experiment.
        run: its folder.
        timed: whether its rows are times.

    Raises:
        UsageError: its table cannot be read or drawn, or its folder cannot be written; names the file.
    """
    table = read_table(run)
    if timed and "warning" not in table:  # of a run that has not come to its end, or of older code
        table = reliability.warned(table, "--quick" in read_provenance(run).get("command", ()))
    try:
        _draw(draw, table, run)
    except OSError as error:
        raise UsageError(
            f"{error}; allowed: a run's folder that you may write to, with room; make room, or copy {run} "
            "elsewhere and --replot the copy"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        at = traceback.extract_tb(error.__traceback__)[2:3]
        told = f"{type(error).__name__}: {error}" + "".join(
            f" ({Path(f.filename).name}:{f.lineno})" for f in at
        )
        raise UsageError(
            f"the table of {run} cannot be drawn: {told}; it is damaged, or of older code: see the commit in "
            "its provenance.json"
        ) from error


def _fail(reason: object, status: int) -> None:
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(status)


__all__ = ["Draw", "Options", "UsageError", "main"]
