"""A structure without locks: threads take nodes from one free list and return them, by compare-and-swap.

A thread reads the head and the link of the first node, and replaces the head by that link if the head is
still the same. If meanwhile others took the node and the next one, and returned the first, the head is the
same and the link is not: the list then begins at a node that is not free. With a count of the changes beside
the head, in one word, such a head is another one. Treiber, Systems programming: coping with parallelism, IBM
RJ 5118 (1986).
"""

import numpy as np

from md.backend import Backend, OnDevice
from sfc import checks
from sfc.compile import kernel

THREADS, TURNS = 2**12, 16  # that take and return, and how often each does


class FreeList:
    """Free list of nodes, all of which are free at first, in ascending order.

    Args:
        nodes: number of nodes.
        backend: where the threads run; on a CPU one does all their work.

    Raises:
        ValueError: fewer than one node.
    """

    def __init__(self, nodes: int, backend: Backend):
        following = np.arange(1, checks.integer("nodes", nodes, 1) + 1, dtype=np.int32)
        following[-1] = -1
        self._backend, self._head = backend, backend.zeros(1, np.int64)
        self._next = backend.upload(following)
        self._held, self._twice = backend.zeros(nodes, np.int32), backend.zeros(1, np.int32)

    def use(self, counted: bool, threads: int = THREADS, turns: int = TURNS) -> int:
        """Let each thread take a node and return it, some times; wait for all of them.

        Args:
            counted: whether changes of the head are counted.
            threads: number of threads.
            turns: number of times; a thread that finds no free node leaves out its turn.

        Returns:
            How often so far a thread took a node that another one held.

        Raises:
            TypeError: a number that is no integer, or no flag.
            ValueError: fewer than one thread or turn.
        """
        counted = checks.flag("counted", counted)
        threads, turns = checks.integer("threads", threads, 1), checks.integer("turns", turns, 1)
        kernels = self._backend.kernels(__name__, constants={"COUNTED": int(counted)})
        kernels.take_and_return(threads, turns, self._head, self._next, self._held, self._twice)
        return int(self._backend.download(self._twice)[0])

    def lost(self) -> int:
        """Count the nodes that are not in the list, or more than once; all are free now."""
        first = self._backend.download(self._head).astype(np.int32)  # the lower half
        return not_once(first, self._backend.download(self._next))


def not_once(first: np.ndarray, following: np.ndarray) -> int:
    """Count the nodes that are not exactly once in all of some linked lists.

    Args:
        first: (lists,) int32 first node of each list, -1 for none.
        following: (nodes,) int32 node after each, -1 for none. A list that ends nowhere is left after more
            nodes than there are.
    """
    found, at = np.zeros(len(following), np.int64), first[first >= 0]
    for _ in range(len(following) + 1):
        np.add.at(found, at, 1)
        at = following[at]
        at = at[at >= 0]
        if not len(at):
            break
    return int((found != 1).sum())


@OnDevice(threads=128)
@kernel
def take_and_return(n, turns, head, next, held, twice):
    """Take the first node and return it, n times `turns` times; alone, so that no node is taken twice."""
    for _ in range(n * turns):
        node = np.int32(head[0])
        if node >= 0:
            head[0] = next[node]
            twice[0] += held[node] > 0
            next[node] = np.int32(head[0])
            head[0] = node
