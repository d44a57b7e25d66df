"""The set-associative model against cachegrind, which simulates the loads of a compiled program.

The program's only loads are one line of C; all else stays in registers. Whatever the cache held before is
older than any of them, and an LRU set gives up its oldest lines first: it misses as if it had been empty.
"""

import shutil
import subprocess

import numpy as np
import pytest

from sfc.cache import set_associative
from tests.tiers import product

MISSING = [tool for tool in ("cc", "valgrind") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} not found in PATH")

LOAD = "sum += start[(state >> 12) % SPAN];"
SOURCE = """
static volatile unsigned char memory[2 * ALIGNMENT + SPAN];

__attribute__((noinline)) static unsigned walk(const volatile unsigned char *start) {
    unsigned sum = 0;
    for (unsigned pass = 0; pass < PASSES; ++pass) {
        unsigned state = 0;
        for (unsigned read = 0; read < READS; ++read) {
            LOAD
            state = state * FACTOR + STEP;
        }
    }
    return sum;
}

int main(void) {
    unsigned long behind = (unsigned long)memory % ALIGNMENT;
    return walk(memory + ALIGNMENT - behind) != 0;
}
""".replace("LOAD", LOAD)
ALIGNMENT = 1 << 16  # no smaller than any cache here: the walk starts in set 0

# (factor, step, passes) of a linear congruential walk; its state counts 4096ths of a byte.
WALKS = {
    "random": (1664525, 1013904223, 1),
    "random, repeated": (1664525, 1013904223, 3),
    "bytes": (1, 1 << 12, 3),
    "stride of 3 lines": (1, 192 << 12, 3),
    "stride of 40 bytes": (1, 40 << 12, 2),
}
GEOMETRIES = [
    (1024, 64, 2),
    (4096, 64, 1),
    (3072, 64, 12),
    (2048, 128, 16),
    (32768, 64, 8),
]  # size, line, ways


def stream(span, factor, step, passes, reads):
    """Addresses from the start of the walk, as the C program computes them."""
    states, state = [], 0
    for _ in range(reads):
        states.append(state)
        state = (state * factor + step) % 2**32
    return np.tile((np.array(states) >> 12) % span, passes)


def simulate(folder, size, line, ways, **constants):
    """(loads, misses) of the line LOAD, and all loads of its function, as cachegrind counts them."""
    source, program, counts = folder / "walk.c", folder / "walk", folder / "counts"
    source.write_text(SOURCE)
    defined = [f"-D{name}={value}u" for name, value in constants.items()]
    subprocess.run(["cc", "-O1", "-g", *defined, str(source), "-o", str(program)], check=True)
    caches = [f"--D1={size},{ways},{line}", "--I1=32768,8,64", "--LL=8388608,16,64"]
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *caches, f"--cachegrind-out-file={counts}"]
    finished = subprocess.run([*command, str(program)], capture_output=True, text=True)
    assert counts.exists(), finished.stderr
    load_line = 1 + next(i for i, text in enumerate(SOURCE.splitlines()) if LOAD in text)
    events, function, at_load, loads = [], None, None, 0
    for text in counts.read_text().splitlines():
        key, _, rest = text.partition(" ")
        if key == "events:":
            events = rest.split()
        elif text.startswith("fn="):
            function = text.removeprefix("fn=")
        elif function == "walk" and key.isdigit():
            counted = dict(zip(events, map(int, rest.split()), strict=True))
            loads += counted["Dr"]
            if int(key) == load_line:
                at_load = counted["Dr"], counted["D1mr"]
    return at_load, loads


@pytest.mark.parametrize(("walk", "geometry"), product(list(WALKS), GEOMETRIES, every=3))
def test_misses_are_those_that_cachegrind_counts(tmp_path, walk, geometry):
    size, line, ways = geometry
    factor, step, passes = WALKS[walk]
    span, reads = size + size // 4, 4000
    constants = {"SPAN": span, "FACTOR": factor, "STEP": step, "PASSES": passes, "READS": reads}
    counted, loads = simulate(tmp_path, size, line, ways, **constants, ALIGNMENT=ALIGNMENT)
    assert loads - counted[0] <= 8, "the loop reads its stack: the compiler ran out of registers"
    addresses = stream(span, factor, step, passes, reads)
    model = set_associative(addresses, size, line, ways)
    assert (model.reads, model.reads - model.hits) == counted
