"""Rows of small cells: those of `naive` and no more than the sphere, in any box and order of the cells."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.backend.kernels.on_device import THREADS
from md.backend.kernels.source import file_of
from md.particles.cell_rows import FINEST
from tests import tiers
from tests.md.backend.kernels.test_source import source_of
from tests.md.backend.test_cuda_on_host import printed_around
from tests.strategies import clouds

LAW = md.laws.SpringDashpot(stiffness=1e4, damping=5.0)
CHOICES = md.search.Coherent, md.search.Scattered
DIVISIONS = st.integers(1, FINEST)
KINDS = tiers.by_default(
    [(dim, precision) for dim in (3, 2) for precision in ("float64", "float32")],
    lambda *kind: kind == (3, "float64"),
)


def simulated(state, search, backend, precision="float64", **options):
    choices = {"law": LAW, "dt": 1e-4} | options
    return md.Simulation(
        state, choices.pop("law"), search=search, precision=precision, backend=backend, **choices
    )


@pytest.mark.split
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("dim", "precision"), KINDS)
@tiers.examples(15)
@given(data=st.data(), division=DIVISIONS)
def test_pairs_and_forces_are_those_of_naive(choice, dim, precision, backend, data, division):
    state = data.draw(clouds(dims=st.just(dim)))
    order = data.draw(st.sampled_from(["row", "hilbert", "random"]))
    expected = simulated(state, "naive", backend, precision)
    found = simulated(state, choice(order, division), backend, precision)
    assert np.array_equal(found.pairs(), expected.pairs())
    speed = np.abs(state.vel).sum(axis=1).max(initial=0)
    rounding = 4 * len(state.pos) * (LAW.stiffness + 10 * speed) * np.finfo(precision).eps
    assert np.abs(found.forces() - expected.forces()).max(initial=0) <= rounding


@pytest.mark.parametrize("choice", CHOICES)
@tiers.examples(15)
@given(state=clouds(dims=st.just(3)), division=DIVISIONS, order=st.sampled_from(["row", "hilbert"]))
def test_no_slot_is_read_twice_and_none_by_itself(choice, backend, state, division, order):
    simulation = simulated(state, choice(order, division), backend)
    stream = simulation.accesses()
    assert len(stream.offsets) == len(state.pos) + 1
    for k, reader in enumerate(stream.readers):
        reads = stream.reads[stream.offsets[k] : stream.offsets[k + 1]]
        assert len(set(reads.tolist())) == len(reads)
        assert reader not in reads


def crowd(dim: int, n: int, length: float, periodic: bool) -> md.State:
    generator = np.random.default_rng(4)
    pos = generator.random((n, dim)) * length
    return md.State(pos, generator.normal(size=(n, dim)), md.Box((length,) * dim, periodic))


@pytest.mark.parametrize("periodic", [True, False])
def test_finer_cells_are_read_closer_to_the_sphere(backend, periodic):
    state = crowd(3, 4000, 9.7, periodic)
    reads = [
        len(
            simulated(state, md.search.Coherent(division=division), backend, allow_overlap=True)
            .accesses()
            .reads
        )
        for division in (None, 1, 2, 3, 4)
    ]
    assert reads == sorted(reads, reverse=True)
    assert len(set(reads)) == 5
    sphere = 4000**2 * 4 / 3 * np.pi / 9.7**3
    assert sphere < reads[-1] / (1 if periodic else 0.8) < 2 * sphere


def test_reads_are_the_slots_of_the_cells_within_the_cutoff(backend):
    state = crowd(3, 3000, 9.7, True)
    simulation = simulated(state, md.search.Coherent(division=3), backend, allow_overlap=True)
    stream, cells = simulation.accesses(), simulation.search.grid.shape[0]
    assert cells == 29
    pos = simulation.state.pos
    home = np.floor(pos * cells / 9.7)
    for reader in range(0, 3000, 300):
        gaps = np.zeros(3000)
        apart = (home - home[reader] + cells // 2) % cells - cells // 2
        nearest = np.where(apart > 0, home[reader] + apart, home[reader] + apart + 1) * 9.7 / cells
        gaps = np.where(apart == 0, 0, nearest - pos[reader])
        inside = np.flatnonzero((gaps**2).sum(axis=1) < 1)
        reads = stream.reads[stream.offsets[reader] : stream.offsets[reader + 1]]
        assert np.array_equal(np.sort(reads), inside[inside != reader])


@pytest.mark.parametrize("choice", CHOICES)
def test_particles_beyond_open_sides_are_found(choice, backend):
    generator = np.random.default_rng(1)
    box = md.Box((6.3, 5.2, 4.1), periodic=(False, True, False), open=(True, False, True))
    pos = generator.random((300, 3)) * (14, 5.2, 12) - (4, 0, 4)
    pos[::3, 0] = np.where(pos[::3, 0] < 3, -40, 60) + generator.random(100)
    state = md.State(pos, generator.normal(size=pos.shape), box)
    expected = simulated(state, "naive", backend).pairs()
    assert len(expected) > 100
    for division in range(1, FINEST + 1):
        assert np.array_equal(simulated(state, choice("row", division), backend).pairs(), expected)


@pytest.mark.parametrize("division", [1, 2, 3])
def test_no_pair_is_lost_to_rounding_at_the_corner_of_a_cell(backend, division):
    generator, n, box = np.random.default_rng(8), 8000, md.Box((512.0, 7.1, 6.3))
    nothing = md.State(np.empty((0, 3)), np.empty((0, 3)), box)
    cells = np.array(simulated(nothing, md.search.Coherent(division=division), backend).search.grid.shape)
    faces = generator.integers(0, cells, (n, 3)) * box.lengths / cells
    directions = generator.normal(size=(n, 3)) * generator.integers(0, 2, (n, 3))
    directions[~directions.any(axis=1)] = 1
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    corner = faces + 1e-14 * generator.integers(-9, 10, (n, 3)) * box.lengths / 64
    other = corner + directions * (1 - 1e-15 * generator.integers(-99, 100, (n, 1)))
    pos = box.wrap(np.vstack([other, corner]))  # pairs are those that the first of two finds
    state = md.State(pos, np.zeros_like(pos), box)
    expected = simulated(state, "linked", backend, allow_overlap=True).pairs()
    found = simulated(state, md.search.Coherent(division=division), backend, allow_overlap=True).pairs()
    assert len(expected) > n / 4
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("choice", tiers.first(CHOICES))
def test_radii_of_all_sizes(choice, backend):
    generator = np.random.default_rng(2)
    pos = generator.random((200, 3)) * 9
    state = md.State(
        pos, generator.normal(size=pos.shape), md.Box((9.0,) * 3), radius=generator.random(200) + 0.1
    )
    expected = simulated(state, "naive", backend, allow_overlap=True)
    found = simulated(state, choice(division=3), backend, allow_overlap=True)
    assert np.array_equal(found.pairs(), expected.pairs())
    assert np.abs(found.forces() - expected.forces()).max() < 1e-8


@pytest.mark.parametrize(
    ("law", "choice"),
    tiers.first((law, choice) for law in (LAW, md.laws.Boids()) for choice in CHOICES),
)
def test_a_fused_run_is_that_of_naive(law, choice, backend):
    state = md.scenes.flock(300, md.Box((17.0, 12.0, 11.0)), clusters=3)
    options = {"law": law, "allow_overlap": True, "dt": 1e-4}
    if law is not LAW:
        options |= {"integrator": "flight", "dt": 0.2}
    ends = []
    for search in ("naive", choice(division=2)):
        run = simulated(state, search, backend, fused=search != "naive", **options)
        run.run(10)
        ends.append(run.state.by_id())
    assert np.abs(ends[0].vel - state.by_id().vel).max() > 0.01
    assert np.abs(ends[0].pos - ends[1].pos).max() < 1e-10
    assert np.abs(ends[0].vel - ends[1].vel).max() < 1e-10


@pytest.mark.parametrize("choice", CHOICES)
def test_a_division_out_of_range_is_refused(choice):
    allowed = (
        rf"division of {choice.__name__} = .*; allowed: an integer of at least 1, up to {FINEST} \(.*\); None"
    )
    for division in (0, FINEST + 1, True, 1.5, "2"):
        with pytest.raises(ValueError if type(division) is int else TypeError, match=allowed):
            choice(division=division)


def test_a_checkpoint_holds_the_division(tmp_path, backend):
    simulation = simulated(
        crowd(3, 50, 9.0, True), md.search.Scattered(division=2), backend, allow_overlap=True
    )
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz", backend=backend)
    assert loaded.config.search == md.search.Scattered(division=2)


def test_the_lists_of_a_block_hold_those_of_all_its_threads():
    text = file_of("md.particles.cell_rows", ".cuh").read_text()
    assert int(re.search(r"#define LISTING (\d+)", text)[1]) == THREADS


ON_HOST = """
template <class Grid> Grid box(const float* length, bool periodic, int division) {
    Grid grid{};
    for (int k = 0; k < 3; ++k) {
        grid.length[k] = length[k];
        grid.half[k] = periodic ? length[k] / 2 : INFINITY;
        grid.image[k] = periodic ? length[k] : 0;
        grid.per_image[k] = periodic ? 1 / length[k] : 0;
        grid.nearest2 = k ? min(grid.nearest2, grid.half[k] * grid.half[k]) : grid.half[k] * grid.half[k];
        grid.cells[k] = max(1, (int)(length[k] * division * 0.9999f));
        grid.per_side[k] = grid.cells[k] / length[k];
        grid.periodic[k] = periodic;
    }
    return grid;
}
int main() {
    const int n = 600;
    for (int shape = 0; shape < 3; ++shape) for (int periodic = 0; periodic < 2; ++periodic)
    for (int division = 1; division <= 4; ++division) for (int turned = 0; turned < 2; ++turned) {
        float lengths[3][3] = {{2, 2.3f, 7.1f}, {5.2f, 4.7f, 2.6f}, {3.1f, 9.4f, 2}};
        Grid grid = box<Grid>(lengths[shape], periodic, division);
        int cells = grid.cells[0] * grid.cells[1] * grid.cells[2];
        std::vector<float> pos(4 * n), vel(4 * n);
        for (int i = 0; i < n; ++i) for (int k = 0; k < 3; ++k) {
            pos[4 * i + k] = grid.length[k] * ((i * (37 + 22 * k) % 601) / 601.f);
        }
        std::vector<std::vector<int>> in(cells);
        std::vector<int> rank(cells), start(cells + 1, 0), order;
        for (int c = 0; c < cells; ++c) rank[c] = turned ? (c ^ 1) < cells ? c ^ 1 : c : c;
        for (int i = 0; i < n; ++i) {
            in[rank[cell_number(grid, home_cell(grid, load(pos.data(), n, i)))]].push_back(i);
        }
        for (int c = 0; c < cells; ++c) {
            order.insert(order.end(), in[c].begin(), in[c].end());
            start[c + 1] = order.size();
        }
        std::vector<long long> offsets(n);
        std::vector<int> partners(n * n), counts(n);
        for (int i = 0; i < n; ++i) offsets[i] = (long long)i * n;
        Law law{1.f, nullptr, offsets.data(), partners.data()};
        Out out{counts.data()};
        float reach = 1 + 32 * 1.2e-7f * 10.4f;
        for (unsigned i = 0; i < n; ++i) {
            blockIdx.x = i;
            force_rows(n, pos.data(), vel.data(), nullptr, start.data(), turned ? rank.data() : nullptr,
                       order.data(), division, reach, 0, 1, grid, law, out);
        }
        int wrong = 0, all = 0;
        for (int i = 0; i < n; ++i) {
            std::vector<int> expected, found(&partners[i * n], &partners[i * n] + counts[i]);
            for (int j = 0; j < n; ++j) {
                Vec dr = displacement(grid, load(pos.data(), n, i), load(pos.data(), n, j));
                if (j != i && dot(dr, dr) < 1) expected.push_back(j);
            }
            std::sort(found.begin(), found.end());
            wrong += found != expected;
            all += expected.size();
        }
        printf("%d %d\\n", wrong, all);
    }
}
"""


def test_the_rows_of_a_device_hold_every_pair_once():
    source = source_of("md.search.grid.scattered", "force_rows", 3, np.float32, "aos4", "collect", "counts")
    rows = printed_around(source, ON_HOST)
    assert len(rows) == 48
    assert all(wrong == 0 and pairs > 1000 for wrong, pairs in rows)
