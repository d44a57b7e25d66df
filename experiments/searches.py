"""Which neighbour search is fastest, in which order of the cells, and how near is it to what memory allows?

The gas on which peers are compared. After the warm-up the touching pairs are compared with those that a fresh
`linked` finds in the same positions; then samples of many steps are timed. Beside the time stands the floor:
what this memory takes to read and write every position and velocity once, which no step can do without.

`--peers lammps` measures LAMMPS too, on as many cores and from the very same start: it is checked against
our run first, and then takes turns with `verlet`, the search of its own kind, sample by sample.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

import md
import sfc
from experiments.core import Settings, main, save_table, style, values
from experiments.peers import PEERS, Peer, PeerError, Sample
from md.state import Particles

PRECISIONS = ("float32", "float64")
PEER_BESIDE = "verlet"
_CHECK_STEPS, _TOLERANCE = 20, 1e-9  # of a peer: positions in d, and the relative kinetic energy
_FLOOR_REPEATS = 6  # an even number: then all arrays are back in their roles
_GROUP = ["n", "filling_fraction", "search", "cell_order", "precision"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of the searches."""

    n: tuple[int, ...] = (2**14, 2**17, 2**20)
    """Particles."""
    filling_fraction: tuple[float, ...] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    search: tuple[str, ...] = ("linked", "scattered", "coherent", "verlet", "tiles")
    """Any search of `md.search`; naive takes n squared, reflexive steps that are not fused."""
    cell_order: tuple[str, ...] = ("row",)
    """Order of the cells: coherent, tiles and verlet sort the particles by it, others once before."""
    skin: float = 0.3
    """Of verlet, in d."""
    precision: tuple[str, ...] = ("float64",)
    """float32, float64."""
    samples: int = 5
    """Timed samples of each case."""
    steps: int = 20
    """Steps in a sample; on a GPU take 200, so that launches overlap and each holds many rebuilds."""
    warmup: int = 20
    """Steps before the timed ones; on a GPU take 200."""
    peers: list[str] = field(default_factory=list)
    """Other codes to measure beside verlet in float64 on the CPU, on as many cores: lammps."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "search": tuple(md.search.SEARCHES),
            "cell_order": sfc.orderings(3),
            "precision": PRECISIONS,
        }
        self.check_known(known)
        for name in self.peers:
            if name not in PEERS:
                raise ValueError(f"--peers: unknown {name!r}; known: {', '.join(PEERS)}")
        self.check_least({"n": 2, "samples": 1, "steps": 1, "warmup": 1, "skin": 0})
        self.check_above_zero({"filling_fraction": 0.5})
        for name in values(self.search):
            kind = md.search.SEARCHES[name]
            if kind.sorts_data and not set(values(self.cell_order)) & set(kind.cell_orders(3)):
                raise ValueError(
                    f"--search {name} beside --cell-order {' '.join(values(self.cell_order))}; allowed: "
                    f"{', '.join(kind.cell_orders(3))}"
                )
        if self.peers:
            self._check_peers()

    def _check_peers(self) -> None:
        """Refuse peers that are not installed, or that this sweep would not measure."""
        for name in self.peers:
            PEERS[name].require()
        if md.backend.get(self.backend).name != "cpu":
            raise ValueError("--peers run on the CPU, simulations on a GPU; take --backend cpu")
        swept = isinstance(self.search, tuple)  # else one case of a sweep
        wanted = {(PEER_BESIDE, PEERS[name].precision) for name in self.peers}
        if swept and not wanted <= {(s, p) for s in self.search for p in values(self.precision)}:
            raise ValueError(
                f"--peers are measured beside verlet in their own precision; add --search {PEER_BESIDE} "
                f"--precision {' '.join(sorted(p for _, p in wanted))}"
            )


QUICK = {"n": (2**12, 2**15), "filling_fraction": (0.2,), "samples": 3}


def measure(case: Config) -> Iterator[dict]:
    """A row for each sample: the mean time of its steps, beside the floor."""
    kind = md.search.SEARCHES[case.search]
    if kind.sorts_data and case.cell_order not in kind.cell_orders(3):
        return
    sim = _simulation(case)
    sim.run(case.warmup, phases=False)
    touching = _check(case, sim)
    common = {
        "temperature_start": md.observe.temperature(sim.state),
        "touching_pairs": touching,
        "partners_read": len(sim.accesses().reads) / case.n,
    }
    builds = sim.builds
    sim.timings.clear()
    with ExitStack() as stack:
        theirs = {name: (stack.enter_context(peer), []) for name, peer in _peers(case)}
        for peer, _ in theirs.values():
            _check_peer(case, peer)
        for k in range(case.samples):
            sim.run(case.steps, phases=False)
            for peer, samples in theirs.values():
                samples.append(peer.sample(case.warmup + k * case.steps, case.steps))
    floor = _floor_ms(case.n, case.precision, case.backend)
    common |= {
        "temperature_end": md.observe.temperature(sim.state),
        "steps_per_build": case.samples * case.steps / max(sim.builds - builds, 1),
    }
    for k, (_, time) in enumerate(sim.timings.total):
        gains = {f"speed_up_over_{name}": of[k].time_ms / time for name, (_, of) in theirs.items()}
        yield common | _timed(case, time, floor) | _bandwidth(case, time, common["partners_read"]) | gains
    for peer, samples in theirs.values():
        yield from _peer_rows(case, peer, samples, floor)


def _timed(case: Config, time_ms: float, floor_ms: float) -> dict:
    """The columns that say how long a sample took."""
    return {
        "floor_ms": floor_ms,
        "time_ms": time_ms / case.steps,
        "particle_steps_per_s": 1e3 * case.n * case.steps / time_ms,
        "share_of_floor": floor_ms * case.steps / time_ms,
    }


def _bandwidth(case: Config, time_ms: float, partners: float) -> dict:
    """Bytes a second: of what a step must read and write, and of what its force kernel asks for.

    The first are the rows of positions and velocities, once in and once out. The second has the row of every
    partner's position besides, most of which a cache holds.
    """
    row = _row_bytes(md.backend.get(case.backend).layout, case.precision)
    rows_per_s = 1e3 * case.n * case.steps / time_ms
    return {
        "moved_GB_per_s": 1e-9 * rows_per_s * 4 * row,
        "asked_GB_per_s": 1e-9 * rows_per_s * (4 + partners) * row,
    }


def _peers(case: Config) -> Iterator[tuple[str, Peer]]:
    for name in case.peers:
        if (case.search, case.precision) == (PEER_BESIDE, PEERS[name].precision):
            workers = md.backend.get(case.backend).workers
            yield name, PEERS[name](_start(case), md.scenes.SHARED_LAW, md.scenes.SHARED_DT, workers)


def _check_peer(case: Config, peer: Peer) -> None:
    """Refuse a peer that does not take our steps."""
    theirs = peer.after(_CHECK_STEPS)
    sim = _simulation(case)
    sim.run(_CHECK_STEPS, phases=False)
    ours, theirs = sim.state.by_id(), theirs.by_id()
    apart = ours.pos - theirs.pos
    apart -= np.round(apart / ours.box.lengths) * ours.box.lengths
    energy = md.observe.kinetic_energy(theirs) / md.observe.kinetic_energy(ours) - 1
    for what, error in {"positions": np.abs(apart).max(), "kinetic energy": abs(energy)}.items():
        if not error <= _TOLERANCE:
            raise PeerError(
                f"after {_CHECK_STEPS} steps the {what} of {peer.name} and ours differ by {error:.3g}; "
                f"allowed: {_TOLERANCE}; not recorded"
            )


def _peer_rows(case: Config, peer: Peer, samples: list[Sample], floor_ms: float) -> Iterator[dict]:
    common = {
        "search": peer.name,
        "cell_order": "its own",
        "temperature_start": samples[0].temperature_start,
        "temperature_end": samples[-1].temperature_end,
        "steps_per_build": len(samples) * case.steps / max(sum(s.builds for s in samples), 1),
    }
    for sample in samples:
        told = {"partners_read": sample.partners_read, "version": sample.version}
        yield common | told | _timed(case, sample.time_ms, floor_ms)


def _start(case: Config) -> md.State:
    gas = _gas(case.n, case.filling_fraction, case.seed)
    return md.scenes.in_memory_order(gas, "shuffled", case.seed)


def _simulation(case: Config) -> md.Simulation:
    search, reorder = case.search, None
    if search == "verlet":
        search = md.search.Verlet(case.cell_order, case.skin)
    elif md.search.SEARCHES[search].sorts_data:
        search = md.search.SEARCHES[search](case.cell_order)
    else:
        reorder = md.Reorder(case.cell_order, lambda step: step == 0)
    return md.Simulation(
        _start(case),
        md.scenes.SHARED_LAW,
        search=search,
        dt=md.scenes.SHARED_DT,
        reorder=reorder,
        backend=case.backend,
        precision=case.precision,
        fused=md.search.search(search).fuses,
    )


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int) -> md.State:
    return md.scenes.shared_gas(n, filling_fraction, seed=seed)


def _check(case: Config, sim: md.Simulation) -> int:
    """The number of touching pairs, which must be those that `linked` finds in the same positions."""
    found = sim.pairs()
    other = "coherent" if case.search == "linked" else "linked"
    fresh = md.Simulation(
        sim.state, sim.law, search=other, dt=sim.dt, backend=case.backend, precision=case.precision
    )
    if not np.array_equal(found, fresh.pairs()):
        raise ValueError(f"{case.search} finds other pairs than {other}; not recorded")
    return len(found)


@lru_cache
def _floor_ms(n: int, precision: str, backend: str) -> float:
    """Time to read and write every row of positions and velocities, from a permutation that moves nothing.

    The permutation moves the names and reads itself besides; the time is scaled to the rows alone.
    """
    place = md.backend.get(backend)
    dtype = np.dtype(precision)
    box = md.Box((4.0, 4.0, 4.0))
    particles = Particles(md.State(np.zeros((n, 3)), np.zeros((n, 3)), box), dtype, place)
    still = place.upload(np.arange(n, dtype=np.int32))
    particles.permute(still)  # compiles

    def repeat() -> None:
        for _ in range(_FLOOR_REPEATS):
            particles.permute(still)

    launch = place.record(repeat) if place.runs_ahead else repeat  # so that no launch is waited for
    times = []
    for _ in range(7):
        with place.stopwatch() as elapsed:
            launch()
        times.append(elapsed[0] / _FLOOR_REPEATS)
    row = _row_bytes(place.layout, dtype)
    return float(np.median(times)) * 4 * row / (4 * row + 3 * still.itemsize)


def _row_bytes(layout: str, precision: str | np.dtype) -> int:
    """Of one particle's position or velocity."""
    return (4 if layout == "aos4" else 3) * np.dtype(precision).itemsize


