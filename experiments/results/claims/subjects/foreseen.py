"""Claims on models that foresee the gain of an order."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, both, gain, number

H100, CPU = "timing/h100", "timing/cpu_three_runs"


def foreseen(percent: int) -> Query:
    """Ask for the gain of [thesis]'s formula: a miss takes as long as 100 hits."""
    where = f"search == 'linked' and ordering == 'hilbert' and phase == 'force' and {filled(percent)}"
    return number(H100, where, "1 / (predicted_hit_ratio / 100 + 1 - predicted_hit_ratio)")


def measured(percent: int, over: str = "shuffled") -> Query:
    """Compare the force along Hilbert's curve with that in other memory."""
    where = f"search == 'linked' and ordering == '?' and phase == 'force' and {filled(percent)}"
    return gain(H100, where, "hilbert", over)


def on_cpu(percent: int) -> Query:
    """Compare the force on a CPU."""
    where = f"ordering == '?' and phase == 'force' and {filled(percent)}"
    return gain(CPU, where, "hilbert", "shuffled")


def filled(percent: int) -> str:
    """Return the filter of a filling."""
    return f"filling_fraction == {percent / 100:g}"


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "T4", "refuted", "Hit ratios foresee the speed-up, at a miss of 100 hits.",
        short="Hit ratios foresee the speed-up", there="figures 5.4, 5.6",
        quote="""A factor of 100 was used for the difference in access time between cache hit (served from
        local memory) and cache miss (served from global memory). ... increases to more than three times as
        fast with higher filling fractions, which in line with the expectations from the theoretical
        results.""",
        sentence="Foreseen gains fall with the filling, those measured on GPUs rise.",
        here="measured {measured_5}, {measured_40.value} at 5, 40 %; foreseen {foreseen_40.value} at 40 %",
        figure="timing/h100/foreseen_n2097152_linked_float32_fused.png",
        confirmed_if=both("measured_?.low <= foreseen_?.value <= measured_?.high", "5", "20", "40"),
        refuted_if="""foreseen_5.value > foreseen_40.value and measured_5.high < measured_40.low or
        foreseen_5.value < foreseen_40.value and measured_5.low > measured_40.high""",
        sentence_if="""foreseen_5.low > foreseen_40.high and measured_5.high < measured_40.low and
        lattice_5.high < lattice_40.low""",
        queries={
            **{f"foreseen_{phi}": foreseen(phi) for phi in (5, 20, 40)},
            **{f"measured_{phi}": measured(phi) for phi in (5, 20, 40)},
            **{f"lattice_{phi}": measured(phi, "lattice") for phi in (5, 40)},
            **{f"cpu_{phi}": on_cpu(phi) for phi in (5, 40)},
        },
    ),
)
