"""The CUDA kernels of reflexive walks, compiled for the host: each stack, each layout; sums of a warp."""

import numpy as np
import pytest

import md
from md.laws.pair import kernel_law
from md.search.bvh.reflexive import Reflexive
from tests import tiers
from tests.md.backend.kernels.test_source import source_of
from tests.md.backend.test_cuda_on_host import printed_around
from tests.md.search.test_contract import dense_cloud, largest_difference, simulated

WALK = """
int room[96 * BLOCK_THREADS];
template <class T> void read(FILE* file, std::vector<T>& into, size_t count) {
    into.resize(count);
    if (fread(into.data(), sizeof(T), count, file) != count) abort();
}
int main(int, char** given) {
    FILE* file = fopen(given[1], "rb");
    const int n = COUNT, all = 2 * COUNT - 1;
    std::vector<real> pos, vel, nodes, out(4 * n, 0);
    std::vector<int> order, way, met, partners;
    std::vector<Reach> reach;
    std::vector<Grid> grid;
    std::vector<Law> law;
    read(file, pos, PER_ROW * n), read(file, vel, PER_ROW * n), read(file, order, n);
    read(file, nodes, 8 * all), read(file, way, 2 * all);
    read(file, reach, 1), read(file, grid, 1), read(file, law, 1);
    read(file, met, n), read(file, partners, 2 * n);
    for (unsigned leaf = 0; leaf < n + 3; ++leaf) {
        blockIdx.x = leaf;
        CALL;
    }
    for (int i = 0; i < n; ++i) {
        Vec force = load(out.data(), n, i);
        for (int axis = 0; axis < DIM; ++axis) printf("%.17g ", force.x[axis]);
        printf("\\n");
    }
}
"""
READ = "pos.data(), vel.data(), ORDER, nodes.data(), way.data(), reach[0], grid[0], law[0]"
PUSH = f"KERNEL(n, 1, 96, {READ}, nullptr, out.data())"
RESOLVE = f"KERNEL(n, 1, 2, met.data(), partners.data(), {READ}, nullptr, out.data())"
GATHER = f"KERNEL(n, 1, 96, 0, {READ}, Out{{out.data()}})"
WARP = """
Vec summed[32];
int rows[32];
bool is_first[32];
void* lane(void* number) {
    int k = (int)(size_t)number;
    threadIdx.x = 64 + k;
    is_first[k] = sum_of_peers(rows[k], summed[k]);
    return nullptr;
}
int main() {
    lanes_at_once = 32;
    pthread_barrier_init(&all_lanes, nullptr, 32);
    for (int kind : {1, 2, 3, 5, 11, 31, 32}) {
        pthread_t lanes[32];
        for (int k = 0; k < 32; ++k) {
            rows[k] = (k * 7 + k / 5) % kind;
            summed[k] = {(real)(1 << (k % 16)), (real)k, 1};
        }
        for (size_t k = 0; k < 32; ++k) pthread_create(&lanes[k], nullptr, lane, (void*)k);
        for (int k = 0; k < 32; ++k) pthread_join(lanes[k], nullptr);
        for (int k = 0; k < 32; ++k) {
            if (!is_first[k]) continue;
            const real* sum = summed[k].x;
            printf("%d %d %g %g %g\\n", kind, rows[k], sum[0], sum[1], sum[2]);
        }
    }
}
"""


def as_struct(law: md.laws.PairLaw, real) -> np.ndarray:
    """The numbers of a law as a kernel reads them."""
    numbers = kernel_law(law, real)
    return np.array([tuple(numbers)], [(name, real) for name in numbers._fields])


