"""Claims on the searches of a flock."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain

LARGE, SMALL, CPU = "flocking/h200", "flocking/h200_100000", "flocking/cpu"
NAIVE, SCATTERED = "naive", "scattered, shuffled"
STEPS = ("scattered", "coherent", "staged")


def faster(run: Runs, this: str, over: str) -> Query:
    """Compare two searches of boids that are spread evenly."""
    return gain(run, "age == 0 and start == 'uniform' and name == '?'", this, over)


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "B1", "refuted",
        "Scattered beats naive, coherent beats scattered, staged neighbour cells beat coherent.",
        short="Scattered, coherent, staged: each the faster", there="an order, no number",
        quote="""Cutting the middleman ... Shared-memory Optimization ... shovel all neighbor grids of a warp
        to shared memory""",
        sentence="Staging loses on the GPU, which alone has shared memory.",
        here="H200 {scattered.value}, {coherent.value}, {staged}",
        figure="flocking/h200/rungs_float32.png",
        confirmed_if=both("?.above(1)", *STEPS),
        refuted_if=both("?.below(1, of=3)", *STEPS, by=" or "),
        sentence_if="""scattered.above(1) and coherent.above(1) and scattered_cpu.above(1) and
        coherent_cpu.above(1) and staged_cpu.above(1) and staged_small.below(1)""",
        queries={
            "scattered": faster(SMALL, SCATTERED, NAIVE), "coherent": faster(LARGE, "coherent", SCATTERED),
            "staged": faster(LARGE, "tiles", "coherent"), "staged_small": faster(SMALL, "tiles", "coherent"),
            "scattered_cpu": faster(CPU, SCATTERED, NAIVE),
            "coherent_cpu": faster(CPU, "coherent", SCATTERED),
            "staged_cpu": faster(CPU, "tiles", "coherent"),
        },
    ),
)
