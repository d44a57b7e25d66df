"""Measure the cases of a sweep, and keep every finished case and round whatever happens."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

import pandas as pd

from experiments.core.executor import Executor, Measure, has_process_per_run
from experiments.core.record import Record
from experiments.core.settings import Case, Settings, cases
from experiments.core.terminal import Progress
from experiments.processes.lifetime import Terminated
from md.io.interrupt import defer_sigint

SoFar = Callable[[pd.DataFrame, str], list[str]]
_ENDED: dict[type, str] = {KeyboardInterrupt: "interrupted", Terminated: "terminated"}  # other errors: failed


def sweep(
    config: Settings,
    measure: Measure,
    record: Record,
    provenance: dict,
    executor: Executor | None = None,
    so_far: SoFar | None = None,
) -> bool:
    """Measure every case that is not yet recorded, and record its rows.

    Every row starts with the columns of its case: number, repeat or run, and value on each axis. The
    provenance is kept up to date: the number of finished cases, and how the run ended.

    Args:
        config: the sweep.
        measure: rows of one case.
        record: folder of the rows.
        provenance: of this run; completed here.
        executor: place where cases are measured; None for this process.
        so_far: lines to print after the first case and after each run, if further runs follow, from the
            table and words for what is finished; nothing is measured meanwhile. None for no lines.

    Returns:
        True when every case was measured, False when Ctrl-C ended the run early.

    Raises:
        UsageError: the record is of other cases.
        Exception: the error of `measure`, as `RunFailed` where it was raised in another process; the finished
            cases are on disk.
        Terminated: SIGTERM ended the run early.
        OSError: rows, or the end of the run, could not be written; the cases before are kept.
    """
    every = cases(config)
    record.check({case.number: case.place for case in every})
    todo = [case for case in every if case.number not in record.finished]
    outcome = {**provenance, "cases": len(every), "finished": len(record.finished), "status": "running"}
    record.describe(outcome)
    try:
        with Progress(every, len(record.finished)) as progress:
            begins = [record.first_missing_round(case.number) for case in todo]
            measured = (executor or Executor()).measure(measure, todo, begins, has_process_per_run(config))
            with contextlib.closing(measured) as results:
                for case, (rows, number) in results:
                    record.add(case.number, [case.place | row for row in rows], number)
                    progress.show(case.place, number)
                    if number is not None:
                        continue
                    outcome["finished"] += 1
                    if so_far is not None and (what := _so_far(every, record.finished)):
                        progress.write(so_far(record.table, what))
        record.write_tables()
        with defer_sigint():
            record.describe(outcome | {"status": "complete", "ended": _now()})
            record.close()
            outcome["status"] = "complete"
    except BaseException as error:
        failed = f"failed: {getattr(error, 'kind', type(error).__name__)}: {error}"
        if outcome["status"] == "running":
            outcome["status"] = _ENDED.get(type(error), failed)
        if not isinstance(error, KeyboardInterrupt):
            raise
    finally:
        if outcome["status"] != "complete":
            # On a full disk, for example, the database holds the finished cases.
            with contextlib.suppress(OSError):
                record.write_tables()
            with contextlib.suppress(OSError):
                record.describe(outcome | {"ended": _now()})
        record.release()
    return outcome["status"] == "complete"


def _so_far(every: list[Case], finished: set[int]) -> str:
    """Say what is finished if an answer is due: after the first case, and after each run but the last.

    Args:
        every: cases of the sweep, run by run.
        finished: numbers of the finished ones, the last of which was finished just now.

    Returns:
        Such as "one run so far"; empty if no answer is due, and for what is measured in one run.
    """
    runs = [case.place.get("run", 0) for case in every]
    size = runs.count(0)
    whole, cases_more = divmod(len(finished), size)
    if len(set(runs)) < 2 or finished != set(range(len(finished))) or len(finished) == len(every):
        return ""
    if not cases_more:
        return f"{('one run', 'two runs', 'three runs')[whole - 1] if whole < 4 else f'{whole} runs'} so far"
    return f"1 of {size} cases of the first run so far" if len(finished) == 1 else ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
