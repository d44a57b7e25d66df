"""All charts of the page, in its order. A new chart is one entry here and its id in `sections`."""

from experiments.results.baselines import AGED, BASELINES, LATTICE, SHUFFLED
from experiments.results.charts import DOTS, LINES, Chart, Points, Scale, Select

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
FIRST_SIZE, FIRST_FILLING = "2^21", "20 %"
HOST = " and 16 cores of its host"
PART_OF_HOST = " and 8 of 16 cores of its host, a CPU run on the others"
GAIN = "times as fast"
WHOLE_STEP = "phase == 'step with reorder'"
TIMING = {
    "timing/h200_three_runs": WHOLE_STEP,
    "timing/h100": WHOLE_STEP,
    "timing/h200_131072_524288": WHOLE_STEP,
    "timing/h200_8388608": WHOLE_STEP,
    "timing/cpu_three_runs": WHOLE_STEP,
}
IN_THREE_RUNS = "n == 2**21 and filling_fraction == 0.2 and speed > 0.001"
ORDERS = "'row', 'morton', 'peano', 'hilbert'"
DEVICE, ORDER = Select("device", "Device", H200), Select("order", "Order", has_all=True)
SIZE, FILLING = Select("size", "Size", FIRST_SIZE), Select("filling", "Filling", FIRST_FILLING)


def _timed(run: str, over: str, where: str = WHOLE_STEP) -> Points:
    """Return the gains of a whole step of linked cells, reorders counted in."""
    # one precision a device: CPUs have float64 alone
    case = f"{where} and search == 'linked' and (precision == 'float32' or not fused)"
    orders = f"{case} and ordering in ({ORDERS}, 'lattice', {over!r})"
    each = ("n", "filling_fraction", "ordering")
    return Points("time_ms", orders, over=(over,), compared="ordering", each=each, run=run)


def _box(run: str, over: str, fused: bool) -> Points:
    """Return the gains of a step in the shaken box."""
    case = f"{'fused' if fused else 'not fused'} and search == 'linked' and contact_time == 2e-4"
    return Points(
        "time_ms",
        f"{case} and part != 'reorder' and ordering in ('pancake', {over!r})",  # baselines have no reorder
        "gain of sums",
        (over,),
        "ordering",
        each=("filling_fraction", "part", "length_d"),
        run=run,
        constants={"over": LATTICE if over == AGED else over, "steps": "fused" if fused else "in phases"},
        names={"length_d": "box"},
    )


WORTH = Chart(
    "worth",
    "What an order is worth",
    DOTS,
    tuple(_timed(run, over, where) for run, where in TIMING.items() for over in BASELINES),
    Scale("order", "order"),
    Scale(GAIN, log=10, line=1),
    "over",
    "over memory that is",
    caption=(
        "Gain of a whole step of linked cells, reorders counted in. Lines are 95 % intervals, or the range "
        "of the rounds if there is one run."
    ),
    selects=(DEVICE, SIZE, FILLING, ORDER),
)

HITS = Chart(
    "misses",
    "What a cache model predicts",
    LINES,
    tuple(
        Points(
            "(1 - hit_ratio) * reads_per_particle",
            f"size == {side} and ordering in ({ORDERS}, 'shuffled') and model in ('block', 'lru') and "
            "cache_particles in (320, 4096)",
            each=("filling_fraction", "ordering", "model", "cache_particles"),
            run=run,
            constants={"shape": shape, "size": f"{side} boxes a side"},
        )
        for run, shape, side in (
            ("cache_hit/cpu_squares", "squares", 256),
            ("cache_hit/cpu_cuboids", "cuboids", 64),
            ("cache_hit/cpu_cubes", "cubes", 64),
        )
    ),
    Scale("filling fraction", "filling"),
    Scale("misses a particle", log=10),
    "order",
    "order",
    caption=(
        "Reads of a particle that the model does not find in the cache, over the share of space that is "
        "filled. Median and range of several gases. The cache is counted in particles."
    ),
    selects=(
        Select("shape", "Shape", "cubes"),
        Select("model", "Model", "block"),
        Select("cache", "Cache", "320"),
        ORDER,
    ),
)

DECAY = Chart(
    "decay",
    "How long a predicted order lasts",
    LINES,
    tuple(
        Points(
            "hit_ratio - hit_ratio_shuffled",
            f"model == 'block' and cache_particles == 320{more}",
            "share",
            (0,),
            "step",
            each=("filling_fraction", "interaction", "step", "size", "speed"),
            run=run,
            constants={"shape": shape},
        )
        for run, shape, more in (
            ("decay/h200_interaction", "cubes", ""),
            ("decay/h200_size", "cubes", " and size != 32"),  # which the first has
            ("decay/h200_speed", "squares", ""),
        )
    ),
    Scale("steps since the reorder", "step", log=10),
    Scale("share of the extra hits left"),
    "interaction",
    "gas",
    caption=(
        "Share of the extra hits that is left, over the steps since the reorder. Block model, cache of 320 "
        "particles. Median and range of three gases."
    ),
    selects=(
        Select("shape", "Shape", "cubes"),
        Select("size", "Boxes a side", "32"),
        Select("filling", "Filling", "25 %"),
        Select("speed", "Speed (d a step)", "0.01"),
    ),
)

