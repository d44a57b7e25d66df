"""Claims on the time that an order saves: phases of a step, the shaken box, other curves."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain, highest, lowest, number

H100, SMALLER = "timing/h100", "timing/h200_131072_524288"
CURVES_ON_CPU = "timing/cpu_seven_orders"
BOX, CONTACTS = "speed_up/h100", "speed_up/h100_contacts"
SHAKES = {"": "timing/h100_box", "_h200": "timing/h200_box"}  # whole shakes, fused
STEP = "phase == 'step with reorder'"
PARTS, TABULATED = ("force", "other", "total"), (5, 20, 40)  # of Table 6.1, in percent


def force(run: Runs, where: str) -> Query:
    """Ask for the part of a step that is the force."""
    where = f"{where} and filling_fraction == 0.2 and part == '?'"
    return gain(run, where, "force", "total", statistic="part of sums")


def reordered(run: Runs, where: str, over: str = "aged") -> Query:
    """Compare the shaken box reordered along the Hilbert pancake with memory that is not reordered."""
    return gain(run, f"{where} and ordering == '?'", "pancake", over, statistic="gain of sums")


def in_box(percent: int, part: str = "total", over: str = "aged") -> Query:
    """Compare the shaken box at a filling, by phases."""
    return reordered(BOX, f"not fused and filling_fraction == {percent / 100:g} and part == '{part}'", over)


def shaken(percent: int, over: str = "aged", chip: str = "") -> Query:
    """Compare whole shakes of the box at a filling, on an H100 or on the chip of `SHAKES`."""
    return reordered(SHAKES[chip], f"filling_fraction == {percent / 100:g} and part == 'total'", over)


def peano(where: str, percent: int, this: str = "peano", over: str = "hilbert", run: Runs = H100) -> Query:
    """Compare steps along Peano's curve with those along Hilbert's, or of two other orders, at a filling."""
    where = f"{where} and {STEP} and filling_fraction == {percent / 100:g} and ordering == '?'"
    return gain(run, where, this, over)


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "T10", "confirmed", "At 20 %, without reorders, the force dominates a step.",
        short="The force dominates without reorders", there="the largest share (figure 6.1)",
        quote="Clearly the force calculation is the performance bottleneck in this case, as expected.",
        sentence="In shuffled and lattice memory, on GPUs and a CPU.",
        here="share: shuffled {shuffled.value}, lattice {lattice.value} (H100), CPU {cpu.value}",
        figure="speed_up/h200_three_runs/phases.png",
        confirmed_if=both("?.low > 0.5", "shuffled", "lattice", "h200", "cpu"),
        refuted_if=both("?.high < 0.5", "shuffled", "lattice", "h200", "cpu"),
        queries={
            "shuffled": force(BOX, "not fused and ordering == 'shuffled'"),
            "lattice": force(BOX, "not fused and ordering == 'aged'"),
            "h200": lowest(force("speed_up/h200_three_runs", "ordering in ('shuffled', 'aged')"), "ordering"),
            "cpu": lowest(force("speed_up/cpu", "not fused and ordering in ('shuffled', 'aged')"),
                "ordering"),
        },
    ),
    Claim(
        "T11", "confirmed", "Table 6.1: gains rise with the filling, by the force above all.",
        short="Table 6.1: the force gains, dense gases most",
        there="total 1.38, 2.74, 3.01 at 5, 20, 40 %",
        quote="""As can be seen in Table 6.1, the performance increase is much more pronounced for larger
        particle densities ... Also it is clear that the force calculation is responsible for most of the
        runtime reduction since the total performance improvements closely tracks the performance of the force
        calculation alone ... it is the only computation that runs significantly faster.""",
        sentence="The shape holds, the numbers do not.",
        here="total over the lattice {total_5.value}, {total_40} at 5, 40 % (up to {age.value} steps)",
        figure="speed_up/h100/gain_phases.png",
        confirmed_if="total_20.low > total_5.high and total_40.low > total_20.high and " + both(
            """force_?.low > other_?.high and
            force_?.value - total_?.value < total_?.value - other_?.value""", "5", "20", "40"),
        refuted_if="total_40.high < total_5.low or " + both("other_?.low > force_?.high", "5", "20", "40"),
        sentence_if="total_5.high < 1.375 and total_40.low > 3.015",
        queries={
            **{f"{part}_{phi}": in_box(phi, part) for part in PARTS for phi in TABULATED},
            **{f"shuffled_{phi}": in_box(phi, over="shuffled") for phi in TABULATED},
            "age": highest(number(BOX, "not fused and ordering == 'aged' and part == 'force'",
                "age_steps - sample_ms / time_ms - 1", "max"), "round"),
        },
    ),
    Claim(
        "T12", "depends", "Shaken box: twice as fast at 5 %, thrice at higher filling.",
        short="Twice as fast at 5 %, then thrice", there="2, above 3",
        quote="""As can be seen the molecular dynamics simulation already runs twice as fast with a filling
        fraction of 5% and increases to more than three times as fast with higher filling fractions""",
        sentence="The filling: above three at 40, 50 %, below two at 5 %.",
        here="over the lattice {lattice_5}, {lattice_40} at 5, 40 % (up to {age.value} steps)",
        figure="timing/h100_box/gain.png",
        confirmed_if="""lattice_5.high >= 2 and lattice_20.low > lattice_5.high and lattice_40.high >= 3 and
        lattice_50.high >= 3""",
        refuted_if="lattice_5.below(1.5) and lattice_40.below(2) and lattice_50.below(2)",
        sentence_if="lattice_40.low > 3 and lattice_50.low > 3 and lattice_5.high < 2 and wide_5.high < 2",
        queries={
            **{f"{over}_{phi}{chip}": shaken(phi, memory, chip)
                for chip in SHAKES for phi in (5, 20, 40, 50)
                for over, memory in (("lattice", "aged"), ("shuffled", "shuffled"))},
            "wide_5": reordered("speed_up/h200_1024", "filling_fraction == 0.05"),
            "short_contacts": reordered(CONTACTS, "contact_time == 1e-4 and part == 'total'"),
            "long_contacts": reordered(CONTACTS, "contact_time == 4e-4 and part == 'total'"),
            "age": highest(number(SHAKES[""], "ordering == 'aged'", "age_steps", "max"), "round"),
        },
    ),
    Claim(
        "T16", "confirmed", "Another 3D curve, Peano's, makes steps faster than Hilbert's (asked there).",
        short="Peano's 3D curve beats Hilbert's", there="untested",
        quote="""Implementing other types of three-dimensional space-filling curves and compare real-life
        performance would also have been insightful. ... no other 3D curves have been tested as part of this
        project.""",
        sentence="A little at 2^21, with linked cells; with lists, and on a CPU, hardly. Rows beat both.",
        here="Peano over Hilbert {linked_5}, {linked_40.value} at 5, 40 %; 2^17 {small_40.value}",
        figure="timing/h100/gain_n2097152_linked_float32_fused.png",
        confirmed_if=both("linked_?.above(1)", "5", "20", "40"),
        refuted_if=both("linked_?.below(1)", "5", "20", "40"),
        sentence_if="""linked_5.low > 1.08 and linked_5.high < 1.1 and linked_20.low > 1.02 and linked_20.high
        < 1.09 and linked_40.low > 1.015 and scattered.low > 1 and verlet_5.high < 1.03 and verlet_5.low >
        0.97 and verlet_20.high < 1.03 and verlet_20.low > 0.97 and verlet_40.high < 1.03 and verlet_40.low >
        0.97 and rows_5.low > 1 and rows_20.low > 1 and rows_40.low > 1 and small_5.low < 1 and small_20.low <
        1 and small_40.high < 1 and cpu_5.high < 1.1 and cpu_20.low < 1 and cpu_40.low < 1 and cpu_rows_5.low
        > 1 and cpu_rows_20.low > 1 and cpu_rows_40.low > 1 and middle_5.low > 1 and middle_20.low < 1 and
        middle_40.low < 1""",
        queries={
            **{f"{name}_{phi}": peano(f"search == '{name}'", phi)
                for name in ("linked", "verlet") for phi in TABULATED},
            **{f"rows_{phi}": peano("search == 'linked'", phi, "row", "peano") for phi in TABULATED},
            "kernel": gain("counters/h200_three_runs", "what == 'kernel' and ordering == '?'", "peano",
                "hilbert", statistic="gain of medians"),
            "small_40": peano("n == 2**17", 40, run=SMALLER),
            **{f"middle_{phi}": peano("n == 2**19", phi, run=SMALLER) for phi in (40, 20, 5)},
            **{f"small_{phi}": peano("n == 2**17", phi, run=SMALLER) for phi in (20, 5)},
            **{f"cpu_{phi}": peano("search == 'linked'", phi, run=CURVES_ON_CPU) for phi in TABULATED},
            **{f"cpu_rows_{phi}": peano("search == 'linked'", phi, "row", "peano", CURVES_ON_CPU)
                for phi in TABULATED},
            "scattered": gain("timing/h200_orders", f"search == 'scattered' and {STEP} and ordering == '?'",
                "peano", "hilbert"),
        },
    ),
)
