"""All charts of the page, in its order. A new chart is one entry here and its id in `sections`."""

from experiments.results.baselines import AGED, LATTICE, SHUFFLED
from experiments.results.page.charts import DOTS, LINES, Axis, Chart, Points, Select

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
    return Points(
        run,
        "time_ms",
        ("n", "filling_fraction", "ordering"),
        f"{case} and ordering in ({ORDERS}, 'lattice') and ordering != '{over}'",
        "gain",
        f"{case} and ordering == '{over}'",
        compared="ordering",
        constants={"over": over},
    )


def _box(run: str, over: str, fused: bool) -> Points:
    """Return the gains of a step in the shaken box."""
    case = f"{'fused' if fused else 'not fused'} and search == 'linked' and contact_time == 2e-4"
    return Points(
        run,
        "time_ms",
        ("filling_fraction", "part", "length_d"),
        f"{case} and part != 'reorder' and ordering == 'pancake'",  # the baselines have no reorder
        "gain of sums",
        f"{case} and ordering == '{over}'",
        constants={"over": LATTICE if over == AGED else over, "steps": "fused" if fused else "in phases"},
        names={"length_d": "box"},
    )


WORTH = Chart(
    "worth",
    "What an order is worth",
    "Gain of a whole step of linked cells, reorders counted in. Lines are 95 % intervals, or the range of "
    "the rounds if there is one run.",
    DOTS,
    tuple(_timed(run, over, where) for run, where in TIMING.items() for over in (SHUFFLED, LATTICE)),
    Axis("order", "order"),
    Axis(GAIN, log=True, line=1),
    "over",
    "over memory that is",
    (DEVICE, SIZE, FILLING, ORDER),
)

HITS = Chart(
    "misses",
    "What a cache model predicts",
    "Reads of a particle that the model does not find in the cache, over the share of space that is filled. "
    "Median and range of several gases. The cache is counted in particles.",
    LINES,
    tuple(
        Points(
            run,
            "(1 - hit_ratio) * reads_per_particle",
            ("filling_fraction", "ordering", "model", "cache_particles"),
            f"size == {side} and ordering in ({ORDERS}, 'shuffled') and model in ('block', 'lru') and "
            "cache_particles in (320, 4096)",
            constants={"shape": shape, "size": f"{side} boxes a side"},
        )
        for run, shape, side in (
            ("cache_hit/cpu_squares", "squares", 256),
            ("cache_hit/cpu_cuboids", "cuboids", 64),
            ("cache_hit/cpu_cubes", "cubes", 64),
        )
    ),
    Axis("filling fraction", "filling"),
    Axis("misses a particle", log=True),
    "order",
    "order",
    (
        Select("shape", "Shape", "cubes"),
        Select("model", "Model", "block"),
        Select("cache", "Cache", "320"),
        ORDER,
    ),
)

DECAY = Chart(
    "decay",
    "How long a predicted order lasts",
    "Share of the extra hits that is left, over the steps since the reorder. Block model, cache of 320 "
    "particles. Median and range of three gases.",
    LINES,
    tuple(
        Points(
            run,
            "hit_ratio - hit_ratio_shuffled",
            ("filling_fraction", "interaction", "step", "size", "speed"),
            f"model == 'block' and cache_particles == 320 and step > 0{more}",
            "share",
            "model == 'block' and cache_particles == 320 and step == 0",
            compared="step",
            constants={"shape": shape},
        )
        for run, shape, more in (
            ("decay/h200_interaction", "cubes", ""),
            ("decay/h200_size", "cubes", " and size != 32"),  # which the first has
            ("decay/h200_speed", "squares", ""),
        )
    ),
    Axis("steps since the reorder", "step", log=True),
    Axis("share of the extra hits left"),
    "interaction",
    "gas",
    (
        Select("shape", "Shape", "cubes"),
        Select("size", "Boxes a side", "32"),
        Select("filling", "Filling", "25 %"),
        Select("speed", "Speed (d a step)", "0.01"),
    ),
)

