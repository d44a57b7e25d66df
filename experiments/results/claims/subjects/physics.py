"""Claims on the physics of the simulated gas."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, highest, lowest, number

CPU, DILUTE = "cooling/cpu_decades", "cooling/h200_5_percent"
BOTH = (CPU, "cooling/h200_10_percent")
DECADES = {
    "first": "1 <= temperature_start / temperature <= 10",
    "second": "10 < temperature_start / temperature <= 100",
    "third": "100 < temperature_start / temperature <= 1000",
}


def cooling_time(run: Runs, where: str, decade: str) -> Query:
    """Ask for the cooling time over Enskog's in a decade of the temperature."""
    along = "(temperature_start / temperature) ** 0.5"
    where = f"{where} and {DECADES[decade]}"
    return number(run, where, "time / cooling_time_theory", "slope", along)


def of_16384(decade: str, column: str) -> Query:
    """Ask for the mean of a column in a decade."""
    return number(CPU, f"n == 16384 and {DECADES[decade]}", column, "mean")


NEAR = ("dilute", "small")
DENSE = "filling_fraction == 0.1 and restitution == 0.8"
AT_5 = "filling_fraction == 0.05"

# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "T13", "depends", "The code reproduces Haff's law of homogeneous cooling.",
        short="Haff's law of homogeneous cooling", there='"reproduces" it',
        quote="""We checked the correctness of the code by verifying that it correctly reproduces Haff's law
        of homogeneous cooling""",
        sentence="Time: at 10 % filling the gas starts to flow, at 5 % not.",
        here="over Enskog's time, 10 %: {first.value} to {third} by decade; 5 %: {dilute_third.value}",
        figure="cooling/cpu_decades/decades.png",
        confirmed_if=both("?.low > 0.95 and ?.high < 1.05", "dilute_third", "dilute_least", *DECADES),
        refuted_if="""first.low > 1.05 and dilute_third.low > 1.05 or first.high < 0.95 and dilute_third.high
        < 0.95""",
        sentence_if=both("?.high < 1.05", *(f"{gas}_{decade}" for gas in NEAR for decade in DECADES))
        + """ and first.high < third.low and third.low > 1.05 and flow_third.low > flow_first.high and
        counts_third.low > counts_first.high""",
        queries={
            **{decade: highest(cooling_time(BOTH, DENSE, decade), "n") for decade in DECADES},
            **{f"small_{decade}": cooling_time(CPU, "n == 1024", decade) for decade in DECADES},
            **{f"dilute_{decade}": highest(cooling_time(DILUTE, AT_5, decade), "n", "restitution")
                for decade in DECADES},
            "dilute_least": lowest(cooling_time(DILUTE, AT_5, "third"), "n", "restitution"),
            "flow_first": of_16384("first", "flow_energy"), "flow_third": of_16384("third", "flow_energy"),
            "counts_first": of_16384("first", "count_variance"),
            "counts_third": of_16384("third", "count_variance"),
        },
    ),
)
