"""How idle threads wait, and that the user's word holds."""

import os
import subprocess
import sys

import pytest

from md.backend.waiting import OF_THE_USER, wait_passively


@pytest.mark.parametrize("name", OF_THE_USER)
def test_the_users_choice_stays(name):
    given = {name: "mine"}
    assert not wait_passively(given)
    assert given == {name: "mine"}


def test_threads_wait_passively_where_nothing_is_said():
    given = {}
    assert wait_passively(given)
    assert given == {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "3000"}


@pytest.mark.parametrize("package", ["md", "experiments.core.settings"])
@pytest.mark.parametrize(
    ("said", "found"), [({}, "passive 3000"), ({"OMP_WAIT_POLICY": "active"}, "active None")]
)
def test_it_is_set_by_the_import(package, said, found):
    environment = {name: value for name, value in os.environ.items() if name not in OF_THE_USER} | said
    code = f"import {package}, os; print(*map(os.environ.get, ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT')))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == found
