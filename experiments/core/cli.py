"""Build and run the command line of an experiment from its Config."""

import argparse
import contextlib
import itertools
import sys
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, make_dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast

import pandas as pd
import tyro

import sfc
from experiments.core import flags
from experiments.core.executor import SERIAL, Executor, Measure
from experiments.core.old_names import table_now
from experiments.core.plan import Plan, plan_lines
from experiments.core.provenance import provenance
from experiments.core.record import Record, read_provenance, read_table
from experiments.core.rerun import (
    check_experiment,
    config_of,
    remains_quick,
    resumed_provenance,
    was_quick,
)
from experiments.core.settings import Settings, UsageError, cases
from experiments.core.sweep import sweep
from experiments.core.terminal import answer_lines, so_far_lines
from experiments.drawing import style
from experiments.drawing.charts import Draw, drawer
from experiments.processes.lifetime import Terminated, terminable
from experiments.processes.output import until_output_closes
from experiments.processes.separate_run import EXPECTED, RunFailed, WorkerDied
from experiments.results import reliability
from experiments.results.answers import Answer
from experiments.results.baselines import BASELINES
from experiments.results.charts import View
from md import BackendUnavailableError
from md import backend as backends
from sfc import checks
from sfc.registry import CURVES, ORDERINGS

Answering = Callable[[pd.DataFrame], Answer]
_CURVE = "of TOML with name, dim, axiom and a table [rules], as in the README"
FAILURES = (*EXPECTED, RunFailed, WorkerDied)
UNANSWERED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)  # of a table not whole
_REFERENCE = ("results", "reference")  # folders that hold the kept runs
_FOLDER = tyro.conf.arg(metavar="FOLDER", help_behavior_hint="(optional)")
_FROM = tyro.conf.arg(name="from", metavar="FOLDER", help_behavior_hint="(optional)")
_FILES = tyro.conf.arg(metavar="FILE ...", help_behavior_hint="(optional)")


@dataclass(frozen=True)
class Options:
    """Options of every experiment."""

    quick: bool = False
    """Small sweep that ends within a minute on two cores. At the end of a command it replaces those numbers
    in front of it that it sets itself, such as sizes; flags after it replace its settings."""
    results: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("results")
    """Folder for results. The run creates <experiment>/<utc>-<hash> in it."""
    replot: Annotated[Path | None, _FOLDER] = None
    """Folder of an earlier run, whose figures are drawn and whose answer is given again. Nothing is
    measured."""
    out: Annotated[Path | None, _FOLDER] = None
    """Folder for the figures of --replot, instead of that of the run. A run below results/reference needs
    it."""
    pdf: bool = False
    """Write every figure as PDF too, beside its PNG; also with --replot."""
    resume: Annotated[Path | None, _FOLDER] = None
    """Folder of a run that was interrupted, killed or failed, and is resumed. Only missing cases and rounds
    are measured, with the settings of the run."""
    from_run: Annotated[Path | None, _FROM] = None
    """Folder of a run whose settings are those of this one, in a new folder. Other flags replace them."""
    executor: Annotated[str, tyro.conf.arg(metavar="{serial,processes,tcp://...}")] = SERIAL
    """Place where cases are measured: this process, several, or the address of a Dask scheduler
    (tcp://host:8786; needs the extra `cluster`). Experiments that measure times take serial only."""
    workers: int = 0
    """Number of processes of `--executor processes`; 0 for one per core."""
    curve_file: Annotated[tuple[Path, ...], _FILES] = ()
    """Files with the grammar of a curve (TOML, see the README). Every flag that takes an ordering or a curve
    accepts the names of these curves."""


