"""Queries on numbers that the page's sentences have and no claim has; `n.<name>` in the templates."""

from experiments.results.claims.queries import gain, highest, lowest, number, over_best

H200, CPU = "timing/h200_three_runs", "timing/cpu_three_runs"
STEP = "phase == 'step with reorder' and filling_fraction == 0.2 and ordering == '?'"
LINKED = f"search == 'linked' and {STEP}"
LATTICE = LINKED.replace("?", "lattice")
ROWS = f"search == '?' and {STEP.replace('?', 'row')}"
FIRST = "age_steps - sample_ms / time_ms + 1"  # age at the first timed step; `age_steps` is that at the last
INTERVALS = "what == 'interval' and n >= 2**21"
CASE = ("n", "filling_fraction", "speed")
REORDER = "place == '?' and memory == 'shuffled' and n == 2**21"
VERLET = "search == 'verlet' and n == 2**21 and filling_fraction == 0.2"
ENCODERS = "dim == 3 and bits == 16 and direction == 'encode' and encoder == '?'"
FLOCK = "what == '?' and system == 'flock' and search == 'linked' and age == {age}"

# Data: several fields a line.
# fmt: off
NUMBERS = {
    "hilbert": gain(H200, LINKED, "hilbert", "shuffled"), "rows": gain(H200, LINKED, "row", "shuffled"),
    "hilbert_lattice": gain(H200, LINKED, "hilbert", "lattice"),
    "rows_lattice": gain(H200, LINKED, "row", "lattice"),
    "rows_over_hilbert": gain(H200, LINKED, "row", "hilbert"),
    "rows_over_peano": gain(H200, LINKED, "row", "peano"),
    "lists": gain(H200, ROWS, "verlet", "linked"),
    "youngest": lowest(number(H200, LATTICE, FIRST, "min"), "round"),
    "oldest": highest(number(H200, LATTICE, "age_steps", "max"), "round"),
    "cpu_youngest": lowest(number(CPU, STEP.replace("?", "lattice"), FIRST, "min"), "round"),
    "cpu_oldest": highest(number(CPU, STEP.replace("?", "lattice"), "age_steps", "max"), "round"),
    "cpu_step": number(CPU, "phase == 'step with reorder'", "time_ms"),
    "again": gain(H200, LINKED, "shuffled again", "shuffled", statistic="share"),
    "small": gain("timing/h200_131072_524288", f"n == 2**17 and {STEP}", "hilbert", "shuffled"),
    "large": gain("timing/h200_8388608", LINKED, "hilbert", "shuffled"),
    "cpu": gain(CPU, STEP, "hilbert", "shuffled"), "cpu_lattice": gain(CPU, STEP, "hilbert", "lattice"),
    "every_100_h200": highest(over_best(("interval/h200", "interval/h200_8388608"), INTERVALS, 100), *CASE),
    "every_100_h100": highest(over_best("interval/h100", INTERVALS, 100), *CASE),
    "linked_ms": number(H200, ROWS.replace("?", "linked"), "time_ms"),
    "verlet_ms": number(H200, ROWS.replace("?", "verlet"), "time_ms"),
    "device_reorder_ms": number("reorder_cost/h200", REORDER.replace("?", "device"), "time_ms"),
    "host_reorder_ms": number("reorder_cost/h200", REORDER.replace("?", "host and back"), "time_ms"),
    "lammps": gain("searches/cpu", "search == '?' and n == 2**20", "verlet", "LAMMPS gran/hooke"),
    "steps_a_second": number("searches/h200", VERLET, "particle_steps_per_s / 1e9"),
    "encode": gain("encode/cpu_vbmi", ENCODERS, "hilbert", "hilbert, hilbertsfc"),
    "wide_tree": gain("mixture/h100", "widest == 8 and search == '?'", "wide_bvh", "verlet"),
    "wide_tree_equal": gain("mixture/h100", "widest == 1 and search == '?'", "wide_bvh", "verlet"),
    "flock_fresh": gain("flock_decay/h200", FLOCK.format(age=10), "sorted", "shuffled"),
    "flock_later": gain("flock_decay/h200", FLOCK.format(age=650), "sorted", "shuffled"),
    "flock_order": gain("flocking/h200", "age == 0 and name == 'linked, ?'", "hilbert fresh", "shuffled"),
    "flow_staggered": number("cavity_flow/cpu", """what == 'extreme' and scheme == 'staggered' and n == 129
        and dt_factor == 1 and reference == reference""", "100 * (relative ** 2) ** 0.5", "max"),
}
# Rules that the words around the numbers need, see `judgement`.
HOLDS = (
    "lists.low > 1", "1 < small.low", "small.high < large.low", "rows_over_hilbert.low > 1",
    "verlet_ms.high < linked_ms.low", "0.98 < again.value < 1.02",
    "device_reorder_ms.high < host_reorder_ms.low", "flock_later.low > 1",
)
