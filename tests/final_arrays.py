"""Final arrays of many short simulations as hashes, to compare two commits bit by bit.

    python -m tests.final_arrays [--backend cpu|cuda] [--out FILE] [--cases TEXT ...] [--list]
    python -m tests.final_arrays --update [--overwrite CASE ...]

The cases are a covering array: every pair of values of two factors (a search and a law, an integrator and a
precision, ...) is in some case, and beside fused steps in another, but for those that the package refuses
(`RULES`). What goes by the times of steps, `md.Decayed("auto")` and a skin "auto", is left out, for its bits
do not repeat. The array is made by a greedy search without random numbers, so that every process has the same
one. The files need public names of `md` alone, and run in a copy of an older commit. On the CPU everything
is done on one thread. With `--backend cuda` only the cases of `on_device` are run. A flock, whose law goes
with one integrator alone, has cases beside the array (`final_flocks`).
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ["NUMBA_NUM_THREADS"] = "1"  # before numba is imported: another number gives other bits

import numpy as np

import md
from tests import final_flocks
from tests.final_laws import law_of

STEPS, HALF = 48, 20
DT, DESCENT_DT = 4.4e-4, 4.5e-3
SPEED, STREAM = (
    6.0,
    10.0,
)  # root mean square of a velocity along an axis, and the stream's, in d per time unit
CLOSEST = 0.96  # distance in d to which a scene without overlaps is compressed

TREES = (
    "lbvh",
    "lbvh_each",
    "wide_bvh",
    "verlet_tree",
    "reflexive",
    "reflexive_twice",
    "reflexive_listed",
    "reflexive_shadow",
)
SORTING = ("coherent", "tiles", "verlet", "verlet_thin", *TREES)
SORTED = (*SORTING, "tensor")  # the last with flocks alone
FACTORS: dict[str, tuple[str, ...]] = {
    "search": ("naive", "linked", "scattered", *SORTING),
    "trigger": ("none", "never", "every", "moved", "decayed", "function"),
    "order": (
        "hilbert", "morton", "gray", "moore", "compact", "row", "zigzag", "gilbert", "peano", "tiled",
        "pancake",
    ),
    "sides": ("periodic", "walled", "flat", "shaken", "shaken_absolute", "open", "open_walled"),
    "law": ("dissipative", "elastic", "frictional", "power", "aligned"),
    "integrator": ("velocity_verlet", "position_verlet", "adaptive_euler", "steepest_descent"),
    "around": ("nothing", "inflow", "wing", "wing_inflow"),
    "mode": ("data", "threads", "shadow"),
    "start": ("jittered", "lattice", "mixed"),
    "course": ("plain", "resumed", "observed"),
    "layout": ("aos", "soa", "aos4"),
    "via": ("device", "host"),
    "dim": ("2D", "3D"),
    "precision": ("float64", "float32"),
    "fused": ("unfused", "fused"),
    "radii": ("equal", "unequal"),
    "gravity": ("weightless", "heavy"),
}  # fmt: skip
Case = dict[str, str]
Pair = frozenset[tuple[str, str]]  # two of (factor, value)
WINGED, STREAMING, REORDERED = {"wing", "wing_inflow"}, {"inflow", "wing_inflow"}, set(FACTORS["trigger"][1:])
RULES: tuple[tuple[str, dict[str, set[str]]], ...] = (  # a part of the message, and what is refused together
    ("cannot be fused into the force kernel",
        {"fused": {"fused"}, "integrator": set(FACTORS["integrator"]) - {"velocity_verlet"}}),
    ("no step can be fused into it",
        {"fused": {"fused"}, "search": {"reflexive", "reflexive_listed", "reflexive_shadow"}}),
    ("with fused=True", {"fused": {"fused"}, "around": {"wing", *STREAMING}}),
    ("with fused=True", {"fused": {"fused"}, "mode": {"shadow"}, "trigger": REORDERED}),
    ("with integrator",
        {"around": {"wing", *STREAMING}, "integrator": {"position_verlet", "steepest_descent"}}),
    ("mode 'shadow'", {"around": {"wing", *STREAMING}, "mode": {"shadow"}, "trigger": REORDERED}),
    ("sorts the data itself", {"search": set(SORTING), "trigger": REORDERED}),
    ("a tree in", {"search": set(TREES), "order": {"row", "zigzag", "gilbert", "peano", "tiled", "pancake"}}),
    ("2D", {"order": {"compact", "pancake"}, "dim": {"2D"}}),
    ("2D", {"order": {"compact", "pancake"}, "around": WINGED}),  # which are in 2D alone
    ("a wing in a box of 3 axes", {"around": WINGED, "dim": {"3D"}}),
    ("a wing among particles of given radius", {"around": WINGED, "radii": {"unequal"}}),
    ("an inflow along axis 0", {"around": STREAMING, "sides": {"walled"}}),
)  # fmt: skip
ON_DEVICE = (
    "naive", "scattered", "coherent", "tiles", "verlet", "verlet_thin", "lbvh", "wide_bvh", "verlet_tree",
    "reflexive_twice",
)  # fmt: skip
KEPT = "pos", "vel", "force", "memory", "rest"  # not "builds": looks make some, and each load begins at 0
FORGETTING = (  # what outlives a step
    "verlet", "verlet_thin", "lbvh", "wide_bvh", "verlet_tree", "reflexive_listed",
    "reflexive_shadow",
)  # fmt: skip


CHOICES: dict[str, dict[str, Any]] = {  # of searches that are not as by name
    "verlet_thin": {"skin": 0.1},
    "lbvh_each": {"rebuild_every": 1},
    "reflexive_twice": {"met": "twice", "atomics": "none", "stack": "none"},
    "reflexive_listed": {"contacts": "listed", "rebuild_every": 5, "room": 2},
    "reflexive_shadow": {"data": "shadow", "rebuild_every": 5},
}
TRIGGERS = {
    "never": md.Never,
    "every": lambda: md.Every(7),
    "moved": lambda: md.Moved(0.05, 4),
    "decayed": lambda: md.Decayed(loss=1e9, window=3),  # at the first step alone, however long steps take
    "function": lambda: lambda step: step in (3, 16),
}


def broken_rules(case: Case) -> list[str]:
    """Messages of the rules that the values given break.

    Args:
        case: values of some factors, or of all.
    """
    return [message for message, values in RULES if all(case.get(f) in one for f, one in values.items())]


def has_effect(case: Case, factor: str) -> bool | None:
    """Whether a factor changes anything in a case; None where the values given do not tell."""
    if factor not in ("mode", "via", "order"):
        return True
    trigger, search = case.get("trigger"), case.get("search")
    if factor == "order" and search in (*SORTED, "scattered"):
        return True
    if trigger == "none":
        return None if factor == "order" and search is None else False
    return None if trigger is None else True


def completed(fixed: Case, wanted: dict[Pair, None], used: Counter, pair: Pair) -> Case | None:
    """A case with the values given that covers many of the wanted pairs; None where there is none.

    Args:
        fixed: the values given.
        wanted: pairs to cover; none to search for a case that the package refuses.
        used: how often each value is in the cases so far; of equal values the rarest is taken.
        pair: whose two factors must have an effect.
    """
    without_effect = any(has_effect(fixed, factor) is False for factor, _ in pair)
    if without_effect or (wanted and broken_rules(fixed)):
        return None
    free = next((factor for factor in FACTORS if factor not in fixed), None)
    if free is None:
        return {factor: fixed[factor] for factor in FACTORS}
    given = [item for item in fixed.items() if has_effect(fixed, item[0])]

    def rank(value: str) -> tuple[int, int, int]:
        gained = sum(frozenset([item, (free, value)]) in wanted for item in given)
        return len(broken_rules(fixed | {free: value})), -gained, used[free, value]

    tried = (
        completed(fixed | {free: value}, wanted, used, pair) for value in sorted(FACTORS[free], key=rank)
    )
    return next((case for case in tried if case is not None), None)


@functools.cache
def covering() -> tuple[dict[str, Case], dict[Pair, Case | None]]:
    """The cases by name; and the pairs that none can have, each with a case that the package refuses for it.

    Instead of such a case there is None where one of the two values has no effect beside the other.
    """
    items = [[(factor, value) for value in values] for factor, values in FACTORS.items()]
    wanted = [frozenset(both) for one, other in combinations(items, 2) for both in product(one, other)]
    cases: dict[str, Case] = {}
    left_out: dict[Pair, Case | None] = {}
    used: Counter = Counter()
    for fixed in ({}, {"fused": "fused"}):
        left = dict.fromkeys(pair for pair in wanted if not fixed.keys() & dict(pair))
        while left:
            pair = next(iter(left))
            case = completed(dict(pair) | fixed, left, used, pair)
            if case is None:
                if not fixed:
                    left_out[pair] = completed(dict(pair), {}, used, pair)
                del left[pair]
                continue
            chosen = [item for item in case.items() if has_effect(case, item[0])]
            for both in combinations(chosen, 2):
                left.pop(frozenset(both), None)
            used.update(case.items())
            cases[name_of(case)] = case
    return cases, left_out


def every_case() -> dict[str, Case]:
    """The covering array and the flocks, by name."""
    return covering()[0] | {name_of(case): case for case in final_flocks.cases(FACTORS)}


def name_of(case: Case) -> str:
    """The values of a case, "-" for those without effect."""
    return " ".join(case[factor] if has_effect(case, factor) else "-" for factor in FACTORS)


def on_device(cases: dict[str, Case]) -> dict[str, Case]:
    """The cases for a CUDA device: two of each search that repeats there, with laws of `md`; and flocks."""
    excluded = {"power", "aligned", "decayed", "observed", "boids"}
    found = {
        name: case for name, case in cases.items() if case["law"] == "boids" and case["search"] in ON_DEVICE
    }
    for search in ON_DEVICE:
        fit = [name for name in cases if name.split()[0] == search and not excluded & set(name.split())]
        fit.sort(key=lambda name: ("fused" not in name.split(), "plain" in name.split()))
        found |= {name: cases[name] for name in (fit[:1] + fit[-1:])}
    return found


def box_of(case: Case) -> md.Box:
    """The box: of different lengths along the axes, larger for a wing."""
    lengths = (8.1, 7.2, 6.3) if case["dim"] == "3D" else (19.3, 13.4)
    if case["around"] in WINGED:
        lengths = (24.5, 16.3, 4.1)[: len(lengths)]
    if case["sides"] in ("periodic", "walled"):
        return md.Box(lengths, periodic=case["sides"] == "periodic")
    others = (True,) * (len(lengths) - 1)
    return md.Box(lengths, (*others, False), (*(False for _ in others), case["sides"].startswith("open")))


def wing_of(case: Case) -> md.Wing | None:
    """The wing, or None."""
    if case["around"] not in WINGED:
        return None
    shape = {"airfoil": md.naca("2412", points=12), "chord": 12.0, "angle": 12.0, "at": (8.0, 8.0)}
    return md.Wing(**shape, stiffness=2e4, damping=3.0)


def state_of(case: Case, box: md.Box, wing: md.Wing | None) -> md.State:
    """The start: 80 to 400 particles, shuffled in memory, of which some touch within a few steps."""
    generator = np.random.default_rng(7)
    if case["start"] == "uniform":
        return final_flocks.start(box, generator)
    if case["start"] == "jittered":
        counts = [int(length / 1.03) for length in box.lengths]
        sites = np.stack(np.meshgrid(*(np.arange(c) + 0.5 for c in counts), indexing="ij"), -1)
        sites = sites.reshape(-1, box.dim) * box.lengths / counts
        pos = generator.permutation(sites)[: int(0.7 * len(sites))]
        pos = box.wrap(pos + generator.uniform(-0.06, 0.06, pos.shape))
        state = md.State(pos, generator.normal(0, SPEED, pos.shape), box)
    else:
        filling, mixing = 0.55 if box.dim == 2 else 0.33, 0.0 if case["start"] == "lattice" else 0.5
        state = md.preparation.granular_gas(filling, box, SPEED**2, 3, "shuffled", mixing, "cpu")
    if wing is not None:
        state = state.take(np.flatnonzero(wing.distance(state.pos[:, :2]) > 0.3))
    if case["radii"] == "unequal" and case["start"] != "jittered":
        state = md.preparation.with_large_spheres(state, 0.1, 1.5, seed=5, backend="cpu")
    pos, vel, id, radius = state.pos, state.vel, state.id, state.radius
    if case["radii"] == "unequal" and case["start"] == "jittered":
        radius = generator.choice([0.4, 0.5, 0.55], len(state))
    if case["start"] != "jittered" and case["around"] == "nothing":
        factor = CLOSEST / distances(state)[2].min()
        box = md.Box(tuple(factor * length for length in box.lengths), box.periodic, box.open)
        pos = box.wrap(factor * pos)
    if case["around"] != "nothing":
        vel = vel + np.eye(box.dim)[0] * STREAM
    return md.State(pos, vel, box, id, radius)


def search_of(case: Case) -> Any:
    """The search by name, or with an order of cells and choices of its own."""
    search, choices = case["search"], CHOICES.get(case["search"], {})
    if search in SORTED or (search == "scattered" and case["trigger"] == "none"):
        choices = choices | {"cell_order": case["order"]}
    known = search if search in md.search.SEARCHES else search.partition("_")[0]
    return md.search.SEARCHES[known](**choices) if choices else known


def reorder_of(case: Case) -> md.Reorder | None:
    """The reorder with its trigger, or None."""
    if case["trigger"] == "none":
        return None
    return md.Reorder(case["order"], TRIGGERS[case["trigger"]](), mode=case["mode"], via=case["via"])


def walls_of(case: Case, dim: int) -> Any:
    """The walls, or None. Their classes are looked up in `md` and in `md.laws`."""
    standing = getattr(md, "Walls", None) or md.laws.Walls
    shaken = getattr(md, "ShakenWalls", None) or md.laws.ShakenWalls
    sides, each = case["sides"], {"restitution": 0.9, "contact_time": 0.022}
    if sides in ("periodic", "open"):
        return None
    if sides.startswith("shaken"):
        damping = "absolute" if sides == "shaken_absolute" else "relative"
        return shaken(**each, amplitude=0.08, frequency=30.0, wall_damping=damping)
    return standing(**each, sides=(dim - 1,) if sides == "open_walled" else None)


def simulation_of(case: Case, backend: str = "cpu") -> tuple[md.Simulation, dict[str, Any]]:
    """The simulation of a case before its first step; and the choices that no checkpoint holds.

    Raises:
        ValueError: the package refuses the case.
    """
    wing, box, law, reorder = wing_of(case), box_of(case), law_of(case), reorder_of(case)
    state, dim = state_of(case, box, wing), box.dim
    around = [] if wing is None else [wing]
    if case["around"] in STREAMING:
        around.append(md.Inflow(velocity=(STREAM,) + (0.0,) * (dim - 1), temperature=4.0, seed=11))
    own = {"law": law} if case["law"] in ("power", "aligned") else {}
    steps = {"steepest_descent": DESCENT_DT, "flight": final_flocks.DT}
    dt = steps.get(case["integrator"], DT if own else None)
    simulation = md.Simulation(
        state, law, search_of(case), case["integrator"], dt, walls_of(case, dim),
        (0.0,) * (dim - 1) + (-60.0,) if case["gravity"] == "heavy" else None, around, reorder, backend,
        case["precision"], case["layout"], case["fused"] == "fused",
    )  # fmt: skip
    return simulation, own | ({"reorder": reorder} if case["trigger"] == "function" else {})


def hash_of(*arrays: Any) -> str:
    """The first 12 hexadecimal digits of a hash of arrays with their types and shapes."""
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def hashes_of(simulation: md.Simulation) -> dict[str, str]:
    """Hashes of all that is public at the end of a run; positions, velocities and forces in order of id."""
    state = simulation.state
    named = state.by_id()
    counts, builds = np.array([simulation.step, len(simulation)]), simulation.builds
    around = [np.asarray(one.momentum) for one in simulation.surroundings if hasattr(one, "momentum")]
    radius = np.empty(0) if named.radius is None else named.radius
    box = np.array(state.box.lengths), np.array(state.box.periodic), np.array(state.box.open)
    return {
        "pos": hash_of(named.pos),
        "vel": hash_of(named.vel),
        "force": hash_of(simulation.forces()),
        "memory": hash_of(state.id),
        "rest": hash_of(named.id, radius, *box, counts, np.float64(simulation.time), *around),
        "builds": f"{builds}",
        "accesses": hash_of(*stream_of(simulation)),
    }


def stream_of(simulation: md.Simulation) -> tuple[np.ndarray, ...]:
    """The slots that the force kernel reads now, and the reader of each."""
    with warnings.catch_warnings(action="ignore"):  # that no reorder has taken place yet
        stream = simulation.accesses()
    return stream.offsets, stream.reads, stream.readers


def distances(state: md.State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First and second slot of all pairs, and their distances in d; each (p,)."""
    first, second = np.triu_indices(len(state), 1)
    apart = state.box.nearest(state.pos[first].astype(np.float64) - state.pos[second])
    return first, second, np.linalg.norm(apart, axis=1)


