"""How the CPU's threads wait when they have nothing to do.

Idle OpenMP threads spin by default, for milliseconds, so that they are quick to begin again. On a machine
where something else runs they keep their cores from it, and from each other: with one of 16 cores busy, a
step of 2^17 spheres took 24 ms, and 1.0 ms where threads spin for some microseconds and then sleep (`verlet`,
the 16 cores beside an H200). On free cores that costs up to 3 % of a step of 2^14 spheres and 9 to 15 % of
one of 2^17; threads that sleep at once cost 24 to 83 and 14 to 28 %. The policy is read once, when the first
parallel kernel runs.
"""

import os
from collections.abc import MutableMapping

# GNU libgomp manual, GOMP_SPINCOUNT: turns of the waiting loop before a thread sleeps, whatever the policy
# says; other OpenMP libraries know the policy alone.
CHOICE = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "3000"}
# What a user may have set. LLVM OpenMP reference: KMP_BLOCKTIME, KMP_LIBRARY.
OF_THE_USER = (*CHOICE, "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Let idle threads spin shortly and then sleep, unless the user has said how threads wait.

    Args:
        environment: in which `CHOICE` is set; that of this process.

    Returns:
        Whether it was set here.
    """
    if any(name in environment for name in OF_THE_USER):
        return False
    environment.update(CHOICE)
    return True
