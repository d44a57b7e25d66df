"""Commits have the hash of sources that a checkout of them has, and are found by it."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from experiments.core.provenance import code_of
from experiments.core.settings import UsageError
from experiments.results.kept.history import find_commit, sources_at

pytestmark = pytest.mark.quick
ROOT = Path(__file__).parents[4]


def changes(checkout):
    """Make commits of every kind, and return each with the hash of its checkout, newest first."""
    steps = [
        lambda: checkout.write("sfc/curve.py", "changed\n"),
        lambda: checkout.write("README.md", "no source\n"),
        lambda: checkout.write("md/search/deep/er/é.py", "new\n"),
        lambda: (checkout.root / "sfc/curve/table.py").rename(checkout.root / "sfc/other.py"),
        lambda: (checkout.root / "md/state.cuh").unlink(),
        lambda: (checkout.root / "md/search/linked.cu").chmod(0o755),
        lambda: (checkout.root / "pyproject.toml").unlink(),
        lambda: checkout.write("experiments/empty.py", ""),
    ]
    found = [(checkout.first, checkout.sources)]
    for step in steps:
        step()
        found.insert(0, (checkout.commit("next"), checkout.sources))
    return found


def test_each_commit_has_the_hash_of_its_checkout(checkout):
    expected = changes(checkout)
    assert len({sources for _, sources in expected}) == len(expected) - 2  # README and mode are no sources
    for commit, sources in expected:
        assert sources_at(checkout.root, commit) == sources


def test_a_commit_of_this_project_has_the_hash_of_its_checkout(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("these sources are in no checkout")
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", "HEAD", "sfc", "md", "experiments", "pyproject.toml"],
        capture_output=True,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(tmp_path, filter="data")
    assert sources_at(ROOT, "HEAD") == code_of(tmp_path)["sources"]


def test_the_commit_that_introduced_the_sources_is_found(checkout):
    *_, readme, one, first = expected = changes(checkout)
    assert readme[1] == one[1]
    assert find_commit(checkout.root, one[1]) == one[0]
    assert find_commit(checkout.root, first[1]) == first[0]
    assert find_commit(checkout.root, expected[0][1]) == expected[0][0]
    assert find_commit(checkout.root, "0" * 64) is None


def test_sources_that_came_back_are_of_the_last_commit_that_introduced_them(checkout):
    checkout.write("sfc/curve.py", "changed\n")
    checkout.commit("two")
    checkout.git("revert", "--no-edit", "HEAD")
    assert find_commit(checkout.root, checkout.sources) == checkout.git("rev-parse", "HEAD")


def test_a_commit_that_left_the_history_is_not_found(checkout):
    checkout.write("sfc/curve.py", "changed\n")
    checkout.commit("two")
    sources = checkout.sources
    assert find_commit(checkout.root, sources)
    checkout.git("reset", "-q", "--hard", checkout.first)
    assert find_commit(checkout.root, sources) is None


def test_a_folder_without_history_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match=r"the history of .* cannot be read: .*allowed: the top of a git"):
        find_commit(tmp_path, "0" * 64)