def main(
    config_type: type[Settings],
    measure: Measure,
    draw: Draw | Sequence[View],
    quick: dict[str, Any],
    arguments: Sequence[str] | None = None,
    spreads: bool = False,
    answer: Answering | None = None,
    quick_limit: str = "",
    minutes: float | None = None,
    plan: Plan | None = None,
) -> None:
    """Run an experiment from its command line, print its answer, and exit.

    The exit status is 0 after a complete run, 1 after a failure, 2 after wrong input, 130 after Ctrl-C and
    143 after SIGTERM.

    Args:
        config_type: the experiment's Config; its fields become flags, their docstrings the help.
        measure: rows of one case.
        draw: charts, summaries and functions that draw a table into a folder; or one such function.
        quick: Config fields that `--quick` changes.
        arguments: the command line, `sys.argv[1:]` if not given.
        spreads: whether rows are the same on any machine and beside any other work; rows of times are not.
        answer: answer of a table; None for a toy of a test.
        quick_limit: sentence about what the size of `--quick` cannot show.
        minutes: that the defaults take on the machine of `experiments.core.plan.BASIS`; None if that is not
            known.
        plan: sentences about what any settings measure, for how long, and what that cannot show; None for
            the number of cases and `minutes`.

    Raises:
        TypeError: an argument of a wrong class.
    """
    if not (isinstance(config_type, type) and issubclass(config_type, Settings)):
        raise checks.refuse_class("config_type", config_type, "a class that extends Settings")
    checks.function("measure", measure, "a function of a Config that yields rows")
    checks.instance("quick", quick, dict, "a dict of fields of the Config")
    spreads = checks.flag("spreads", spreads)
    if answer is not None:
        checks.function("answer", answer, "a function of a table")
    if minutes is not None:
        minutes = checks.number("minutes", minutes, above=0)
    if plan is not None:
        checks.function("plan", plan, "a function of a Config")
    results = _Results(drawer(draw), answer, checks.instance("quick_limit", quick_limit, str, "a str"))
    announced = partial(plan_lines, minutes=minutes, plan=plan)
    progress = _Progress()
    try:
        with until_output_closes(), terminable():
            _run(config_type, measure, results, quick, arguments, spreads, progress, announced)
    except KeyboardInterrupt:
        _fail(f"interrupted; {progress.message}", 130)
    except Terminated as ended:
        _fail(f"terminated; {progress.message}", int(ended.code or 1))


@dataclass(frozen=True)
class _Results:
    """Figures and answer of a table."""

    draw: Draw
    answer: Answering | None
    quick_limit: str
    pdf: bool = False

    def show(self, table: pd.DataFrame, run: Path, folder: Path, quick: bool) -> None:
        """Draw figures into a folder, and print the answer.

        Args:
            table: of the run, with present names.
            run: folder of the run; the figures name its provenance.
            folder: of the figures.
            quick: whether the run was made with `--quick`.
        """
        style.use(reliability.footer(table), style.origin_of(run, read_provenance(run), table), self.pdf)
        self.draw(table, folder)
        if self.answer is None:
            print(f"figures: {folder}")
            return
        for line in answer_lines(self.answer(table), folder, self.quick_limit if quick else ""):
            print(line)

    def so_far(self, table: pd.DataFrame, what: str) -> list[str]:
        """Return lines with the answer of what is finished; none where an answer needs more than that.

        Args:
            table: of the finished cases, with present names.
            what: is finished, in words.
        """
        if self.answer is None or table.empty:
            return []
        try:
            return so_far_lines(self.answer(table), what)
        except UNANSWERED:
            return []


def _but_no_broken_pipe(error: OSError) -> OSError:
    """Return an error of a file; raise it if the reader of the answer has ended, which is no failure."""
    if isinstance(error, BrokenPipeError):
        raise error
    return error


@dataclass
class _Progress:
    """Description of the results kept when a run is interrupted."""

    message: str = "nothing was measured"


def _run(
    config_type: type[Settings],
    measure: Measure,
    results: _Results,
    quick: dict[str, Any],
    arguments: Sequence[str] | None,
    spreads: bool,
    progress: _Progress,
    announced: Callable[[Settings], Sequence[str]],
) -> None:
    """Run an experiment; Ctrl-C within the sweep ends only the sweep."""
    module = sys.modules[config_type.__module__]
    experiment = Path(str(module.__file__)).stem
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        grammars = _register_curves(arguments)
        config, options = _parse(config_type, quick, arguments, experiment, module.__doc__)
        results = replace(results, pdf=options.pdf)
        if options.replot is not None:
            check_experiment(options.replot, "--replot", experiment)
            progress.message = f"--replot {options.replot} draws the figures again"
            folder = _folder_of_replot(options.replot, options.out)
            _replot(results, options.replot, folder, experiment, config.CHANCE == "run")
            sys.exit(0)
        if options.out is not None:
            raise UsageError(
                f"--out {options.out} without --replot; allowed: beside it; new runs take --results"
            )
        config, notes = _on_one_backend(config)
        cases(config)  # raises for a bad value before anything is measured or written
        executor = Executor(options.executor, options.workers, grammars)
        if executor.where != SERIAL and not spreads:
            raise UsageError(
                f"--executor {executor.where}: {experiment} measures times, which cases measured in "
                f"parallel would disturb; allowed: {SERIAL}"
            )
        executor.check(measure, config)
        is_quick = "--quick" in arguments or _inherits_quick(options, config, experiment, quick)
        own = {"grammars": grammars, "executor": options.executor, "quick": is_quick}
        origin, plan = provenance(experiment, config, arguments) | own, announced(config)
        record, origin = _opened(options, experiment, origin, spreads)
    except (ValueError, BackendUnavailableError) as error:
        _fail(error, 2)
    is_quick = was_quick(origin)
    if config.CHANCE == "run":
        record.finish = partial(reliability.warned, quick=is_quick)
    place = f"{experiment} on {origin['backend']['device']}; results in {record.folder}"
    _announce(*plan, *notes, place)
    summary = f"the finished cases are in {record.folder}; --resume {record.folder} continues"
    complete, failure = False, None
    progress.message = summary
    try:
        complete = sweep(config, measure, record, origin, executor, results.so_far)
    except FAILURES as error:
        failure = error
        record.write_error(error.trace if isinstance(error, RunFailed) else traceback.format_exc())
    if complete:
        summary = f"the table is in {record.folder}; --replot {record.folder} draws its figures"
        progress.message = summary
    try:
        if len(table := record.table):
            sys.stderr.writelines(f"warning: {line}\n" for line in reliability.lines(table))
            results.show(table_now(table, experiment), record.folder, record.folder, is_quick)
        elif complete:
            _fail(f"no case gave a row, so there is nothing in {record.folder}; widen the axes", 1)
    except OSError as error:
        failure = failure or _but_no_broken_pipe(error)
    if failure is not None:
        _fail(f"{failure}\n({summary})", 1)
    if not complete:
        _fail(f"interrupted; {summary}", 130)


