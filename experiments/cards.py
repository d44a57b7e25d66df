"""How much faster is one gas on several GPUs, or on several processes of a CPU, at once?

Each card has a process of its own, which mpiexec starts; together they have one gas (`md.Division`). `weak`
has n particles a card, so that cards ideally take as long as one of them has them alone; `strong` has n in
all. Before it is timed, a small gas in float64 on the same cards is compared with that of one card, particle
by particle. `time_ms` is the median of some samples of a step, from barrier to barrier. One card is measured
twice: the difference is noise. With `--backend cpu` processes of one thread each take the place of cards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.processes.at_once import Gas, time_at_once
from experiments.results import gains
from experiments.results.answers import Answer, gain_in_words, grid, headline, one_run, rounded
from experiments.results.baselines import again, is_again
from experiments.results.charts import DOTS, Chart, Points, Scale, Summary
from md.backend import Backend
from md.domain.division import TRANSPORTS
from md.simulation import PRECISIONS

WEAK, STRONG = "weak", "strong"
USUAL = "usual"
ONE = "1 card"


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of cards."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cards",)

    mode: Axis[str] = (WEAK, STRONG)
    """weak: n particles a card; strong: n in all."""
    n: Axis[int] = (2**21, 2**23, 2**25)
    """Number of particles, a card or in all."""
    cards: tuple[int, ...] = (1, 2, 4)
    """Numbers of cards, or of processes. One is always measured."""
    filling_fraction: Axis[float] = (0.2,)
    """Volume of the spheres over that of the box."""
    precision: Axis[str] = ("float32",)
    """Precision of positions."""
    order: Axis[str] = (USUAL,)
    """Orders of the cells, of which each card has a chunk; row makes slabs."""
    transport: Axis[str] = (USUAL,)
    """How ghosts go from card to card: peer, nccl, host, or the fastest that is there."""
    travel: Axis[float] = (0.0,)
    """Distance in d that a particle may travel between two migrations; 0 for the usual one."""
    warmup: int = 400
    """Number of steps before the first sample."""
    steps: int = 480
    """Number of steps of a sample."""
    samples: int = 5
    """Number of samples of a process; their median counts."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "mode": (WEAK, STRONG), "precision": PRECISIONS, "transport": (USUAL, *TRANSPORTS),
            "order": (USUAL, *sfc.orderings(3)),
        })  # fmt: skip
        self.check_least({"n": 1000, "cards": 1, "warmup": 1, "steps": 1, "samples": 1, "travel": 0})
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_particles(3)


QUICK = {
    "mode": (WEAK,), "n": (2**15,), "cards": (1, 2), "runs": 1, "rounds": 2, "warmup": 20, "steps": 40,
    "samples": 2,
}  # fmt: skip
MINUTES = 45


def cards_in_words(count: int) -> str:
    """Return the name of a case: "1 card", "2 cards"."""
    return ONE if count == 1 else f"{count} cards"


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, with a row for each number of cards."""
    backend = md.backend.get(case.backend)
    counts = dict.fromkeys((1, *case.cards))
    names = {cards_in_words(count): count for count in counts}
    entries = [
        _entry(case, name, count, backend) for name, count in ({ONE: 1, again(ONE): 1} | names).items()
    ]
    yield from take_rounds(entries, case.rounds, backend, seed=case.seed, begin=begin, settle=0)


def _entry(case: Config, name: str, count: int, backend: Backend) -> Entry:
    n = case.n * count if case.mode == WEAK else case.n
    order, transport = ("" if one == USUAL else one for one in (case.order, case.transport))
    gas = Gas(
        n, case.filling_fraction, case.seed, backend.name, case.precision, order, case.travel, transport,
        case.warmup, case.steps, case.samples,
    )  # fmt: skip

    def sample() -> Iterator[dict]:
        found = time_at_once(count, gas)
        time = float(np.median(found["times_ms"]))
        yield {
            "time_ms": time, "sample_ms": case.steps * sum(found["times_ms"]),
            "particle_steps_per_ns": 1e-6 * n / time, "halo_share": found["ghosts"] / n,
            "migrations": found["migrations"], "devices": ", ".join(sorted(set(found["devices"]))),
        }  # fmt: skip

    columns = {"cards": name, "count": count, "n_all": n, "n_card": n / count}
    return Entry(columns | working_set(n, 3, case.precision, backend), sample, threads=count)


def _weak(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["mode"] == WEAK]


def _strong(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["mode"] == STRONG]


_OVER: dict[str, Any] = {"over": (ONE,), "compared": "cards"}
_WHERE = ("filling_fraction", "precision", "order", "transport", "travel")
VIEWS = (
    Chart(
        "weak", "{n} particles a card: {best} are {value} times as fast as one", DOTS,
        Points("time_ms", **_OVER), Scale("", "cards"), Scale("time of one card over that of all", line=1),
        "n", prepare=_weak, files=_WHERE, note="{devices}", title_of_series="particles a card",
    ),
    Chart(
        "strong", "{n} particles in all: {best} are {value} times as fast as one", DOTS,
        Points("time_ms", **_OVER), Scale("", "cards"), Scale("gain over one card", log=2),
        "n", prepare=_strong, files=_WHERE, note="{devices}", title_of_series="particles in all",
    ),
    Summary(
        ("mode", "n", *_WHERE), "cards", (ONE,),
        more={"particle_steps_per_ns": "mean", "halo_share": "mean", "migrations": "mean"},
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say how efficient the most cards are at each size, and the most particle-steps a nanosecond."""
    rows = headline(table, *_WHERE)
    found = gains.gains(rows, ["mode", "n"], "cards", ONE)
    found = found[~found["cards"].map(is_again)] if len(found) else found
    if found.empty:
        return Answer(pd.DataFrame(), f"Only one card was measured; give --cards.{one_run(rows)}")
    most = rows.sort_values("particle_steps_per_ns").iloc[-1]
    found["case"] = found["mode"] + " " + found["n"].map("{:,}".format)
    cells = grid(found, "case", "cards", gain_in_words, f"gain over {ONE}")
    sentence = (
        f"{rounded(most['particle_steps_per_ns'])} particle-steps a nanosecond by {most['n_all']:,} "
        f"particles on {most['cards']} ({most['devices']}). Gain in time over one card: weak 1 is ideal, "
        "strong the number of cards."
    )
    return Answer(cells, sentence + one_run(rows))


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
