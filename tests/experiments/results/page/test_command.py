"""What the command says about wrong input, and how it helps."""

import importlib.util
import json
import shutil
import subprocess
import sys

import pytest

from experiments.results.claims.claim import collected
from experiments.results.claims.judgement import judge
from experiments.results.kept.queries import REFERENCE
from experiments.results.page import __main__ as command
from experiments.results.page import own_runs, runs

pytestmark = pytest.mark.quick
KEPT = REFERENCE / "fence" / "cpu"


@pytest.fixture
def run(tmp_path):
    """A run of a reader."""
    folder = tmp_path / "fence" / "20260101T000000Z-0123abcd"
    shutil.copytree(KEPT, folder)
    return folder


def failed(capsys, *arguments) -> str:
    assert command.main(list(map(str, arguments))) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "allowed: " in said.err
    return said.err


def test_a_run_that_is_none(tmp_path, capsys):
    said = failed(capsys, "--run", tmp_path / "none")
    assert str(tmp_path / "none") in said
    assert "results/<experiment>/<utc>-<hash>" in said


def test_a_run_without_its_table(run, capsys):
    (run / "table.parquet").unlink()
    assert "--resume" in failed(capsys, "--run", run)


def test_a_run_with_a_damaged_table(run, capsys):
    (run / "table.parquet").write_bytes(b"PAR1")
    assert command.main(["--run", str(run)]) == 2
    assert "table.parquet" in capsys.readouterr().err


def test_a_run_of_no_experiment(run, capsys):
    path = run / "provenance.json"
    origin = json.loads(path.read_text())
    for other in ({}, {"experiment": "../../x"}):
        path.write_text(
            json.dumps({key: value for key, value in origin.items() if key != "experiment"} | other)
        )
        assert "provenance.json names the experiment" in failed(capsys, "--run", run)


def test_a_run_given_twice(run, capsys):
    assert "twice" in failed(capsys, "--run", run, run)


def test_a_library_that_is_missing(monkeypatch, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "jinja2" else found(name, *more)
    )
    assert "'.[report]'" in failed(capsys)


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "build", lambda own: "page")
    (tmp_path / "file").write_text("")
    assert command.main(["--results", str(tmp_path / "file")]) == 1
    said = capsys.readouterr().err
    assert str(tmp_path / "file") in said
    assert "--results" in said


def test_an_empty_folder_gets_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "build", lambda own: "page")
    assert command.main(["--results", str(tmp_path)]) == 0
    assert [path.read_text() for path in tmp_path.iterdir()] == ["page"]
    assert capsys.readouterr().out == f"{tmp_path / command.FILE}\n"


def test_help_says_how_runs_are_given(capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main(["--help"])
    assert "--run RUN" in capsys.readouterr().out


@pytest.mark.full
def test_help_needs_no_library():
    code = "import sys; sys.modules.update(vl_convert=None, jinja2=None); "
    code += "sys.argv[1:] = ['--help']; "
    code += "import runpy; runpy.run_module('experiments.results.page', run_name='__main__')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "--run RUN" in ended.stdout


def test_a_run_of_the_reader_is_described(run):
    (found,) = runs.own([run])
    assert (found.own, found.experiment, found.name) == (True, "contacts", f"contacts/{run.name}")
    assert found.command.startswith("python -m experiments.fence") or "fence" in found.command
    (kept,) = [one for one in runs.kept() if one.name == "fence/cpu"]
    assert (found.n, found.runs, found.command) == (kept.n, kept.runs, kept.command)


def test_claims_on_kept_runs_of_a_former_name_stand_beside_a_run(run):
    (found,) = runs.own([run])
    kept = {one.name: one for one in runs.kept() if one.name == "fence/h100"}
    claim = judge(collected()["L5"])
    assert [query for _, query, _ in own_runs.beside(found, claim, kept)] == list(claim.answers)
