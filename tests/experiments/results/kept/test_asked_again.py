"""The commands of a claim measure its kept runs again: they have the settings of these runs."""

from dataclasses import asdict
from importlib import import_module

import pytest

from experiments.core import old_names
from experiments.core.old_names import OldNames
from experiments.core.rerun import config_of, experiment_of
from experiments.core.settings import UsageError, values
from experiments.results.claims.claim import collected, every
from experiments.results.claims.commands import parse
from experiments.results.claims.origins import command_of
from experiments.results.kept.listing import is_same_anywhere
from experiments.results.kept.queries import REFERENCE

RUNS = sorted({run for claim in every(collected()) for run in claim.runs})


@pytest.mark.parametrize("run", RUNS)
def test_the_command_of_a_run_has_all_its_settings(run, a_large_machine):
    name = experiment_of(REFERENCE / run, {"experiment": run.split("/")[0]})
    config_type = import_module(f"experiments.{name}").Config
    kept, asked = (
        asdict(config_of(REFERENCE / run, "--from", config_type, name)),
        asdict(parse(command_of(run))),
    )
    if is_same_anywhere(REFERENCE / run):
        assert asked["backend"] == "cpu"
        kept["backend"] = "cpu"
    listed = {name: tuple(values(value)) for name, value in asked.items()}  # an axis may be one value
    assert listed == {name: tuple(values(value)) for name, value in kept.items()}


def test_a_default_of_today_that_was_another_one_is_in_the_command():
    assert "--runs 1 " in command_of("speed_up/h200_1024")  # runs: 3 today
    assert "--rounds 7 " in command_of("timing/h200_orders")  # recorded as samples
    assert "--warmup" not in command_of("timing/h200_orders")  # no setting of today


def test_the_command_follows_the_present_names(monkeypatch):
    names = OldNames(fields={"precision": "n"}, values={"n": {"float32": "8"}}, now="curves")
    monkeypatch.setitem(old_names.NAMES, "cavity", names)
    with pytest.raises(UsageError, match=r"cavity/cpu has settings that curves has no longer: .*NAMES"):
        command_of("cavity/cpu")
    merged = OldNames(fields={"start": None}, adds={"start": ["clusters"]})
    monkeypatch.setitem(old_names.NAMES, "flocking", merged)
    assert " --start clusters " in command_of("flocking/cpu")