SIZES = Chart(
    "sizes",
    "What it buys, by size",
    LINES,
    WORTH.points,
    Scale("spheres", "size", log=10),
    Scale(GAIN, log=10, line=1),
    "order",
    "order",
    caption=(
        "Gain of a whole step of linked cells, reorders counted in, over the number of spheres. At 2^23 "
        "only 20 % was measured."
    ),
    selects=(Select("device", "Device", H200), Select("over", "Over", SHUFFLED), FILLING, ORDER),
)

BOX = Chart(
    "box",
    "What it buys in the shaken box",
    LINES,
    (
        *(_box("speed_up/h100", over, fused) for over in (SHUFFLED, AGED) for fused in (True, False)),
        *(_box("speed_up/h200", over, True) for over in (SHUFFLED, AGED)),
        *(_box("speed_up/h200_three_runs", over, False) for over in (SHUFFLED, AGED)),
        *(_box("speed_up/h200_1024", over, True) for over in (SHUFFLED, AGED)),
        *(_box("speed_up/cpu", over, fused) for over in (SHUFFLED, AGED) for fused in (True, False)),
    ),
    Scale("filling fraction", "filling"),
    Scale(GAIN, line=1),
    "over",
    "over memory that is",
    caption=(
        "Gain of a step along the pancake order over the filling fraction; a reorder every 500 steps is "
        "counted in. The numbers of the source are at T11 and T12."
    ),
    selects=(
        DEVICE,
        Select("steps", "Steps", "fused"),
        Select("part", "Part", "total"),
        Select("box", "Box (d a side)", "512"),
    ),
)

FORESEEN = Chart(
    "foreseen",
    "Foreseen and measured",
    LINES,
    tuple(
        Points(
            "time_ms",
            f"{case} and ordering in ({ORDERS}, 'shuffled') and predicted_hit_ratio == predicted_hit_ratio",
            over=(SHUFFLED,),
            compared="ordering",
            each=("n", "filling_fraction", "ordering"),
            run=run,
            across="1 / (predicted_hit_ratio / 100 + 1 - predicted_hit_ratio)",
        )
        for run in TIMING
        for case in ("phase == 'force' and search == 'linked' and (precision == 'float32' or not fused)",)
    ),
    Scale("foreseen speed-up of the force"),
    Scale("measured speed-up of the force", line=1),
    "order",
    "order",
    caption=(
        "Each point is an order at a filling. To the right: speed-up of the force that predicted hits "
        "foresee, if a hit takes a hundredth of a miss. Up: the measured one over shuffled memory."
    ),
    selects=(DEVICE, SIZE, Select("filling", "Filling", has_all=True)),
)

INTERVAL = Chart(
    "interval",
    "How often to reorder",
    LINES,
    (
        *(
            Points(
                "time_ms",
                where,
                "over best",
                compared="interval",
                each=("n", "filling_fraction", "speed", "interval"),
                run=run,
                along="interval",
            )
            for run, where in (
                ("interval/h200_three_runs", "what == 'interval'"),
                ("interval/h100", "what == 'interval'"),
                # the first has these cases
                ("interval/h200", f"what == 'interval' and not ({IN_THREE_RUNS})"),
                ("interval/h200_8388608", "what == 'interval'"),
            )
        ),
        Points(
            "time_ms",
            "ordering == 'pancake' and part == 'total'",
            "sums over best",
            compared="reorder_every",
            each=("filling_fraction", "reorder_every"),
            run="speed_up/h100_interval",
            along="reorder_every",
            constants={"size": "10^6, shaken box", "speed": "that of the box"},
            names={"reorder_every": "interval"},
        ),
    ),
    Scale("steps between reorders", "interval", log=10),
    Scale("time over the best", line=1),
    "filling",
    "filling",
    caption="Time of a step, reorders counted in, over that of the best interval.",
    selects=(DEVICE, SIZE, Select("speed", "Speed (d a step)", "0.008")),
)

