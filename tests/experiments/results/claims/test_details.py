"""Tables of results/details that no verdict rests on: their numbers are those of the kept runs."""

import numpy as np
import pandas as pd
import pytest

from experiments.forecasts import surfaces
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
from experiments.results.claims.queries import over_best
from experiments.results.kept.queries import REFERENCE, evaluate, runs_of
from sfc.cache import Machine
from tests.experiments.results.claims.test_sentences import text_of

SURFACE = "results/details/foreseen.md"
GASES = {  # first cell -> measured run, predicted run, n, filling fraction
    "H200, cube, 20 %, 2^24": ("h200_large", "cube_large_predicted", 2**24, 0.2),
    **{f"H200, cube, 20 %, 2^{k}": ("h200", "cube_predicted", 2**k, 0.2) for k in (22, 21, 20, 18, 16)},
    "H200, cube, 5 %, 2^22": ("h200_fillings", "fillings_predicted", 2**22, 0.05),
    **{f"H200, cube, 40 %, 2^{k}": ("h200_fillings", "fillings_predicted", 2**k, 0.4) for k in (22, 20)},
    **{f"H200, box, 20 %, 2^{k}": ("h200_box", "box_predicted", 2**k, 0.2) for k in (20, 18)},
    **{f"H200, cube, rows, 20 %, 2^{k}": ("h200_row", "row_predicted", 2**k, 0.2) for k in (22, 20)},
    "H200, cube, 20 %, 23,592,960": ("h200_widest", "cube_widest_predicted", 23_592_960, 0.2),
    "H100, cube, 20 %, 2,949,120": ("h100", "cube_predicted", 2_949_120, 0.2),
    **{f"H100, cube, 20 %, 2^{k}": ("h100", "cube_predicted", 2**k, 0.2) for k in (22, 21, 20, 18, 16)},
    "H100, cube, 5 %, 2^22": ("h100_fillings", "fillings_predicted", 2**22, 0.05),
    "H100, box, 20 %, 2^19": ("h100_box", "box_predicted", 2**19, 0.2),
    "H100, box, 20 %, 2^18": ("h100_box", "box_predicted", 2**18, 0.2),
}
INTERVALS = {  # filling (%), speed -> run
    (5, 0.002): "h200_slow", (20, 0.002): "h200_three_runs", (40, 0.002): "h200_slow",
    (5, 0.008): "h200_fast", (20, 0.008): "h200_three_runs", (40, 0.008): "h200_fast",
}  # fmt: skip
LISTS = {"2^17": 2**17, "2^19": 2**19, "2^21": 2**21, "2^22": 2**22}
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
    chip = f"machine == '{first[:4].lower()}'"
    foreseen = rows_of(f"surface/{predicted}", f"{where} and {chip}").set_index("path_d")["gain"]
    assert {0, 2} <= set(measured.index) <= {0, 0.5, 2, 8}
    assert ages == [f"{measured[path]:.1f}, {foreseen[path]:.1f}" if path in measured else ""
                    for path in (0, 0.5, 2, 8)]  # fmt: skip
    w = rows_of(f"surface/{timed}", where)["w"].iloc[0]
    assert float(size) == pytest.approx(w, rel=0.03)


def errors_of(table: pd.DataFrame) -> str:
    found = errors(table["foreseen"], table["measured"])
    return f"{100 * found['median']:.0f} % in the median, by {100 * found['worst']:.0f} % at worst"


def surface(*runs: str) -> pd.DataFrame:
    """Measured gains of a run for each gas beside those that were foreseen."""
    names = ("cube", "cube_large", "cube_between", "cube_widest", "fillings", "row", "box")
    predicted = pd.concat([rows_of(f"surface/{name}_predicted", "n > 0") for name in names])
    return surfaces.beside(predicted, pd.concat([rows_of(f"surface/{run}", "n > 0") for run in runs]))


def test_the_errors_of_the_surface_are_those_of_its_runs():
    table, says = (
        surface("h200", "h200_large", "h200_widest", "h200_fillings", "h200_box", "h200_row"),
        text_of(SURFACE),
    )
    assert f"**H200: {len(table)} cases, wrong by {errors_of(table)}.**" in says
    aged = table[table["path_d"] > 0]
    assert f"{len(aged)} cases are wrong by {errors_of(aged)}." in says
    fresh = table[table["path_d"] == 0]
    off = 100 * (fresh["foreseen"] / fresh["measured"] - 1)
    most = (fresh["filling_fraction"] == 0.2) & fresh["w"].between(1.1, 3.3)
    most &= fresh["ordering"] == "hilbert"
    assert f"{off.median():.0f} % too large in the median, {off[most].median():.0f} % at 20 %" in says
    earlier = surface("h100", "h100_fillings", "h100_box")
    found = errors(earlier["foreseen"], earlier["measured"])
    worst = f"at worst {100 * found['worst']:.0f} %"
    assert f"**H100: {len(earlier)} cases, {100 * found['median']:.0f} %, {worst}**" in says
    assert (earlier["measured"] / earlier["foreseen"]).idxmin() == earlier.query(
        "1.3 < w < 1.4 and path_d == 0"
    ).index
    assert all(((one["foreseen"] > 1) == (one["measured"] > 1)).all() for one in (table, earlier))


