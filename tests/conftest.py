"""The backends every test of `md` runs on, and one Hypothesis profile for all."""

import os

# Parallel kernels are split even on one core, and idle threads sleep: workers share the cores.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
from hypothesis import HealthCheck, settings

import md

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("suite")


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request) -> str:
    """Name of a backend that can run here."""
    try:
        md.backend.get(request.param)
    except md.backend.BackendUnavailableError as reason:
        pytest.skip(str(reason))
    return request.param
