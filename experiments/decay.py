"""How long does a memory order last in a gas: by predicted hits, and beside measured times?

The particles are sorted once, and then move: freely, or in elastic or inelastic collisions. At growing
intervals the hit ratio of the search's reads is predicted, and with it the part that is left of the gain over
the same particles in shuffled memory. The half-life is the step at which that part crosses one half, in each
gas; a gas that keeps more has none. A stretched exponential is fitted to the median over gases as well, and
is drawn and listed only if it is within 0.02 of the gain of every observation.

A step lasts one time unit, so speeds are in d per step. Spheres are nearly hard: a contact lasts at most a
tenth of Enskog's time between two collisions of a particle, so that the spheres of a faster gas are stiffer.
With `--contact-steps` they are the same at every speed. A step is divided into as many integrator steps as
contacts need. Positions are float64 unless `--precision` is given, so that no freezing is numerical.

With `--measured` nothing is simulated. Kept runs of `interval` have the time of a step by the age of the
order; those of `decay` predict the hits of the same elastic gas at the same ages (made with
`--contact-steps 25 --interaction elastic`). The loss of the gain is the growth of a step's time, or of the
misses, since the reorder; `wear`, in the names of columns, is the measured loss. The full loss is the one to
shuffled memory, if the run of `interval` has rows of it; if not, both half-lives are those of the loss up to
the oldest age that was timed. A prediction of another speed is scaled to the same path flown. Whether the
path alone decides is a second table: losses at two speeds after the same path.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, main, save_table, values
from experiments.core.old_names import experiment_now
from experiments.core.record import read_provenance
from experiments.core.rerun import read_table_now
from experiments.core.settings import UsageError, flag_of
from experiments.core.terminal import FEW_PARTICLES
from experiments.drawing.charts import draw
from experiments.prediction import wear
from experiments.prediction.cache_models import check_models, predicted
from experiments.prediction.half_life import (
    SMALL_RESIDUAL,
    crossing,
    fit,
    is_fitted,
    stretched_exponential,
    with_range,
)
from experiments.prediction.systems import GEOMETRIES, own_side
from experiments.results.answers import Answer, case_in_words, percent, rounded, rows_of, spread
from experiments.results.charts import DOTS, FILLED, FIRST, GIVEN, LINES, Chart, Points, Scale, View
from md.laws import SpringDashpot
from md.laws.spring_dashpot import LEAST_RESTITUTION, resolving_steps
from md.observe import kinetic_theory
from md.simulation import PRECISIONS

INTERACTIONS = ("ideal", "elastic", "inelastic")
HARD = 0.1  # contact time over the time between two collisions of a particle, at most
DEEPEST = 0.15  # d: largest overlap of two particles of typical speed, head on
LEAST_STEPS = 20  # integrator steps in a contact
SHOWN = 320
_CASE = ["geometry", "size", "filling_fraction", "interaction", "speed", "ordering"]
_LINE = [*_CASE, "model", "cache_particles"]
_OF_RUNS = ("backend", "seed", "repeats", "measured", "predicted")
QUICK = {
    "size": (16,),
    "filling_fraction": (0.25,),
    "speed": (0.01,),
    "cache": (64, SHOWN),
    "steps": 400,
    "observations": 12,
}
MINUTES = 3.5  # CPU time of 3 of 18 cases, times the particles of the others


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of gases with an aging memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache", "model")

    geometry: Axis[str] = ("cubes",)
    """Geometries: squares (discs in a plane) or cubes."""
    size: Axis[int] = (32,)
    """Side of the system in boxes."""
    filling_fraction: Axis[float] = (0.1, 0.25, 0.5)
    """Volume of the spheres over that of the box."""
    interaction: Axis[str] = INTERACTIONS
    """Interactions of the particles: ideal (they fly through each other), elastic, inelastic."""
    speed: Axis[float] = (0.003, 0.01)
    """Root mean square speed of a particle at the start, in d per step."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: orderings of `sfc`."""
    cache: tuple[int, ...] = (64, SHOWN, 1024, 4096, 33125)
    """Capacities of the cache in particles."""
    model: tuple[str, ...] = ("block", "lru")
    """Models of the cache; block is that of [thesis]."""
    steps: int = 2000
    """Number of steps after the reorder."""
    path: float = 0.0
    """Distance in d that a particle flies at the speed of the start after the reorder, instead of `--steps`:
    gases of any speed are observed at the same distances. 0 for `--steps`."""
    contact_steps: float = 0.0
    """Duration of a contact in steps at every speed: one kind of spheres at several temperatures. 0 for a
    tenth of the time between two collisions of a particle, which becomes shorter with speed."""
    observations: int = 30
    """Number of observations, at equal distances in the logarithm of the steps."""
    restitution: float = 0.8
    """Coefficient of restitution of inelastic collisions."""
    precision: str = "float64"
    """Precision of positions, velocities and forces."""
    measured: list[str] = field(default_factory=list)
    """Folders of kept runs of `interval`, which are compared with `predicted`, without any gas."""
    predicted: list[str] = field(default_factory=lambda: ["results/reference/decay/cpu_interval"])
    """Folders of kept runs of `decay`, of elastic gases in cubes, beside `measured`."""

    def __post_init__(self):
        if self.measured:  # no gas, so no axis
            object.__setattr__(self, "TOGETHER", ("cache", "model", *_CASE))
        super().__post_init__()
        known = {
            "geometry": ("squares", "cubes"),
            "interaction": INTERACTIONS,
            "ordering": tuple(sorted({*sfc.orderings(2), *sfc.orderings(3)})),
            "precision": PRECISIONS,
        }
        self.check_known(known)
        check_models(self.model, self.cache)
        self.check_least({"size": 2, "steps": 1, "observations": 3})
        self.check("speed", above=0, high=1, unit="d per step")
        self.check("restitution", low=LEAST_RESTITUTION, below=1)
        self.check("path", low=0, unit="d")
        self.check("contact_steps", low=0, high=1e6, unit="steps")
        self.check_memory(f"--observations {self.observations}", self.observations, "observations")
        for kind in values(self.geometry):
            self.check("filling_fraction", above=0, high=GEOMETRIES[kind].densest, remedy=f"these are {kind}")
            for size in values(self.size):
                particles = GEOMETRIES[kind].particles(size, 1, self.highest("filling_fraction"))
                self.check_memory(f"--size {size} of {kind}", particles, "particles")
        self._check_runs()

    def _check_runs(self) -> None:
        """Check that settings of gases are not given beside runs, of which none are made."""
        for one in fields(self) if self.measured else ():
            given = getattr(self, one.name)
            if one.name not in _OF_RUNS and given not in (one.default, QUICK.get(one.name)):
                raise UsageError(
                    f"{flag_of(one.name)} {' '.join(map(str, values(given)))} beside --measured, which makes "
                    "no gas; allowed: one of the two"
                )


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each observation, model and capacity; or for each age of a curve of a kept run."""
    if case.measured:
        yield from _curves_of_runs(case)
        return
    geometry = GEOMETRIES[case.geometry]
    if case.ordering not in sfc.orderings(geometry.ordered):
        return
    side = own_side(case.ordering, case.size, geometry.ordered)
    kind = "ideal" if case.interaction == "ideal" else "granular"  # with the positions of its equilibrium
    warmth = case.speed**2 / geometry.dim
    gas = geometry.gas(side, 1, case.filling_fraction, kind, warmth, case.seed, case.backend)
    fraction = geometry.own_fraction(case.filling_fraction)
    free = 1 / kinetic_theory.collision_rate(fraction, warmth, geometry.dim)
    law, contact, parts = _law(case, free)
    depth = side if geometry.dim == 3 else 1
    common: dict[str, Any] = {"nx": side, "ny": side, "nz": depth, "particles": len(gas)}
    common |= {"contact_steps": contact, "free_steps": free, "integrator_steps_per_step": parts}

    def simulation(state: md.State) -> md.Simulation:
        options: dict[str, Any] = {"backend": case.backend, "precision": case.precision, "fused": True}
        return md.Simulation(state, law, search="linked", dt=1 / parts, **options)

    sim = simulation(geometry.in_order(gas, case.ordering, case.seed))
    last = max(1, math.ceil(case.path / case.speed)) if case.path else case.steps
    later = np.unique(np.rint(np.geomspace(1, last, case.observations)).astype(int))
    generator = np.random.default_rng([case.seed, 3])
    for step in (0, *later.tolist()):
        sim.run(step * parts - sim.step, phases=False)
        state = sim.state
        speed = math.sqrt(2 * md.observe.kinetic_energy(state))
        unordered = simulation(state.take(generator.permutation(len(state))))
        shuffled = predicted(unordered.accesses(), case.model, case.cache)
        for row, other in zip(predicted(sim.accesses(), case.model, case.cache), shuffled, strict=True):
            at = {"step": step, "speed_d_per_step": speed, "hit_ratio_shuffled": other["hit_ratio"]}
            yield common | at | row


def _law(case: Config, free: float) -> tuple[SpringDashpot, float, int]:
    """Return the law, the duration of a contact in steps, and the integrator steps per step."""
    if case.interaction == "ideal":
        return SpringDashpot(0.0, 0.0), 0.0, 1
    contact = case.contact_steps or min(HARD * free, DEEPEST * math.pi / case.speed)
    e = 1.0 if case.interaction == "elastic" else case.restitution
    law = SpringDashpot.from_restitution(e, contact_time=contact)
    return law, contact, max(1, math.ceil(max(LEAST_STEPS, resolving_steps(e)) / contact))


def _curves_of_runs(case: Config) -> Iterator[dict]:
    """Yield a row for each age of each curve, with the run that it is from."""
    measured, guessed = (case.measured, "interval"), (case.predicted, "decay")
    for (runs, name), curves in ((measured, wear.measured_curves), (guessed, wear.predicted_curves)):
        for run in runs:
            found = curves(kept(run, name)).rename(columns={"repeat": "sample"})
            yield from ({"source": run, **row} for row in found.to_dict("records"))


def kept(run: str, experiment: str) -> pd.DataFrame:
    """Read the table of a kept run, under the present names.

    Args:
        run: its folder.
        experiment: name of the experiment of which it has to be a run.

    Raises:
        UsageError: no run, or one of another experiment.
    """
    table, found = read_table_now(Path(run)), read_provenance(Path(run)).get("experiment")
    if experiment_now(str(found)) != experiment or "source" in table:  # curves of runs are no run of a gas
        raise UsageError(f"{run} is a run of {found}; allowed: the folder of a run of {experiment}")
    return table


def excess(rows: pd.DataFrame) -> pd.Series:
    """Compute the share of the gain over shuffled memory that is left; NaN if there was no gain."""
    more = rows["hit_ratio"] - rows["hit_ratio_shuffled"]
    first = more.groupby([rows[name] for name in (*_LINE, "repeat")]).transform("first")
    return more / first.where(first > 1e-3)  # of all reads


def half_lives(table: pd.DataFrame) -> pd.DataFrame:
    """List the half-lives of every case, model and capacity, with their range over gases.

    Args:
        table: rows of `measure` with the column `left` of `excess`.

    Returns:
        Columns of a case; `gases`, and how many of them reached half within `last_step`; hit ratios (medians
        over gases); `half_life_crossing_*` in steps and in d flown since the reorder, as median, lowest and
        highest over gases, empty where that one was not reached; `fit`, "within 0.02" or "none", with the
        largest residual as a part of the gain, and `fit_scale_steps` and `fit_exponent` of
        2^-(steps / scale)^exponent if there is one. The scale may lie beyond `last_step`: it is no half-life.
    """
    found = []
    for key, rows in table.groupby(_LINE, sort=False):
        gases = [gas for _, gas in rows.groupby("repeat")]
        steps = np.array([crossing(gas["step"].to_numpy(), gas["left"].to_numpy()) for gas in gases])
        flown = np.array([flown_at(gas, step) for gas, step in zip(gases, steps, strict=True)])
        last = int(rows["step"].max())
        ends, middle = rows[rows["step"] == last], rows.groupby("step")["left"].median()
        scale, b, residual = fit(middle.index.to_numpy(), middle.to_numpy())
        is_near = is_fitted(residual)
        found.append({
            **dict(zip(_LINE, key, strict=True)),
            "gases": len(gases),
            "gases_at_half": int(np.isfinite(steps).sum()),
            "last_step": last,
            "hit_ratio_first": rows.loc[rows["step"] == 0, "hit_ratio"].median(),
            "hit_ratio_last": ends["hit_ratio"].median(),
            "hit_ratio_shuffled": rows["hit_ratio_shuffled"].median(),
            "left_last": ends["left"].median(),
            **with_range("half_life_crossing_steps", steps),
            **with_range("half_life_crossing_flown_d", flown),
            "fit": f"within {SMALL_RESIDUAL:g}" if is_near else "none",
            "fit_residual_largest": residual,
            "fit_scale_steps": scale if is_near else math.nan,
            "fit_exponent": b if is_near else math.nan,
        })  # fmt: skip
    return pd.DataFrame(found)


def flown_at(gas: pd.DataFrame, step: float) -> float:
    """Return the distance in d flown until a step, at the root mean square speed; NaN for a step of NaN."""
    at, speed = gas["step"].to_numpy(), gas["speed_d_per_step"].to_numpy()
    flown = np.concatenate([[0.0], np.cumsum(np.diff(at) * (speed[1:] + speed[:-1]) / 2)])
    return float(np.interp(step, at, flown)) if np.isfinite(step) else math.nan


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Select the first model and the capacity near `SHOWN` that has a gain; add what figures show."""
    table = table[table["model"] == table["model"].iloc[0]]
    table = table.assign(left=excess(table), path=table["step"] * table["speed"])
    gains = table.loc[table["left"].notna(), "cache_particles"].unique()
    capacities = gains if len(gains) else table["cache_particles"].unique()
    capacity = capacities[np.abs(np.log(capacities / SHOWN)).argmin()]
    rows = table[table["cache_particles"] == capacity]
    lives = half_lives(rows)
    rows = rows.merge(lives[[*_CASE, "fit_scale_steps", "fit_exponent"]], on=_CASE, how="left")
    fitted = stretched_exponential(rows["step"], rows["fit_scale_steps"], rows["fit_exponent"])
    return rows.assign(fitted=fitted)


