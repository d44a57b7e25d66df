"""Claims on models that foresee the gain of an order."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import both, gain, number

H100, CPU = "timing/h100", "timing/cpu_three_runs"


MODEL = "1 / (predicted_hit_ratio / 100 + 1 - predicted_hit_ratio)"  # [thesis]: a miss takes 100 hits' time


def force(percent: int, ordering: str = "?", linked: str = "search == 'linked' and ") -> str:
    """Return the filter of the force at a filling."""
    return f"{linked}ordering == '{ordering}' and phase == 'force' and filling_fraction == {percent / 100:g}"


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
        sentence="""Foreseen gains fall with the filling, those measured on GPUs rise, as by a model of warps
        and both caches.""",
        here="measured {measured_5}, {measured_40.value} at 5, 40 %; foreseen {foreseen_40.value} at 40 %",
        figure="timing/h100/foreseen_n2097152_linked_float32_fused.png",
        confirmed_if=both("measured_?.low <= foreseen_?.value <= measured_?.high", "5", "20", "40"),
        refuted_if="""foreseen_5.value > foreseen_40.value and measured_5.high < measured_40.low or
        foreseen_5.value < foreseen_40.value and measured_5.low > measured_40.high""",
        sentence_if="""foreseen_5.low > foreseen_40.high and measured_5.high < measured_40.low and
        lattice_5.high < lattice_40.low and warps_5.value < warps_20.value < warps_40.value""",
        queries={
            **{f"foreseen_{phi}": number(H100, force(phi, "hilbert"), MODEL) for phi in (5, 20, 40)},
            **{f"measured_{phi}": gain(H100, force(phi), "hilbert", "shuffled") for phi in (5, 20, 40)},
            **{f"lattice_{phi}": gain(H100, force(phi), "hilbert", "lattice") for phi in (5, 40)},
            **{f"warps_{phi}": number(f"surface/{'cube' if phi == 20 else 'fillings'}_predicted",
                f"machine == 'h100' and n == 2**22 and path_d == 0 and filling_fraction == {phi / 100:g}",
                "gain") for phi in (5, 20, 40)},
            **{f"cpu_{phi}": gain(CPU, force(phi, linked=""), "hilbert", "shuffled") for phi in (5, 40)},
        },
    ),
)