def draw(table: pd.DataFrame, out: Path) -> None:
    """Time per particle over size for each filling fraction; shares of the floor; the numbers as a table."""
    table = table.assign(
        ns=1e6 * table["time_ms"] / table["n"], floor_ns=1e6 * table["floor_ms"] / table["n"]
    )
    of_peer = table["search"].isin([peer.name for peer in PEERS.values()])
    several = table.loc[~of_peer, "cell_order"].nunique() > 1
    table["name"] = table["search"].where(
        of_peer, table["search"] + (", " + table["cell_order"] if several else "")
    )
    table["of_peer"] = of_peer
    for precision, rows in table.groupby("precision"):
        style.save(_sizes(rows, f"{precision}, shared gas"), out, f"sizes_{precision}")
    spread = table.groupby(_GROUP, sort=False)["time_ms"].describe(percentiles=[0.25, 0.5, 0.75])
    spread = spread[["count", "25%", "50%", "75%"]].reset_index()
    spread.columns = [*_GROUP, "samples", "time_ms_q25", "time_ms_median", "time_ms_q75"]
    spread["giga_particle_steps_per_s"] = 1e-6 * spread["n"] / spread["time_ms_median"]
    for gain in table.filter(like="speed_up_over_"):
        spread[gain] = table.groupby(_GROUP, sort=False)[gain].median().to_numpy()
    save_table(spread, out, "summary")


