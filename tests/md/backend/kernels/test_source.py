"""The CUDA sources, without a GPU: the assembled source compiles, and mirrors the Numba kernels."""

import inspect
import re
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import md
import sfc.device
from md.backend.base import LAYOUTS
from md.backend.kernels.on_device import THREADS, declared
from md.backend.kernels.source import (
    C_TYPES,
    ROOT,
    STORE,
    Struct,
    assemble,
    block_of,
    file_of,
    keep_kernel,
    parameters,
    struct_of_dtype,
)
from md.boundaries.external_field import record_dtype as outside_dtype
from md.domain.on_device.peers import PeerRows
from md.integrate.fused import KickDrift
from md.laws import Boids, FrictionalSpringDashpot, SpringDashpot
from md.laws.pair import PairLaw, kernel_law
from md.laws.polydisperse import ScaledLaw
from md.observe.pair_tally import TallyParameters
from md.particles.cell_grid import CellGrid, record_dtype
from md.particles.units import units_of
from md.scenes.benchmark import RECORD as GAS
from md.search import SEARCHES
from md.search.bvh.contact_list import ContactList
from md.search.bvh.wide_boxes import LEVELS
from md.search.lists.list_search import ListConfig
from md.search.partners import CollectPartners
from md.search.sorted_copy import ScatterOutput
from tests.nvrtc import compile_cubin, compiled, local_bytes
from tests.threaded_kernels import functions_in_parts
from tests.tiers import full
from tests.tiers import product as crossed

STEMS = sorted(  # those of the cavity take constants: tests/md/cavity/strategies/test_kernels.py
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "md").rglob("*.cu")
    if "cavity" not in path.parts
)
KERNELS = [(stem, name) for stem in STEMS for name in parameters(file_of(stem, ".cu").read_text())]
SORTS = (
    "md.backend.sorting.counting",
    "md.backend.sorting.radix",
)  # several kernels on a device, one on the CPU
TENSOR = "md.search.grid.tensor"  # on a device only, for laws with windows in float32
PRUNED, LISTING, CELLS = "md.search.lists.pruned_lists", "md.search.lists.listing", "md.particles.cell_sort"
TREE_LISTING, RANKS = "md.search.tree_listing", "md.domain.on_device.rank_arrays"
MIGRATION = "md.domain.on_device.migration"
ON_DEVICE = {  # on a device only
    ("md.search.lists.list_search", "force"),
    (PRUNED, "force"),
    (PRUNED, "force_and_prune"),
    (PRUNED, "many_steps"),
    (LISTING, "store_bytes"),
    (LISTING, "list_partners"),
    (TREE_LISTING, "list_partners"),
    ("md.search.bvh.wide_boxes", "gather_and_fit"),
    (CELLS, "tiled_ranks"),
    (CELLS, "store_starts"),
    *((RANKS, name) for name in ("copy_out", "copy_in", "keys_of", "take")),
    *(("md.domain.on_device.peers", name) for name in ("store_ghosts", "store_marks", "exchange_flags")),
    *(
        (MIGRATION, name)
        for name in ("leave_keys", "send_records", "arrive_keys", "take_rows", "list_border", "keys_of_rows")
    ),
    ("md.search.lists.list_search", "mark_ghosts"),
}
ON_CPU = {(LISTING, "build_lists"), (TREE_LISTING, "build_lists")}
OF_WIDE_BOXES = "md.search.bvh.wide_bvh", TREE_LISTING
STACKS = "_none", "_shared"  # of reflexive walks, beside "_local"
MOST_LOCAL = 100  # bytes of a thread: more are copies of records that are indexed or passed by address
CASES = [(3, np.float32, "aos4"), (2, np.float64, "soa"), (2, np.float32, "aos4"), (3, np.float64, "aos")]
FRICTION = FrictionalSpringDashpot(1.0, 1.0, friction=1.0, tangential_damping=1.0)


