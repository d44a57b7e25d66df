"""What is a memory order worth on a GPU or CPU that need not be there?

The model of memory of `sfc.cache` runs the loads and stores of a force kernel, warp by warp, through the
caches of a machine: sectors that its warps ask for, those that the first cache lacks, bytes from memory, and
the time of a launch. Gains are over shuffled memory, or for a search that sorts its particles over cells in
no order. `experiments.foreseen` has judged the model on launches that it had not seen; the errors in the
answer are from there. A machine is a chip with a file in sfc/cache/machines, or a file that
`experiments.machine` wrote.

On a CPU (sfc/cache/core/processors) the loads of a core go item by item through three caches, for linked,
scattered, coherent and verlet, with forces that are not fused into steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

import sfc
from experiments.core import Axis, Settings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.forecasts.on_cpu import LOAD, foreseen_on_cpu
from experiments.forecasts.predicted import foreseen
from experiments.prediction.drawn_gases import MOST_STEPS, ORDERS, Gas, is_possible
from experiments.prediction.foreseen_systems import BOIDS, CELL_ORDERED
from experiments.prediction.index_cases import KINDS
from experiments.prediction.memory_orders import POINTS, order_of
from experiments.results.answers import Answer, percent, rounded
from experiments.results.baselines import LATTICE, SHUFFLED
from experiments.results.charts import DOTS, FILLED, Chart, Points, Scale
from md.simulation import PRECISIONS
from sfc import checks
from sfc.cache import Machine
from sfc.cache.core import Processor
from sfc.cache.core.processor import KNOWN as CPUS
from sfc.cache.machine import KNOWN as GPUS

KERNELS = tuple(name for name in ORDERS if name not in KINDS)
ERRORS = {  # kernel -> median and largest error of a gain over shuffled memory, of the second draw on an H100
    "linked": (0.062, 0.266), "scattered": (0.071, 0.550), "coherent": (0.110, 0.464),
    "verlet": (0.044, 0.168), "boids": (0.034, 0.082),
}  # fmt: skip
ERRORS_ON_CPUS = (0.107, 0.677)  # the same of all gains of two CPUs
BASE = {name: baselines[0] if baselines else "morton" for name, (baselines, _) in ORDERS.items()}


@dataclass(frozen=True)
class Config(Settings):
    """Launches that are foreseen."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("machine", "ordering")

    backend: str = "cpu"
    """Device, accepted as in every experiment; forecasts run on the CPU."""
    machine: tuple[str, ...] = ("h200",)
    """Chips: h100, h200, or CPUs, such as epyc_genoa; or files that experiments.machine wrote."""
    kernel: Axis[str] = ("linked",)
    """Force kernels: searches, or boids for a flock."""
    n: Axis[int] = (2**20,)
    """Number of particles, at least 1024."""
    filling_fraction: Axis[float] = (0.2,)
    """Volume of the spheres over that of the box, up to 0.5; not of boids."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    ordering: tuple[str, ...] = ("hilbert", "row", "morton")
    """Memory orders: 3D orderings of sfc, strided, tiled_strided, str, lattice, 'window W' of W particles
    shuffled among themselves, or 'aged S' of S steps. Coherent and verlet take 3D orderings alone, verlet
    also shuffled (lists without a sort), wide_bvh curves, boids orderings and windows."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"kernel": KERNELS, "precision": PRECISIONS})
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_least({"n": 1024})
        self.check_particles(3)
        self._check_machines()
        for kernel in values(self.kernel):
            if kernel == BOIDS and [*values(self.filling_fraction)] != [0.2]:
                raise ValueError(
                    "--filling-fraction beside --kernel boids, a flock of one density; allowed: none; leave "
                    "it out"
                )
            for name in self.ordering:
                _check(name, kernel, int(max(values(self.n))))

    def _check_machines(self) -> None:
        """Check that all machines are known and of one kind, and that all kernels are foreseen there.

        Raises:
            ValueError: a GPU beside a CPU, an unknown machine, or a kernel that is not foreseen on CPUs.
        """
        on_cpu = {name: is_cpu(name) for name in self.machine}
        for name in (name for name, is_one in on_cpu.items() if not is_one):
            Machine.read(name)
        if len({*on_cpu.values()}) > 1:
            raise ValueError(
                f"--machine {' '.join(self.machine)}; allowed: GPUs or CPUs alone, of which other "
                "kernels are foreseen; run it for each"
            )
        others = {*values(self.kernel)} - {*LOAD}
        if any(on_cpu.values()) and others:
            known = ", ".join(name for name in LOAD if name in KERNELS)
            raise ValueError(f"--kernel {min(others)} on a CPU; allowed: {known}")
        if any(on_cpu.values()) and "verlet" in values(self.kernel) and SHUFFLED in self.ordering:
            raise ValueError(
                "--ordering shuffled of verlet on a CPU, which sorts; allowed: 3D orderings of sfc"
            )


