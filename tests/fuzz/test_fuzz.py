"""A fuzz of the public constructors and functions, files and command lines.

No input may crash, stand still, end with an obscure error or give a wrong answer. `nightly` tries 100,000
inputs of all families, the default tier a few of those that compile few kernels: `FUZZ_INPUTS`, `FUZZ_SEED`
and `FUZZ_FAMILY` choose others. An input that failed is printed with the command that tries it again alone.
"""

import os
from collections.abc import Iterable

import pytest

from tests.fuzz.families import SHARES
from tests.fuzz.families.planted import FAULTS, LEAST
from tests.fuzz.harness import Report, campaign
from tests.fuzz.judge import SAYS, Case
from tests.fuzz.worker import trial

NIGHTLY = 100_000
BY_DEFAULT = 50
LIGHT = "boxes", "caches", "choices", "curves", "states"  # families that compile few kernels
EACH, SEED = 12, 8  # inputs of a planted family, of which some fail
VERDICTS = dict(zip(FAULTS, FAULTS, strict=True)) | {"taken": "wrong"}


def fails(case: Case) -> bool:
    return case.arguments["number"] == "many" or case.arguments["number"] >= LEAST


@pytest.fixture(scope="module")
def found() -> Report:
    planted = dict.fromkeys(FAULTS, 1.0)
    return campaign(planted, EACH * len(planted), SEED, batch=EACH, timeout=1.0, planted=True)


@pytest.mark.parametrize(("name", "verdict"), VERDICTS.items())
def test_planted_failures_are_found_kept_and_shown_and_the_batch_goes_on(found, name, verdict):
    kept = [kept for kept in found.kept if kept.task.family == name]
    drawn = trial(name, planted=True)
    failing = [k for k in range(EACH) if drawn(SEED, k, fails)]
    assert failing
    assert [(one.number, one.judged.verdict) for one in kept] == [(k, verdict) for k in failing]
    assert found.counts[name] == {verdict: len(failing), "accepted": EACH - len(failing)}
    assert f"python -m tests.fuzz {name} --seed {SEED} --number {failing[0]}" in str(kept[0])
    assert f"{name}(" in kept[0].judged.call


def test_a_crash_is_shown_with_its_signal_and_place(found):
    judged = next(kept.judged for kept in found.kept if kept.task.family == "crash")
    assert "SIGSEGV" in judged.cause
    assert "planted.py" in judged.more


def test_the_smallest_input_that_fails_is_shown():
    drawn = trial("wrong", planted=True)
    failing = next(number for number in range(100) if drawn(SEED, number, fails))
    assert drawn.smallest(SEED, failing).call == f"wrong(number={LEAST})"


@pytest.mark.parametrize("name", ["curves", "states", "choices"])
def test_an_input_is_drawn_again_by_its_number(name):
    calls = {trial.__wrapped__(name)(5, 17, Case.written) for _ in range(2)}
    others = {trial(name)(5, number, Case.written) for number in range(18, 22)}
    assert len(calls) == 1
    assert len(others) > 1


@pytest.mark.parametrize("message", ["dt = 0; allowed: above 0", "no x; known: a, b", "no room; take fewer"])
def test_what_a_message_has_to_say(message):
    assert SAYS.search(message)
    assert not SAYS.search("math domain error")


def checked(inputs: int, seed: int, names: Iterable[str]) -> None:
    chosen = os.environ.get("FUZZ_FAMILY", "").split() or names
    report = campaign({name: SHARES[name] for name in chosen}, inputs, seed)
    print(report.table())
    assert sum(counter.total() for counter in report.counts.values()) >= inputs * 0.99
    assert not report.kept, f"\n{report}"


def test_no_input_of_a_few_fails():
    checked(BY_DEFAULT, 1, LIGHT)


@pytest.mark.nightly
def test_no_input_fails():
    checked(int(os.environ.get("FUZZ_INPUTS", NIGHTLY)), int(os.environ.get("FUZZ_SEED", "0")), SHARES)