SPRING = SpringDashpot(1.0, 1.0)
OF_NUMBERS = {"spring_dashpot": SPRING, "friction": FRICTION, "boids": Boids()}
FUNCTORS = {
    "store": STORE,
    "fused": file_of("md.integrate.fused", ".cuh"),
    "of_rank": file_of("md.integrate.fused", ".cuh"),
    "driven": file_of("md.integrate.fused", ".cuh"),
    "flight": file_of("md.integrate.fused", ".cuh"),
    "driven_flight": file_of("md.integrate.fused", ".cuh"),
    "unsorted": file_of("md.search.sorted_copy", ".cuh"),
    "counts": STORE,
}
LAW_MODULES = {
    "spring_dashpot": "md.laws.spring_dashpot",
    "friction": "md.laws.friction",
    "boids": "md.laws.boids",
    "polydisperse": "md.laws.polydisperse",
    "collect": "md.search.partners",
    "measure": "md.observe.pair_tally",
    "listing": "md.search.bvh.contact_list",
}
FORCE_OUTPUTS = "store", "fused", "driven", "unsorted"


def numbers_of(law: PairLaw, kind: str) -> tuple[tuple[str, str, int], ...]:
    """Make the struct fields of a law that has only numbers."""
    return tuple((kind, name, 0) for name in kernel_law(law, np.float32)._fields)


def peers_fields() -> tuple[tuple[str, str, int], ...]:
    """Make the struct fields of the peers of a rank."""
    kinds = dict.fromkeys(("peers", "borders", "patience"), "long long")
    kinds |= {"marks": "unsigned char*"} | dict.fromkeys(("count", "flags", "lost"), "unsigned*")
    kinds |= dict.fromkeys(("live", "place", "shift", "ranks"), "int*")
    return tuple((kinds.get(name, "unsigned long long*"), name, 0) for name in PeerRows._fields)


def fused_fields(c: str) -> tuple[tuple[str, str, int], ...]:
    """Make the struct fields of the output of a fused step; `c` is the C type of numbers."""
    kinds = {
        **{"pos": f"{c}*", "vel": f"{c}*", "id": "int*", "kick": c, "drift": c},
        **{"fault": "unsigned long long*", "clock": "long long*", "turn": "long long"},
        **{"fastest": "unsigned long long*", "travelled": "float*", "halted_steps": "int*"},
        **{"limit": "float", "rounding": "float", "bound": "float*", "inner_limit": "float"},
        "prunes": "long long",
    }
    return tuple((kind, name, 0) for name, kind in kinds.items())


