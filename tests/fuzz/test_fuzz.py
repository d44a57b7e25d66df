"""A fuzz of the public constructors and functions, files and command lines.

No input may crash, stand still, end with an obscure error or give a wrong answer. `nightly` tries 100,000
inputs of all families, the default tier a few of those that compile few kernels: `FUZZ_INPUTS`, `FUZZ_SEED`
and `FUZZ_FAMILY` choose others. An input that failed is told with the command that tries it again alone.
"""

import os
from collections.abc import Iterable

import pytest

from tests.fuzz.families import families
from tests.fuzz.harness import Kept, Report, campaign
from tests.fuzz.judge import SAYS

NIGHTLY = 100_000
BY_DEFAULT = 50
LIGHT = "boxes", "caches", "choices", "curves", "states"  # families that compile few kernels
EACH = 12  # inputs of a planted family


@pytest.fixture(scope="module")
def found() -> Report:
    planted = dict.fromkeys(families(planted=True), 1.0)
    return campaign(planted, EACH * len(planted), 0, batch=EACH, timeout=1.0, planted=True)


def of(report: Report, name: str) -> Kept:
    (kept,) = [kept for kept in report.kept if kept.family == name]
    return kept


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("crash", "crash"),
        ("hang", "hang"),
        ("obscure", "obscure"),
        ("weak", "weak"),
        ("wrong", "wrong"),
        ("taken", "wrong"),
    ],
)
def test_a_planted_failure_is_found_kept_and_told_and_the_batch_goes_on(found, name, verdict):
    kept = of(found, name)
    assert (kept.number, kept.judged.verdict) == (7, verdict)
    assert found.counts[name] == {verdict: 1, "accepted": EACH - 1}
    assert f"python -m tests.fuzz {name} --seed 0 --number 7" in str(found)
    assert f"{name}(" in kept.judged.told


def test_a_crash_is_told_with_its_signal_and_place(found):
    kept = of(found, "crash")
    assert "SIGSEGV" in kept.judged.cause
    assert "planted.py" in kept.judged.more


def test_an_input_is_drawn_again_by_its_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # drawing writes files
    from tests.fuzz.drawing import Draw

    for family in families().values():
        if family.prepare.__module__.endswith(("curves", "states", "choices")):
            one, other = (family.draw(Draw(family.name, 5, 17)) for _ in range(2))
            assert one.name == other.name
            assert list(one.arguments) == list(other.arguments)


@pytest.mark.parametrize(
    "message", ["dt = 0; allowed: above 0", "unknown x; known: a, b", "no room; take fewer"]
)
def test_what_a_message_has_to_say(message):
    assert SAYS.search(message)
    assert not SAYS.search("math domain error")


def checked(inputs: int, seed: int, names: Iterable[str]) -> None:
    known = families()
    chosen = os.environ.get("FUZZ_FAMILY", "").split() or names
    report = campaign({name: known[name].share for name in chosen}, inputs, seed)
    print(report.table())
    assert report.inputs >= inputs * 0.99
    assert not report.kept, f"\n{report}"


def test_no_input_of_a_few_fails():
    checked(BY_DEFAULT, 1, LIGHT)


@pytest.mark.nightly
def test_no_input_fails():
    checked(int(os.environ.get("FUZZ_INPUTS", NIGHTLY)), int(os.environ.get("FUZZ_SEED", "0")), families())