def _halves(table: pd.DataFrame) -> pd.DataFrame:
    """List the half-lives of what figures show, with the name of each case in them."""
    lives = half_lives(_shown(table)).rename(columns={"gases": "runs"})
    names = [name for name in ("size", "interaction", "speed", "ordering") if lives[name].nunique() > 1]
    every: list[Any] = lives.to_dict("records")
    return lives.assign(case=[case_in_words(life, names or ["interaction"]) for life in every])


def _gas(rows: pd.DataFrame) -> str:
    """Describe what all lines of a figure share, and the cache."""
    words = {
        "geometry": "{}", "size": "{} boxes a side", "interaction": "{} gas", "speed": "{:g} d per step",
        "ordering": "order {}", "model": "{} model", "cache_particles": "cache of {:.0f} particles",
    }  # fmt: skip
    return ", ".join(of.format(rows[name].iloc[0]) for name, of in words.items() if rows[name].nunique() == 1)


def _later(rows: pd.DataFrame) -> str:
    """Describe the gas, and name the cases that keep more than half."""
    late = rows[rows["half_life_crossing_steps"].isna() & rows["left_last"].notna()]
    named = [
        f"{row['case']} at {percent(row['filling_fraction'])} ({percent(row['left_last'])} left)"
        for row in late.to_dict("records")
    ]
    return "\n".join([_gas(rows), *([f"half not reached: {', '.join(named)}"] if named else [])])