def source_of(stem: str, kernel: str, dim: int, real, layout: str, law: str, out: str) -> str:
    """Assemble the source of a kernel, with structs as the launcher makes them from arguments."""
    c = C_TYPES[np.dtype(real)]
    fields = {
        **{name: numbers_of(one, c) for name, one in OF_NUMBERS.items()},
        "collect": (
            (c, "reach2", 0),
            (f"{c}*", "radius", 0),
            ("long long*", "offsets", 0),
            ("int*", "partners", 0),
        ),
        "measure": (
            *(("Pair", "pair", 0), (c, "reach2", 0), (f"{c}*", "radius", 0)),
            *(("double", "dt", 0), ("double*", "energy", 0), ("int*", "touching", 0), ("int*", "started", 0)),
        ),
        "polydisperse": (("Pair", "pair", 0), (f"{c}*", "radius", 0), (c, "reach2", 0)),
        "store": ((f"{c}*", "data", 0),),
        "fused": fused_fields(c),
        "unsorted": ((f"{c}*", "rows", 0), ("int*", "order", 0)),
        "listing": (("long long", "room", 0), ("int*", "partners", 0)),
        "counts": (("int*", "data", 0),),
    }
    outside = ("Outside", "outside", 0), ("double*", "now", 0), (f"{c}*", "radius", 0)
    fields["driven"] = (*fields["fused"], *outside)
    fields["of_rank"] = (*fields["fused"], ("Peers", "peers", 0))
    fields["flight"] = (*fields["fused"], ("Flight", "flight", 0))
    fields["driven_flight"] = (*fields["driven"], ("Flight", "flight", 0))
    required = {p.type for p in parameters(file_of(stem, ".cu").read_text())[kernel] if p.is_struct}
    structs, functors, pair = {}, [], None
    if law in ("measure", "polydisperse"):
        wrapped = FRICTION if law == "polydisperse" and out == "fused" else SPRING
        structs["Pair"] = Struct(numbers_of(wrapped, c))
        pair = file_of(type(wrapped).__module__, ".cuh")
    if "Grid" in required:
        structs["Grid"] = struct_of_dtype(record_dtype(dim, np.dtype(real)))
    if out == "of_rank":
        structs["Peers"] = Struct(peers_fields())
    if "Outside" in required or (out.startswith("driven") and "Out" in required):
        structs["Outside"] = struct_of_dtype(outside_dtype(dim, real))
    if "Flight" in required or (out.endswith("flight") and "Out" in required):
        structs["Flight"] = struct_of_dtype(flight_record(dim, real))
    if "Reach" in required:
        names = "reach", "reach2", "leaf2", *(["scale"] if stem == "md.search.bvh.lbvh" else [])
        names = ("reach", "reach2", "scale", "pair2") if stem in OF_WIDE_BOXES else names
        structs["Reach"] = Struct(tuple((c, name, 0) for name in names))
    records = boundary_records(dim, real) | {
        "Windows": windows_record(dim),
        "Gas": GAS,
        "Units": units_record(dim),
        "Levels": LEVELS,
    }
    structs |= {name: struct_of_dtype(dtype) for name, dtype in records.items() if name in required}
    if "Law" in required:
        structs["Law"] = Struct(fields[law])
        functors.append(file_of(LAW_MODULES[law], ".cuh"))
    if "Out" in required:
        structs["Out"] = Struct(fields[out])
        functors.append(FUNCTORS[out])
    named = out not in ("store", "counts") and "Out" in required
    threads = {"RESIDENT_THREADS": 1024 * 4 // np.dtype(real).itemsize} if kernel == "many_steps" else None
    return assemble(stem, kernel, dim, np.dtype(real), layout, structs, functors, named, pair, threads)


def boundary_records(dim: int, real) -> dict[str, np.dtype]:
    """Make the records of boundaries: struct name -> dtype."""
    box = md.Box((8.0,) * dim)
    empty, law = md.State(np.empty((0, dim)), np.empty((0, dim)), box), SpringDashpot(0.0, 0.0)
    wing = md.Wing(airfoil=md.naca("0012", 5), chord=2.0, at=(4.0, 4.0), stiffness=1.0)
    surroundings = md.Inflow(velocity=(1.0,) * dim), *([wing] if dim == 2 else [])
    options = {"precision": np.dtype(real).name, "backend": "cpu", "surroundings": surroundings}
    inlet, *wings = md.Simulation(empty, law, dt=1.0, **options).surroundings
    foil = wings[0]._foil.dtype if wings else boundary_records(2, real)["Foil"]
    return {"Inlet": inlet._record.dtype, "Foil": foil}


def flight_record(dim: int, real) -> np.dtype:
    """Make the record of the largest speed and the time step."""
    empty = md.State(np.empty((0, dim)), np.empty((0, dim)), md.Box((12.0,) * dim))
    options = {"integrator": "flight", "precision": np.dtype(real).name, "backend": "cpu"}
    return md.Simulation(empty, Boids(), dt=1.0, **options)._stepper._speed_limit.dtype


def windows_record(dim: int) -> np.dtype:
    """Make the record of the radii of the boids' windows."""
    empty = md.State(np.empty((0, dim)), np.empty((0, dim)), md.Box((12.0,) * dim))
    options = {"integrator": "flight", "precision": "float32", "backend": "cpu", "search": "tensor"}
    return md.Simulation(empty, Boids(), dt=1.0, **options).search._record(Boids().windows).dtype


def units_record(dim: int) -> np.dtype:
    """Make the record of the units of byte coordinates."""
    grid = CellGrid(md.Box((12.0,) * dim), 1.0, np.dtype(np.float32), md.backend.get("cpu"))
    return units_of(grid, 1.0).dtype


def cases_of(stem: str) -> list[tuple]:
    """List the (dim, real, layout) for which the kernels of a stem are compiled."""
    return [case for case in CASES if stem != TENSOR or case[1] is np.float32]


def variants(stem: str, kernel: str) -> list[tuple[str, str]]:
    """List the (law, output) combinations of a kernel."""
    if stem == TENSOR:
        return [("boids", out) for out in ("store", "flight", "driven_flight")]
    required = {p.type for p in parameters(file_of(stem, ".cu").read_text())[kernel]}
    outs = FORCE_OUTPUTS if "Out" in required else ("store",)
    if stem == PRUNED:
        return [*product(("spring_dashpot", "friction"), ("fused", "driven")), ("boids", "flight")]
    cases = list(
        product(
            ("spring_dashpot", "friction", "polydisperse") if "Law" in required else ("spring_dashpot",), outs
        )
    )
    if {"Law", "Out"} <= required:  # laws that only read: they give no force and move no particle
        cases += [("collect", "counts"), ("measure", "store"), ("measure", "unsorted")]
        cases += [("boids", out) for out in ("store", "flight", "driven_flight", "unsorted")]
    if kernel.startswith("gather"):
        cases += [("listing", "counts")]
    return cases


def test_there_are_cuda_kernels_for_every_search():
    assert {kind.__module__ for kind in SEARCHES.values() if not issubclass(kind, ListConfig)} <= set(STEMS)
    assert ListConfig.__module__ in STEMS


def chosen(stem: str, kernel: str) -> list[tuple[str, str]]:
    """List the first (law, output) of a kernel and every sixth other; rows of cells are for boids."""
    if kernel == "force_rows":
        return [("boids", "flight")]
    every, turn = variants(stem, kernel), KERNELS.index((stem, kernel)) % 6
    return every[:1] + [
        (law, out)
        for law, out in every[turn or 6 :: 6]
        if law in ("spring_dashpot", "collect", "listing")
        or out.endswith("flight")
        or out in ("store", "counts")
    ]


@pytest.mark.parametrize(
    ("stem", "kernel", "dim", "real", "layout", "law", "out"),
    [
        case if one == chosen(*kernel)[0] and not kernel[1].endswith(STACKS) else full(*case)
        for k, kernel in enumerate(KERNELS)
        for one in chosen(*kernel)
        for kind in (CASES[k % 4 :][:1] if kernel[0] != TENSOR else cases_of(TENSOR))
        for case in [(*kernel, *kind, *one)]
    ],
)
def test_every_kernel_compiles(stem, kernel, dim, real, layout, law, out):
    """With the first law and output; `full` has every sixth other and all stacks, `nightly` all."""
    code, log = compiled(source_of(stem, kernel, dim, real, layout, law, out))
    assert code.startswith(b"\x7fELF")
    if real is np.float32 and not kernel.endswith("_local"):
        assert local_bytes(log, kernel) <= MOST_LOCAL


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("stem", "kernel", "dim", "real", "layout"),
    [(*kernel, *case) for kernel in KERNELS for case in cases_of(kernel[0])],
)
def test_every_kernel_compiles_with_every_law_and_output(stem, kernel, dim, real, layout):
    for law, out in variants(stem, kernel):
        assert compile_cubin(source_of(stem, kernel, dim, real, layout, law, out)).startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("dim", "base", "dtype"), crossed([(2, 2), (3, 2), (2, 3)], [np.int8, np.uint64], 2, full)
)
def test_the_curve_kernels_compile(dim, base, dtype):
    assert compile_cubin(sfc.device.source(dim, base, np.dtype(dtype))).startswith(b"\x7fELF")


