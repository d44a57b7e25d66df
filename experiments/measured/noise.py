"""Gains over a case that was measured once, judged by another of the same rounds that was measured twice."""

import pandas as pd

from experiments.core import statistics
from experiments.core.baselines import again


def gains(
    table: pd.DataFrame, by: list[str], label: str, baseline: str, twice: str, value: str = "time_ms"
) -> pd.DataFrame:
    """Gains of all cases over one, as `statistics.gains` has them, with the noise floor of a given case.

    Args:
        table: of `statistics.ratios`.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        baseline: the case in the numerator.
        twice: the case whose second measurement gives the noise floor.
        value: the column of times.

    Returns:
        As `statistics.gains`.
    """
    found = statistics.gains(table, by, label, baseline, value)
    if found.empty or baseline == twice:
        return found
    every = statistics.ratios(table, by, label, twice, value)
    floors = statistics.noise_floors(every[every[label] == again(twice)], by)
    found = found.drop(columns="noise_floor").merge(floors, on=by, how="left")
    if "difference" in found:
        numbers = found[["gain", "gain_low", "gain_high", "noise_floor"]].to_numpy(float)
        found["difference"] = [statistics.verdict(*row) for row in numbers]
    return found