def _of_loss(rows: pd.DataFrame) -> str:
    """Describe a case, and the prediction beside it."""
    first, guess = rows.iloc[0], rows.loc[rows["what"] == "predicted", wear.PREDICTION]
    note = f"{first['n']:,} particles, {first['search']}, {first['ordering']}, {first['precision']}; grey: "
    note += f"{wear.LEAST_LOSS:.0%}, the least loss judged"
    for model, cache in guess.drop_duplicates().itertuples(index=False):
        note += f"; predicted: {model}, cache of {cache:.0f} particles, median and range over gases"
    return note


_STEPS = Scale("steps after the reorder", "step", log=10, from_zero=True)
_LINEAR = Scale("steps after the reorder", "step")
_PATH = Scale("path since the reorder (d)", "path", log=10)
_FLOWN = Scale("path flown by then (d)", log=10)
_HIT, _LEFT = Scale("predicted hit ratio", ends=(0, 1)), Scale("left of the gain over shuffled", line=0.5)
_LOST = Scale("part of the gain in hits that is lost (%)", log=10)
_GROWN = Scale("growth of a step's time (%)", log=10, line=100 * wear.LEAST_LOSS)
_AT = "At {filling_fraction} filled, {of_worst} of the reads hit {step} steps after the reorder"
_BY = {  # series -> its title, its words in the sentence, axis of what is left
    "speed": ("speed (d per step)", " at {worst} d a step", _PATH),
    "interaction": ("interaction", " in the {worst} gas", None),
    "size": ("boxes a side", " at {worst} boxes a side", None),
    "ordering": ("memory order", " along {worst}", None),
}
_NEARLY = Points("fitted", statistic=FIRST, values=_LEFT)
OF_GASES: tuple[View, ...] = (
    *(
        Chart(
            f"by_{column}", _AT + words, LINES,
            (Points("hit_ratio"), Points("left", "step > 0" if at else "", values=_LEFT, at=at)),
            _STEPS, _HIT, column, title, "filling_fraction", FILLED, note=_gas, varying=(column,),
            files=tuple(name for name in _CASE if name not in (column, "filling_fraction")),
            bounds=(replace(_NEARLY, where="step > 0", at=at),), gaps=False, prepare=_shown,
        )
        for column, (title, words, at) in _BY.items()
    ),
    Chart(
        "by_filling_fraction", _AT.replace("filling_fraction", "worst"), LINES,
        (Points("hit_ratio"), Points("left", values=_LEFT)), _STEPS, _HIT, "filling_fraction",
        "filling fraction", files=("geometry",), single=tuple(_BY), bounds=(_NEARLY,), note=_gas,
        prepare=_shown,
    ),
    Chart(
        "linear_by_interaction", _AT + " in the {worst} gas", LINES,
        (Points("hit_ratio", "step <= 0.1 * step.max()"), Points("hit_ratio")), _LINEAR, _HIT,
        "interaction", "interaction", "filling_fraction", FILLED, varying=("interaction",),
        files=("geometry", "size", "speed", "ordering"), note=_gas, prepare=_shown,
    ),
    Chart(
        "half_lives", "At {filling_fraction} filled, half of the gain is left after {value} steps: {best}",
        DOTS,
        (Points("half_life_crossing_steps", statistic=GIVEN),
         Points("half_life_crossing_flown_d", statistic=GIVEN, values=_FLOWN)),
        Scale("", "case"), Scale("half-life of the gain (steps)", log=10), panels="filling_fraction",
        heading=FILLED, files=("geometry",), note=_later, prepare=_halves,
    ),
    lambda table, out: save_table(half_lives(table.assign(left=excess(table))), out, "half_lives"),
)  # fmt: skip
OF_RUNS: tuple[View, ...] = (
    Chart(
        "wear", "At {filling_fraction} filled, a step takes {of_worst} % longer after {flown} d flown", LINES,
        (Points("lost", "what == 'measured'"), Points("lost", "what == 'predicted'", values=_LOST)),
        Scale("path flown since the reorder (d)", "flown", log=10), _GROWN, "speed", "speed (d per step)",
        "filling_fraction", FILLED, files=("n", "ordering", "search", "precision"), note=_of_loss,
        gaps=False, prepare=wear.losses,
    ),
    lambda table, out: save_table(wear.compare(wear.curves_of(table)), out, "half_lives"),
    lambda table, out: save_table(wear.at_equal_paths(wear.curves_of(table)), out, "equal_paths"),
)  # fmt: skip
VIEWS = (lambda table, out: draw(OF_RUNS if "source" in table else OF_GASES, table, out),)


