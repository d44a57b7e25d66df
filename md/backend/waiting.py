"""Wait policy of idle OpenMP threads on the CPU.

Idle OpenMP threads spin for milliseconds by default, so that they start again quickly. While they spin, no
other process or thread can use their cores. Here they spin for 6000 iterations and then sleep. OpenMP reads
the policy once, when the first parallel kernel runs.

Measured with `verlet`, float32, on two cores, 6000 iterations instead of 3000. Both free: a step of 1000
spheres takes 57 us instead of 99 us, of 4000 93 us instead of 130 us, of 10^4 185 us instead of 215 us, of
2^17 the same: 3000 end before the next step. Another process on one core: 214 us instead of 151 us, 310
instead of 234, 510 instead of 423, and 3.33 ms instead of 3.22 ms.

Measured with 3000 iterations on the 16 cores beside an H200, 2^17 spheres: with one core busy a step took
24 ms with the default policy and 1.0 ms with 3000 iterations. On free cores 3000 cost up to 3 % of a step
of 2^14 and 9 to 15 % of one of 2^17 spheres; threads that sleep at once cost 24 to 83 and 14 to 28 %.
"""

import os
from collections.abc import MutableMapping

# GNU libgomp manual, GOMP_SPINCOUNT: iterations of the waiting loop before a thread sleeps, whatever the
# policy; other OpenMP libraries read the policy only.
WAIT_POLICY = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "6000"}
# Variables by which a user sets a wait policy. LLVM OpenMP reference: KMP_BLOCKTIME, KMP_LIBRARY.
USER_VARIABLES = (*WAIT_POLICY, "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Make idle threads spin shortly and then sleep, unless the user has set a wait policy.

    Args:
        environment: environment variables, to which `WAIT_POLICY` is added; those of this process.

    Returns:
        Whether the policy was set here.
    """
    if any(name in environment for name in USER_VARIABLES):
        return False
    environment.update(WAIT_POLICY)
    return True
