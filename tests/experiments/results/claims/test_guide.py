"""Numbers of results/GUIDE.md: its table and its main sentences are those of the kept tables."""

import re
from functools import cache

import pandas as pd
import pytest

from experiments.forecasts.surfaces import beside, fresh_law, reads, wear
from experiments.results.estimate import Estimate
from experiments.results.kept.queries import Query, evaluate, runs_of
from experiments.results.reliability import SMALL
from sfc.cache import Machine
from tests.experiments.results.claims.test_sentences import numbers, text_of

ROWS = {
    "H100, 2^21": ("timing/h100", 2**21, "hilbert"),
    "H100, 2^21, rows": ("timing/h100", 2**21, "row"),
    "H200, 2^21": ("timing/h200_three_runs", 2**21, "hilbert"),
    "H200, 2^21, rows": ("timing/h200_three_runs", 2**21, "row"),
    "H200, 2^17": ("timing/h200_131072_524288", 2**17, "hilbert"),
    "H200, 2^19": ("timing/h200_131072_524288", 2**19, "hilbert"),
    "CPU, 2^20, fresh": ("timing/cpu_three_runs", 2**20, "hilbert"),
    "CPU, 2^20, fresh, rows": ("timing/cpu_three_runs", 2**20, "row"),
}  # row of the table -> run, particles and order of its gains
STEP = "phase == 'step with reorder' and filling_fraction == {} and search == '{}' and ordering == '{}'"
CUBES = ("interval/h200", "interval/h200_8388608")
GAS = ["n", "filling_fraction", "speed"]
FROM_2_21 = "what == 'interval' and n >= 2**21"
H100, H200 = "timing/h100", "timing/h200_three_runs"


def estimate(run, where, statistic="median", value="time_ms", **others) -> Estimate:
    runs = (run,) if isinstance(run, str) else run
    return evaluate(Query(runs, where, value, statistic, **others))


def found(*query, **others) -> float:
    return estimate(*query, **others).value


def shown(answer: Estimate) -> str:
    """A number of the table, with a star if it does not carry over."""
    return f"{answer.value:.2f}{'*' * (SMALL in answer.warnings)}"


def gain_of(run, n, order, over, filling=0.2) -> Estimate:
    """The gain of a whole step of linked cells in an order over another."""
    where, baseline = (f"n == {n} and {STEP.format(filling, 'linked', one)}" for one in (order, over))
    return estimate(run, where, "gain", over=baseline)


def gain(*case) -> float:
    return gain_of(*case).value


def time(run, search, order) -> float:
    """The time of a whole step at 20 % in us."""
    return 1000 * found(run, STEP.format(0.2, search, order))


def over_best(run, where, pick, of="what == 'interval'") -> float:
    """By how many percent a step takes longer than with the best interval."""
    each = ("n", "filling_fraction", "speed")
    return 100 * found(run, where, "over best", over=of, along="interval", each=each, pick=pick) - 100


def at(steps) -> str:
    return f"{FROM_2_21} and interval == {steps}"


def host(where, pick) -> float:
    device, there = (f"place == '{place}' and {where}" for place in ("device", "host and back"))
    return found("reorder_cost/h200", device, "gain", over=there, each=("n", "memory"), pick=pick)


@cache
def best_intervals() -> dict:
    """The interval of the least time of each gas, by size, filling and speed; on an H100 by "H100" too."""
    fastest = {}
    for chip, runs in (("", CUBES), ("H100", ("interval/h100",))):
        rows = runs_of(runs).rows.query(FROM_2_21, engine="python")
        times = rows.groupby([*GAS, "interval"])["time_ms"].median().reset_index()
        for row in times.loc[times.groupby(GAS)["time_ms"].idxmin()].itertuples():
            key = (row.n, row.filling_fraction, row.speed)
            fastest[(*key, chip) if chip else key] = row.interval
    return fastest


def path(interaction) -> float:
    """The path in d after which half of the extra hits are lost."""
    where = "model == 'block' and cache_particles == 320 and filling_fraction == 0.25"
    where += f" and interaction == '{interaction}'"
    hits, along = "hit_ratio - hit_ratio_shuffled", "step * speed_d_per_step"
    return found("decay/h200_interaction", where, "half", hits, along=along)


