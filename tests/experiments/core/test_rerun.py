"""Settings of older runs: every run that is kept can be repeated."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments import foreseen, machine
from experiments.core import rerun
from experiments.core.old_names import experiment_now
from experiments.core.record import TABLE, read_provenance
from experiments.core.rerun import config_of
from experiments.peers import PEERS
from experiments.results import reliability
from tests.tiers import by_default, full

pytestmark = pytest.mark.quick

KEPT = sorted((Path(__file__).parents[3] / "results" / "reference").glob("*/*/"))
ONE_EACH = {folder.parent: folder for folder in KEPT}.values()  # of each experiment


@pytest.fixture
def a_large_machine(monkeypatch):
    """One that has room and threads for all of them, and the peers."""
    for experiment in (foreseen, machine):
        monkeypatch.setattr(experiment, "thread_count", lambda: 64)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=2**40))
    for peer in PEERS.values():
        monkeypatch.setattr(peer, "require", lambda: None)


@pytest.mark.parametrize(
    "folder",
    by_default(KEPT, lambda folder: folder in ONE_EACH, full),
    ids=lambda folder: f"{folder.parent.name}-{folder.name}",
)
def test_a_run_that_is_kept_can_be_asked_for_again(folder, a_large_machine):
    name = experiment_now(folder.parent.name)
    experiment = importlib.import_module(f"experiments.{name}")
    config = config_of(folder, "--from", experiment.Config, name)
    message = read_provenance(folder)["config"]
    assert config.seed == message["seed"]
    if config.CHANCE == "run":
        assert config.repeats == 1
        older = "runs" not in message  # with other words for runs and rounds
        assert config.runs == (message.get("repeats", 3) if older else message["runs"])
        assert config.rounds == message["samples" if older else "rounds"]


def kept(name: str, run: str):
    folder = next(path for path in KEPT if path.parent.name == name and path.name == run)
    now = experiment_now(name)
    return config_of(folder, "--from", importlib.import_module(f"experiments.{now}").Config, now)


def test_samples_of_a_process_are_not_taken_for_rounds(a_large_machine):
    config = kept("cards", "h200_2")
    assert (config.samples, config.rounds, config.runs) == (3, 1, 5)


def test_words_of_older_runs_are_those_of_now(a_large_machine):
    assert kept("reorder_cost", "h200").memory == ("shuffled", "aged", "fresh")
    assert kept("speed_up", "h200_1024").ordering == ("shuffled", "aged", "pancake")
    assert kept("timing", "h200_orders").ordering[:2] == ("shuffled", "lattice")
    assert kept("counters", "h200_1048576").runs == 3


def test_what_json_makes_of_a_provenance_is_no_difference():
    code = {"code": {"sources": "1"}}
    here = {"backend": {"device": "a GPU", "compiler_options": ("-lineinfo",), "clocks.sm": "345"}} | code
    before = {"backend": {"device": "a GPU", "compiler_options": ["-lineinfo"], "clocks.sm": "1980"}} | code
    assert [*rerun._differences(before, here)] == []
    here["backend"]["compiler_options"] = ("-G",)
    assert [*rerun._differences(before, here)] == ['compiler_options ["-lineinfo"], here ["-G"]']


def test_times_are_read_with_the_warnings_of_this_code_and_other_rows_as_they_are(tmp_path):
    rows = {"times": {"run": 0, "time_ms": 1.0, "warning": "of older code"}, "shares": {"share": 0.5}}
    for name, row in rows.items():
        (tmp_path / name).mkdir()
        pd.DataFrame([row]).to_parquet(tmp_path / name / TABLE)
    assert rerun.read_table_now(tmp_path / "times")["warning"].tolist() == [reliability.SERIAL]
    assert [*rerun.read_table_now(tmp_path / "shares")] == ["share"]
