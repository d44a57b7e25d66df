"""CUDA code without a Numba counterpart, compiled for the host: displacement guard, sums."""

import subprocess

import numpy as np

from tests.md.backend.kernels.test_source import source_of
from tests.on_host.build import built

GRID = """
template <class Grid> Grid box(float x, float y, float z, int nx, int ny, int nz) {
    Grid grid{};
    float length[] = {x, y, z};
    int cells[] = {nx, ny, nz};
    for (int k = 0; k < 3; ++k) {
        grid.length[k] = grid.image[k] = grid.highest[k] = length[k];
        grid.half[k] = length[k] / 2;
        grid.per_image[k] = 1 / length[k];
        grid.cells[k] = cells[k];
        grid.per_side[k] = cells[k] / length[k];
        grid.periodic[k] = 1;
    }
    float shortest = min(x, min(y, z)) / 2;
    grid.nearest2 = shortest * shortest;
    return grid;
}
"""
FLIGHT = """
int main() {
    for (float speed : {SPEEDS}) {
        float pos[4] = {START, 1, 1, 0}, vel[4] = {speed, 0, 0, 0}, start = pos[0], last = 0;
        list_row partners = row_of(ZERO, ZERO, ZERO, false);
        int id = 0, halted = 0, step = 0;
        unsigned long long fault = ~0ull, fastest[2] = {0, 0};
        long long clock[2] = {0, 0};
        float travelled[6], to_pos[4], to_vel[4];
        memset(travelled, 0xff, sizeof travelled);
        Grid grid = box<Grid>(512, 5, 5, 512, 5, 5);
        if (pos[0] > 512) grid.periodic[0] = 0, grid.highest[0] = 1e6f;
        Law law{};
        law.diameter = 1;
        Out out{to_pos, to_vel, &id, 0.01f, 0.01f, &fault, clock, 0,
                fastest, travelled, &halted, 0.15f, ROUNDING};
        for (; !halted && step < 100000; ++step) {
            out.turn = step % 2;
            last = pos[0];
            force(1, pos, vel, &partners, grid, law, out);
            memcpy(pos, to_pos, sizeof pos);
            memcpy(vel, to_vel, sizeof vel);
        }
        // `last` is the position at the halted step.
        printf("%d %lld %d %.9g %.9g\\n", step, clock[step % 2], last == pos[0], last - start, speed * 0.01f);
    }
}
"""
TALLY = """
int main() {
    const int n = 1000, threads = 7;
    std::vector<float> pos(4 * n), vel(4 * n);
    std::vector<double> sums(5 * 3 * 6, 0), plain(5 * 3 * 6, 0);
    Grid grid = box<Grid>(10, 6, 4, 5, 1, 3);
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < 3; ++k) {
            pos[4 * i + k] = grid.length[k] * ((i * (7 + 2 * k) % 31) / 31.f);
            vel[4 * i + k] = (i * (3 + k)) % 17 - 8.3f;
        }
        if (i < 300) memcpy(&pos[4 * i], &pos[0], 16);  // many in one bin
        double *bin = &plain[6 * cell_number(grid, home_cell(grid, load(pos.data(), n, i)))], v2 = 0;
        for (int k = 0; k < 3; ++k) {
            v2 += (double)vel[4 * i + k] * vel[4 * i + k];
            bin[3 + k] += vel[4 * i + k];
        }
        bin[0] += 1;
        bin[1] += sqrt(v2);
        bin[2] += v2;
    }
    for (unsigned i = 0; i < threads; ++i) {
        blockIdx.x = i;
        tally(threads, n, pos.data(), vel.data(), grid, 1, sums.data());
    }
    for (size_t k = 0; k < sums.size(); ++k) printf("%.17g %.17g\\n", sums[k], plain[k]);
}
"""
HALTING = """
int main() {
    Out out{};
    float cases[][4] = {CASES};  // distance travelled, limit, rounding of a step, time of a step
    for (auto& [travelled, limit, rounding, drift] : cases) {
        out.rounding = rounding, out.drift = drift;
        unsigned bits = halting_from(out, travelled, limit);
        float below = __uint_as_float(bits - (bits > 0)), above = 1.0001f * __uint_as_float(bits);
        below = travelled_by_now(out, travelled, below), above = travelled_by_now(out, travelled, above);
        printf("%u %.9g %.9g\\n", bits, below, above);
    }
}
"""
INSIDE = """
int main() {
    Grid grid = box<Grid>(512, 5, 5, 512, 5, 5);
    for (float x : {0.f, 511.99997f, 512.f, -0.f, -1e-30f, 600.f, NAN, INFINITY}) {
        Vec r{x, 1, 1};
        printf("%d\\n", is_inside(grid, r));
    }
}
"""
NUMBERED = """
int main() {
    unsigned wrong = 0, number = 1;
    for (int k = 0; k < 1000; ++k, number = number * 1664525u + 1013904223u) {
        for (unsigned first : {FAR, LINK}) {
            list_row row = row_of(first, number, k % 2);
            wrong += row.first() != first || row.number() != number || row.more() != k % 2;
        }
        unsigned a = number >> 11, b = number & MASK, c = number * 7 >> 11;
        list_row row = row_of(a, b, c, k % 2);
        wrong += row.first() != a || row.second() != b || row.third() != c || row.more() != k % 2;
    }
    printf("%u\\n", wrong);
}
"""
ADD_UP = """
int main() {
    const int n = 1000, threads = 7;
    std::vector<double> energy(n);
    std::vector<int> touching(n), started(n);
    double sums[3] = {0, 0, 0};
    for (int i = 0; i < n; ++i) {
        energy[i] = 0.25 * i;
        touching[i] = i % 12;
        started[i] = i % 13 == 0;
    }
    for (unsigned i = 0; i < threads; ++i) {
        blockIdx.x = i;
        add_up(threads, n, energy.data(), touching.data(), started.data(), 1, sums);
    }
    printf("%.17g %.17g %.17g\\n", sums[0], sums[1], sums[2]);
}
"""


