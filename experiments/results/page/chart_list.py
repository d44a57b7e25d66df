"""All charts of the page, in its order: charts of experiments, on rows of kept runs.

A new chart of the page is an entry here, in `CHARTS`, and its id in `sections`: the chart of an experiment,
the kept runs, the choices of a reader and the caption. No number is computed otherwise than there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from experiments import (
    cache_hit,
    cavity,
    encode,
    flocking,
    interval,
    ladder,
    reorder_cost,
    searches,
    surface,
    timing,
)
from experiments.measurement.shaken_box import BASELINES as OF_BOX
from experiments.prediction import order_in_gas
from experiments.results.baselines import AGED, BASELINES, LATTICE, SHUFFLED
from experiments.results.charts import GAIN, LINES, Chart, Points, Scale, Select, View

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
HOST = " and 16 cores of its host"
PART_OF_HOST = " and 8 of 16 cores of its host, a CPU run on the others"
FASTER = Scale("times as fast", log=10, line=1)
TIMING = ("timing/h200_three_runs", "timing/h100", "timing/h200_131072_524288", "timing/h200_8388608",
          "timing/cpu_three_runs")  # fmt: skip
LINKED = "search == 'linked' and (precision == 'float32' or not fused)"  # CPUs have float64 alone
ORDERS = "'row', 'morton', 'peano', 'hilbert'"
DEVICE, ORDER = Select("device", "Device", H200), Select("order", "Order", has_all=True)
SIZE, FILLING = Select("size", "Size", "2^21"), Select("filling", "Filling", "20 %")
IN_THREE_RUNS = "n == 2**21 and speed > 0.001"


def chart_of(views: Sequence[View], name: str, of: str = "") -> Chart:
    """Return the first chart of an experiment with a name that begins with a word, on rows as they are kept.

    Args:
        views: of the experiment.
        name: begin of the name.
        of: value or statistic of those of its points that are shown; empty for the first ones.

    Raises:
        StopIteration: none.
    """
    charts = (view for view in views if isinstance(view, Chart) and view.name.startswith(name))
    pairs = ((chart, points) for chart in charts for points in chart.measures)
    chart, points = next(one for one in pairs if of in ("", one[1].value, one[1].form))
    return replace(chart, points=points, prepare=None)


def on(chart: Chart, run: str, where: str = "", **changes: Any) -> Points:
    """Return the first points of a chart, on rows of a kept run.

    What tells its figures, panels and points apart identifies a point of the page.

    Args:
        chart: of an experiment.
        run: below `results/reference`.
        where: pandas query that selects rows, beside that of the chart.
        changes: fields of the points that differ.
    """
    points, each = chart.measures[0], tuple(dict.fromkeys((*chart.figures, *chart.single, *chart.each)))
    both = " and ".join(filter(None, (points.where, where)))
    return replace(points, **{"run": run, "where": both, "each": each, "values": None, **changes})


def on_each(chart: Chart, runs: Iterable[str], where: str = "", **changes: Any) -> tuple[Points, ...]:
    """Return the first points of a chart on each of some kept runs, see `on`."""
    return tuple(on(chart, run, where, **changes) for run in runs)


# Data: several fields a line.
# fmt: off
_GAIN, _FORCE = (chart_of(timing.VIEWS, name) for name in ("gain_n", "foreseen_n"))
_PARTS, _INTERVALS = (chart_of(timing.BOX_VIEWS, name) for name in ("gain", "interval"))
_IN_CUBES = chart_of(interval.VIEWS, "interval")
_PHASES, _LEFT = chart_of(timing.VIEWS, "phases_n"), chart_of(order_in_gas.VIEWS, "by_interaction", "left")
_MISSES, _RUNGS = chart_of(cache_hit.VIEWS, "misses"), chart_of(ladder.VIEWS, "ladder", GAIN)
_FLOCK, _CAVITY = chart_of(flocking.VIEWS, "times"), chart_of(cavity.VIEWS, "times")
_SEARCHES, _RATES = chart_of(searches.VIEWS, "sizes"), chart_of(encode.VIEWS, "{direction}")
_AGES = replace(chart_of(surface.VIEWS, "gain"), points=Points("gain"))
_IN_BOX = replace(_PARTS, points=replace(_PARTS.measures[0], where="part != 'reorder'"))  # no baseline has it
WORTH = replace(
    _GAIN, name="worth", title="What an order is worth", series="over", title_of_series="over memory that is",
    points=tuple(
        on(_GAIN, run, f"{LINKED} and ordering in ({ORDERS}, 'lattice', {over!r})", over=(over,))
        for run in TIMING for over in BASELINES
    ),
    names=Scale("order", "order"), values=FASTER, selects=(DEVICE, SIZE, FILLING, ORDER),
    caption="Gain of a whole step of linked cells, reorders counted in. Lines are 95 % intervals, or the "
    "range of the rounds if there is one run.",
)
HITS = replace(
    _MISSES, name="misses", title="What a cache model predicts",
    points=tuple(
        on(_MISSES, f"cache_hit/cpu_{shape}",
           f"size == {side} and ordering in ({ORDERS}, 'shuffled') and model in ('block', 'lru') and "
           "cache_particles in (320, 4096)",
           each=("filling_fraction", "ordering", "model", "cache_particles"),
           constants={"shape": shape, "size": f"{side} boxes a side"})
        for shape, side in (("squares", 256), ("cuboids", 64), ("cubes", 64))
    ),
    names=Scale("filling fraction", "filling"), values=Scale("misses a particle", log=10), series="order",
    title_of_series="order",
    selects=(Select("shape", "Shape", "cubes"), Select("model", "Model", "block"),
             Select("cache", "Cache", "320"), ORDER),
    caption="Reads of a particle that the model does not find in the cache, over the share of space that is "
    "filled. Median and range of several gases. The cache is counted in particles.",
)
DECAY = replace(
    _LEFT, name="decay", title="How long a predicted order lasts", prepare=order_in_gas.with_left,
    points=tuple(
        on(_LEFT, f"decay/h200_{run}", f"step > 0 and model == 'block' and cache_particles == 320{more}",
           each=("filling_fraction", "interaction", "step", "size", "speed"), constants={"shape": shape})
        for run, shape, more in (("interaction", "cubes", ""),
                                 ("size", "cubes", " and size != 32"),  # which the first has
                                 ("speed", "squares", ""))
    ),
    names=Scale("steps since the reorder", "step", log=10), values=Scale("share of the extra hits left"),
    title_of_series="gas",
    selects=(Select("shape", "Shape", "cubes"), Select("size", "Boxes a side", "32"),
             Select("filling", "Filling", "25 %"), Select("speed", "Speed (d a step)", "0.01")),
    caption="Share of the extra hits that is left, over the steps since the reorder. Block model, cache of "
    "320 particles. Median and range of three gases.",
)
SIZES = replace(
    WORTH, name="sizes", title="What it buys, by size", form=LINES, names=Scale("spheres", "size", log=10),
    series="order", title_of_series="order",
    selects=(DEVICE, Select("over", "Over", SHUFFLED), FILLING, ORDER),
    caption="Gain of a whole step of linked cells, reorders counted in, over the number of spheres. At 2^23 "
    "only 20 % was measured.",
)
BOX = replace(
    _IN_BOX, name="box", title="What it buys in the shaken box",
    points=tuple(
        on(_IN_BOX, run, f"{'fused' if fused else 'not fused'} and search == 'linked' and "
           f"contact_time == 2e-4 and ordering in ('pancake', {over!r})", statistic="gain of sums",
           over=(over,), each=("filling_fraction", "part", "length_d"), names={"length_d": "box"},
           constants={"over": LATTICE if over == AGED else over, "steps": "fused" if fused else "in phases"})
        for run, ways in (("timing/h100_box", (True,)), ("speed_up/h100", (False,)),
                          ("timing/h200_box", (True,)), ("speed_up/h200_three_runs", (False,)),
                          ("speed_up/h200_1024", (True,)), ("speed_up/cpu", (True, False)))
        for over in OF_BOX for fused in ways
    ),
    names=Scale("filling fraction", "filling"), values=Scale("times as fast", line=1), series="over",
    title_of_series="over memory that is",
    selects=(DEVICE, Select("steps", "Steps", "fused"), Select("part", "Part", "total"),
             Select("box", "Box (d a side)", "512")),
    caption="Gain of a step along the pancake order over the filling fraction; a reorder every 500 steps is "
    "counted in. The numbers of the source are at T11 and T12.",
)
PHASES = replace(
    _PHASES, name="phases", title="Where the time of a step goes",
    points=on_each(_PHASES, TIMING, f"{LINKED} and phase != {_PHASES.whole!r} and ordering in ({ORDERS}, "
                   "'lattice', 'shuffled')"),
    names=Scale("order", "order"), selects=(DEVICE, SIZE, Select("filling", "Filling", "20 %")),
    caption="Phases of a step of linked cells, one behind the other. A fused step integrates in its force.",
)
FORESEEN = replace(
    _FORCE, name="foreseen", title="Foreseen and measured", form=LINES,
    points=tuple(
        on(_FORCE, run, f"{LINKED} and ordering in ({ORDERS}, 'shuffled') and predicted_hit_ratio == "
           "predicted_hit_ratio", across=timing.FORESEEN)
        for run in TIMING
    ),
    names=Scale("foreseen speed-up of the force"), values=Scale("measured speed-up of the force", line=1),
    series="order", title_of_series="order",
    selects=(DEVICE, SIZE, Select("filling", "Filling", has_all=True)),
    caption="Each point is an order at a filling. To the right: speed-up of the force that predicted hits "
    "foresee, if a hit takes a hundredth of a miss. Up: the measured one over shuffled memory.",
)
SURFACES = ("cube_predicted", "cube_between_predicted", "cube_large_predicted", "cube_widest_predicted",
            "fillings_predicted")
SURFACE = replace(
    _AGES, name="surface", title="What an order gains, by size and age",
    points=tuple(
        on(_AGES, f"surface/{run}", f"part == 'force' and occupied_MB == 0{more}",
           each=("filling_fraction", "path_d", "w"), names={"path_d": "age"},
           constants={"numbers": numbers, "chip": chip.upper()})
        for chip, measured in (("h200", ("", "_large", "_widest", "_fillings")), ("h100", ("", "_fillings")))
        for numbers, more, runs in (
            ("foreseen", f" and machine == '{chip}'", SURFACES),
            ("measured", "", [chip + one for one in measured]),
        )
        for run in runs
    ),
    names=Scale("working set over the second cache", "w", log=10), values=FASTER, series="age",
    title_of_series="path flown (d)",
    selects=(Select("chip", "Chip", "H200"), Select("numbers", "Numbers", "foreseen"), FILLING),
    caption="Gain of the force of linked cells along Hilbert's curve over shuffled memory: fresh, and "
    "after spheres have flown a path. Foreseen before it was measured; one run.",
)
INTERVAL = replace(
    _IN_CUBES, name="interval", title="How often to reorder",
    points=(
        *(on(_IN_CUBES, f"interval/{run}") for run in (
            "h200_three_runs", "h200_fast", "h200_slow", "h100_fast", "h200_8388608"
        )),
        on(_IN_CUBES, "interval/h100", "not (filling_fraction == 0.2 and speed == 0.008)"),
        on(_IN_CUBES, "interval/h200", f"not ({IN_THREE_RUNS})"),  # the first three runs have these cases
        on(_INTERVALS, "speed_up/h100_interval", "ordering == 'pancake'", names={"reorder_every": "interval"},
           each=("filling_fraction", "reorder_every"),
           constants={"size": "10^6, shaken box", "speed": "that of the box"}),
    ),
    names=Scale("steps between reorders", "interval", log=10), values=Scale("time over the best", line=1),
    series="filling", title_of_series="filling",
    selects=(DEVICE, SIZE, Select("speed", "Speed (d a step)", "0.008")),
    caption="Time of a step, reorders counted in, over that of the best interval.",
)
COST = replace(
    chart_of(reorder_cost.VIEWS, "cost"), title="What a reorder costs",
    points=on(chart_of(reorder_cost.VIEWS, "cost"), "reorder_cost/h200", "time_ms > 0"),
    names=Scale("particles", "size", log=10), title_of_series="place",
    selects=(Select("memory", "Memory before", SHUFFLED),
             Select("device", "Device", f"{H200}{PART_OF_HOST}")),
    caption="Time of a reorder along Hilbert's curve over the number of particles, by the place where it is "
    "made.",
)
LADDER = replace(
    _RUNGS, name="ladder", title="The tree, step by step",
    points=on_each(_RUNGS, ("ladder/h100", "ladder/h200", "ladder/cpu"), over=("no reorder",),
                   names={"rung": "variant"}),
    names=Scale("variant", "variant"), values=FASTER, series="device", title_of_series="device",
    selects=(Select("device", "Device", H100, has_all=True), SIZE),
    caption="Gain of a step over the tree without a reorder.",
)
FLOCK = replace(
    _FLOCK, name="flock", title="A step of the flock",
    points=on_each(_FLOCK, ("flocking/h200", "flocking/h200_100000", "flocking/cpu", "flocking/cpu_100000"),
                   "name != 'coherent again'", each=("n", "start", "age", "precision", "name"), scale="",
                   names={"name": "search"}),
    names=Scale("search", "search"), values=Scale("time of a step (ms)", log=10), series="device",
    title_of_series="device",
    selects=(DEVICE, Select("size", "Boids", "1,000,000"), Select("start", "Start", "uniform"),
             Select("age", "Steps before", "0")),
    caption="Time of a whole step of boids by every search; behind the comma, the order of memory.",
)
CAVITY = replace(
    _CAVITY, name="cavity", title="A step of the cavity",
    points=on_each(_CAVITY, ("cavity/h200_41", "cavity/h200_1000", "cavity/cpu", "cavity/cpu_4096",
                             "cavity/h200_4096"),
                   "name != 'cuda, arrays again' and name != 'serial, arrays again'",
                   names={"name": "strategy", "n": "points a side"}),
    names=Scale("strategy", "strategy"),
    selects=(Select("device", "Device", f"{H200}{HOST}"), Select("points a side", "Points a side", "1,000")),
    caption="Time of a step with 50 sweeps, by strategy and layout.",
)
_OF_SEARCH = ("n", "filling_fraction", "search")
SEARCHES = replace(
    _SEARCHES, name="searches", title="How long a step is",
    points=(
        *on_each(_SEARCHES, ("searches/h200", "searches/h100", "searches/h200_16777216"),
                 "search != 'verlet again'", each=(*_OF_SEARCH, "cell_order"), names={"cell_order": "order"}),
        on(_SEARCHES, "searches/h200_orders",  # the first run has the other sizes of `row`
           "search != 'verlet again' and (cell_order != 'row' or n == 2**18)",
           each=(*_OF_SEARCH, "cell_order"), names={"cell_order": "order"}),
        on(_SEARCHES, "searches/cpu", each=_OF_SEARCH, constants={"order": "row"}),
    ),
    names=Scale("particles", "size", log=10), series="search",
    selects=(DEVICE, FILLING, Select("order", "Order of cells", "row")),
    caption="Time of a step for each particle, by search and number of particles. LAMMPS, on the same "
    "start, is beside it on the CPU.",
)
ENCODE = replace(
    _RATES, name="encode", title="Points to indices, beside other packages",
    points=on_each(_RATES, ("encode/cpu_vbmi", "encode/cpu_avx2"), "encoder != 'copy again'", scale="",
                   each=("dim", "bits", "direction", "encoder", "registers"),
                   names={"registers": "device", "dim": "dimensions"}),
    names=Scale("encoder", "encoder"), values=Scale("million points a second", log=10), series="direction",
    title_of_series="direction",
    selects=(Select("device", "Registers", "AVX-512 VBMI"), Select("dimensions", "Dimensions", "3"),
             Select("bits", "Bits an axis", "16")),
    caption="Points in a second. A copy of the same bytes is the bound.",
)
CHARTS = {
    chart.name: chart
    for chart in (
        WORTH, HITS, DECAY, SIZES, PHASES, BOX, FORESEEN, SURFACE, INTERVAL, COST, LADDER, FLOCK, CAVITY,
        SEARCHES, ENCODE,
    )
}
