"""The tiers, the backends every test of `md` runs on, the threads it has, and the Hypothesis profiles."""

import gc
import itertools
import os
import re
import signal
import subprocess
import threading
from functools import partial

# Two at most, even on one core.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import numba
import pytest
from _pytest.mark.expression import Expression
from hypothesis import HealthCheck, settings

import md
from md.io.checkpoint import SavedRun
from tests.processes import LIMIT

# Tier that runs only if it is asked for -> other marks of `-m` that ask for it too.
APART = {"full": ("nightly", "gpu"), "nightly": (), "browser": ()}

for name, examples in {"suite": 40, "nightly": 500}.items():
    settings.register_profile(
        name,
        deadline=None,
        derandomize=True,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
    )
settings.load_profile("suite")

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite begun in the background ignores it

# Collection makes a million objects that stay, through which the garbage collector would go again and again.
gc.disable()

# While workers share the cores two threads wait for each other most of the time, and kernels for one compile
# in less than half the time.
numba.set_num_threads(1)


def pytest_addoption(parser):
    """Add `--cuda`."""
    parser.addoption("--cuda", action="store_true", help="collect the tests that need a CUDA device too")


_left_out: set[str] = set()  # marks whose tests are not collected


def pytest_configure(config):
    """Choose the tier: those of `APART` only if asked for, a device with `--cuda` or `-m gpu`.

    `nightly` and `gpu` have cases of the tier `full` too.
    """
    asked = config.option.markexpr
    config.option.cuda |= asks_for(asked, "gpu")
    words = re.findall(r"\w+", asked)
    without = [
        tier
        for tier, others in APART.items()
        if tier not in words and not any(asks_for(asked, mark) for mark in others)
    ]
    parts = [*([f"({asked})"] if asked else []), *(f"not {tier}" for tier in without)]
    config.option.markexpr = " and ".join(parts)
    if not any("::" in argument for argument in config.args):  # such a test is made, and then deselected
        _left_out.update(without, [] if config.option.cuda else ["gpu"])
    if asks_for(asked, "nightly"):
        settings.load_profile("nightly")


def asks_for(expression: str, mark: str) -> bool:
    """Whether an expression of `-m` takes some test for that mark."""

    def takes(marks: set[str]) -> bool:
        return Expression.compile(expression).evaluate(lambda name, **_: name in marks)

    named = sorted(set(re.findall(r"\w+", expression)) - {mark})
    others = (set(c) for size in range(len(named) + 1) for c in itertools.combinations(named, size))
    return bool(expression) and any(takes(marks | {mark}) and not takes(marks) for marks in others)


def pytest_ignore_collect(collection_path, config):
    """Import no file whose tests are all of a tier that was not asked for; for `-m quick` no other's.

    Such a file has the line `pytestmark = pytest.mark.<tier>`, or not the word `quick`.
    """
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text()
    whole = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", text, re.MULTILINE)
    others = config.option.markexpr.startswith("(quick) and") and "quick" not in text
    return True if (whole and whole[1] in _left_out) or others else None


def pytest_pycollect_makeitem(obj):
    """Make no test of a function or class with the mark of a tier that was not asked for."""
    marks = getattr(obj, "pytestmark", ())
    return [] if isinstance(marks, list) and any(mark.name in _left_out for mark in marks) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    """Make no case of a tier that was not asked for; give a test of both backends the device if it was."""
    metafunc.parametrize = partial(_parametrized, metafunc.parametrize)
    if "backend" in metafunc.fixturenames:
        device = [pytest.param("cuda", marks=pytest.mark.gpu)] if metafunc.config.option.cuda else []
        metafunc.parametrize("backend", ["cpu", *device], indirect=True, scope="session")


def _parametrized(parametrize, names, values, *arguments, ids=None, **options):
    """Call pytest's `parametrize` without the cases of a tier that was not asked for.

    Raises:
        pytest.UsageError: a marked case has not one value for each name, whatever its tier.
    """
    every = list(values)
    count = len(names.split(",")) if isinstance(names, str) else len(names)
    for case in every:
        if hasattr(case, "marks") and len(case.values) != count:
            found = f"{len(case.values)} values for {names!r}, not {count}"
            raise pytest.UsageError(f"the case {case.values} has {found}")
    kept = [
        k
        for k, case in enumerate(every)
        if not any(mark.name in _left_out for mark in getattr(case, "marks", ()))
    ]
    if 0 < len(kept) < len(every):
        every = [every[k] for k in kept]
        ids = [ids[k] for k in kept] if isinstance(ids, (list, tuple)) else ids
    parametrize(names, every, *arguments, ids=ids, **options)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what needs a device where none was asked for; in `nightly` are all property tests too."""
    if not config.option.cuda:
        needing = [item for item in items if item.get_closest_marker("gpu")]
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=needing)
    if settings.get_current_profile_name() == "nightly":
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.nightly)


def pytest_collection_finish():
    """Let the garbage collector go, more seldom than by default, through what the tests make alone."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def programs_end():
    """A program that stands still is killed, and fails the test that runs it; not in the nightly tier."""
    limit = None if settings.get_current_profile_name() == "nightly" else 3 * LIMIT
    run = subprocess.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *of, **options: run(*of, **{"timeout": limit} | options))
        yield


@pytest.fixture(autouse=True)
def threads(request):
    """One. Where marked `split` it does the parts of two, one by one."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("split"):
            patch.setattr("md.backend.cpu.thread_count", lambda: 2)
        yield
    numba.set_num_threads(1)  # after tests that took two


@pytest.fixture(scope="session")
def backend(request) -> str:
    """Name of a backend that can run here."""
    try:
        md.backend.get(request.param)
    except md.backend.BackendUnavailableError as reason:
        pytest.skip(str(reason))
    return request.param


@pytest.fixture
def start_energy(tmp_path):
    """Function that returns the energy of the start of a simulation, as a checkpoint holds it, or None."""

    def saved(simulation: md.Simulation) -> float | None:
        simulation.save(tmp_path / "start_energy.npz")
        start = SavedRun.read(tmp_path / "start_energy.npz").states["energy"]["start"]
        return float(start[0]) if len(start) else None

    return saved


@pytest.fixture
def device() -> md.backend.Backend:
    """The CUDA device, if there is one."""
    try:
        return md.backend.get("cuda")
    except md.backend.BackendUnavailableError as reason:
        pytest.skip(str(reason))