SIZES = Chart(
    "sizes",
    "What it buys, by size",
    "Gain of a whole step of linked cells, reorders counted in, over the number of spheres. At 2^23 only "
    "20 % was measured.",
    LINES,
    WORTH.points,
    Axis("spheres", "size", log=True),
    Axis(GAIN, log=True, line=1),
    "order",
    "order",
    (Select("device", "Device", H200), Select("over", "Over", SHUFFLED), FILLING, ORDER),
)

BOX = Chart(
    "box",
    "What it buys in the shaken box",
    "Gain of a step along the pancake order over the filling fraction; a reorder every 500 steps is counted "
    "in. The numbers of the source are at T11 and T12.",
    LINES,
    (
        *(_box("speed_up/h100", over, fused) for over in (SHUFFLED, AGED) for fused in (True, False)),
        *(_box("speed_up/h200", over, True) for over in (SHUFFLED, AGED)),
        *(_box("speed_up/h200_three_runs", over, False) for over in (SHUFFLED, AGED)),
        *(_box("speed_up/h200_1024", over, True) for over in (SHUFFLED, AGED)),
        *(_box("speed_up/cpu", over, fused) for over in (SHUFFLED, AGED) for fused in (True, False)),
    ),
    Axis("filling fraction", "filling"),
    Axis(GAIN, line=1),
    "over",
    "over memory that is",
    (
        DEVICE,
        Select("steps", "Steps", "fused"),
        Select("part", "Part", "total"),
        Select("box", "Box (d a side)", "512"),
    ),
)

FORESEEN = Chart(
    "foreseen",
    "Foreseen and measured",
    "Each point is an order at a filling. To the right: speed-up of the force that predicted hits foresee, "
    "if a hit takes a hundredth of a miss. Up: the measured one over shuffled memory.",
    LINES,
    tuple(
        Points(
            run,
            "time_ms",
            ("n", "filling_fraction", "ordering"),
            f"{case} and ordering in ({ORDERS}) and predicted_hit_ratio == predicted_hit_ratio",
            "gain",
            f"{case} and ordering == 'shuffled'",
            compared="ordering",
            across="1 / (predicted_hit_ratio / 100 + 1 - predicted_hit_ratio)",
        )
        for run in TIMING
        for case in ("phase == 'force' and search == 'linked' and (precision == 'float32' or not fused)",)
    ),
    Axis("foreseen speed-up of the force"),
    Axis("measured speed-up of the force", line=1),
    "order",
    "order",
    (DEVICE, SIZE, Select("filling", "Filling", has_all=True)),
)