def _inherits_quick(options: Options, config: Settings, experiment: str, quick: dict[str, Any]) -> bool:
    """Return whether the settings are those of a run of `--quick`, given with `--from`."""
    if options.from_run is None:
        return False
    before = config_of(options.from_run, "--from", type(config), experiment)
    return remains_quick(options.from_run, before, config, quick)


def _opened(options: Options, experiment: str, origin: dict, spreads: bool) -> tuple[Record, dict]:
    """Open the folder of a new or of a resumed run, and return it with the origin of its rows."""
    if options.resume is None:
        return Record.create(options.results, experiment, origin | {"status": "running"}), origin
    record = Record.reopen(options.resume)
    return record, resumed_provenance(options.resume, origin, spreads)


def _on_one_backend(config: Settings) -> tuple[Settings, list[str]]:
    """Return settings with the backend that "auto" finds, and notes about the choice.

    A seed names one gas on each backend, so all cases run on the same, wherever they are measured.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        config = replace(config, backend=backends.get(config.backend).name)
    return config, [f"note: {one.message}" for one in caught]


def parsed(experiment: ModuleType, arguments: Sequence[str]) -> Settings:
    """Parse and check a command line of an experiment, without measuring or writing anything.

    Args:
        experiment: its module, with `Config` and `QUICK`.
        arguments: the command line after the name of the module.

    Returns:
        Its settings.

    Raises:
        UsageError: an unknown flag, or a value that has not the form of its flag.
        ValueError: settings that are not allowed.
    """
    name = experiment.__name__.rpartition(".")[2]
    try:
        config, _ = _parse(experiment.Config, experiment.QUICK, list(arguments), name, experiment.__doc__)
    except SystemExit as error:
        raise UsageError(
            f"{name} {' '.join(arguments)} is not understood; allowed: flags of "
            f"python -m experiments.{name} --help"
        ) from error
    cases(config)
    return config


def _register_curves(arguments: Sequence[str]) -> dict[str, str]:
    """Register the curves of `--curve-file` and of a given run, before the Config is checked.

    Returns:
        Name -> text of each file; name-<dim>d for a second dimension of the same name.

    Raises:
        UsageError: a file that cannot be read, a grammar that exhausts its reader, or the name of another
            ordering.
        ValueError: a grammar that describes no curve.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--curve-file", "--curve_file", nargs="+", action="extend", type=Path, default=[])
    for flag in ("--replot", "--resume", "--from"):
        parser.add_argument(flag, type=Path, dest="runs", action="append", default=[])
    given, _ = parser.parse_known_args(list(arguments))
    found = []
    for path in given.curve_file:
        with _naming(f"curve file {path}"):
            found.append((sfc.read_curve(path), path.read_text(encoding="utf-8-sig"), f"curve file {path}"))
    for run in given.runs:
        for name, text in read_provenance(run).get("grammars", {}).items():
            where = f"grammar {name!r} of {run}"
            with _naming(where):
                found.append((sfc.parse_curve(text, where), text, where))
    grammars: dict[str, str] = {}
    for curve, text, where in found:
        if curve.name in (*BASELINES, *CURVES, *ORDERINGS):
            taken = ", ".join((*BASELINES, *sorted({*CURVES, *ORDERINGS})))
            raise UsageError(
                f"{where}: curve {curve.name!r} has the name of an ordering that exists in some "
                f"dimension; allowed: any name but {taken}; choose another name in the file"
            )
        sfc.register(curve)
        known = curve.name in grammars and grammars[curve.name] != text
        grammars[f"{curve.name}-{curve.dim}d" if known else curve.name] = text
    return grammars


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Name the grammar in the error if it exhausts or breaks its reader."""
    try:
        yield
    except (RecursionError, MemoryError, KeyError, OSError, UnicodeDecodeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{where} cannot be read: {reason:.200}; allowed: a file {_CURVE}") from error


def _parse(
    config_type: type[Settings],
    quick: dict[str, Any],
    arguments: list[str],
    experiment: str,
    description: str | None,
) -> tuple[Settings, Options]:
    """Parse the command line; its defaults are the settings of a given run, if there is one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--from", "--resume"):
        parser.add_argument(flag, type=Path)
    named = {flag: run for flag, run in vars(parser.parse_known_args(arguments)[0]).items() if run}
    alone = [*(f"--{flag}" for flag in named), *(["--quick"] if "--quick" in arguments else [])]
    if len(alone) > 1:
        raise UsageError(f"{' and '.join(alone)}; allowed: one of them, because each sets what is measured")
    arguments, replaced = flags.make_quick(arguments, quick)
    if replaced:
        _announce(
            f"--quick takes its own sizes in place of {' '.join(replaced)}; flags after --quick are kept"
        )
    default = config_type(**(quick if "--quick" in arguments else {}))
    for flag, run in named.items():
        default = config_of(run, f"--{flag}", config_type, experiment)
    command_type = _command_type(cast(Hashable, config_type))
    command: Any = tyro.cli(
        command_type,
        args=arguments,
        default=command_type(default, Options()),
        prog=f"python -m experiments.{experiment}",
        description=flags.description(description or ""),
        registry=flags.registry(),
    )
    config = replace(command.experiment)
    if "resume" in named and (config != default or _has_second_folder(command.common)):
        raise UsageError(
            f"--resume {named['resume']} beside other settings or folders; allowed: alone, because it "
            "continues in its folder with its own settings; --from takes others"
        )
    return config, command.common


