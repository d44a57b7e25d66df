"""A free list by compare-and-swap: lost nodes are found, and a count of the changes keeps them."""

import numpy as np
import pytest

import md
from experiments.measurement.kernels.free_list import THREADS, FreeList, not_once
from tests.md.cavity.strategies.emulated_cuda import Compiling, EmulatedCuda
from tests.nvrtc import compile_cubin

YIELDED = """
static unsigned long long drawn = SEED;
template <class T> T yielded_cas(T* word, T seen, T wanted) {
    drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
    for (int k = drawn >> 33 & 7; k > 0; --k) yield_to_others();
    return atomicCAS(word, seen, wanted);
}
"""


class Interrupting(EmulatedCuda):
    """A device that lets other threads run, for a time that is drawn, before each compare-and-swap."""

    def _compile(self, text, code, name):
        begin = code.index("__device__ __forceinline__ int first_of")
        own = code[begin:].replace("atomicCAS(", "yielded_cas(")
        return super()._compile(text, code[:begin] + YIELDED.replace("SEED", "7") + own, name)


def test_nodes_are_lost_without_a_count_of_the_changes_and_never_with_it():
    lost, twice = {}, {}
    for counted in (False, True):
        nodes = FreeList(6, Interrupting())
        twice[counted] = nodes.use(counted, threads=64, turns=40)
        lost[counted] = nodes.lost()
    assert lost[False] + twice[False] > 0
    assert lost[True] == twice[True] == 0


@pytest.mark.parametrize("counted", [False, True])
def test_one_thread_loses_no_node(counted):
    nodes = FreeList(5, md.backend.get("cpu"))
    assert nodes.use(counted, threads=3, turns=4) == 0
    assert nodes.lost() == 0


def test_a_node_that_is_missing_or_twice_in_lists_is_counted():
    following = np.array([1, -1, 3, -1, -1], np.int32)
    assert not_once(np.array([0, -1, 2, 4], np.int32), following) == 0
    assert not_once(np.array([0, 2], np.int32), following) == 1
    assert not_once(np.array([0, 1, 2, 4], np.int32), following) == 1
    assert not_once(np.array([0], np.int32), np.array([1, 2, 1], np.int32)) == 1  # it ends nowhere
    assert not_once(np.array([-1], np.int32), following) == 5


def test_no_node_is_refused():
    with pytest.raises(ValueError, match="nodes = 0; allowed: an integer of at least 1"):
        FreeList(0, md.backend.get("cpu"))


@pytest.mark.parametrize("name", ["threads", "turns"])
def test_no_thread_or_turn_is_refused(name):
    nodes = FreeList(5, md.backend.get("cpu"))
    with pytest.raises(ValueError, match=f"{name} = 0; allowed: an integer of at least 1"):
        nodes.use(True, **{name: 0})


@pytest.mark.parametrize("counted", [0, 1])
def test_the_kernel_compiles_for_a_device(counted):
    device = Compiling()
    FreeList(4, device).use(bool(counted))
    (source,) = device.sources.values()
    assert f"#define COUNTED {counted}\n" in source
    assert compile_cubin(source).startswith(b"\x7fELF")


@pytest.mark.gpu
def test_a_device_loses_no_node_if_changes_are_counted(device):
    nodes = FreeList(2**10, device)
    assert nodes.use(counted=True) == 0
    assert nodes.lost() == 0


@pytest.mark.gpu
def test_a_device_loses_nodes_or_gives_one_to_two_threads_without_a_count(device):
    nodes = FreeList(THREADS, device)  # as many as threads, as in the kept run, of which each trial was wrong
    assert nodes.use(counted=False) + nodes.lost() > 0