INTERVAL = Chart(
    "interval",
    "How often to reorder",
    "Time of a step, reorders counted in, over that of the best interval.",
    LINES,
    (
        *(
            Points(
                run,
                "time_ms",
                ("n", "filling_fraction", "speed", "interval"),
                where,
                "over best",
                where,
                compared="interval",
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
            "speed_up/h100_interval",
            "time_ms",
            ("filling_fraction", "reorder_every"),
            "ordering == 'pancake' and part == 'total'",
            "sums over best",
            "ordering == 'pancake' and part == 'total'",
            compared="reorder_every",
            along="reorder_every",
            constants={"size": "10^6, shaken box", "speed": "that of the box"},
            names={"reorder_every": "interval"},
        ),
    ),
    Axis("steps between reorders", "interval", log=True),
    Axis("time over the best", line=1),
    "filling",
    "filling",
    (DEVICE, SIZE, Select("speed", "Speed (d a step)", "0.008")),
)

COST = Chart(
    "cost",
    "What a reorder costs",
    "Time of a reorder along Hilbert's curve over the number of particles, by the place where it is made.",
    LINES,
    (Points("reorder_cost/h200", "time_ms", ("n", "memory", "place"), "time_ms > 0"),),
    Axis("particles", "size", log=True),
    Axis("time of a reorder (ms)", log=True),
    "place",
    "place",
    (Select("memory", "Memory before", SHUFFLED), Select("device", "Device", f"{H200}{PART_OF_HOST}")),
)

LADDER = Chart(
    "ladder",
    "The tree, step by step",
    "Gain of a step over the tree without a reorder.",
    DOTS,
    tuple(
        Points(
            run,
            "time_ms",
            ("n", "rung"),
            "rung not in ('no reorder', 'no reorder again')",
            "gain",
            "rung == 'no reorder'",
            compared="rung",
            names={"rung": "variant"},
        )
        for run in ("ladder/h100", "ladder/h200", "ladder/cpu")
    ),
    Axis("variant", "variant"),
    Axis(GAIN, log=True, line=1),
    "device",
    "device",
    (Select("device", "Device", H100, has_all=True), SIZE),
)

FLOCK = Chart(
    "flock",
    "A step of the flock",
    "Time of a whole step of boids by every search; behind the comma, the order of memory.",
    DOTS,
    tuple(
        Points(
            run,
            "time_ms",
            ("n", "start", "age", "precision", "name"),
            "name != 'coherent again'",
            names={"name": "search"},
        )
        for run in ("flocking/h200", "flocking/h200_100000", "flocking/cpu", "flocking/cpu_100000")
    ),
    Axis("search", "search"),
    Axis("time of a step (ms)", log=True),
    "device",
    "device",
    (
        Select("device", "Device", H200),
        Select("size", "Boids", "1,000,000"),
        Select("start", "Start", "uniform"),
        Select("age", "Steps before", "0"),
    ),
)

CAVITY = Chart(
    "cavity",
    "A step of the cavity",
    "Time of a step with 50 sweeps, by strategy and layout.",
    DOTS,
    tuple(
        Points(
            run,
            "time_ms",
            ("n", "precision", "name"),
            "name != 'cuda, arrays again' and name != 'serial, arrays again'",
            names={"name": "strategy", "n": "points a side"},
        )
        for run in ("cavity/h200_41", "cavity/h200_1000", "cavity/cpu", "cavity/cpu_4096", "cavity/h200_4096")
    ),
    Axis("strategy", "strategy"),
    Axis("time of a step (ms)", log=True),
    "precision",
    "precision",
    (Select("device", "Device", f"{H200}{HOST}"), Select("points a side", "Points a side", "1,000")),
)

SEARCHES = Chart(
    "searches",
    "How fast a step is",
    "Steps of one particle in a second, by search and number of particles. LAMMPS, on the same start, is "
    "beside it on the CPU.",
    LINES,
    (
        *(
            Points(
                run,
                "n / time_ms / 1e6",
                ("n", "filling_fraction", "search", "cell_order"),
                f"search != 'verlet again'{more}",
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
            "searches/cpu",
            "n / time_ms / 1e6",
            ("n", "filling_fraction", "search"),
            "time_ms > 0",
            constants={"order": "row"},
        ),
    ),
    Axis("particles", "size", log=True),
    Axis("thousand million particle steps a second", log=True),
    "search",
    "search",
    (Select("device", "Device", H200), FILLING, Select("order", "Order of cells", "row")),
)

ENCODE = Chart(
    "encode",
    "Points to indices, beside other packages",
    "Points in a second. A copy of the same bytes is the bound.",
    DOTS,
    tuple(
        Points(
            run,
            "Mpoints_per_s",
            ("dim", "bits", "direction", "encoder", "registers"),
            "encoder != 'copy again'",
            names={"registers": "device", "dim": "dimensions"},
        )
        for run in ("encode/cpu_vbmi", "encode/cpu_avx2")
    ),
    Axis("encoder", "encoder"),
    Axis("million points a second", log=True),
    "direction",
    "direction",
    (
        Select("device", "Registers", "AVX-512 VBMI"),
        Select("dimensions", "Dimensions", "3"),
        Select("bits", "Bits an axis", "16"),
    ),
)

CHARTS = {
    chart.id: chart
    for chart in (
        WORTH, HITS, DECAY, SIZES, BOX, FORESEEN, INTERVAL, COST, LADDER, FLOCK, CAVITY, SEARCHES, ENCODE,
    )
}  # fmt: skip
