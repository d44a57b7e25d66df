"""The README is short, its examples run, and the answer that it prints is that of the kept run."""

import re
from pathlib import Path

import pandas as pd
import pytest

from experiments import timing
from experiments.core.terminal import answer_lines

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOURCE = "results/reference/timing/cpu_three_runs"  # of the answer that the README shows


def section(title: str) -> str:
    """Return the text below a heading."""
    return re.split(r"\n#{2,3} ", README.partition(f"# {title}\n")[2])[0]


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.quick
def test_it_is_short():
    first = README[: README.index("## Ten minutes")]
    assert "```bash" in first
    assert len(first.split()) <= 300
    assert len(without_code(README).split()) <= 900


@pytest.mark.quick
def test_the_two_commands_stand_on_lines_of_their_own():
    commands = re.findall(r"^python3 -m venv .*", README, re.MULTILINE)
    assert [command.rpartition(" ")[2] for command in commands] == ["experiments.timing", "pytest"]


def test_the_printed_answer_is_that_of_the_kept_run():
    table = pd.read_parquet(ROOT / SOURCE / "table.parquet")
    lines = answer_lines(timing.answer(table), Path("folder"))[:-1]
    (shown,) = re.findall(r"```text\n(.*?)\n```", section("The main job"), re.DOTALL)
    assert shown.splitlines() == lines


@pytest.mark.quick
def test_each_term_is_defined():
    terms = section("Ten minutes")
    assert [word for word in (" d is", "filling fraction", "fused", "`pancake`") if word not in terms] == []


@pytest.mark.parametrize("title", ["A gas", "A flock", "A wing"])
def test_an_example_runs(title):
    (example,) = re.findall(r"```python\n(.*?)```", section(title), re.DOTALL)
    found: dict = {}
    exec(example if "import md" in example else f"import md\n{example}", found)
    assert found["sim"].step >= 10