def test_a_kernel_has_one_parameter_list_on_both_backends():
    both = [case for case in KERNELS if case[0] not in (*SORTS, TENSOR) and case not in ON_DEVICE]
    assert len(both) > 50
    for stem, kernel in both:
        numba_kernel = getattr(import_module(stem), kernel)
        required = list(inspect.signature(getattr(numba_kernel, "py_func", numba_kernel)).parameters)
        found = [p.name for p in parameters(file_of(stem, ".cu").read_text())[kernel]]
        assert found == required, (stem, kernel)


def test_every_numba_kernel_of_a_stem_with_cuda_has_its_cuda_kernel():
    for stem in set(STEMS) - {*SORTS, TENSOR}:
        module = import_module(stem)
        compiled = {
            name
            for name, value in vars(module).items()
            if hasattr(value, "py_func") and value.py_func.__module__ == stem and not name.startswith("_")
        } | functions_in_parts(stem)
        compiled |= {name for name, value in vars(module).items() if hasattr(value, "on_device")}
        of_both = compiled - {name for on, name in ON_CPU if on == stem}
        in_cuda = set(parameters(file_of(stem, ".cu").read_text()))
        assert of_both == in_cuda - {name for on, name in ON_DEVICE if on == stem}, stem


def test_blocks_are_declared_as_the_kernels_need_them():
    """The others have blocks of 256 threads without dynamic shared memory."""
    tree, given = (128, None), {"bytes": 1000}
    stacks = dict.fromkeys(("gather_shared", "push_shared", "sum_shared"), (64, {"entries": 64 * 4 * 1000}))
    expected = {
        "md.backend.sorting.radix": dict.fromkeys(("count_digits", "place_digits"), (256, None)),
        "md.search.bvh.reflexive": stacks,
        "md.search.bvh.wide_boxes": {"fit_leaves": tree, "gather_and_fit": tree},
        "md.search.bvh.wide_bvh": {"force": tree},
        "md.search.grid.coherent": {"force": (128, None)},
        TENSOR: {"force": (256, given)},
        "md.search.lists.list_search": {"force": (128, None)},
        LISTING: {"list_partners": (256, None)},
        PRUNED: {
            "force": (128, None),
            "force_and_prune": (256, None),
            "many_steps": ("RESIDENT_THREADS", None),
        },
        TREE_LISTING: {"list_partners": tree},
        "md.cavity.strategies.persistent": {"advance": ("RESIDENT_THREADS", given)},
        "md.cavity.strategies.spectral": {"advance": ("RESIDENT_THREADS", given)},
    }
    found: dict[str, dict] = {}
    for stem in [*STEMS, *(f"md.cavity.strategies.{name}" for name in ("persistent", "spectral"))]:
        kernels = set(parameters(file_of(stem, ".cu").read_text()))
        names = (name for name in vars(import_module(stem)) if not name.startswith("_"))
        assert {name for name in names if declared(stem, name)} <= kernels, stem
        for kernel in kernels:
            block = block_of(stem, kernel)
            assert block.is_resident == (kernel in ("advance", "many_steps"))
            is_for_models = block.registers and block.threads == THREADS and not block.shared
            if declared(stem, kernel) and not is_for_models:
                shared = block.shared and {
                    name: block.shared(1000) for name in inspect.signature(block.shared).parameters
                }
                found.setdefault(stem, {})[kernel] = block.threads, shared
    assert found == expected


