"""How many points a second are encoded and decoded, by each curve and other packages, and how many copied?

Cells are random, in rows of (n, dim) integers. A key is the index of a cell along the curve. Calls check
that cells are inside the grid, and keys on the curve, and fill given arrays. With `narrowest`, cells and keys
have the fewest bytes that hold them; with `int64`, cells are int64 and keys uint64. `copy` moves the same
bytes, half of them read and half written: cells and keys, one of which a call reads, while it writes the
other. Curves of base 3 have other bytes than those of base 2, and a copy of their own.

Other packages are measured beside the curves on the CPU, where they are installed: hilbertsfc,
numpy-hilbert-curve and geopandas, each in its own layout of arrays. hilbertsfc does not check cells. In 3D
the Hilbert curve of hilbertsfc is another than ours, and that of numpy-hilbert-curve is `skilling`. A slow
package gets fewer points (column `points`), so all gains are ratios of times of a point.

Before anything is timed, cells are encoded and decoded: all must be the same as before, and keys those of a
walk through the curve's automaton, level by level in numpy, if it has one. Keys of other packages in 2D must
be ours, up to a symmetry of the square; those in other dimensions must decode to their cells.

All curves and packages of a case are sampled once a round, in random order: a call that is not timed, and
`calls` timed calls. The copy is measured twice: the difference of the two is noise.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

import numba
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_decoded, check_keys, check_same_curve
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.peers import ENCODERS, Encoder
from experiments.results import gains
from experiments.results.answers import (
    Answer,
    estimate,
    grid,
    headline,
    listed,
    one_run,
    pair_in_words,
    quoted,
    rounded,
)
from experiments.results.baselines import again, is_again
from experiments.results.charts import DOTS, FIRST, Chart, Points, Scale, Table
from md.backend import Backend
from sfc.automaton import registers

DTYPES = ("narrowest", "int64")
DIRECTIONS = ("encode", "decode")
COPY, OURS, THEIRS, MEMORY = "copy", "sfc", "package", "memory"
WORD = 16  # bytes of a number of a copy, the widest load of a device
RATE = "Mpoints_per_s"
LARGE = 1e4  # of such a rate: then the axis has another unit
_FIGURE = ["n", "dtype", "direction"]
_CASE = [*_FIGURE, "dim", "bits"]
_NAMES = ["package", "curve"]
_MEDIANS = ["threads", "points", "ns_per_point", "GB_per_s"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of grids. All curves and packages of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("curve", "peers")

    n: Axis[int] = (2**21,)
    """Number of points. Take 134217728 on a GPU."""
    curve: tuple[str, ...] = field(default_factory=sfc.curves)
    """Curves of `sfc`; those that do not exist in a dimension, or on a GPU, are left out there."""
    dim: Axis[int] = (2, 3, 4)
    """Number of dimensions."""
    bits: Axis[int] = (10, 16, 21)
    """Orders of the curves: bits of a coordinate, or digits for a base of 3. Curves with keys of more than 64
    bits are left out."""
    dtype: Axis[str] = DTYPES
    """Types of cells and keys: narrowest for the fewest bytes that hold them, or int64."""
    direction: Axis[str] = DIRECTIONS
    """Directions: encode from cells to keys, decode from keys to cells."""
    peers: list[str] = field(default_factory=lambda: list(ENCODERS))
    """Other packages, on the CPU. Those that are not installed are left out."""
    threads: int = 1
    """Number of threads of the host. numpy-hilbert-curve and geopandas use one."""
    calls: int = 3
    """Number of calls in a sample. Take 20 on a GPU."""

    def __post_init__(self):
        super().__post_init__()
        known = {"curve": sfc.curves(), "dtype": DTYPES, "direction": DIRECTIONS, "peers": tuple(ENCODERS)}
        self.check_known(known)
        self.check_least({"n": 1, "dim": 1, "bits": 1, "calls": 1})
        self.check("threads", low=1, high=numba.config.NUMBA_NUM_THREADS)
        if isinstance(self.bits, tuple):  # else this is one case of a sweep
            self._check_grids()
        wide = "int64" in values(self.dtype)
        each = 8 if wide else np.min_scalar_type(2 ** min(values(self.bits)) - 1).itemsize
        bases = {curve.base for dim in values(self.dim) for curve in self.curves(dim)}
        # Of each base cells given, decoded and copied, and keys; on a device the cells are on the host too.
        each *= len(bases) * (3 * int(self.highest("dim")) + 1) + len(self.curve)
        for n in values(self.n):
            self.check_memory(f"--n {n}", n, "points", each)

    def curves(self, dim: int) -> list[Any]:
        """Return the curves that exist in a dimension."""
        return [sfc.curve(name, dim) for name in self.curve if name in sfc.curves(dim)]

    def _check_grids(self) -> None:
        """Raise for a dimension without a curve, or an order that no curve has."""
        highest = 0
        for dim in values(self.dim):
            found = [curve.max_order for curve in self.curves(dim)]
            if not found:
                there = ", ".join(sfc.curves(dim)) or "none"
                raise ValueError(
                    f"--dim {dim} beside --curve {' '.join(self.curve)}, which do not exist in {dim}D; "
                    f"allowed: curves in {dim}D: {there}"
                )
            highest = max(highest, *found)
        self.check("bits", low=1, high=highest, unit="bits", remedy="take fewer, so that a key fits 64 bits")


QUICK = {
    "n": (2**20,), "curve": ("hilbert", "morton", "peano"), "dim": (2, 3), "bits": (10,),
    "dtype": ("narrowest",), "runs": 1,
}  # fmt: skip
MINUTES = 12  # CPU time of 4 of 108 cases, extrapolated


class _Grid:
    """Cells of a case, and the arrays that all curves of a base share."""

    def __init__(self, case: Config, place: Backend, side: int):
        narrow, most = case.dtype == "narrowest", side**case.dim - 1
        dtype = np.min_scalar_type(side - 1) if narrow else np.dtype(np.int64)
        self.key_dtype = np.min_scalar_type(most) if narrow else np.dtype(np.uint64)
        self.cells = np.random.default_rng([case.seed, side]).integers(0, side, (case.n, case.dim), dtype)
        self.given, self.decoded = place.upload(self.cells), place.empty(self.cells.shape, dtype)
        self.keys = place.empty(case.n, self.key_dtype)
        self.bytes_per_point = case.dim * dtype.itemsize + self.key_dtype.itemsize


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's calls."""
    place = md.backend.get(case.backend)
    curves = [curve for curve in case.curves(case.dim) if case.bits <= curve.max_order]
    if place.name != "cpu":  # a device needs the tables of an automaton
        curves = [curve for curve in curves if isinstance(curve, sfc.Curve)]
    if not curves:
        return
    grids = {base: _Grid(case, place, base**case.bits) for base in dict.fromkeys(c.base for c in curves)}
    entries = [_curve_entry(case, place, grids[curve.base], curve) for curve in curves]
    if 2 in grids and place.name == "cpu":
        entries += _peer_entries(case, place, grids[2])
    for size in dict.fromkeys(entry.columns["bytes_per_point"] for entry in entries):
        entries += [_copy_entry(case, place, name, size) for name in (COPY, again(COPY))]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _curve_entry(case: Config, place: Backend, grid: _Grid, curve: Any) -> Entry:
    """Check a curve, and return its calls ready to be sampled."""
    encode, decode = curve.encode, curve.decode
    if place.name != "cpu":
        encode, decode = partial(sfc.device.encode, curve), partial(sfc.device.decode, curve)
    own = grid.keys if case.direction == "encode" else place.empty(case.n, grid.key_dtype)
    keys = encode(grid.given, case.bits, own)
    decoded = decode(keys, case.bits, grid.decoded)
    if isinstance(curve, sfc.Curve):
        check_keys(curve, case.bits, grid.cells, place.download(keys))
    check_decoded(curve.name, grid.cells, place.download(decoded))
    if case.direction == "encode":
        call, moved = partial(encode, grid.given, case.bits, own), grid.given.nbytes + keys.nbytes
    else:
        call, moved = partial(decode, keys, case.bits, grid.decoded), keys.nbytes + decoded.nbytes
    columns = {"encoder": curve.name, "package": OURS, "curve": curve.name, "base": curve.base}
    states = len(curve.rank) if isinstance(curve, sfc.Curve) else None
    columns |= {"states": states, "threads": case.threads}
    return _entry(case, place, call, case.n, moved // case.n, columns)


def _peer_entries(case: Config, place: Backend, grid: _Grid) -> Iterator[Entry]:
    """Check the curves of other packages, and yield their calls ready to be sampled."""
    for name in case.peers:
        kind = ENCODERS[name]
        if not _is_here(name) or not (kind.decodes or case.direction == "encode"):
            continue
        for curve in kind.curves(case.dim, case.bits):
            if curve in case.curve:
                cells = grid.cells[: kind.most_points]
                peer = kind(curve, cells, case.bits, grid.key_dtype, case.threads)
                _check_peer(peer, cells)
                columns = {"encoder": f"{curve}, {name}", "package": name, "curve": curve, "base": 2}
                columns |= {"threads": case.threads if kind.has_threads else 1}
                call = peer.encode if case.direction == "encode" else peer.decode
                yield _entry(case, place, call, len(cells), grid.bytes_per_point, columns)


@lru_cache
def _is_here(name: str) -> bool:
    """Return whether a package is installed; print a message, once in a process, if it is not."""
    if ENCODERS[name].is_installed():
        return True
    print(f"{name} is not measured: it is not installed; pip install {name}", file=sys.stderr)
    return False


def _check_peer(peer: Encoder, cells: np.ndarray) -> None:
    """Compare the keys of another package with ours in 2D, and the cells that it decodes with its own."""
    name, keys = f"{peer.name}'s {peer.curve}", peer.encode()
    if peer.dim == 2:
        check_same_curve(name, sfc.curve(peer.curve, 2), peer.bits, cells, keys)
    if peer.decodes:
        check_decoded(name, cells, np.stack(list(peer.decode()), axis=1))


def _copy_entry(case: Config, place: Backend, name: str, size: int) -> Entry:
    """Return copies of some bytes a point, half of them read and half written, ready to be sampled."""
    source, target = (place.zeros(max(case.n * size // 2 // WORD, 1), np.complex128) for _ in range(2))
    parts = case.threads if place.name == "cpu" else 1
    ends = np.linspace(0, len(source), parts + 1).astype(int)
    pool = ThreadPoolExecutor(parts)

    def copy(part: int) -> None:
        target[ends[part] : ends[part + 1]] = source[ends[part] : ends[part + 1]]

    def call() -> None:
        list((pool.map if parts > 1 else map)(copy, range(parts)))

    columns = {"encoder": name, "package": MEMORY, "curve": COPY, "threads": case.threads}
    return _entry(case, place, call, case.n, size, columns)


def _entry(
    case: Config, place: Backend, call: Callable[[], Any], points: int, size: int, columns: dict[str, Any]
) -> Entry:
    """Return calls that each take some points of some bytes, ready to be sampled."""

    def sample() -> Iterator[dict]:
        before = numba.get_num_threads()
        numba.set_num_threads(case.threads)
        try:
            call()  # loads the caches again after other cases
            with place.stopwatch() as elapsed:
                for _ in range(case.calls):
                    call()
        finally:
            numba.set_num_threads(before)
        (ms,) = elapsed
        ns = 1e6 * ms / case.calls / points
        rates = {"ns_per_point": ns, RATE: 1e3 / ns, "GB_per_s": size / ns}
        yield {"time_ms": ms / case.calls, "sample_ms": ms, **rates}

    on_host = place.name == "cpu"
    columns |= {"registers": registers.instructions() or "none"} if on_host else {"threads": math.nan}
    cache = working_set(points, 2, "float64", place)["cache_MB"]
    sizes = {"points": points, "bytes_per_point": size, "working_set_MB": 1e-6 * points * size}
    columns |= sizes | {"cache_MB": cache}
    return Entry(columns, sample, threads=columns["threads"] if on_host else None)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each curve and package: its points per second, its gain over a copy and packages.

    Args:
        table: of rows of `measure`, with the columns of their cases.
    """
    case = [*_CASE, "bytes_per_point"]
    keys = [*case, "encoder", *_NAMES]
    found = gains.over_runs(table, keys, RATE)
    found = found.merge(table.groupby(keys, sort=False)[_MEDIANS].median().reset_index(), on=keys)
    copied = gains.gains(table, case, "encoder", COPY, "ns_per_point")
    found = found.merge(gains.named(copied, COPY), on=[*case, "encoder"], how="left")
    for name, ratios in gains_over_packages(table).groupby("peer", sort=False):
        over = gains.named(ratios.drop(columns=["peer", "side"]), str(name)).assign(package=OURS)
        found = found.merge(over, on=[*_CASE, *_NAMES], how="left")
    return found[~found["encoder"].map(is_again)]


def gains_over_packages(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each curve over the same curve of each other package, by the time of a point.

    Args:
        table: of rows of `measure`, with the columns of their cases.

    Returns:
        Rows of `gains.gains`, with the package in the column `peer`; no rows if none was measured.
    """
    keys = [*_CASE, "curve", "peer"]
    return gains.gains(_beside_packages(table), keys, "side", THEIRS, "ns_per_point")


def _beside_packages(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each other package (column `peer`) beside ours (column `side`)."""
    names = zip(table["curve"], table["dim"], table["bits"], strict=True)
    table = table.assign(grid=[f"{curve} {dim}D, {bits} bits" for curve, dim, bits in names])
    ours, parts = table[table["package"] == OURS], [table.iloc[:0].assign(peer="", side="")]
    for name, theirs in table[~table["package"].isin([OURS, MEMORY])].groupby("package", sort=False):
        parts += [ours.assign(peer=name, side=OURS), theirs.assign(peer=name, side=THEIRS)]
    return pd.concat(parts, ignore_index=True)


def _beside_copies(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of curves with the rate of a copy of the same bytes, and the unit of their figure."""
    keys = [*_CASE, "bytes_per_point"]
    copies = gains.over_runs(table[table["encoder"] == COPY], keys, RATE)
    copies = copies[keys].assign(copied=gains.bounds(copies, RATE)["centre"])
    rows = table[table["package"] != MEMORY].merge(copies, on=keys, how="left")
    is_large = rows.groupby(_FIGURE)[RATE].transform("max") > LARGE
    unit = np.where(is_large, "$10^9$ points/s", "million points/s")
    return rows.assign(unit=unit, factor=np.where(is_large, 1e-3, 1.0))


def _note(rows: pd.DataFrame) -> str:
    """Describe the arrays, and the threads of our code on a host."""
    first, threads = rows.iloc[0], rows.loc[rows["package"] == OURS, "threads"].max()  # NaN on a device
    kinds = "narrowest integers" if first["dtype"] == "narrowest" else "int64 cells, uint64 keys"
    on = "" if np.isnan(threads) else f", {threads:g} thread{'' if threads == 1 else 's'}"
    return f"{first['n']:,} points, {kinds}{on}"


_SHOWN: dict[str, Any] = {"files": ("n", "dtype"), "note": _note}
_COPIES = Points(
    "copied", "", FIRST, scale="factor", each=("encoder", "bits"), label="copy of the same bytes"
)
VIEWS = (
    Table("summary", summary),
    Chart(
        "{direction}", "{direction}, {dim}D, {bits} bits: {of_worst} {unit} by {worst}, {value} by {best}",
        DOTS, Points(RATE, scale="factor"), Scale("", "encoder"), Scale("{direction}d, {unit}", log=10),
        "bits", "bits", panels="dim", heading="{dim}D", bounds=(_COPIES,), prepare=_beside_copies, **_SHOWN,
    ),
    Chart(
        "gains", "{direction}: {best} is {value} times as fast as that of {peer}, {worst} {of_worst}",
        DOTS, Points("ns_per_point", over=(THEIRS,), compared="side"), Scale("", "grid"),
        Scale("points/s over those of the package", log=10, line=1), "peer", "package",
        panels="direction", prepare=_beside_packages, **_SHOWN,
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest curves with a copy of the same bytes, and Hilbert's with other packages."""
    rows = headline(table, *_FIGURE)
    rows = rows[rows["dim"] == (3 if 3 in set(rows["dim"]) else rows["dim"].max())]
    found = gains.over_runs(rows[~rows["encoder"].map(is_again)], ["encoder", "bits"], RATE)
    found = found.assign(centre=gains.bounds(found, RATE)["centre"])
    found = found.sort_values("centre", ascending=False, kind="stable")
    scale, unit = (1e3, "billion") if found["centre"].max() > LARGE else (1.0, "million")

    def rate(row: Mapping) -> str:
        return estimate(row, RATE, lambda points: rounded(points / scale))

    rates = grid(found, "encoder", "bits", rate, f"{unit} points a second", lambda bits: f"{bits} bits")
    bits, first = rows["bits"].max(), rows.iloc[0]
    at = {row["encoder"]: row for row in found[found["bits"] == bits].to_dict("records")}
    named = [*[name for name in at if name != COPY][:2], *({COPY} & set(at))]
    parts = [f"{quoted(name)} {rate(at[name])}" for name in named]
    where = f"{unit.capitalize()} points a second in {first['dim']}D with {bits} bits "
    where += f"({first['direction']}, {first['dtype']} integers)"
    over_packages = gains_over_packages(rows[rows["bits"] == bits])
    hilbert = over_packages[over_packages["curve"] == "hilbert"].to_dict("records")
    ours = [f"; {pair_in_words(row, 'our hilbert', row['peer'])}" for row in hilbert[:1]]
    return Answer(rates, f"{where}: {listed(parts)}{''.join(ours)}.{one_run(rows)}")


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
