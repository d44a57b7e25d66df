"""Claims on the strategies of a lid-driven cavity."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain

CPU, SMALL, LARGE = "cavity/cpu", "cavity/h200_41", "cavity/h200_1000"


def faster(run: Runs, n: int, this: str, over: str) -> Query:
    """Compare two ways to compute a cavity."""
    return gain(run, f"n == {n} and precision == 'float64' and name == '?'", this, over)


def arrays(run: Runs, n: int, strategy: str) -> Query:
    """Compare arrays with an array of structs."""
    return faster(run, n, f"{strategy}, arrays", f"{strategy}, structs")


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "F1", "depends", "41 x 41: serial 2.5 times numpy; threads, CUDA slower than serial.",
        short="41 x 41: serial beats numpy, threads, CUDA", there="2.5; CUDA 20 to 30 % slower",
        quote="""I we see that the C++ version has imporved performance by about a factor of 2.5x. ... the
        small-scale implementations perform quite poorly compared to the serial implementation. ... that is
        only slows us down by about 20%-30% from the efficient C++ version in the 41x41 case.""",
        sentence="The layout: CUDA beats serial on structs, and loses on arrays.",
        here="serial over numpy {serial}; over serial: threads {threads.value}, CUDA {cuda}",
        figure="cavity/h200_41/gains.png",
        confirmed_if="""serial.high >= 2.5 and serial_host.high >= 2.5 and threads.below(1) and
        threads_host.below(1) and cuda.below(1)""",
        refuted_if="""serial.below(1.75) and serial_host.below(1.75) and threads.above(1) and
        threads_host.above(1) and cuda.above(1)""",
        sentence_if="serial.above(1) and threads.below(1) and cuda.above(1) and cuda_arrays.below(1)",
        queries={
            "serial": faster(CPU, 41, "serial, structs", "numpy"),
            "serial_host": faster(SMALL, 41, "serial, structs", "numpy"),
            "threads": faster(CPU, 41, "threads, structs", "serial, structs"),
            "threads_host": faster(SMALL, 41, "threads, structs", "serial, structs"),
            "cuda": faster(SMALL, 41, "cuda, structs", "serial, structs"),
            "cuda_arrays": faster(SMALL, 41, "cuda, arrays", "serial, arrays"),
        },
    ),
    Claim(
        "F2", "depends", "1000 x 1000: threads gain 9 %; CUDA 10 times; tiles slower.",
        short="Large: threads little, CUDA much, tiles nothing", there="1.09; 10; below 1",
        quote="""The net result is still about a 9% performance improvement ... This is a 10x speedup in the
        1000x1000 grid case vs. our serial C++ implementation. ... this use case was not ideal and caused a
        noticable slow down.""",
        sentence="The baseline, serial on structs, is slower than numpy; the threads' gain is unexplained.",
        here="two threads {threads}; CUDA {cuda}; tiles {tiles.value}",
        figure="cavity/h200_1000/gains.png",
        confirmed_if="""not threads.above(1.09) and not threads_host.above(1.09) and cuda.high >= 10 and
        tiles.below(1)""",
        refuted_if="threads.above(1.09) and threads_host.above(1.09) and cuda.below(5.5) and tiles.above(1)",
        sentence_if="""cuda.low > 10 and threads.low > 2 and threads_host.above(1.09) and
        serial_numpy.below(1) and tiles.low > 0.95 and tiles.high < 1.05""",
        queries={
            "threads": faster(CPU, 1000, "threads, structs", "serial, structs"),
            "threads_host": faster(LARGE, 1000, "threads, structs", "serial, structs"),
            "cuda": faster(LARGE, 1000, "cuda, structs", "serial, structs"),
            "serial_numpy": faster(CPU, 1000, "serial, structs", "numpy"),
            "tiles": faster("cavity/h200_1000_device", 1000, "tiled", "cuda, arrays"),
        },
    ),
    Claim(
        "F3", "confirmed", "Arrays instead of an array of structs speed up all three.",
        short="Arrays instead of structs speed up all", there='"true in the CUDA cases"; else untested',
        quote="""It is my belief that a noticible performance gain can be seen in all three of our atempted
        optimizations by discarding the cell structure in favor of arrays for the data. Small preliminary
        tests have shown me that this is true in the CUDA cases.""",
        sentence="Threads and CUDA; tiles were not measured on structs.",
        here="threads {threads}, {threads_host.value}; CUDA {cuda.value}",
        figure="cavity/cpu/gains.png",
        confirmed_if=both("?.above(1)", "threads", "threads_host", "cuda"),
        refuted_if=both("?.below(1, of=3)", "threads", "threads_host", "cuda", by=" or "),
        sentence_if="serial.above(1) and serial_host.above(1)",
        queries={
            "serial": arrays(CPU, 1000, "serial"), "serial_host": arrays(LARGE, 1000, "serial"),
            "threads": arrays(CPU, 1000, "threads"), "threads_host": arrays(LARGE, 1000, "threads"),
            "cuda": arrays(LARGE, 1000, "cuda"), "cuda_small": arrays(SMALL, 41, "cuda"),
        },
    ),
)
