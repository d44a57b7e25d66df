"""A run that is killed at any moment and goes on from its checkpoint is the run that was left alone."""

import time
from itertools import pairwise

import gsd.hoomd
import numpy as np
import pytest

import md
from md.io.checkpoint import SavedRun
from tests import tiers
from tests.md.io.lives import RUNS, live, repeats
from tests.processes import all_heard, started

KILLS = {"once": 1, "three times": 3, "ten times": 10}
LONGEST = 0.3  # s from the first turn of a life to its end


@pytest.fixture(scope="module", params=["once", tiers.full("three times"), tiers.nightly("ten times")])
def folders(request, backend, tmp_path_factory):
    """Of runs that were killed so often and then let go on to their end, and of runs that were not."""
    names = [name for name in RUNS if repeats(name, backend)]
    killed, whole = (tmp_path_factory.mktemp(name) for name in ("killed", "whole"))
    moments = np.random.default_rng(5).uniform(0, LONGEST, KILLS[request.param])
    steps = [0]
    for moment in moments:
        process, heard = started(live, backend, killed, 10**9)
        assert heard.recv() == "turn"
        time.sleep(moment)
        process.kill()
        process.join()
        assert process.exitcode == -9
        steps.append(max(SavedRun.read(killed / f"{name}.npz").step for name in names))
    assert all(after > before for before, after in pairwise(steps))
    ends = [started(live, backend, folder, steps[-1] + 50) for folder in (killed, whole)]
    for end, heard in ends:
        assert set(all_heard(heard)) == {"turn"}
        end.join()
        assert end.exitcode == 0
    return names, killed, whole


@pytest.mark.parametrize("name", RUNS)
def test_a_run_killed_so_often_ends_with_the_bits_of_the_run_that_was_not(folders, name):
    names, *places = folders
    if name not in names:
        pytest.skip(f"{name} does not repeat on this backend")
    killed, whole = (dict(np.load(folder / f"{name}-end.npz")) for folder in places)
    for array in ("pos", "vel", "id", "work"):
        assert killed[array].tobytes() == whole[array].tobytes()
    assert not np.array_equal(
        killed["pos"], md.scenes.benchmark_gas(300, 0.3).pos.astype(killed["pos"].dtype)
    )


@pytest.mark.parametrize("name", RUNS)
def test_its_trajectory_is_the_same_too(folders, name):
    names, one, other = folders
    if name not in names:
        pytest.skip(f"{name} does not repeat on this backend")
    with gsd.hoomd.open(one / f"{name}.gsd") as killed, gsd.hoomd.open(other / f"{name}.gsd") as whole:
        assert len(killed) == len(whole) > 3
        for one, other in zip(killed, whole, strict=True):
            assert one.configuration.step == other.configuration.step
            assert np.array_equal(one.particles.position, other.particles.position)
            assert np.array_equal(one.particles.velocity, other.particles.velocity)


def test_nothing_but_whole_files_is_left(folders):
    names, *places = folders
    left = {f"{name}{end}" for name in names for end in (".npz", ".gsd", "-end.npz")}
    for folder in places:
        assert {path.name for path in folder.iterdir()} == left