def _sizes(rows: pd.DataFrame, title: str) -> plt.Figure:
    fractions = sorted(rows["filling_fraction"].unique())
    names, peers = (list(dict.fromkeys(rows.loc[of, "name"])) for of in (~rows["of_peer"], rows["of_peer"]))
    size = (3.1 * len(fractions) + 1.6, 3.3)
    figure, panels = plt.subplots(1, len(fractions), figsize=size, squeeze=False, sharey=True)
    for panel, fraction in zip(panels[0], fractions, strict=True):
        part = rows[rows["filling_fraction"] == fraction]
        spread = {"estimator": "median", "errorbar": ("pi", 50)}
        last = fraction == fractions[-1]
        lines = {"x": "n", "y": "ns", "ax": panel, "legend": last} | spread
        sns.lineplot(part[~part["of_peer"]], **lines, **style.lines_in_turn(names, "name"))
        if part["of_peer"].any():
            sns.lineplot(part[part["of_peer"]], **lines, **style.peers_in_turn(peers, "name"))
        floor = part.groupby("n")["floor_ns"].median()
        panel.plot(floor.index, floor, color="0.5", linestyle=":", label="floor of memory" if last else None)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set(xlabel="particles", ylabel="time per particle and step (ns)")
        panel.set_title(f"filling fraction {fraction:g}", fontsize=9)
    panels[0][-1].legend(
        title="search, or peer" if peers else "search", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left"
    )
    figure.suptitle(f"{title}; median and quartiles over samples", fontsize=9)
    return figure


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
