"""Loads of the CPU's kernels: the partners that the searches visit, in their order, and the rows of each."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import md
from experiments.loads.cores import OF_SEARCH, force_stream
from experiments.loads.cores.index import gather_stream, scatter_stream, spmv_stream
from sfc.cache.loads import ALIGNED
from tests.tiers import full

N = 300


def simulation(search, periodic, precision, dim=3):
    random = np.random.default_rng(dim)
    lengths = (4.4, 4.3, 5.6)[:dim]
    pos = random.random((N, dim)) * lengths
    state = md.State(pos, random.normal(size=(N, dim)), md.Box(lengths, periodic))
    law = md.laws.SpringDashpot(1.0, 1.0)
    return md.Simulation(
        state, law, dt=1e-4, search=search, precision=precision, backend="cpu", allow_overlap=True
    )


def starts(run) -> tuple[int, list[int]]:
    """Bytes of a row, and addresses of positions, velocities, forces, and of what follows them."""
    pos = run.system.particles.pos
    size = pos.shape[1] * pos.itemsize
    aligned = -(-size * N // ALIGNED) * ALIGNED
    return size, [0, aligned, 2 * aligned, 3 * aligned]


@pytest.mark.parametrize(
    ("search", "periodic", "precision", "dim"),
    [
        *((name, True, "float64", 3) for name in OF_SEARCH),
        *(full(name, False, "float32", 3) for name in OF_SEARCH),
        *(full(name, False, "float64", 2) for name in OF_SEARCH),
    ],
)
def test_rows_are_those_of_the_partners_that_the_search_visits(search, periodic, precision, dim):
    run = simulation(search, periodic, precision, dim)
    stream = force_stream(run)
    found = run.search.accesses()
    size, (_, vel, force, others) = starts(run)
    assert stream.items == N
    pairs = {frozenset(pair) for pair in run.pairs().tolist()}
    ids, touching = np.asarray(run.system.particles.id), 0
    for k in range(N):
        addresses = stream.loads_of(k, k + 1)[0]
        rows = addresses[addresses < others]
        own = int(found.readers[k])
        partners = found.reads[found.offsets[k] : found.offsets[k + 1]].tolist()
        expected = [own]
        positions = rows[rows < vel][::2] // size
        assert positions.tolist() == [*expected, *partners]
        assert np.array_equal(rows[rows < vel][1::2], rows[rows < vel][::2] + size - 1)
        velocities = (rows[(rows >= vel) & (rows < force)][::2] - vel) // size
        near = [j for j in partners if frozenset((int(ids[own]), int(ids[j]))) in pairs]
        assert velocities.tolist() == [own, *near]
        touching += len(near)
        assert ((addresses[-2:] - force) // size).tolist() == [own, own]
    assert touching in (len(pairs), 2 * len(pairs))


def test_linked_cells_are_read_head_by_head_and_link_by_link():
    run = simulation("linked", True, "float64")
    stream = force_stream(run)
    head, following = run.search.structure()
    heads = starts(run)[1][-1]
    links = heads + -(-4 * len(head) // ALIGNED) * ALIGNED
    found = stream.loads_of(0, N)[0]
    visits = run.search.accesses()
    assert ((found >= heads) & (found < links)).sum() == 27 * N
    assert (found >= links).sum() == len(visits.reads) + N  # a particle is in a list of its own cell
    assert found.max() < links + 4 * N
    assert len(following) == N


def test_another_search_or_backend_is_refused():
    with pytest.raises(ValueError, match="search 'lbvh' on 'cpu'; allowed: coherent, linked"):
        force_stream(simulation("lbvh", True, "float64"))


@pytest.mark.parametrize(
    "options",
    [
        {"reorder": md.Reorder("hilbert", md.Every(1), mode="threads"), "search": "linked"},
        {"reorder": md.Reorder("hilbert", md.Every(1), mode="shadow"), "search": "linked"},
        {"search": md.search.Scattered(division=2)},
        {"radius": np.full(N, 0.1), "search": "linked"},
    ],
)
def test_a_simulation_with_other_loads_is_refused(options):
    random, radius = np.random.default_rng(0), options.get("radius")
    state = md.State(random.random((N, 3)) * 5, np.zeros((N, 3)), md.Box((5.0,) * 3), radius=radius)
    options = {name: one for name, one in options.items() if name != "radius"}
    law = md.laws.SpringDashpot(1.0, 1.0)
    run = md.Simulation(state, law, dt=1e-4, backend="cpu", allow_overlap=True, **options)
    with pytest.raises(ValueError, match="allowed: none of these"):
        force_stream(run)


def test_a_gather_takes_index_element_and_result():
    index = np.random.default_rng(0).integers(0, 90, (20, 3)).astype(np.int32)
    stream = gather_stream(index, 8)
    x, y = ALIGNED, ALIGNED + -(-8 * (index.max() + 1) // ALIGNED) * ALIGNED
    expected = [
        one
        for k, element in enumerate(index[4:9].ravel(), start=12)
        for one in (4 * k, x + 8 * element, y + 8 * k)
    ]
    addresses, instructions = stream.loads_of(4, 9)
    assert addresses.tolist() == expected
    assert instructions.tolist() == [0, 1, 2] * 15
    assert not stream.branches


def test_a_scatter_takes_index_and_value_and_loads_and_stores_the_sum():
    index = np.random.default_rng(0).integers(0, 90, 200).astype(np.int32)
    stream = scatter_stream(index, 4)
    value = -(-4 * len(index) // ALIGNED) * ALIGNED
    expected = [
        one
        for k in range(4, 9)
        for one in (4 * k, value + 4 * k, 2 * value + 4 * index[k], 2 * value + 4 * index[k])
    ]
    addresses, instructions = stream.loads_of(4, 9)
    assert addresses.tolist() == expected
    assert instructions.tolist() == [0, 1, 2, 3] * 5
    assert stream.adds == 3
    assert not stream.branches


def test_a_product_takes_the_entries_of_each_row():
    matrix = csr_array(random_array((30, 40), density=0.2, rng=np.random.default_rng(1), format="csr"))
    stream = spmv_stream(matrix)
    entries = len(matrix.data)
    base = np.cumsum([0, *(-(-one // ALIGNED) * ALIGNED for one in (4 * 31, 4 * entries, 8 * entries, 320))])
    expected = []
    for row in range(30):
        expected.append(base[0] + 4 * (row + 1))
        for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
            expected += [base[1] + 4 * k, base[2] + 8 * k, base[3] + 8 * matrix.indices[k]]
        expected.append(base[4] + 8 * row)
    assert stream.loads_of(0, 30)[0].tolist() == expected
