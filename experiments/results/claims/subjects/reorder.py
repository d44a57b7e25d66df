"""Claims on the cost of a reorder, on its place, and on the interval between reorders."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain, highest, lowest, over_best

COST = "reorder_cost/h200"
BOX, CPU_BOX = "speed_up/h100_interval", "speed_up/cpu_interval"
CUBES, CUBES_H100 = "interval/h200_three_runs", "interval/h100"
FAST_H100 = "interval/h100_fast"  # three runs
CUBES_H200 = ("interval/h200", "interval/h200_8388608")
INTERVAL = "what == 'interval'"
LARGE = f"{INTERVAL} and n >= 2**21"
ENDS = ("box_50", "box_2500", "cube_short", "cube_long")  # shortest and longest intervals
CASE = ("n", "filling_fraction", "speed")
ON_HOST = "place in ('one thread', 'all threads') and memory == '?' and n >= 2**18"
ORDERED = gain(COST, ON_HOST, "fresh", "shuffled")
THREADS = gain(COST, "place == '?' and n >= 2**18", "all threads", "one thread")
FEWER = gain(COST, "place == '?' and n < 2**18", "all threads", "one thread")
SORT = gain(COST, "place == '?'", "device", "all threads")
HOST = gain(COST, "place == '?'", "device", "host and back")


def in_box(interval: int, run: Runs = BOX) -> Query:
    """Compare an interval in the shaken box with the best one."""
    return over_best(run, "ordering == 'pancake'", interval, "reorder_every", "sums over best")


def doubled(speed: float) -> Query:
    """Compare reorders every 80 steps with those every 40."""
    return gain(CUBES, f"{INTERVAL} and speed == {speed} and interval == ?", 80, 40)


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "T1", "depends", "Reordering ordered memory is faster than shuffled; many threads beat one.",
        short="Ordered memory reorders faster, threads help", there="figure 5.1, no number",
        quote="""The results are shown in Fig. 5.1 and as expected the CPU cache accelerates the "reordering"
        of already ordered particles quite a bit and the multi-threaded algorithm is significantly faster.""",
        sentence="Threads gain from 2^18 on; ordered memory less than the noise.",
        here="ordered {ordered}, threads {threads.value} at worst",
        figure="reorder_cost/h200/cost.png",
        confirmed_if="ordered.above(1) and threads.above(1)",
        refuted_if="ordered.below(1, of=2) or threads.below(1, of=2)",
        sentence_if="threads.above(1) and not ordered.above(1)",
        queries={
            "ordered": lowest(ORDERED, "n", "place"), "threads": lowest(THREADS, "n", "memory"),
            "threads_small": lowest(FEWER, "n", "memory"),
        },
    ),
    Claim(
        "T14", "refuted", "The CPU is the better place to reorder (assumed).",
        short="The CPU is the place to reorder", there="assumed, untested",
        quote="We only assummed that reordering particles on the CPU would be faster due to the large cache",
        sentence="Not on Hopper, even without copies.",
        here="device over the host's sort {sort_least} to {sort_most.value}",
        figure="reorder_cost/h200/cost.png",
        confirmed_if="sort_most.below(1) and sort_least.below(1)",
        refuted_if="sort_least.above(1)",
        queries={
            "host_least": lowest(HOST, "n", "memory"), "host_most": highest(HOST, "n", "memory"),
            "sort_least": lowest(SORT, "n", "memory"), "sort_most": highest(SORT, "n", "memory"),
        },
    ),
    Claim(
        "T15", "confirmed", "There is an optimal interval between reorders; 500 steps is good.",
        short="An optimal interval exists, 500 is good", there="no analysis; 500",
        quote="""there should be an optimum of simulation steps between reorders ... In the system we studied,
        500 simulation steps was a good compromise, however no rigorous analysis has been performed.""",
        sentence="In the shaken box; in cubes fast spheres want shorter intervals.",
        here="500 over the best: box {box_500}, cubes {cube_500.value} H200, {h100_500.value} H100",
        figure="speed_up/h100_interval/interval.png",
        confirmed_if=both("?.above(1)", *ENDS) + " and box_500.high < 1.1",
        refuted_if="box_500.above(1.25, of=5) or " + both("?.below(1, of=5)", *ENDS, by=" or "),
        sentence_if="cube_500.high < 1.1 and h100_500.low > 1.1",
        queries={
            **{f"box_{interval}": in_box(interval) for interval in (50, 250, 500, 2500)},
            "cube_short": lowest(over_best(CUBES, INTERVAL, 20), "speed"),
            "cube_long": lowest(over_best(CUBES, INTERVAL, 2560), "speed"),
            "cube_500": highest(over_best(CUBES, INTERVAL, 500), "speed"),
            "short": lowest(over_best(CUBES_H200, LARGE, 5), *CASE),
            "long": lowest(over_best(CUBES_H200, LARGE, 2560), *CASE),
            "at_500": highest(over_best(CUBES_H200, LARGE, 500), *CASE),
            "h100_short": lowest(over_best(CUBES_H100, LARGE, 20), *CASE),
            "h100_long": lowest(over_best(CUBES_H100, LARGE, 2560), *CASE),
            "h100_500": over_best(FAST_H100, INTERVAL, 500), "slow_40": doubled(0.002),
            "fast_40": doubled(0.008), "cpu_250": in_box(250, CPU_BOX),
        },
    ),
)
