"""The code a table came from can be found again, whatever state its checkout was in."""

import subprocess

import pytest

from experiments.core.provenance import _commit

pytestmark = pytest.mark.quick


@pytest.fixture
def git(tmp_path):
    """Runs git in a checkout of one commit, and gives what it says."""

    def run(*arguments: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", "-C", tmp_path, *who, *arguments], capture_output=True, check=True)
        return done.stdout.decode().strip()

    run("init", "-q")
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "code.py").write_text("one\n")
    (tmp_path / ".gitignore").write_text("results/\n")
    run("add", "-A")
    run("commit", "-qm", "one")
    return run


def test_a_clean_checkout_has_the_tree_of_its_commit(git, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table.csv").write_text("1\n")
    found = _commit(tmp_path / "core")
    assert found == {
        "commit": git("rev-parse", "HEAD"),
        "dirty": False,
        "tree": git("rev-parse", "HEAD^{tree}"),
    }


def test_a_dirty_one_has_the_tree_of_the_commit_it_would_make(git, tmp_path):
    (tmp_path / "core" / "code.py").write_text("two\n")
    (tmp_path / "new.py").write_text("new\n")
    before = git("status", "--porcelain"), sorted((tmp_path / ".git" / "objects").rglob("*"))
    found = _commit(tmp_path / "core")
    assert (found["commit"], found["dirty"]) == (git("rev-parse", "HEAD"), True)
    assert (git("status", "--porcelain"), sorted((tmp_path / ".git" / "objects").rglob("*"))) == before
    git("add", "-A")
    git("commit", "-qm", "two")
    assert found["tree"] == git("rev-parse", "HEAD^{tree}")


def test_code_outside_a_checkout_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "core").mkdir()
    assert _commit(tmp_path / "core") == {"commit": None, "dirty": None, "tree": None}
