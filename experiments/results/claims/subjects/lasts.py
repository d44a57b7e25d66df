"""Claims on the decay of predicted hits: how long an order lasts."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain, number

SPEED, INTERACTION, SIZE = "decay/h200_speed", "decay/h200_interaction", "decay/h200_size"
HARD, DENSE, SPACE = "decay/cpu_speed_elastic", "decay/cpu_speed_elastic_dense", "decay/cpu_interval"
BLOCK = "model == 'block' and cache_particles == 320"
LARGER_CACHE = "model == 'block' and cache_particles == 1024"
EXCESS = "hit_ratio - hit_ratio_shuffled"
SPEEDS = {"slow": 0.003, "middle": 0.01, "fast": 0.03}  # d a step


def half(run: Runs, where: str, model: str = BLOCK) -> Query:
    """Ask for the steps until half of the excess hits are lost."""
    return number(run, f"{model} and {where}", EXCESS, "half", along="step")


def left(run: Runs, where: str, late: str, early: str = "step == 0") -> Query:
    """Ask for the share of the excess hits that is left."""
    return gain(run, f"{BLOCK} and {where} and ?", late, early, EXCESS, "share")


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "T5", "confirmed", "Without interaction hits decay faster at higher temperature (10, 50 %).",
        short="Hits decay faster at higher temperature", there="figures 5.7, 5.8",
        quote="""As we expected, higher velocities lead to faster decorrelation of particle positions and a
        faster decay of the cache-hit ratio.""",
        sentence="Nearly an identity without collisions; with them the order is the same.",
        here="half lost after {slow_10.value}, {middle_10.value}, {fast_10.value} steps",
        figure="decay/h200_speed/by_speed.png",
        confirmed_if="""slow_10.low > middle_10.high and middle_10.low > fast_10.high and slow_50.low >
        middle_50.high and middle_50.low > fast_50.high""",
        refuted_if="slow_10.high < fast_10.low or slow_50.high < fast_50.low",
        sentence_if="""hard_slow.low > hard_middle.high and hard_middle.low > hard_fast.high and
        dense_slow.low > dense_fast.high and space_slow.low > space_middle.high and space_middle.low >
        space_fast.high""",
        queries={
            **{f"{name}_{phi}": half(SPEED, f"filling_fraction == {phi / 100:g} and speed == {speed}")
                for phi in (10, 50) for name, speed in SPEEDS.items()},
            **{f"hard_{name}": half(HARD, f"speed == {speed}") for name, speed in SPEEDS.items()},
            "dense_slow": left(DENSE, "speed == 0.003", "165 < step < 175"),
            "dense_fast": left(DENSE, "speed == 0.03", "165 < step < 175"),
            "space_slow": left(SPACE, "filling_fraction == 0.4 and speed == 0.0005", "step == 2560"),
            "space_middle": left(SPACE, "filling_fraction == 0.4 and speed == 0.002", "step == 2560"),
            "space_fast": left(SPACE, "filling_fraction == 0.4 and speed == 0.008", "step == 2560"),
        },
    ),
    Claim(
        "T7", "depends", "25 %: collisions slow the decay; inelastic gases freeze and it halts.",
        short="Collisions slow decay, freezing halts it", there="figures 5.10, 5.11",
        quote="""It is clear that at a filling fraction of 25% the confinement due to collisions slows down
        the decay of the cache-hit ratio quite significantly. Also for inelastic collisions the system freezes
        and the decay slowly comes to a halt.""",
        sentence="The word halt: inelastic gases go on losing hits after step 10,000.",
        here="""half lost after {ideal.value}, {elastic.value}, {inelastic.value} steps: ideal, elastic,
        inelastic""",
        figure="decay/h200_interaction/by_interaction.png",
        confirmed_if="elastic.low > ideal.high and inelastic.low > elastic.high and late.low > 0.95",
        refuted_if="elastic.high < ideal.low or inelastic.high < elastic.low",
        sentence_if="elastic.low > ideal.high and inelastic.low > elastic.high and late.high < 0.95",
        queries={
            **{name: half(INTERACTION, f"filling_fraction == 0.25 and interaction == '{name}'")
                for name in ("ideal", "elastic", "inelastic")},
            "late": left(INTERACTION, "filling_fraction == 0.25 and interaction == 'inelastic'",
                "step == 20000", "9500 < step < 10500"),
        },
    ),
    Claim(
        "T8", "confirmed", "The decay does not depend on system size at fixed filling.",
        short="Decay does not depend on size", there="figure 5.12",
        quote="""The system size (apart from the expected artefacts once the system size becomes comparable to
        the cache size as discussed above) does not seem to have an affect on the decay, as shown in Fig.
        5.12.""",
        sentence="Within a tenth, where less than a tenth of the system fits the cache.",
        here="half lost after {half_32.value}, {half_64.value}, {half_128.value} steps at 32, 64, 128 boxes",
        figure="decay/h200_size/by_size.png",
        confirmed_if=both(
            "half_?.low > 0.9 * half_128.high and half_?.high < 1.1 * half_128.low", "32", "64"),
        refuted_if="half_64.high < 0.9 * half_128.low or half_64.low > 1.1 * half_128.high",
        sentence_if="half_16.high < half_128.low",
        queries={
            **{f"half_{size}": half(SIZE, f"size == {size}") for size in (16, 32, 64, 128)},
            **{f"half_{size}_of_1024": half(SIZE, f"size == {size}", LARGER_CACHE) for size in (64, 128)},
        },
    ),
)
