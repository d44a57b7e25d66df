"""The code of a table is identified by its sources alone, whatever else is in the checkout."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from experiments.core.provenance import code_of, describe_cpu, provenance, sources_of
from tests.experiments import toy

pytestmark = pytest.mark.quick


def runner(folder: Path):
    """Runs git in a folder, and gives what it says."""

    def run(*arguments: str) -> str:
        author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", "-C", folder, *author, *arguments], capture_output=True, check=True)
        return done.stdout.decode().strip()

    return run


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A checkout of one commit."""
    folder = tmp_path_factory.mktemp("committed")
    run = runner(folder)
    run("init", "-q")
    for name in (
        "sfc/automaton/curve.py",
        "md/search/linked.cu",
        "md/particles/state.cuh",
        "experiments/timing.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / "pyproject.toml").write_text("[project]\n")
    run("add", "-A")
    run("commit", "-qm", "one")
    return folder


@pytest.fixture
def git(committed, tmp_path):
    """Runs git in a checkout of one commit, and gives what it says."""
    shutil.copytree(committed, tmp_path, dirs_exist_ok=True)
    return runner(tmp_path)


def test_a_clean_checkout_is_identified_by_its_commit_and_its_sources(git, tmp_path):
    found = code_of(tmp_path)
    assert (found["commit"], found["dirty"]) == (git("rev-parse", "HEAD"), False)
    assert len(found["sources"]) == 64
    assert len(sources_of(tmp_path)) == 5


def test_a_log_that_grows_a_notebook_and_a_table_change_nothing(git, tmp_path):
    before = code_of(tmp_path)
    for text in ("one step\n", "two steps\n"):
        for name in ("nohup.out", "run.gsd", "md/log.txt", "notes.ipynb", "other.py", "README.md"):
            with open(tmp_path / name, "a") as file:
                file.write(text)
        assert code_of(tmp_path) == before


def test_a_large_file_beside_the_sources_is_not_read(git, tmp_path):
    with open(tmp_path / "run.gsd", "wb") as file:
        file.truncate(2**38)
    started = time.perf_counter()
    code_of(tmp_path)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "name",
    [
        "sfc/automaton/curve.py",
        "md/search/linked.cu",
        "md/particles/state.cuh",
        "experiments/new.py",
        "pyproject.toml",
    ],
)
def test_a_changed_or_a_new_source_is_other_code_and_nothing_is_written(git, tmp_path, name):
    before, places = code_of(tmp_path), sorted((tmp_path / ".git").rglob("*"))
    (tmp_path / name).write_text("two\n")
    after = code_of(tmp_path)
    assert after["sources"] != before["sources"]
    assert (after["commit"], after["dirty"]) == (before["commit"], True)
    assert sorted((tmp_path / ".git").rglob("*")) == places
    git("add", "-A")
    git("commit", "-qm", "two")
    assert code_of(tmp_path) == after | {"commit": git("rev-parse", "HEAD"), "dirty": False}


def test_a_source_that_moved_or_went_is_other_code(git, tmp_path):
    before = code_of(tmp_path)["sources"]
    (tmp_path / "sfc/automaton/curve.py").rename(tmp_path / "sfc/line.py")
    moved = code_of(tmp_path)["sources"]
    (tmp_path / "sfc/line.py").unlink()
    assert len({before, moved, code_of(tmp_path)["sources"]}) == 3


def test_code_outside_a_checkout_has_sources_alone(git, tmp_path, monkeypatch):
    within = code_of(tmp_path)
    (tmp_path / ".git").rename(tmp_path / "git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_of(tmp_path) == {"sources": within["sources"], "commit": None, "dirty": None}


def test_code_installed_within_another_project_has_no_commit_of_it(git, tmp_path):
    installed = tmp_path / "lib"
    (installed / "sfc").mkdir(parents=True)
    (installed / "sfc" / "curve.py").write_text("one\n")
    assert code_of(installed)["commit"] is None


def test_the_command_of_a_run_can_be_read_in_any_locale():
    found = provenance("toy", toy.Config(backend="cpu"), ["--curve-file", "\udcc3\udca4.toml"])
    assert found["command"][-1] == "ä.toml"


@pytest.mark.parametrize("words", ["--results /a --size 3", "--size 3 --results=/a", "--size 3 --results"])
def test_the_folder_of_results_is_no_part_of_the_command(words):
    found = provenance("toy", toy.Config(backend="cpu"), words.split())["command"]
    assert found == ["python", "-m", "experiments.toy", "--size", "3"]


def test_an_environment_is_that_of_compiled_code_and_times(monkeypatch):
    for name in ("NUMBA_OPT", "SFC_REGISTERS", "OMP_PROC_BIND", "NUMBA_CACHE_DIR", "MY_NUMBA_OPT", "OMPI"):
        monkeypatch.setenv(name, "1")
    found = provenance("toy", toy.Config(backend="cpu"), [])["environment"]
    assert {"NUMBA_OPT", "SFC_REGISTERS", "OMP_PROC_BIND"} <= set(found)
    assert not {"NUMBA_CACHE_DIR", "MY_NUMBA_OPT", "OMPI"} & set(found)


def test_processors_of_one_name_differ_by_model_features_and_caches(tmp_path, monkeypatch):
    def described(model=1, flags="avx2 fma", size="32K"):
        text = (
            f"model name: AMD EPYC\nvendor_id: AuthenticAMD\nmodel\t: {model}\nflags: {flags}\n\nmodel: 9\n"
        )
        monkeypatch.setattr(Path, "read_text", lambda path, *as_text, **more: text)
        monkeypatch.setattr("experiments.core.provenance._cache_sizes", lambda: [f"L1 Data {size}"])
        return describe_cpu()

    first = described()
    assert (first["cpu"], first["model"], first["caches"]) == ("AMD EPYC", "AuthenticAMD 1", "L1 Data 32K")
    assert described(flags="fma avx2") == first
    for other in ({"model": 2}, {"flags": "avx2"}, {"size": "48K"}):
        assert described(**other) != first
        assert described(**other)["cpu"] == first["cpu"]


def test_a_system_without_cpuinfo_has_a_name(monkeypatch):
    def missing(*arguments, **more):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert describe_cpu()["cpu"]