def answer(table: pd.DataFrame) -> Answer:
    """Say after how many steps half of an order's gain is lost; of runs, compare measured and predicted."""
    if "source" in table:
        return _answer_of_runs(table)
    lives = half_lives(_shown(table))
    cells = {
        "half-life (steps)": lambda row: _life(row, "steps"),
        "flown by then (d)": lambda row: _life(row, "flown_d"),
        "left at the end": lambda row: f"{percent(row['left_last'])} after {row['last_step']:,} steps",
    }
    first = lives.to_dict("records")[0]
    where = f"{first['gases']} gases, {percent(first['filling_fraction'])} filled, {first['interaction']}"
    where += (
        f", {first['speed']:g} d a step; {first['model']} model, cache of {first['cache_particles']:,.0f}"
    )
    sentence = f"{_loss(first)} ({where} particles)."
    reached = lives.loc[lives["gases_at_half"] == lives["gases"], "half_life_crossing_steps"]
    if len(lives) > 1 and len(reached):
        ends = " to ".join(dict.fromkeys((rounded(reached.min()), rounded(reached.max()))))
        sentence += f" {len(reached)} of {len(lives)} cases fall to one half, after {ends} steps."
    elif len(lives) > 1:
        sentence += f" In none of {len(lives)} cases do all gases reach one half."
    return Answer(rows_of(lives, _CASE, cells), sentence)