def touching(state: md.State) -> int:
    """Pairs closer than the sum of their radii."""
    first, second, distance = distances(state)
    radius = np.full(len(state), 0.5) if state.radius is None else state.radius
    return int((distance < radius[first] + radius[second]).sum())


def seen_of(simulation: md.Simulation, observer: Any, trajectory: Any) -> dict[str, str]:
    """Hashes of what was seen on the way, and of what the search tells at the end."""
    tables = [*observer.table().items(), *observer.profile_table().items()]
    return {
        "table": hash_of(*chain.from_iterable((np.array(name), column) for name, column in tables)),
        "frames": hashlib.sha256(Path(trajectory.path).read_bytes()).hexdigest()[:12],
        "pairs": hash_of(simulation.pairs()),
    }


def wrong_with(case: Case, start: md.State, simulation: md.Simulation) -> list[str]:
    """What should have happened in a run and has not, so that equal hashes would say little."""
    end, wrong = simulation.state, []
    if not touching(start) + touching(end):
        wrong.append("no two particles touch at the start or at the end")
    if np.array_equal(end.by_id().pos, start.by_id().pos.astype(case["precision"])):
        wrong.append("no particle has moved")
    if "verlet" in case["search"] and case["integrator"] != "steepest_descent" and simulation.builds < 2:
        wrong.append("lists were made less than twice")
    reordered = not math.isnan(simulation.timings.median("reorder"))
    if reordered != (case["trigger"] not in ("none", "never")):
        wrong.append(f"a reorder took place: {reordered}")
    sorts = case["search"] in SORTED and case["search"] != "reflexive_shadow"
    if (sorts or (reordered and case["mode"] == "data")) == np.array_equal(end.id, start.id):
        wrong.append("the memory order is not as the case has it")
    if case["around"] in WINGED and not np.abs(simulation.surroundings[0].momentum).sum():
        wrong.append("nothing has met the wing")
    return wrong


