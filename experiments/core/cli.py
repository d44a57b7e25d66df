"""Run an experiment from its command line: measure, record, draw and answer, and end with an exit status."""

import itertools
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.core import command_line
from experiments.core.executor import SERIAL, Executor, Measure
from experiments.core.old_names import table_now
from experiments.core.plan import Plan, plan_lines
from experiments.core.provenance import provenance
from experiments.core.record import Record, read_provenance
from experiments.core.rerun import check_experiment, read_table_now, resumed_provenance, was_quick
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
from experiments.results.charts import View
from md import BackendUnavailableError
from md import backend as backends
from sfc import checks

Answering = Callable[[pd.DataFrame], Answer]
FAILURES = (*EXPECTED, RunFailed, WorkerDied)
UNANSWERED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)  # of a table not whole
_REFERENCE = ("results", "reference")  # folders that hold the kept runs


def main(
    config_type: type[Settings],
    measure: Measure,
    draw: Draw | Sequence[View],
    quick: dict[str, Any],
    arguments: Sequence[str] | None = None,
    spreads: bool | Callable[[Any], bool] | None = None,
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
            A function of the Config says so of a run. None: they are times if the Config counts runs, as one
            that extends `TimedSettings` does.
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
    if spreads is not None and not callable(spreads):
        checks.flag("spreads", spreads)
    if answer is not None:
        checks.function("answer", answer, "a function of a table")
    if minutes is not None:
        minutes = checks.number("minutes", minutes, above=0)
    if plan is not None:
        checks.function("plan", plan, "a function of a Config")
    checks.instance("quick_limit", quick_limit, str, "a str")
    announced = partial(plan_lines, minutes=minutes, plan=plan)
    run = _Run(config_type, measure, drawer(draw), quick, spreads, answer, quick_limit, announced)
    try:
        with until_output_closes(), terminable():
            run.of(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        _fail(f"interrupted; {run.kept}", 130)
    except Terminated as ended:
        _fail(f"terminated; {run.kept}", int(ended.code or 1))


@dataclass
class _Run:
    """A run of an experiment, and what is kept of it when it is interrupted."""

    config_type: type[Settings]
    measure: Measure
    draw: Draw
    quick: dict[str, Any]
    spreads: bool | Callable[[Any], bool] | None
    answer: Answering | None
    quick_limit: str
    announced: Callable[[Settings], Sequence[str]]
    kept: str = "nothing was measured"
    pdf: bool = False

    def of(self, arguments: list[str]) -> None:
        """Run a command line; Ctrl-C within the sweep ends only the sweep."""
        module = sys.modules[self.config_type.__module__]
        experiment = Path(str(module.__file__)).stem
        try:
            line = command_line.read(self.config_type, self.quick, arguments, experiment, module.__doc__)
            _announce(*line.notes)
            self.pdf = line.options.pdf
            if line.options.replot is not None:
                self._replot(line.options.replot, line.options.out, experiment)
                sys.exit(0)
            config, executor, record, origin = self._begin(line, arguments, experiment)
        except (ValueError, BackendUnavailableError) as error:
            _fail(error, 2)
        if config.CHANCE == "run":
            record.finish = partial(reliability.warned, quick=was_quick(origin))
        _announce(f"{experiment} on {origin['backend']['device']}; results in {record.folder}")
        self.kept = f"the finished cases are in {record.folder}; --resume {record.folder} continues"
        complete, failure = False, None
        try:
            complete = sweep(config, self.measure, record, origin, executor, self.so_far)
        except FAILURES as error:
            failure = error
            record.write_error(error.trace if isinstance(error, RunFailed) else traceback.format_exc())
        if complete:
            self.kept = f"the table is in {record.folder}; --replot {record.folder} draws its figures"
        try:
            if len(table := record.table):
                _announce(*(f"warning: {text}" for text in reliability.lines(table)))
                self.show(table_now(table, experiment), record.folder, record.folder)
            elif complete:
                _fail(f"no case gave a row, so there is nothing in {record.folder}; widen the axes", 1)
        except BrokenPipeError:  # the reader of the answer has ended, which is no failure
            raise
        except OSError as error:
            failure = failure or error
        if failure is not None:
            _fail(f"{failure}\n({self.kept})", 1)
        if not complete:
            _fail(f"interrupted; {self.kept}", 130)

    def show(self, table: pd.DataFrame, run: Path, folder: Path) -> None:
        """Draw figures into a folder, and print the answer.

        Args:
            table: of the run, with present names.
            run: folder of the run; the figures name its provenance.
            folder: of the figures.
        """
        origin = read_provenance(run)
        style.use(reliability.footer(table), style.origin_of(run, origin, table), self.pdf)
        self.draw(table, folder)
        if self.answer is None:
            print(f"figures: {folder}")
        else:
            note = self.quick_limit if was_quick(origin) else ""
            print(*answer_lines(self.answer(table), folder, note), sep="\n")

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

    def _begin(
        self, line: command_line.CommandLine, arguments: list[str], experiment: str
    ) -> tuple[Settings, Executor, Record, dict]:
        """Check what can be checked before measuring, and open the folder of a new or of a resumed run.

        Returns:
            Settings, with the backend that "auto" finds: a seed names one gas on each backend, so all cases
            run on the same, wherever they are measured; executor, record, and origin of its rows.
        """
        options = line.options
        if options.out is not None:
            raise UsageError(
                f"--out {options.out} without --replot; allowed: beside it; new runs take --results"
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            config = replace(line.config, backend=backends.get(line.config.backend).name)
        cases(config)  # raises for a bad value before anything is measured or written
        executor = Executor(options.executor, options.workers, line.grammars)
        chosen = self.spreads(config) if callable(self.spreads) else self.spreads
        spreads = config.CHANCE != "run" if chosen is None else chosen
        if executor.where != SERIAL and not spreads:
            raise UsageError(
                f"--executor {executor.where}: {experiment} measures times, which cases measured in "
                f"parallel would disturb; allowed: {SERIAL}"
            )
        executor.check(self.measure, config)
        own = {"grammars": line.grammars, "executor": options.executor, "quick": line.is_quick}
        origin = provenance(experiment, config, arguments) | own
        announced = self.announced(config)
        if options.resume is None:
            record = Record.create(options.results, experiment, origin | {"status": "running"})
        else:
            record = Record.reopen(options.resume)
            origin = resumed_provenance(options.resume, origin, spreads)
        said = (*(one.message for one in caught), *config.notes)
        _announce(*announced, *(f"note: {text}" for text in said))
        return config, executor, record, origin

    def _replot(self, run: Path, out: Path | None, experiment: str) -> None:
        """Draw the figures of an earlier run again, and print its answer.

        Args:
            run: folder of the run.
            out: folder of the figures; None for that of the run.
            experiment: its name.

        Raises:
            UsageError: its table cannot be read or drawn, or the folder cannot be written; the error names
                the file.
        """
        check_experiment(run, "--replot", experiment)
        self.kept = f"--replot {run} draws the figures again"
        folder = _folder_of_replot(run, out)
        table = read_table_now(run)
        try:
            self.show(table, run, folder)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(
                f"{error}; allowed: a folder with permission to write and with room; make room, or give "
                "another with --out"
            ) from error
        except UNANSWERED as error:
            at = traceback.extract_tb(error.__traceback__)[2:3]
            where = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in at)
            raise UsageError(
                f"the table of {run} cannot be drawn: {type(error).__name__}: {error}{where}; it is damaged, "
                "or of older code: see the commit in its provenance.json"
            ) from error


def _folder_of_replot(run: Path, out: Path | None) -> Path:
    """Return the folder into which a run is drawn again; it is created if it is given.

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
    elif _REFERENCE in itertools.pairwise(run.resolve().parts):
        raise UsageError(
            f"--replot {run} would draw into {'/'.join(_REFERENCE)}, whose files are kept; allowed: with "
            f"--out FOLDER; --out {run} draws there"
        )
    return out or run


def _announce(*lines: str) -> None:
    sys.stderr.writelines(f"{line}\n" for line in lines)
    sys.stderr.flush()


def _fail(reason: object, status: int) -> None:
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(status)


__all__ = ["Answering", "Draw", "main"]
