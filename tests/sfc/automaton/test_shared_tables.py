"""The kernels with tables in shared memory, run on the host, against the encode and decode of `Curve`."""

import subprocess

import numpy as np
import pytest

import sfc
from sfc.automaton import device
from sfc.automaton.shared_tables import shared_tables
from sfc.curves.gray import gray
from tests.nvrtc import compiled, local_bytes
from tests.on_host.build import built
from tests.tiers import full, nightly

ROOM = 227 * 2**10 - 8 * 4 * 1024  # of an H100, for a table beside the chunks in 4D
N, BLOCKS = 5003, 3  # of 256 threads: each takes several tiles of most dtypes, and the last chunk is not full
PROGRAM = """
template <class T> void read(FILE* file, std::vector<T>& into) {
    if (fread(into.data(), sizeof(T), into.size(), file) != into.size()) abort();
}
alignas(16) std::vector<cell_t> cells;
alignas(16) std::vector<index_t> indices;
std::vector<unsigned> entries;
long long n;
u64 bound, first_bad;
unsigned start, *table;
void encode_block() { encode(n, cells.data(), bound, table, start, indices.data(), &first_bad); }
void decode_block() { decode(n, indices.data(), bound, table, start, cells.data(), &first_bad); }
int main(int, char** given) {
    n = atoll(given[1]), bound = strtoull(given[2], nullptr, 10), start = atoi(given[3]);
    entries.resize(atoi(given[7]));
    table = entries.data(), cells.resize(n * DIM), indices.resize(n);
    bool is_encode = given[4][0] == 'e';
    FILE* file = fopen(given[5], "rb");
    read(file, entries);
    if (is_encode) read(file, cells); else read(file, indices);
    fclose(file);
    first_bad = n, gridDim.x = BLOCKS;
    for (int block = 0; block < BLOCKS; ++block) run_block(block, is_encode ? encode_block : decode_block);
    file = fopen(given[6], "wb");
    fwrite(&first_bad, 8, 1, file);
    if (is_encode) fwrite(indices.data(), sizeof(index_t), n, file);
    else fwrite(cells.data(), sizeof(cell_t), n * DIM, file);
    fclose(file);
}
"""
CASES = [  # in 2, 3 and 4 dimensions and in base 3; signed or not, of 1, 2 and 4 bytes
    ("hilbert", 2, 31, "u4", "u8"),
    ("moore", 2, 7, "u1", "i4"),
    ("hilbert", 3, 10, "u2", "u4"),
    ("hilbert", 4, 15, "i2", "u8"),
    ("peano", 3, 6, "i2", "u4"),
]
FURTHER = [
    ("hilbert", 2, 16, "u2", "u4"),
    ("morton", 2, 32, "i8", "u8"),
    ("butz", 3, 21, "u4", "u8"),
    ("moore", 3, 9, "i4", "i8"),
    ("gray", 3, 21, "i8", "u8"),
    ("hilbert", 4, 8, "u1", "u4"),
    ("peano", 2, 20, "u4", "u8"),
]
NIGHTLY = [
    ("gray", 2, 1, "u1", "u4"),
    ("hilbert", 2, 32, "u4", "u8"),
    ("compact", 3, 21, "u4", "u8"),
    ("compact", 3, 20, "i8", "i8"),
    ("moore", 3, 21, "u4", "u8"),
    ("hilbert", 3, 1, "i1", "i4"),
    ("morton", 4, 16, "u4", "u8"),
    ("peano", 2, 9, "i4", "i4"),
    ("peano", 3, 13, "i8", "u8"),
    ("peano", 2, 1, "u1", "u4"),
]
cases = pytest.mark.parametrize(
    ("name", "dim", "order", "cell", "index"),
    [*CASES, *(full(*case) for case in FURTHER), *(nightly(*case) for case in NIGHTLY)],
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a kernel and returns its result and the first wrong row."""
    monkeypatch.setattr(device, "THREADS_OF_TABLE", 256)
    programs = {}

    def run(kernel, curve, order, given, cell, index):
        tables = shared_tables(curve, order, ROOM)
        cell, index = np.dtype(cell), np.dtype(index)
        if (cell, index) not in programs:
            source = device.shared_source(tables.header, tables.constants, cell, index)
            source = source.replace("extern __shared__ uint4 memory[];", "uint4* memory = shared_memory;")
            code = f"#define BLOCKS {BLOCKS}\n{source}\n{PROGRAM}"
            programs[cell, index] = built("blocks_on_host.h", code)
        encodes = kernel == "encode"
        entries = tables.encode if encodes else tables.decode
        (tmp_path / "given").write_bytes(entries.tobytes() + np.ascontiguousarray(given).tobytes())
        bound = curve.side(order) if encodes else curve.side(order) ** curve.dim - 1
        arguments = [
            len(given),
            bound,
            tables.start,
            kernel,
            tmp_path / "given",
            tmp_path / "found",
            entries.size,
        ]
        subprocess.run([programs[cell, index], *map(str, arguments)], check=True)
        found = (tmp_path / "found").read_bytes()
        made = np.frombuffer(found[8:], index if encodes else cell)
        return made if encodes else made.reshape(-1, curve.dim), int(np.frombuffer(found[:8], np.uint64)[0])

    return run


@cases
def test_cells_and_indices_are_those_of_the_host(run, name, dim, order, cell, index):
    curve = sfc.curve(name, dim)
    last = curve.side(order) ** dim - 1
    indices = np.random.default_rng(3).integers(0, last, N, np.uint64, endpoint=True)
    indices[:2] = 0, last
    indices = np.minimum(indices, np.uint64(np.iinfo(index).max)).astype(index)
    cells = curve.decode(indices, order)
    found, bad = run("encode", curve, order, cells.astype(cell), cell, index)
    assert bad == N
    np.testing.assert_array_equal(found, indices)
    found, bad = run("decode", curve, order, indices, cell, index)
    assert bad == N
    np.testing.assert_array_equal(found, cells)


@pytest.mark.parametrize(
    ("name", "cell", "wrong"),
    [
        ("hilbert", "u2", 32),
        full("hilbert", "i8", 2**40),
        full("hilbert", "i1", -128),
        full("peano", "u2", 3**5),
        ("peano", "i4", -1),
    ],
)
def test_the_first_cell_outside_the_grid_is_found(run, name, cell, wrong):
    for row in (0, 1700, N - 1):
        cells = np.zeros((N, 3), cell)
        cells[row, 1] = cells[min(row + 3, N - 1), 2] = wrong
        assert run("encode", sfc.curve(name, 3), 5, cells, cell, "u8")[1] == row


@pytest.mark.parametrize(
    ("name", "index", "wrong"),
    [
        ("hilbert", "u8", 2**63),
        ("peano", "i8", -1),
        full("hilbert", "u4", 2**15),
        full("peano", "u8", 2**64 - 1),
    ],
)
def test_the_first_index_past_the_end_is_found(run, name, index, wrong):
    for row in (0, 1700, N - 1):
        indices = np.zeros(N, index)
        indices[row:] = wrong
        assert run("decode", sfc.curve(name, 3), 5, indices, "u4", index)[1] == row


@pytest.mark.parametrize(
    ("base", "dim", "states", "order"), [(3, 3, 24, 5), full(5, 3, 2, 3), full(4, 2, 3, 5), full(7, 2, 5, 4)]
)
def test_curves_of_any_base_have_the_hosts_cells_and_indices(run, base, dim, states, order):
    rng, cells = np.random.default_rng(base), base**dim
    rank = np.stack([rng.permutation(cells) for _ in range(states)])
    curve = sfc.Curve("any", dim, base, rank, rng.integers(0, states, (states, cells)))
    indices = rng.integers(0, curve.side(order) ** dim, N).astype(np.uint64)
    cells = curve.decode(indices, order)
    assert shared_tables(curve, order, ROOM).size % 16 == 0
    np.testing.assert_array_equal(run("encode", curve, order, cells.astype("u4"), "u4", "u8")[0], indices)
    np.testing.assert_array_equal(run("decode", curve, order, indices, "u4", "u8")[0], cells)


def test_a_negative_index_of_64_bits_is_no_large_one(run):
    indices = np.full(N, -1, np.int64)
    assert run("decode", sfc.curve("hilbert", 2), 32, indices, "i8", "i8")[1] == 0


def test_no_level_and_other_dims_have_no_such_table():
    assert shared_tables(sfc.curve("hilbert", 3), 0, ROOM) is None
    assert shared_tables(gray(5), 3, ROOM) is None


def test_more_states_than_fit_shared_memory_have_no_such_table():
    states = 2**10
    rank = np.array([np.random.default_rng(k).permutation(8) for k in range(states)])
    next = np.random.default_rng(1).integers(0, states, (states, 8))
    curve = sfc.Curve("many", 3, 2, rank, next)
    assert shared_tables(curve, 5, ROOM) is None
    few = sfc.Curve("few", 3, 2, rank[:64], next[:64] % 64)
    assert shared_tables(few, 5, ROOM).size <= ROOM


@pytest.mark.parametrize(("room", "copies"), [(2**16 - 1, None), (2**16, 3), (2**17, 4), (ROOM, 4)])
def test_a_device_with_less_shared_memory_gets_fewer_copies_or_none(room, copies):
    tables = shared_tables(sfc.curve("hilbert", 2), 31, room)
    assert (tables and dict(tables.constants)["COPY_BITS"]) == copies
    assert tables is None or tables.size <= room


@cases
def test_kernels_fit_a_multiprocessor(name, dim, order, cell, index):
    tables = shared_tables(sfc.curve(name, dim), order, ROOM)
    source = device.shared_source(tables.header, tables.constants, cell, index)
    _, log = compiled(source)
    assert max(local_bytes(log, kernel) for kernel in ("encode", "decode")) <= 100 * (cell == "u1")
