"""Command lines of the claims are understood by their experiments, and run small."""

import importlib
import subprocess
import sys

import pytest

from experiments.core.settings import Settings
from experiments.results.claims import __main__ as command
from experiments.results.claims import commands
from experiments.results.claims.claim import collected, every
from tests.tiers import by_default, full, nightly

LINES = commands.distinct(every(collected()))
ONE_EACH = list({line.split()[2]: line for line in LINES}.values())  # of each experiment
SMALL = "python -m experiments.curves --backend cpu"
ON_DEVICE = "python -m experiments.decay --backend cuda"


@pytest.mark.parametrize("line", by_default(LINES, set(ONE_EACH).__contains__, full))
@pytest.mark.parametrize("also", ["", nightly(" --quick")])
def test_a_command_is_understood_by_its_experiment(line, also, a_large_machine):
    settings = commands.parse(line + also)
    assert isinstance(settings, Settings)
    named = [backend for backend in ("cuda", "cpu") if f"--backend {backend}" in line]
    assert settings.backend == (named or ["auto"])[0]


@pytest.mark.parametrize("line", ONE_EACH)
def test_quick_at_the_end_of_a_command_makes_it_small(line, a_large_machine):
    quick = importlib.import_module(line.split()[2]).QUICK
    settings = commands.parse(line + " --quick")
    sizes = {name: value for name, value in quick.items() if isinstance(value, int | float)}
    sizes |= {name: value for name, value in quick.items() if name in ("n", "size", "chord", "length")}
    assert sizes
    assert {name: getattr(settings, name) for name in sizes} == sizes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "python -m experiments.nothing --n 3",
            "unknown experiment 'nothing' in .*; allowed: .* one of advise",
        ),
        ("python -m experiments.core", "unknown experiment 'core'"),
        ("rm -r results", "unknown experiment 'rm'"),
        ("python -m experiments.decay --size x", "decay --size x is not understood; allowed: flags of"),
        ("python -m experiments.decay --sizes 3", "decay --sizes 3 is not understood"),
        ("python -m experiments.decay --size -3", "size"),
        ("python -m experiments.decay --repeats 99999999", "cases; allowed: up to"),
    ],
)
def test_a_wrong_command_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        commands.parse(line)


def test_each_line_is_run_once():
    assert len(LINES) == len(set(LINES)) > 10


def test_commands_run_as_written_with_quick_in_another_folder_and_failures_are_told(tmp_path, monkeypatch):
    called = []

    def run(arguments, **_):
        called.append(arguments)
        return subprocess.CompletedProcess(arguments, len(called) - 1, "", "warning\nerror: no room\n")

    monkeypatch.setattr(commands.subprocess, "run", run)
    monkeypatch.setattr(commands.backends, "why_not", lambda: "no CUDA device")
    sized = "python -m experiments.cooling --n 4096 16384 --restitution 0.8 --decades 3 --repeats 3"
    found = dict(commands.run_small([SMALL, ON_DEVICE, sized], tmp_path))
    assert list(found.values()) == [
        "done", "skipped: no CUDA device", "failed: exit status 1: warning / error: no room",
    ]  # fmt: skip
    end = ["--quick", "--results", str(tmp_path)]
    assert called[0] == [sys.executable, "-m", "experiments.curves", "--backend", "cpu", *end]
    cooling = [sys.executable, "-m", "experiments.cooling", *sized.split()[3:]]
    assert called[1:] == [[*cooling, *end]]  # as they are written


def test_the_status_counts_failures(monkeypatch, capsys):
    outcomes = [(SMALL, "done"), (ON_DEVICE, "skipped: no CUDA device")]
    monkeypatch.setattr(commands, "run_small", lambda lines, folder: iter(outcomes))
    assert command.main(["--run-commands"]) == 0
    outcomes.append((SMALL, "failed: exit status 1: error"))
    assert command.main(["--run-commands"]) == 1
    assert "1 failed" in capsys.readouterr().out