def changed(hashes: dict[str, str], others: dict[str, str], kept: tuple[str, ...], when: str) -> list[str]:
    """A sentence for each part that should be the same and is not."""
    return [f"{part} is another {when}" for part in kept if hashes[part] != others[part]]


def run_case(case: Case, backend: str = "cpu") -> dict[str, Any]:
    """Run a case.

    Returns:
        "hashes" of the end by what they are of, and "wrong", a list of sentences; or "absent", why the
        package refuses the case.
    """
    try:
        simulation, own = simulation_of(case, backend)
    except (TypeError, ValueError) as error:
        return {"absent": str(error)}
    start, seen = simulation.state, {}
    with tempfile.TemporaryDirectory() as folder:
        if case["course"] == "observed":
            observer = md.Observer(12, [md.Profile(axis=0, bins=4), md.Profile(axis=1, bins=3)], cells=2)
            reporters = observer, md.Trajectory(Path(folder) / "frames.gsd", 16)
            simulation.run(STEPS, reporters=reporters)
        elif case["course"] == "resumed":
            simulation.run(HALF)
            simulation.save(Path(folder) / "half.npz")
            resumed = md.Simulation.load(Path(folder) / "half.npz", **own)
            resumed.run(STEPS - HALF)
        simulation.run(STEPS - simulation.step)
        hashes = hashes_of(simulation)
        if case["course"] == "observed":
            seen = seen_of(simulation, *reporters)
        wrong = wrong_with(case, start, simulation)
    if case["course"] == "resumed":
        again = hashes_of(resumed)
        if case["trigger"] != "decayed":  # one that is loaded begins with a reorder
            wrong += changed(hashes, again, (*KEPT, "accesses"), "after load and run")
        hashes |= {f"resumed {part}": value for part, value in again.items()}
    if case["course"] != "plain" and backend == "cpu":
        alone = simulation_of(case, backend)[0]
        alone.run(STEPS, phases=False)
        ahead = case["integrator"] == "position_verlet"  # a look may make the lists half a step too late
        if case["search"] not in FORGETTING or (case["course"] == "observed" and not ahead):
            wrong += changed(hashes, hashes_of(alone), KEPT, f"if not {case['course']}")
    return {"hashes": hashes | seen, "wrong": wrong}


