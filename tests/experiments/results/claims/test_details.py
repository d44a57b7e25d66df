"""Tables of results/details that no verdict rests on: their numbers are those of the kept runs."""

import pandas as pd
import pytest

from experiments.forecasts.compared import ROOT as FORESEEN
from experiments.forecasts.compared import (
    beside,
    errors,
    gains_over,
    noise_floor,
    of_runs,
    ranks,
    right_signs,
)
from experiments.results.kept.queries import REFERENCE, runs_of
from sfc.cache import Machine
from tests.experiments.results.claims.test_sentences import text_of

SURFACE = "results/details/foreseen.md"
GASES = {  # first cell -> measured run, predicted run, n, filling fraction
    "cube, 20 %, 2^22": ("h100", "cube_predicted", 2**22, 0.2),
    "cube, 20 %, 2,949,120": ("h100", "cube_predicted", 2_949_120, 0.2),
    "cube, 20 %, 2^21": ("h100", "cube_predicted", 2**21, 0.2),
    "cube, 5 %, 2^22": ("h100_fillings", "fillings_predicted", 2**22, 0.05),
    "box, 20 %, 2^19": ("h100_box", "box_predicted", 2**19, 0.2),
    "box, 20 %, 2^18": ("h100_box", "box_predicted", 2**18, 0.2),
}
CPUS = {
    "epyc_genoa": "cpu_predicted",
    "xeon_emerald_rapids": "cpu_predicted_xeon",
    "epyc_genoa_2": "cpu_predicted_epyc_2",
}
WRITES = ("hilbert", "morton", "peano", "str", "window 256", "tiled_strided", "strided", "lattice")


def cells(page: str, first: str) -> list[str]:
    """The other cells of the row of a table that begins with a cell."""
    (row,) = (line for line in (REFERENCE.parents[1] / page).read_text("utf-8").splitlines()
              if line.strip().startswith(f"| {first} |"))  # fmt: skip
    return [one.strip() for one in row.strip().strip("|").split("|")[1:]]


def rows_of(run: str, where: str) -> pd.DataFrame:
    return runs_of((run,)).rows.query(where, engine="python")


@pytest.mark.parametrize("first", GASES)
def test_a_row_of_the_surface_is_that_of_its_runs(first):
    timed, predicted, n, filling = GASES[first]
    where = f"part == 'force' and n == {n} and filling_fraction == {filling}"
    size, *ages = cells(SURFACE, first)
    measured = rows_of(f"surface/{timed}", where).groupby("path_d")["gain"].median()
    foreseen = rows_of(f"surface/{predicted}", f"{where} and machine == 'h100'").set_index("path_d")["gain"]
    assert [*measured.index] == [0, 0.5, 2, 8]
    assert ages == [f"{measured[path]:.1f}, {foreseen[path]:.1f}" for path in measured.index]
    w = rows_of(f"surface/{timed}", where)["w"].iloc[0]
    assert float(size) == pytest.approx(w, rel=0.03)


def of_cpu(chip: str) -> tuple[pd.DataFrame, float]:
    timed = of_runs([FORESEEN / f"{chip}_timed"])
    predicted = runs_of((f"foreseen/{CPUS[chip]}",)).rows
    return beside(predicted, timed, pd.DataFrame(), chip), noise_floor(timed)


def test_the_errors_on_another_cpu_are_those_of_its_run():
    table, floor = of_cpu("xeon_emerald_rapids")
    assert f"| {len(table)} cases (`foreseen/xeon_emerald_rapids_timed`) |" in text_of(SURFACE)
    assert f"differ by {100 * (floor - 1):.0f} % in 1 of 20 cases" in text_of(SURFACE)
    for name, baseline in (("shuffled memory", "shuffled"), ("lattice memory", "lattice")):
        gains = gains_over(table, baseline)
        found = errors(gains["foreseen_gain"], gains["measured_gain"])
        median, high, worst, *_ = cells(SURFACE, f"gain over {name} ({len(gains)})")
        assert float(median.strip("* %")) == pytest.approx(100 * found["median"], abs=0.5)
        assert [high, worst] == [f"{100 * found[one]:.0f} %" for one in ("95 %", "worst")]
        beyond, right = right_signs(gains, floor)
        label = (
            "its sign, where it is beyond the noise"
            if baseline == "shuffled"
            else "its sign, beyond the noise"
        )
        assert f"{right} right" in cells(SURFACE, f"{label} ({beyond})")[0]
    assert f"| ranks of all orders of a gas | {ranks(table).median():.2f} (chance" in text_of(SURFACE)