def _life(row: dict, unit: str) -> str:
    """Format the half-life of a case, with its range over gases."""
    half, low, high = (row[f"half_life_crossing_{unit}{end}"] for end in ("", "_low", "_high"))
    if not np.isfinite(half):
        return "not reached"
    return f"{rounded(half)} ({rounded(low)} to {rounded(high) if np.isfinite(high) else 'later'})"


def _loss(row: dict) -> str:
    """Say when half of the gain of a case is lost, or how much is left at the end."""
    gain = f"the gain of {row['ordering']} over shuffled memory"
    if not np.isfinite(row["left_last"]):
        return f"There is nothing to lose: {gain} is below 0.1 % of the reads"
    if np.isfinite(row["half_life_crossing_steps"]):
        steps, flown = _life(row, "steps"), _life(row, "flown_d")
        return f"Half of {gain} in hits is lost {steps} steps, or {flown} d flown, after the reorder"
    share = percent(row["left_last"])
    return f"Of {gain} in hits, {share} is left {row['last_step']:,} steps after the reorder"


def _answer_of_runs(table: pd.DataFrame) -> Answer:
    found, ratio = wear.compare(wear.curves_of(table)), "half_wear_over_half_decay"
    if ratio not in found:
        sentence = f"Of {len(found)} measured cases none has a prediction of its order and filling fraction."
        return Answer(pd.DataFrame(), sentence)
    shown = found[wear.is_shown(found)]
    halves = {"measured (steps)": "half_wear_steps", "predicted (steps)": "half_decay_steps"}
    cells: dict[str, Any] = {
        title: lambda row, name=name: spread([row[name + end] for end in ("", "_low", "_high")])
        for title, name in halves.items()
    }
    cells["ratio"] = lambda row: rounded(row[ratio])
    ratios = shown[ratio].dropna()
    model = f"{shown['model'].iloc[0]} model, {shown['cache_particles'].iloc[0]:,.0f} particles"
    sentence = (
        f"In none of {len(shown)} cases both the measured wear and the predicted hits have a half-life."
    )
    if len(ratios):
        sentence = (
            f"The half-life of the measured wear is {spread(ratios)} times that of the predicted hits "
            f"({model}), in the {len(ratios)} of {len(shown)} cases that have both."
        )
    return Answer(rows_of(shown, list(wear.CASE), cells), sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