def printed(
    kernel: str, program: str, out: str, stem: str = "md.search.lists.list_search"
) -> list[list[float]]:
    """Compile and run a program with a kernel; return the numbers of each printed line."""
    source = source_of(stem, kernel, 3, np.float32, "aos4", "spring_dashpot", out)
    return printed_around(source, program)


def printed_around(source: str, program: str, *arguments: str) -> list[list[float]]:
    """Compile and run a program with the source of a kernel; return the numbers of each printed line."""
    needs = GRID if "box<Grid>" in program else ""
    path = built("cuda_on_host.h", f"{source}\n{needs}\n{program}")
    done = subprocess.run([path, *arguments], check=True, capture_output=True, text=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def halted_flights(start: str, speeds: str) -> list[list[float]]:
    """Steps, clock, whether the last step moved nothing, distance, stride and rounding of halted flights."""
    rounding = np.float32(np.sqrt(3) * np.finfo(np.float32).eps * 512)
    program = FLIGHT.replace("ROUNDING", f"{rounding:.9g}f").replace("START", start).replace("SPEEDS", speeds)
    rows = printed("force", program, out="fused")
    for steps, clock, unmoved, *_ in rows:
        assert clock == steps - 1  # the last was halted
        assert unmoved
    return [[*row, rounding] for row in rows]


def test_steps_halt_before_rounded_positions_exceed_the_limit():
    rows = halted_flights("300.1f", "1.8e-3f, 1e-2f, 9.2e-2f, 0.73f")
    assert len(rows) == 4
    for steps, _, _, travelled, stride, rounding in rows:
        assert 0.03 < travelled < 0.15 + stride * 1.05
        assert steps > 0.9 * 0.15 / (stride + rounding)


def test_steps_halt_in_time_far_beyond_an_open_side():
    rows = halted_flights("80000.1f", "0.42f, 0.73f, 3.f")  # a coordinate has steps of 0.0078 there
    assert len(rows) == 3
    for _, _, _, travelled, stride, _ in rows:
        assert 0.01 < travelled < 0.15 + stride * 1.05


def test_the_speed_that_halts_a_step_is_the_one_at_which_the_distance_reaches_the_limit():
    random = np.random.default_rng(4).random((200, 4)).astype(np.float32)
    cases = random * np.float32([0.1, 0.5, 0.01, 0.02]) + np.float32([0, 0.12, 0, 1e-3])
    text = ", ".join("{" + ", ".join(f"{x:.9g}f" for x in case) + "}" for case in cases.astype(float))
    found = np.array(printed("force", HALTING.replace("CASES", text.replace("e-0", "e-")), out="fused"))
    limit = cases[:, 1].astype(float)
    assert (found[:, 1] < limit * (1 + 2e-7)).all()
    assert (found[:, 2] >= limit).all()


def test_steps_without_motion_go_on_below_the_limit_and_none_beyond():
    cases = {  # distance travelled, limit, rounding: bits of the square of a speed
        ("0.f", "0.f", "0.f"): 1,
        ("0.f", "0.f", "0.01f"): 1,
        ("0.1f", "0.105f", "0.01f"): 1,
        ("0.2f", "0.15f", "0.f"): 0,
        ("0.15f", "0.15f", "0.f"): 0,
        ("INFINITY", "0.15f", "0.f"): 0,
        ("INFINITY", "INFINITY", "0.f"): 0,
        ("NAN", "0.15f", "0.f"): 0,
        ("0.1f", "INFINITY", "0.f"): 0x7F800000,
    }
    text = ", ".join("{" + ", ".join(case) + ", 0.01f}" for case in cases)
    found = printed("force", HALTING.replace("CASES", text), out="fused")
    assert [int(bits) for bits, *_ in found] == list(cases.values())


def test_a_position_at_the_upper_side_of_the_box_is_not_inside():
    found = [inside for (inside,) in printed("force", INSIDE, out="fused")]
    assert found == [1, 1, 0, 0, 0, 0, 0, 0]


def test_a_row_of_a_list_holds_any_three_entries_or_any_number():
    assert printed("force", NUMBERED, out="fused") == [[0.0]]


def test_threads_with_many_particles_sum_all_of_them_in_their_bins():
    rows = np.array(printed("tally", TALLY, out="store", stem="md.observe.sums"))
    assert rows[::6, 1].sum() == 1000
    assert rows[0, 1] > 300
    assert np.allclose(rows[:, 0], rows[:, 1], rtol=1e-13)


def test_threads_with_many_particles_add_up_all_of_them():
    ((energy, touching, started),) = printed("add_up", ADD_UP, out="store", stem="md.observe.sums")
    assert energy == 0.25 * 999 * 500
    assert touching == sum(i % 12 for i in range(1000))
    assert started == 77
