"""Measure the cases of a sweep one by one, keeping what is finished whatever happens."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tqdm import tqdm

from experiments.core.record import Record
from experiments.core.settings import Settings, axes, cases

Measure = Callable[[Settings], Iterable[dict]]


def sweep(config: Settings, measure: Measure, record: Record, provenance: dict) -> bool:
    """Measure every case and record its rows.

    Every row begins with the case's value on each axis. The provenance is kept up to date with the number of
    finished cases and with how the run ended.

    Args:
        config: the sweep.
        measure: rows of one case.
        record: where they go.
        provenance: of this run; completed here.

    Returns:
        True when every case was measured, False when Ctrl-C ended the run early.

    Raises:
        Exception: what `measure` raised; the finished cases are on disk.
    """
    todo, swept = cases(config), axes(config)
    outcome = {**provenance, "cases": len(todo), "finished": 0, "status": "running"}
    record.describe(outcome)
    try:
        with tqdm(todo, unit="case", dynamic_ncols=True) as bar:
            for case in bar:
                place = {name: getattr(case, name) for name in swept}
                bar.set_postfix_str(", ".join(f"{name}={value}" for name, value in place.items()))
                record.add([place | row for row in measure(case)])
                outcome["finished"] += 1
                record.describe(outcome)
        outcome["status"] = "complete"
    except KeyboardInterrupt:
        outcome["status"] = "interrupted"
    except BaseException as error:
        outcome["status"] = f"failed: {type(error).__name__}: {error}"
        raise
    finally:
        outcome["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        record.describe(outcome)
    return outcome["status"] == "complete"