def forces(
    tmp_path, kernel: str, dim: int, real, layout: str, data: str, state: md.State, before: str = ""
) -> np.ndarray:
    """Of a state, in the order of ids, by a kernel on the tree that the CPU makes; some lines before it."""
    listed = {"contacts": "listed", "room": 2} if data != "unsorted" else {}
    search = Reflexive(data=data, **listed)
    run = simulated(state, search, md.backend.Cpu(layout), np.dtype(real).name, allow_overlap=True)
    run.forces()
    bound, n, folder = run.search, len(state.pos), tmp_path / kernel
    folder.mkdir()
    rows = [np.asarray(a) for a in (run.system.particles.pos, run.system.particles.vel)]
    if layout == "soa":
        rows = [np.ascontiguousarray(a.T) for a in rows]
    if layout == "aos4":
        rows = [np.pad(a, ((0, 0), (0, 4 - dim))) for a in rows]
    nodes = bound.tree.nodes.copy()
    words = nodes.view(np.int32).reshape(len(nodes), 4, -1)
    words[:, 3, 0] = bound.tree.ropes  # as a device keeps it
    records = bound.structure()[3], run.system.grid.record, as_struct(run.law, real)
    lists = (bound._contact_counts, bound._contact_list.partners) if listed else (np.zeros(3 * n, np.int32),)
    parts = (*rows, bound.tree.keys.order, nodes, bound.tree.ropes, *records, *lists)
    (folder / "case.bin").write_bytes(b"".join(part.tobytes() for part in parts))
    source = before + source_of(
        "md.search.bvh.reflexive", kernel, dim, real, layout, "spring_dashpot", "store"
    )
    program = WALK.replace("CALL", {"gather": GATHER, "resolve": RESOLVE}.get(kernel.split("_")[0], PUSH))
    values = {"KERNEL": kernel, "PER_ROW": str(rows[0].size // n)}
    values |= {"ORDER": "order.data()" if data == "unsorted" else "nullptr", "COUNT": str(n)}
    for word, value in values.items():
        program = program.replace(word, value)
    found = printed_around(source.replace("extern __shared__", "extern"), program, str(folder / "case.bin"))
    return np.array(found)[np.argsort(run.system.particles.id)]


@pytest.mark.parametrize(
    ("kernel", "dim", "real", "layout", "data"),
    [
        tiers.nightly("gather_none", 3, np.float32, "aos4", "sorted"),
        tiers.nightly("gather_local", 2, np.float64, "soa", "unsorted"),
        tiers.nightly("gather_shared", 3, np.float64, "aos", "sorted"),
        tiers.nightly("push_none", 2, np.float64, "aos4", "unsorted"),
        tiers.nightly("push_local", 3, np.float32, "soa", "sorted"),
        tiers.nightly("push_shared", 2, np.float32, "aos", "unsorted"),
        tiers.nightly("sum_none", 3, np.float64, "aos", "sorted"),
        tiers.nightly("sum_local", 3, np.float64, "aos4", "unsorted"),
        tiers.nightly("sum_shared", 2, np.float32, "soa", "sorted"),
        ("resolve", 3, np.float64, "aos", "sorted"),
        tiers.full("resolve", 2, np.float64, "aos4", "sorted"),
        tiers.nightly("resolve", 3, np.float32, "soa", "sorted"),
    ],
)
def test_a_kernel_of_a_device_finds_the_forces_of_naive(kernel, dim, real, layout, data, tmp_path):
    state = dense_cloud(dim)
    expected = simulated(state, "naive", "cpu").forces()
    found = forces(tmp_path, kernel, dim, real, layout, data, state)
    assert np.abs(expected).max() > 100
    assert np.abs(found - expected).max() <= 4 * largest_difference(state, np.dtype(real).name)


@pytest.mark.parametrize(
    ("kernel", "dim", "real", "layout", "data"),
    [
        ("push_none", 3, np.float64, "aos4", "sorted"),
        tiers.full("resolve", 2, np.float32, "aos", "sorted"),
        tiers.full("push_local", 2, np.float32, "soa", "unsorted"),
    ],
)
def test_additions_are_counted_where_forces_would_be_added(kernel, dim, real, layout, data, tmp_path):
    state = dense_cloud(dim)
    pairs = simulated(state, "naive", "cpu").pairs()
    found = forces(tmp_path, kernel, dim, real, layout, data, state, "#define COUNT_ADDITIONS 1\n")
    own, others = found[:, 0], found[:, 1:]
    assert own.min() >= 1
    assert own.sum() == len(pairs) + len(state) > 3 * len(state)
    assert not others.any()


def test_lanes_of_a_warp_with_the_same_row_sum_up_and_one_of_them_has_it():
    source = source_of("md.search.bvh.reflexive", "sum_none", 3, np.float64, "aos", "spring_dashpot", "store")
    found = printed_around(source, WARP)
    expected = []
    for kind in (1, 2, 3, 5, 11, 31, 32):
        lanes = np.arange(32)
        rows = (lanes * 7 + lanes // 5) % kind
        for row in sorted(set(rows.tolist()), key=rows.tolist().index):
            own = lanes[rows == row]
            expected.append([kind, row, float((1 << (own % 16)).sum()), float(own.sum()), len(own)])
    assert found == expected