def test_the_record_of_the_grid_is_laid_out_as_its_c_struct():
    dtype = record_dtype(3, np.dtype(np.float64))
    assert struct_of_dtype(dtype).text("Grid") == (
        "struct Grid {\n    double length[3];\n    double half[3];\n"
        "    double image[3];\n    double lowest[3];\n    double highest[3];\n    double per_side[3];\n"
        "    double per_image[3];\n    double nearest2;\n"
        "    int cells[3];\n    int periodic[3];\n};\n"
    )
    assert dtype.itemsize % dtype.alignment == 0


def test_named_outputs_and_laws_have_the_fields_their_functors_read():
    outs, laws = (KickDrift, ScatterOutput), (CollectPartners, TallyParameters, ScaledLaw, ContactList)
    for named, receiver in [(out, "out") for out in outs] + [(law, "law") for law in laws]:
        text = file_of(named.__module__, ".cuh").read_text()
        assert all(f"{receiver}.{field}" in text for field in named._fields)


def test_laws_read_every_parameter_they_are_given():
    for law in OF_NUMBERS.values():
        text = file_of(type(law).__module__, ".cuh").read_text()
        names = kernel_law(law, np.float32)._fields
        assert all(f"law.{name}" in text for name in names)
        assert {f"law.{name}" for name in names} == set(re.findall(r"law\.\w+", text))


