"""How the CPU's threads wait when they have nothing to do.

Idle OpenMP threads spin by default, so that they are quick to begin again. On a machine where something else
runs they keep their cores from it, and from each other: a step takes several times as long. Threads that
sleep cost a few microseconds to wake. The policy is read once, when the first parallel kernel runs.
"""

import os
from collections.abc import MutableMapping

POLICY = "OMP_WAIT_POLICY"
# What a user may have set instead. GNU libgomp manual, GOMP_SPINCOUNT; LLVM OpenMP reference, KMP_BLOCKTIME.
OF_THE_USER = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Set `OMP_WAIT_POLICY=passive`, unless the user has said how threads wait.

    Args:
        environment: in which it is set; that of this process.

    Returns:
        Whether it was set here.
    """
    if any(name in environment for name in OF_THE_USER):
        return False
    environment[POLICY] = "passive"
    return True