def scattered(order) -> float:
    where = STEP.format(0.2, "scattered", order)
    return found("timing/h200_orders", f"n == 2**21 and {where}")


SENTENCES = {
    r"At 2\^21 and 20 % a step takes (\d+) to \d+ us \(H200; H100 (\d+) to \d+\), of `linked` with reorders "
    r"(\d+) to (\d+) \((\d+) to (\d+)\)": lambda: [
        time(H200, "verlet", "hilbert"), time(H100, "verlet", "hilbert"), time(H200, "linked", "row"),
        time(H200, "linked", "hilbert"), time(H100, "linked", "row"), time(H100, "linked", "hilbert")],
    r"a step takes \d+ to (\d+) us \(H200; H100 \d+ to (\d+)\)": lambda: [
        1000 * float(getattr(numbers()["n"], f"verlet_searches{chip}").value.split()[0])
        for chip in ("", "_h100")],
    r"rows, ([\d.]+) to ([\d.]+) times as fast as Hilbert's curve at 2\^21, on a CPU "
    r"\(2\^20\) ([\d.]+) to ([\d.]+\d)":
        lambda: [gain(H200, 2**21, "row", "hilbert", 0.4), gain(H100, 2**21, "row", "hilbert", 0.05),
                 *(gain("timing/cpu_seven_orders", 2**20, "row", "hilbert", one) for one in (0.4, 0.05))],
    r"rows, ([\d.]+) ms a step at 2\^21; Hilbert ([\d.]+) \(H200, one\)": lambda: [
        scattered("row"), scattered("hilbert")],
    r"in all (\d+) gases of 2\^21 and more, one run each, it is within ([\d.]+) % of the best": lambda: [
        len(best_intervals()), max(over_best(CUBES, at(100), "highest", FROM_2_21),
                                   over_best("interval/h100", at(100), "highest"))],
    r"Fast dense gases want (\d+), slow thin ones (\d+)": lambda: [
        best_intervals()[2**21, 0.4, 0.008], best_intervals()[2**21, 0.05, 0.0005]],
    r"Every 500 costs up to (\d+) % \(H100, 20 %; H200 ([\d.]+) %\), every 5 at least (\d+) %": lambda: [
        over_best("interval/h100_fast", at(500), "highest"),
        over_best("interval/h200_three_runs", at(500), "highest"),
        over_best(CUBES, at(5), "lowest", FROM_2_21)],
    r"`md.Decayed\(\"auto\"\)`: at most ([\d.]+) % over the best": lambda: [
        over_best("interval/h200_again", "what == 'auto'", "highest")],
    r"takes (\d+) to (\d+) times as long from 2\^20 on, ([\d.]+) at 2\^14": lambda: [
        host("n >= 2**20", "lowest"), host("n >= 2**20", "highest"), host("n == 2**14", "lowest")],
}  # fmt: skip


@pytest.mark.parametrize("label", ROWS)
def test_a_row_says_what_the_tables_do(label):
    run, n, order = ROWS[label]
    aged, shuffled = (
        ", ".join(shown(gain_of(run, n, order, over, filling)) for filling in (0.05, 0.2, 0.4))
        for over in ("lattice", "shuffled")
    )
    age = f" ({numbers()['cpu_ages']})" if run.startswith("timing/cpu") else ""
    assert f"|{label}|{aged}{age}|{shuffled}|" in text_of("results/GUIDE.md")


def test_the_row_of_the_largest_gas_has_two_orders():
    cells = [
        f"{shown(gain_of('timing/h200_8388608', 2**23, 'hilbert', over))} "
        f"({shown(gain_of('timing/h200_8388608', 2**23, 'row', over))})"
        for over in ("lattice", "shuffled")
    ]
    assert f"|H200, 2^23, 20 % (rows)|{'|'.join(cells)}|" in text_of("results/GUIDE.md")


