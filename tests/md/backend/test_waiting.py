"""Wait policy of idle threads: the default, and that variables set by the user are kept."""

import os
import subprocess
import sys

import pytest

from md.backend.waiting import USER_VARIABLES, wait_passively
from tests.tiers import full, nightly


@pytest.mark.parametrize("name", USER_VARIABLES)
def test_a_policy_set_by_the_user_is_kept(name):
    given = {name: "mine"}
    assert not wait_passively(given)
    assert given == {name: "mine"}


def test_threads_wait_passively_by_default():
    given = {}
    assert wait_passively(given)
    assert given == {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "6000"}


@pytest.mark.parametrize("package", [nightly("md"), "experiments.core.settings"])
@pytest.mark.parametrize(
    ("variables", "found"), [({}, "passive 6000"), full({"OMP_WAIT_POLICY": "active"}, "active None")]
)
def test_the_policy_is_set_by_the_import(package, variables, found):
    environment = {
        name: value for name, value in os.environ.items() if name not in USER_VARIABLES
    } | variables
    code = f"import {package}, os; print(*map(os.environ.get, ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT')))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == found