@cache
def _command_type(config_type: Any) -> Any:
    """Return the class of a command line, one for each Config: tyro searches the source of a new one."""
    flat = tyro.conf.OmitArgPrefixes
    parts = [("experiment", flat[config_type]), ("common", flat[Options])]  # names in the help's headings
    return make_dataclass("Command", parts)


def _has_second_folder(options: Options) -> bool:
    """Return whether a second folder is given."""
    return options.replot is not None or options.results != Options().results


def _folder_of_replot(run: Path, out: Path | None) -> Path:
    """Return the folder into which a run is drawn again; it is created if it is given.

    Args:
        run: folder of the run.
        out: folder of `--out`, if there is one.

    Raises:
        UsageError: a kept run without `--out`, or a folder that cannot be created.
    """
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"--out {out}: {error.strerror or error}; allowed: a folder that can be created or written"
            ) from error
        return out
    parts = run.resolve().parts
    if _REFERENCE in itertools.pairwise(parts):
        raise UsageError(
            f"--replot {run} would draw into {'/'.join(_REFERENCE)}, whose files are kept; allowed: with "
            f"--out FOLDER; --out {run} draws there"
        )
    return run


def _replot(results: _Results, run: Path, folder: Path, experiment: str, timed: bool) -> None:
    """Draw the figures of an earlier run again, and print its answer.

    Args:
        results: of the experiment.
        run: folder of the run.
        folder: of the figures.
        experiment: its name.
        timed: whether its rows are times.

    Raises:
        UsageError: its table cannot be read or drawn, or the folder cannot be written; the error names the
            file.
    """
    table, quick = table_now(read_table(run), experiment), was_quick(read_provenance(run))
    if timed:  # an incomplete run has no warnings, and older code warned of whole cases
        table = reliability.warned(table, quick)
    try:
        results.show(table, run, folder, quick)
    except OSError as error:
        raise UsageError(
            f"{_but_no_broken_pipe(error)}; allowed: a folder with permission to write and with room; make "
            "room, or give another with --out"
        ) from error
    except UNANSWERED as error:
        at = traceback.extract_tb(error.__traceback__)[2:3]
        reason = f"{type(error).__name__}: {error}" + "".join(
            f" ({Path(f.filename).name}:{f.lineno})" for f in at
        )
        raise UsageError(
            f"the table of {run} cannot be drawn: {reason}; it is damaged, or of older code: see the commit "
            "in its provenance.json"
        ) from error


def _announce(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def _fail(reason: object, status: int) -> None:
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(status)


__all__ = ["Answering", "Draw", "Options", "UsageError", "main", "parsed"]