def test_line_numbers_of_an_error_are_those_of_the_file(tmp_path):
    stem = "md.search.grid.linked"
    text = file_of(stem, ".cu").read_text()
    line = next(k for k, line in enumerate(text.splitlines(), 1) if "finish(" in line)
    whole = source_of(stem, "force", 3, np.float32, "aos4", "spring_dashpot", "store")
    broken = whole.replace("    finish(out, grid", "    wrong(out, grid")
    with pytest.raises(AssertionError, match=rf"md/search/grid/linked\.cu\({line}\)"):
        compile_cubin(broken)


def test_leaving_kernels_out_keeps_the_line_numbers():
    text = file_of("md.search.grid.linked", ".cu").read_text()
    alone = keep_kernel(text, "force")
    assert alone.count("\n") == text.count("\n")
    assert list(parameters(alone)) == ["force"]


def test_an_edited_header_is_in_the_source(monkeypatch):
    before = source_of("md.search.grid.naive", "force", 3, np.float32, "aos4", "spring_dashpot", "store")
    read = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda p, *a, **k: read(p, *a, **k) + ("// edited\n" if p.name == "rows.cuh" else ""),
    )
    assert source_of(
        "md.search.grid.naive", "force", 3, np.float32, "aos4", "spring_dashpot", "store"
    ) == before.replace('#line 1 "md/backend/prelude.cuh"', '// edited\n#line 1 "md/backend/prelude.cuh"')


@pytest.mark.parametrize(
    ("module", "name", "header"),
    [
        (md.boundaries.polygon, "CHUNK", "boundaries/wing"),
        (md.boundaries.polygon, "COLUMNS", "boundaries/wing"),
        (md.boundaries.polygon, "SURELY", "boundaries/wing"),
        (md.search.bvh.curve_keys, "FAR", "search/bvh/curve_keys"),
        (md.search.bvh.wide_boxes, "MOST_NODES", "search/bvh/wide_traversal"),
        (md.search.bvh.wide_boxes, "MOST_NEAR", "search/bvh/wide_traversal"),
        (md.search.bvh.curve_keys, "PARTS", "search/bvh/curve_keys"),
    ],
)
def test_a_constant_of_both_backends_is_the_same(module, name, header):
    text = (ROOT / "md" / f"{header}.cuh").read_text()
    assert float(re.search(rf"#define {name} (?:\(real\))?(\S+)", text)[1]) == getattr(module, name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_is_a_definition_of_the_source(layout):
    assert f"#define LAYOUT_{layout.upper()}\n" in source_of(
        "md.search.grid.naive", "force", 2, np.float32, layout, "spring_dashpot", "store"
    )