@pytest.mark.parametrize(("chip", "unit"), [("h200", "w"), ("h100", "w x 1.2")])
def test_what_a_smaller_cache_gains_is_that_of_its_runs(chip, unit):
    timed = rows_of(f"surface/{chip}_occupied", "part == 'force'")
    gains = timed.groupby(["w", "occupied_MB"])["gain"].median().unstack()
    own = rows_of("surface/occupied_predicted", f"machine == '{chip}'")
    foreseen = own.groupby(["w", "occupied_MB"])["gain"].first().unstack()
    fresh = rows_of(f"surface/{chip}", "part == 'force' and path_d == 0").groupby("w")["gain"].median()
    left = 1 - gains.columns.to_numpy() * 1e6 / Machine.read(chip).l2_bytes
    sizes = np.log(gains.index.to_numpy()[:, None] / left)
    smaller = pd.DataFrame(np.interp(sizes, np.log(fresh.index), fresh), gains.index, gains.columns)
    for name, table in (("", gains), (", foreseen", foreseen), (", as in a smaller cache", smaller)):
        changes = 100 * (table[16.0] / table[4.0] - 1)
        shown = [f"{change:+.0f} %".replace("+0", "0").replace("-0", "0") for change in changes]
        assert cells(SURFACE, f"{chip.upper()}, by {unit}{name}") == shown
    own, other = ((one[16.0] / one[4.0] - 1)[gains.index >= 0.4] for one in (gains, smaller))
    assert len(own) == 4  # of two chips
    assert (own > 0).all()
    assert (
        f"by {own.sum() / other.sum():.2f} {'of that ' * (chip == 'h200')}on the {chip.upper()}"
        in text_of(SURFACE)
    )


def test_wear_is_that_of_the_runs():
    table, says = surface("h200", "h200_fillings", "h100", "h100_fillings"), text_of(SURFACE)
    worn = surfaces.wear(table, "measured")
    large = worn[worn["w"] > 1.59]
    dense = large["filling_fraction"] == 0.4
    lengths = [large.loc[of, "length_d"].round() for of in (~dense, dense)]
    assert f"L is {lengths[0].min():.0f} to {lengths[0].max():.0f} d at 5 and 20 % (nine gases" in says
    assert len(lengths[0]) == 9
    assert f"and {lengths[1].min():.0f} and {lengths[1].max():.0f} d at 40 %" in says
    small = worn.query("w < 1.59 and filling_fraction == 0.2")["length_d"]
    assert f"At smaller w it is {small.min():.0f} to {small.max():.0f} d at 20 %" in says


@pytest.mark.parametrize("first", LISTS)
def test_a_row_of_lists_is_that_of_its_run(first):
    timed = of_runs([FORESEEN / "lists_h200_timed"])
    table = beside(rows_of("foreseen/lists_predicted", "gas >= 0"), timed, pd.DataFrame(), "h200")
    gains = gains_over(table, "shuffled")
    found = errors(gains["foreseen_gain"], gains["measured_gain"])
    assert (
        f"All {len(gains)} gains over unsorted memory, with those of other cell orders: wrong by "
        f"{100 * found['median']:.1f} % in the median, by {100 * found['worst']:.0f} % at worst"
    ) in text_of(SURFACE)
    own = gains[(gains["ordering"] == "hilbert") & (gains["particles"] == LISTS[first])]
    own = own.set_index("filling_fraction")[["measured_gain", "foreseen_gain"]]
    assert cells(SURFACE, f"{first} over unsorted memory: measured, foreseen") == [
        ", ".join(f"{value:.2f}" for value in own.loc[phi]) if phi in own.index else ""
        for phi in (0.05, 0.2, 0.4)
    ]


def test_what_order_is_worth_to_lists_is_said_on_the_first_page():
    timed = rows_of("foreseen/lists_h200_timed", "particles == 2**21 and filling_fraction == 0.2")
    times = timed.groupby("ordering")["time_us"].median()
    by_curves, by_sorting = (times[base] / times["hilbert"] for base in ("random", "shuffled"))
    assert (
        f"Lists gain {by_curves:.1f} by cells along curves (over random order), {by_sorting:.1f} over "
        "unsorted memory (force, one run)"
    ) in text_of("README.md")


@pytest.mark.parametrize("case", INTERVALS)
def test_a_row_of_intervals_is_that_of_its_run(case):
    percent, speed = case
    here = f"what == 'interval' and filling_fraction == {percent / 100} and speed == {speed}"
    shown = cells("results/details/gas.md", f"{percent} % | {speed}")[3:]
    for steps, cell in zip((20, 40, 80, 160, 320, 500, 1280, 2560), shown, strict=False):
        if cell:
            time = evaluate(over_best(f"interval/{INTERVALS[case]}", here, steps)).value
            assert float(cell) == pytest.approx(time, abs=0.0006), steps
    assert all(shown[:7])


def test_the_interval_on_an_h100_is_that_of_its_run():
    (row,) = pd.read_csv(REFERENCE / "interval" / "h100_fast" / "summary.csv").to_dict("records")
    assert row["runs"] == 3
    best, foreseen = (
        f"{row[name]} ({row[f'{name}_from']} to {row[f'{name}_to']})"
        for name in ("interval_best", "interval_foreseen")
    )
    low, high = row["auto_over_best_low"], row["auto_over_best_high"]
    assert (
        f"best at {best}, predicted {foreseen}, and `Decayed` takes {row['auto_over_best']:.3f} ({low:.3f} "
        f"to {high:.3f}) of the best time"
    ) in text_of("results/details/gas.md")


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
        [(chip, kind) for chip in ("h100", "h200", "cpu") for kind in ("gather", "scatter")],
    )
    conflicts = shown.pop(4)
    for cell, (run, kind) in zip(shown, pairs, strict=True):
        table = rows_of(f"writes/{run}", f"kind == '{kind}' and n == 2**20")
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
