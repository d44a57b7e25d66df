"""What is printed before a run and while it is measured: length, what it cannot show, the answer so far."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from experiments import timing
from experiments.__main__ import listing
from experiments.core import main
from experiments.core.executor import Executor
from experiments.core.plan import BASIS, plan_lines
from experiments.core.record import Record
from experiments.core.settings import cases
from experiments.core.sweep import sweep
from experiments.prediction import main_job
from experiments.processes.separate_run import rounds_with_numbers
from experiments.results.answers import Answer
from tests.experiments import toy_timed
from tests.experiments.core.test_cli import Config, draw, measure

pytestmark = pytest.mark.quick


def test_every_experiment_says_how_long_its_defaults_take():
    for name in listing():
        text = (Path(timing.__file__).parent / f"{name}.py").read_text()
        assert ("\nMINUTES = " in text and "minutes=MINUTES" in text) or "plan=plan" in text, name


def in_one(lines) -> str:
    return " ".join(lines)


def test_the_defaults_say_their_length_and_other_settings_that_of_the_defaults():
    assert in_one(plan_lines(Config(seed=3), 12.0)) == f"4 cases: about 12 minutes on {BASIS}"
    assert in_one(plan_lines(Config(size=7), 12.0)).startswith(
        "2 cases; the defaults are 4 cases: about 12 min"
    )
    assert in_one(plan_lines(Config(), None)).startswith("4 cases; how long they take was not measured; the")
    assert in_one(plan_lines(Config(), 12.0, lambda config: f"{config.weight} kg")) == "0.5 kg"


def test_a_run_begins_with_its_length(tmp_path, capsys):
    arguments = ["--backend", "cpu", "--results", str(tmp_path)]
    main(Config, measure, draw, {}, arguments, minutes=12.0)
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first == f"4 cases: about 12 minutes on {BASIS}"
    assert second.startswith("test_cli on ")


def test_a_run_says_once_what_its_settings_note(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Config, "notes", ("no counter here",))
    main(Config, measure, draw, {}, ["--backend", "cpu", "--results", str(tmp_path)], minutes=12.0)
    assert capsys.readouterr().err.splitlines().count("note: no counter here") == 1


class InThisProcess(Executor):
    """Measures the runs of a timed toy one after the other."""

    def measure(self, measure, todo, begins=None, process_per_run=False):
        for case in todo:
            yield from ((case, one) for one in rounds_with_numbers(measure(case.config)))


def said(tmp_path, kept: int = 0, **fields) -> list[tuple[str, int, int]]:
    """What is said to be finished, with the numbers of runs and of cases that the table then has."""
    config, record, found = toy_timed.Config(**fields), Record.create(tmp_path, "toy", {}), []
    for case in cases(config)[:kept]:
        for rows, number in rounds_with_numbers(toy_timed.measure(case.config)):
            record.add(case.number, [case.place | row for row in rows], number)

    def so_far(table: pd.DataFrame, what: str) -> list[str]:
        found.append((what, table["run"].nunique(), table["case"].nunique()))
        return []

    assert sweep(config, toy_timed.measure, record, {}, InThisProcess(), so_far)
    return found


def test_an_answer_is_due_after_the_first_case_and_after_each_run_but_the_last(tmp_path):
    first, one = ("1 of 2 cases of the first run so far", 1, 1), ("one run so far", 1, 2)
    assert said(tmp_path, runs=3) == [first, one, ("two runs so far", 2, 4)]
    assert said(tmp_path, runs=3, kept=2) == [("two runs so far", 2, 4)]  # resumed
    assert said(tmp_path, runs=2, size=(1,)) == [("one run so far", 1, 1)]
    assert said(tmp_path, runs=1) == []


def test_an_answer_that_needs_more_cases_is_not_given(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Executor, "measure", InThisProcess.measure)

    def answer(table):
        assert len(table)
        if table["size"].nunique() < 2:
            raise KeyError("size")
        return Answer(pd.DataFrame(), "Both sizes.")

    arguments = ["--backend", "cpu", "--results", str(tmp_path), "--runs", "2"]
    main(toy_timed.Config, toy_timed.measure, toy_timed.draw, {}, arguments, answer=answer)
    out, err = capsys.readouterr()
    assert [line for line in err.splitlines() if "so far" in line] == ["one run so far: Both sizes."]
    assert out.startswith("Both sizes.")


@pytest.mark.parametrize(
    ("cache", "words"),
    [
        (30.0, "1.3 times the last cache (30 MB). Memory order is worth more at larger sizes, which"),
        (
            300.0,
            "0.1 times the last cache (300 MB). It fits, .*does not carry.*; --n 8388608 does not fit (about",
        ),
        (None, "the last cache is not known here"),
    ],
)
def test_the_main_job_says_what_it_measures_and_what_that_cannot_show(cache, words, monkeypatch):
    monkeypatch.setattr(timing, "working_set", lambda *_: {"working_set_MB": 37.7, "cache_MB": cache})
    text = timing.plan(timing.Config(backend="cpu"))
    assert text.startswith(
        "524,288 particles, 5 % and 20 % filled, 5 memory orders, 3 runs of 3 rounds: about "
    )
    for part in words.split(".*"):
        assert part in text


def test_the_estimate_grows_with_all_that_is_measured():
    job = timing.Config(reorder_every=(8,))
    least = main_job.seconds(job)
    more = {"n": (2**20,), "filling_fraction": (0.05, 0.2, 0.4), "runs": 4, "rounds": 5,
            "ordering": (*job.ordering, "row", "peano"), "search": ("linked", "verlet"), "steps": 4,
            "scene": "granular"}  # fmt: skip
    for name, value in more.items():
        assert main_job.seconds(replace(job, **{name: value})) > 1.1 * least, name
    assert main_job.seconds(replace(job, scene="shared")) < least
    assert main_job.seconds(replace(job, **timing.QUICK)) < 30