def is_cpu(name: str) -> bool:
    """Return whether a machine is a CPU: a name, or a file with the table of one."""
    if name in (*CPUS, *GPUS):
        return name in CPUS
    try:
        Processor.read(name)
    except ValueError:
        return False
    return True


def _check(name: str, kernel: str, n: int) -> None:
    """Check that a kernel can have a memory order.

    Raises:
        ValueError: it cannot.
    """
    order = order_of(name)
    if kernel in CELL_ORDERED:
        curves = (one for one in sfc.curves(3) if sfc.curve(one, 3).base == 2)
        known = curves if kernel == "wide_bvh" else sfc.orderings(3)
        if name == SHUFFLED and kernel == "verlet":  # lists over memory that is not sorted
            return
        checks.word(f"ordering of {kernel}, which sorts its particles,", name, tuple(known))
    elif kernel == BOIDS and (order.steps or order.name in (LATTICE, *POINTS)):
        raise ValueError(
            f"ordering {name!r} of boids; allowed: shuffled, 'window W' and {', '.join(sfc.orderings(3))}"
        )
    if not is_possible(name, n):
        raise ValueError(
            f"ordering {name!r} of {n:,} particles; allowed: windows of up to {n // 4:,} particles, and up "
            f"to {MOST_STEPS // n:,} steps"
        )


QUICK = {"n": (2**15,)}
MINUTES = 1


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each machine and memory order, the baseline first."""
    base = BASE[case.kernel]
    orders = (base, *(name for name in case.ordering if name != base))
    gas = Gas(case.kernel, case.n, case.filling_fraction, case.precision, orders)
    first: dict[str, float] = {}
    foresee = foreseen_on_cpu if is_cpu(case.machine[0]) else foreseen
    for row in foresee(gas, case.machine, case.seed):
        of_base = first.setdefault(row["machine"], row["time_us"])
        yield {"particles": case.n, "over": base, "gain": of_base / row["time_us"]} | row


VIEWS = (
    Chart(
        "gains_{kernel}_{precision}", "Foreseen gains of {kernel} over {over} memory, {n} particles", DOTS,
        Points("gain"), Scale("", "ordering"), Scale("foreseen gain", log=10, line=1),
        panels="filling_fraction", series="machine", heading=FILLED, files=("kernel", "precision", "n"),
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say what the first order gains on the first machine."""
    gains = table[table["ordering"] != table["over"]]
    if gains.empty:
        return Answer(pd.DataFrame(), "Only the baseline was foreseen: give --ordering.")
    cases = ["kernel", "n", "filling_fraction", "precision", "machine"]
    rows = gains.groupby(["ordering", *cases], sort=False)["gain"].first().unstack(cases)
    cells = rows.iloc[:, :3].map(rounded)
    cells.columns = [_short(name, gains, cases) for name in cells.columns]
    first = gains.iloc[0]
    kernel = first["kernel"]
    sentence = (
        f"On {first['machine']} {first['ordering']} is foreseen to be {rounded(first['gain'])} times as fast "
        f"as {first['over']} memory ({kernel}, {first['n']:,} particles, "
        f"{percent(first['filling_fraction'])} filled). {_trust(kernel, first['machine'])}"
    )
    return Answer(cells.rename_axis(columns="foreseen gain"), sentence)


def _trust(kernel: str, machine: str) -> str:
    """Say how wrong such gains were where they were judged."""
    if is_cpu(machine):
        median, worst = ERRORS_ON_CPUS
        return (
            f"Gains on two CPUs that the model had not seen were wrong by {percent(median)} in the median, "
            f"by {percent(worst)} at worst."
        )
    if kernel not in ERRORS:
        return "No gain of this kernel was judged."
    median, worst = ERRORS[kernel]
    return (
        f"Such gains of launches of an H100 that the model had not seen were wrong by {percent(median)} in "
        f"the median, by {percent(worst)} at worst."
    )


def _short(values: Any, table: pd.DataFrame, names: list[str]) -> str:
    """Name a column by what differs between columns; by the machine if nothing does."""
    differ = [name for name in names if table[name].nunique() > 1] or ["machine"]
    found = dict(zip(names, values, strict=True))
    return ", ".join(str(found[name]) for name in differ)


if __name__ == "__main__":
    main(
        Config, measure, VIEWS, quick=QUICK, spreads=True, answer=answer, quick_limit=FITS_CACHE,
        minutes=MINUTES,
    )  # fmt: skip