@pytest.mark.parametrize("pattern", SENTENCES)
def test_a_sentence_says_what_the_tables_do(pattern):
    says = re.search(pattern, text_of("results/GUIDE.md"))
    assert says
    for text, value in zip(says.groups(), SENTENCES[pattern](), strict=True):
        assert float(text) == pytest.approx(value, abs=0.5001 * 10.0 ** -len(text.partition(".")[2]))


SURFACE = tuple(
    f"surface/{name}_predicted" for name in ("cube", "cube_large", "fillings", "cube_between", "cube_widest")
)
TIMED = {0.05: "surface/h200_fillings", 0.2: "surface/h200", 0.4: "surface/h200_fillings"}
CHIPS = {
    "h200": (*TIMED.values(), "surface/h200_large", "surface/h200_widest"),
    "h100": ("surface/h100", "surface/h100_fillings"),
}


def of_surface(run, n, filling, path, where) -> float:
    here = f"{where} and part == 'force' and n == {n} and filling_fraction == {filling} and path_d == {path}"
    return found(run, here, "median", "gain")


def measured(*chips) -> pd.DataFrame:
    """Measured gains of cubes along Hilbert's curve, beside those that were foreseen."""
    runs = sorted({run for chip in chips for run in CHIPS[chip]})
    timed = pd.concat([runs_of((run,)).rows for run in runs])
    return beside(pd.concat([runs_of((run,)).rows for run in SURFACE]), timed)


@pytest.mark.parametrize("w", [0.1, 0.4, 0.8, 1.6, 3.2])
def test_a_row_of_what_to_expect_says_what_the_surfaces_do(w):
    def both(run, where) -> str:
        return ", ".join(f"{of_surface(run, n, filling, path, where):.1f}" for path in (0, 8))

    n, cells = round(w * Machine.read("h200").l2_bytes / 48), []
    for filling, timed in TIMED.items():
        foreseen = both(SURFACE[0] if filling == 0.2 else SURFACE[2], "machine == 'h200'")
        cells.append(f"{both(timed, 'n > 0')} ({foreseen})")
    assert f"|{w:g}|{'|'.join(cells)}|" in text_of("results/GUIDE.md")


def test_the_law_of_what_to_expect_is_that_of_the_surfaces():
    law, other = (fresh_law(measured(chip), chip, "measured") for chip in ("h200", "h100"))
    assert f"r = {reads(1):.0f} x filling" in text_of("results/GUIDE.md")
    assert (
        f"G0 = {law.factor:.1f} r^{law.of_reads:.2f} w^{law.of_size:.2f} ({law.cases} gases: "
        f"{100 * law.median:.0f} % in the median, {100 * law.worst:.0f} % at worst; H100 "
        f"{other.factor:.1f} r^{other.of_reads:.2f} w^{other.of_size:.2f}, {other.cases} gases: "
        f"{100 * other.median:.0f} %, {100 * other.worst:.0f} %)"
    ) in text_of("results/GUIDE.md")


def test_the_wear_of_what_to_expect_is_that_of_the_surfaces():
    pattern = (
        r"1/G = 1/G0 \+ p/(\d+) at 5 and 20 % \((\w+) gases; at 8 d within (\d+) %\), p/(\d+) at 40 % "
        r"\((\w+); (\d+) %\)"
    )
    says = re.search(pattern, text_of("results/GUIDE.md"))
    assert says
    table = measured(*CHIPS).query("w > 1.59 and n < 2**23")
    for dense, length, gases, most in ((False, *says.groups()[:3]), (True, *says.groups()[3:])):
        own = table[(table["filling_fraction"] == 0.4) == dense]
        worn = wear(own, "measured")
        assert {9: "nine", 2: "two"}[len(worn)] == gases
        assert int(length) == pytest.approx(worn["length_d"].median(), rel=0.1)
        fresh, old = (
            own[own["path_d"] == path].set_index(["machine", "n", "filling_fraction"]) for path in (0, 8)
        )
        off = 1 / (1 / fresh["measured"] + old["age_d"] / int(length)) / old["measured"] - 1
        assert 100 * off.abs().max() == pytest.approx(int(most), abs=0.5)