def test_the_errors_on_both_threads_are_those_of_their_run():
    table, floor = of_cpu("epyc_genoa_2")
    gains = gains_over(table, "shuffled")
    found = errors(gains["foreseen_gain"], gains["measured_gain"])
    signs = [right_signs(gains_over(table, one), floor) for one in ("shuffled", "lattice")]
    assert all(beyond == right for beyond, right in signs)
    assert (
        f"{len(table)} cases of eight gases: gains over shuffled memory wrong by "
        f"**{100 * found['median']:.1f} %** in the median, by {100 * found['worst']:.0f} % at worst; all "
        f"{signs[0][1]} signs beyond the noise ({100 * (floor - 1):.0f} %) right, and all {signs[1][1]} over "
        f"lattice memory; ranks {ranks(table).median():.2f}"
    ) in text_of(SURFACE)


def test_gains_of_all_runs_on_cpus_are_those_of_their_runs():
    tables = [of_cpu(chip) for chip in CPUS]
    gains = [gains_over(table, "shuffled") for table, _ in tables]
    both = pd.concat(gains)
    found = errors(both["foreseen_gain"], both["measured_gain"])
    signs = [right_signs(own, floor) for own, (_, floor) in zip(gains, tables, strict=True)]
    beyond, right = (sum(one) for one in zip(*signs, strict=True))
    assert (
        f"{len(both)} gains over shuffled memory, wrong by {100 * found['median']:.1f} % in the median; "
        f"{right} of {beyond} signs right"
    ) in text_of(SURFACE)


@pytest.mark.parametrize("order", WRITES)
def test_a_row_of_writes_is_that_of_its_runs(order):
    first = f"{order}, other points" if order == "lattice" else order
    shown, pairs = (
        cells(SURFACE, first),
        [("h100", "gather"), ("h100", "scatter"), ("cpu", "gather"), ("cpu", "scatter")],
    )
    conflicts = shown.pop(2)
    for cell, (run, kind) in zip(shown, pairs, strict=True):
        table = rows_of(f"writes/{run}", f"kind == '{kind}'")
        own, base = (table[table["ordering"] == name] for name in (order, "shuffled"))
        times = [one.groupby("run")["time_ms"].median().mean() for one in (base, own)]
        foreseen = [one["foreseen_ms"].mean() for one in (base, own)]
        gain, foretold = cell.replace("*", "").strip(")").split(" (")
        assert float(gain) == pytest.approx(times[0] / times[1], abs=0.0151), (run, kind)
        assert float(foretold) == pytest.approx(foreseen[0] / foreseen[1], abs=0.0151), (run, kind)
    share = rows_of("writes/h100", f"kind == 'scatter' and ordering == '{order}'")["conflicts"].mean()
    assert conflicts == f"{100 * share:.0f} %"


ENERGY = {
    "linked, shuffled": ("linked", "shuffled"),
    "linked, lattice (3,900 to 4,100 steps old)": ("linked", "lattice"),
    "linked, Hilbert": ("linked", "hilbert"),
    "linked, rows": ("linked", "row"),
    "verlet, Hilbert": ("verlet", "hilbert"),
}


@pytest.mark.parametrize("first", ENERGY)
def test_a_row_of_energies_is_that_of_its_run(first):
    search, ordering = ENERGY[first]
    table = rows_of("timing/h100_energy", "phase == 'step with reorder' and energy_J == energy_J")
    means = table[table["search"] == search].groupby(["ordering", "run"]).mean(numeric_only=True)
    own = means.loc[ordering]
    joules, watts, energy, time = cells("results/details/gas.md", first)
    assert joules == f"{own['energy_J'].mean():.3f}"
    assert watts == f"{own['mean_power_W'].mean():.0f}"
    if search == "linked" and ordering != "shuffled":
        base = means.loc["shuffled"]
        gains = [(base[name] / own[name]).mean() for name in ("energy_J", "energy_step_ms")]
        assert [float(energy), float(time)] == pytest.approx(gains, abs=0.011)
    else:
        assert energy == time == ""


def test_the_machine_of_the_surface_has_its_second_cache():
    w = rows_of("surface/h100", "n == 2**22")["w"].iloc[0]
    assert w == pytest.approx(48 * 2**22 / Machine.read("h100").l2_bytes)