def run_all(cases: dict[str, Case], backend: str = "cpu") -> dict[str, Any]:
    """Run cases one after the other; tells each, and the time so far, on the standard error.

    Returns:
        "environment", "package" (the folder of the code that ran) and "cases", by name what `run_case` gives.
    """
    found = {}
    for number, (name, case) in enumerate(cases.items(), 1):
        print(f"{time.process_time():.1f} s, {number}/{len(cases)} {name}", file=sys.stderr, flush=True)
        found[name] = run_case(case, backend)
    return {"environment": environment(), "package": str(Path(md.__file__).parent), "cases": found}


def environment() -> str:
    """What decides the bits of compiled and library code beside the sources."""
    import llvmlite.binding

    features = llvmlite.binding.get_host_cpu_features().flatten().encode()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("numba", "llvmlite", "numpy"))
    kind = llvmlite.binding.get_host_cpu_name(), hashlib.sha256(features).hexdigest()[:8]
    return ", ".join([" ".join(kind), *versions, " ".join(platform.libc_ver())])


def main() -> None:
    """Run the cases asked for; write or record their hashes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, help="JSON file of the results; else they are printed")
    parser.add_argument("--cases", nargs="+", default=[], help="words that a case's name must have")
    parser.add_argument("--list", action="store_true", help="print the cases and the pairs left out")
    parser.add_argument("--update", action="store_true", help="record cases that are new, for this machine")
    parser.add_argument("--overwrite", nargs="+", default=[], help="cases to record even if they differ")
    asked = parser.parse_args()
    cases, left_out = every_case(), covering()[1]
    if asked.list:
        print(*cases, *(f"{sorted(pair)}: {c and broken_rules(c)}" for pair, c in left_out.items()), sep="\n")
        return
    if asked.backend == "cuda":
        cases = on_device(cases)
    cases = {name: case for name, case in cases.items() if set(asked.cases) <= set(name.split())}
    result = run_all(cases, asked.backend)
    if asked.update:
        from tests.final_arrays_recorded import record

        record(result, asked.overwrite, list(every_case()))
    elif asked.out:
        asked.out.write_text(json.dumps(result, indent=1))
    else:
        json.dump(result, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
