"""The backends every test of `md` runs on, the threads it has, and one Hypothesis profile for all."""

import os

# Two at most, even on one core, and idle threads sleep: two workers share the cores.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numba
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


# While workers share the cores two threads wait for each other most of the time, and kernels for one compile
# in less than half the time.
numba.set_num_threads(1)


@pytest.fixture(autouse=True)
def threads(request, monkeypatch):
    """One. Where marked `split` it does the parts of two, one by one."""
    if request.node.get_closest_marker("split"):
        monkeypatch.setattr("md.backend.cpu.get_num_threads", lambda: 2)
    yield
    numba.set_num_threads(1)  # after tests that took two


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request) -> str:
    """Name of a backend that can run here."""
    try:
        md.backend.get(request.param)
    except md.backend.BackendUnavailableError as reason:
        pytest.skip(str(reason))
    return request.param


@pytest.fixture
def device() -> md.backend.Backend:
    """The CUDA device, if there is one."""
    try:
        return md.backend.get("cuda")
    except md.backend.BackendUnavailableError as reason:
        pytest.skip(str(reason))
