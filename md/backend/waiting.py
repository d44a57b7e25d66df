"""Wait policy of idle OpenMP threads on the CPU.

Idle OpenMP threads spin for milliseconds by default, so that they start again quickly. While they spin, no
other process or thread can use their cores: with one of 16 cores busy, a step of 2^17 spheres took 24 ms, and
1.0 ms with threads that spin for some microseconds and then sleep (`verlet`, the 16 cores beside an H200). On
free cores that costs up to 3 % of a step of 2^14 spheres and 9 to 15 % of one of 2^17; threads that sleep at
once cost 24 to 83 and 14 to 28 %. OpenMP reads the policy once, when the first parallel kernel runs.

Those figures are of 3000 iterations. Between two fused steps the host needs longer than that, so that the
threads fell asleep at each step of a small system. With 6000 iterations on two free cores a step of 1000
spheres takes 57 instead of 99 us, of 4000 93 instead of 130, of 10^4 185 instead of 215, of 2^17 the same;
with another process on one of the two cores 214 instead of 151, 310 instead of 234, 510 instead of 423 us,
and 3.33 instead of 3.22 ms.
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