COST = Chart(
    "cost",
    "What a reorder costs",
    LINES,
    Points("time_ms", "time_ms > 0", each=("n", "memory", "place"), run="reorder_cost/h200"),
    Scale("particles", "size", log=10),
    Scale("time of a reorder (ms)", log=10),
    "place",
    "place",
    caption=(
        "Time of a reorder along Hilbert's curve over the number of particles, by the place where it is made."
    ),
    selects=(
        Select("memory", "Memory before", SHUFFLED),
        Select("device", "Device", f"{H200}{PART_OF_HOST}"),
    ),
)

LADDER = Chart(
    "ladder",
    "The tree, step by step",
    DOTS,
    tuple(
        Points(
            "time_ms",
            "time_ms > 0",
            over=("no reorder",),
            compared="rung",
            each=("n", "rung"),
            run=run,
            names={"rung": "variant"},
        )
        for run in ("ladder/h100", "ladder/h200", "ladder/cpu")
    ),
    Scale("variant", "variant"),
    Scale(GAIN, log=10, line=1),
    "device",
    "device",
    caption="Gain of a step over the tree without a reorder.",
    selects=(Select("device", "Device", H100, has_all=True), SIZE),
)

FLOCK = Chart(
    "flock",
    "A step of the flock",
    DOTS,
    tuple(
        Points(
            "time_ms",
            "name != 'coherent again'",
            each=("n", "start", "age", "precision", "name"),
            run=run,
            names={"name": "search"},
        )
        for run in ("flocking/h200", "flocking/h200_100000", "flocking/cpu", "flocking/cpu_100000")
    ),
    Scale("search", "search"),
    Scale("time of a step (ms)", log=10),
    "device",
    "device",
    caption="Time of a whole step of boids by every search; behind the comma, the order of memory.",
    selects=(
        Select("device", "Device", H200),
        Select("size", "Boids", "1,000,000"),
        Select("start", "Start", "uniform"),
        Select("age", "Steps before", "0"),
    ),
)

CAVITY = Chart(
    "cavity",
    "A step of the cavity",
    DOTS,
    tuple(
        Points(
            "time_ms",
            "name != 'cuda, arrays again' and name != 'serial, arrays again'",
            each=("n", "precision", "name"),
            run=run,
            names={"name": "strategy", "n": "points a side"},
        )
        for run in ("cavity/h200_41", "cavity/h200_1000", "cavity/cpu", "cavity/cpu_4096", "cavity/h200_4096")
    ),
    Scale("strategy", "strategy"),
    Scale("time of a step (ms)", log=10),
    "precision",
    "precision",
    caption="Time of a step with 50 sweeps, by strategy and layout.",
    selects=(Select("device", "Device", f"{H200}{HOST}"), Select("points a side", "Points a side", "1,000")),
)

SEARCHES = Chart(
    "searches",
    "How fast a step is",
    LINES,
    (
        *(
            Points(
                "n / time_ms / 1e6",
                f"search != 'verlet again'{more}",
                each=("n", "filling_fraction", "search", "cell_order"),
                run=run,
                names={"cell_order": "order"},
            )
            for run, more in (
                ("searches/h200", ""),
                ("searches/h100", ""),
                (
                    "searches/h200_orders",
                    " and (cell_order != 'row' or n == 2**18)",
                ),  # the first has the rest
                ("searches/h200_16777216", ""),
            )
        ),
        Points(
            "n / time_ms / 1e6",
            "time_ms > 0",
            each=("n", "filling_fraction", "search"),
            run="searches/cpu",
            constants={"order": "row"},
        ),
    ),
    Scale("particles", "size", log=10),
    Scale("thousand million particle steps a second", log=10),
    "search",
    "search",
    caption=(
        "Steps of one particle in a second, by search and number of particles. LAMMPS, on the same start, "
        "is beside it on the CPU."
    ),
    selects=(Select("device", "Device", H200), FILLING, Select("order", "Order of cells", "row")),
)

ENCODE = Chart(
    "encode",
    "Points to indices, beside other packages",
    DOTS,
    tuple(
        Points(
            "Mpoints_per_s",
            "encoder != 'copy again'",
            each=("dim", "bits", "direction", "encoder", "registers"),
            run=run,
            names={"registers": "device", "dim": "dimensions"},
        )
        for run in ("encode/cpu_vbmi", "encode/cpu_avx2")
    ),
    Scale("encoder", "encoder"),
    Scale("million points a second", log=10),
    "direction",
    "direction",
    caption="Points in a second. A copy of the same bytes is the bound.",
    selects=(
        Select("device", "Registers", "AVX-512 VBMI"),
        Select("dimensions", "Dimensions", "3"),
        Select("bits", "Bits an axis", "16"),
    ),
)

CHARTS = {
    chart.name: chart
    for chart in (
        WORTH, HITS, DECAY, SIZES, BOX, FORESEEN, INTERVAL, COST, LADDER, FLOCK, CAVITY, SEARCHES, ENCODE,
    )
}  # fmt: skip
