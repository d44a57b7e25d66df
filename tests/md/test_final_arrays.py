"""The final arrays of a covering array of simulations are those recorded, or those of the commit before."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import md
from tests import final_arrays
from tests.final_arrays_recorded import differences, faults, hashes_in, read, record

ROOT = Path(__file__).parents[2]
PROGRAM = [Path("tests", f"final_{part}.py") for part in ("arrays", "flocks", "laws")]
RUN = {"environment": "here", "cases": {"a": {"hashes": {"pos": "1", "vel": "2"}, "wrong": []}}}


def run_program(root: Path, out: Path, *flags: str) -> dict:
    """Run the program in the checkout at `root`, on one thread, in its own process; give what it found."""
    environment = os.environ | {"PYTHONPATH": str(root), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.final_arrays", "--out", str(out), *flags]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(out.read_text())
    assert result["package"] == str(root / "md")
    return result


def commit_before(folder: Path) -> Path:
    """The files of the parent commit in a folder, with the present program; skips without a git history."""
    tar = folder / "before.tar"
    git = shutil.which("git")
    command = [git or "git", "-C", str(ROOT), "archive", "--output", str(tar), "HEAD~1", "md", "sfc", "tests"]
    done = subprocess.run(command, capture_output=True, text=True) if git else None
    if done is None or done.returncode:
        reason = done.stderr.strip() if done else "there is no git"
        pytest.skip(f"nothing is recorded for this machine, and there is no commit to compare with: {reason}")
    with tarfile.open(tar) as archive:
        archive.extractall(folder / "before", filter="data")
    for file in PROGRAM:
        shutil.copy(ROOT / file, folder / "before" / file)
    return folder / "before"


def lines_of(result: dict, recorded: dict, folder: Path) -> list[str]:
    """What differs from the hashes recorded for the environment; if there are none, from the commit before.

    Cases that the commit before refuses are not compared.
    """
    found, known = hashes_in(result), recorded.get(result["environment"])
    if known is None:
        before = run_program(commit_before(folder), folder / "before.json", *result.get("flags", ()))
        known = hashes_in(before)
        assert found.keys() & known
        found = {name: hashes for name, hashes in found.items() if name not in before["cases"].keys() - known}
    return differences(found, known)


@pytest.mark.nightly
def test_every_case_ends_with_the_bits_that_are_known(tmp_path):
    result = run_program(ROOT, tmp_path / "now.json")
    wrong = faults(result)
    assert not wrong, "\n".join(wrong)
    assert set(hashes_in(result)) == set(final_arrays.every_case())
    changed = lines_of(result, read(), tmp_path)
    assert not changed, "\n".join(changed)


@pytest.mark.nightly
def test_on_an_unknown_machine_the_commit_before_is_run_and_compared(tmp_path):
    flags = "--cases", "tiles", "plain"
    result = run_program(ROOT, tmp_path / "now.json", *flags) | {"flags": flags}
    assert faults(result) == []
    assert lines_of(result, {}, tmp_path) == []
    name = next(iter(result["cases"]))
    result["cases"][name]["hashes"]["pos"] = "another"
    shutil.rmtree(tmp_path / "before")
    assert lines_of(result, {}, tmp_path) == [f"{name}: another pos"]


def test_on_an_unknown_machine_without_a_git_history_there_is_a_reason_to_skip(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(pytest.skip.Exception, match="no commit to compare with: there is no git"):
        lines_of(RUN, {"there": {}}, tmp_path)


def covered_by(cases: dict) -> set[frozenset]:
    """The pairs of values that both have an effect in some case."""
    effective = (
        [item for item in case.items() if final_arrays.has_effect(case, item[0])] for case in cases.values()
    )
    return {frozenset(pair) for items in effective for pair in itertools.combinations(items, 2)}


def test_each_pair_of_values_is_in_a_case_or_listed_as_left_out():
    cases, left_out = final_arrays.covering()
    covered = covered_by(cases)
    values = [[(factor, value) for value in values] for factor, values in final_arrays.FACTORS.items()]
    for one, other in itertools.combinations(values, 2):
        for pair in map(frozenset, itertools.product(one, other)):
            assert (pair in covered) != (pair in left_out), sorted(pair)
    assert 150 <= len(cases) <= 310
    assert not any(map(final_arrays.broken_rules, cases.values()))


def test_each_pair_of_values_that_goes_with_fused_steps_is_in_a_case_with_them():
    cases, left_out = final_arrays.covering()
    fused = covered_by({name: case for name, case in cases.items() if case["fused"] == "fused"})
    beside = [next(iter(pair - {("fused", "fused")})) for pair in fused if ("fused", "fused") in pair]
    pairs = {
        frozenset([one, other]) for one, other in itertools.combinations(beside, 2) if one[0] != other[0]
    }
    assert pairs - left_out.keys() <= fused
    assert len(pairs - left_out.keys()) > 1000


@pytest.mark.nightly
def test_each_pair_that_is_left_out_is_refused_by_the_package_or_has_no_effect():
    _, left_out = final_arrays.covering()
    for pair, case in left_out.items():
        if case is None:
            assert dict(pair)["trigger"] == "none"
            continue
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the message is looked at below
            final_arrays.simulation_of(case)
        assert any(message in str(refused.value) for message in final_arrays.broken_rules(case)), pair


def test_flocks_have_each_kind_of_search_fused_and_unfused_steps_and_every_course():
    flocks = [case for case in final_arrays.every_case().values() if case["law"] == "boids"]
    known = set(md.search.SEARCHES)
    assert {
        name if name in known else name.partition("_")[0] for name in (f["search"] for f in flocks)
    } == known
    for factor in ("fused", "precision", "dim", "course", "mode", "gravity"):
        assert {case[factor] for case in flocks} == set(final_arrays.FACTORS[factor])
    assert not any(map(final_arrays.broken_rules, flocks))


def test_the_cases_of_a_device_have_each_search_that_repeats_there_and_fused_steps():
    cases, _ = final_arrays.covering()
    chosen = final_arrays.on_device(cases)
    assert 12 <= len(chosen) <= 20
    assert {case["search"] for case in chosen.values()} == set(final_arrays.ON_DEVICE)
    assert {case["fused"] for case in chosen.values()} == {"fused", "unfused"}


def test_a_hash_that_differs_a_case_that_is_new_and_one_that_has_not_run_are_each_named():
    known = {"a": {"pos": "1", "vel": "2"}, "b": {"pos": "1"}}
    assert differences(known, known) == []
    assert differences({"a": {"pos": "1", "vel": "3"}, "c": {}}, known) == [
        "a: another vel",
        "b: known, and has not run",
        "c: not among the known; python -m tests.final_arrays --update",
    ]
    assert differences({"a": {"pos": "1"}, "b": {"pos": "1"}}, known) == ["a: another vel"]


def test_a_run_of_nothing_is_a_fault():
    assert faults({"cases": {}}) == ["no case has run"]
    assert faults({"cases": {"a": {"absent": "no such law"}}}) == ["no case has run"]
    assert faults({"cases": {"a": {"hashes": {"pos": "1"}, "wrong": ["no particle has moved"]}}}) == [
        "a: no particle has moved"
    ]


def test_new_cases_are_recorded_and_differing_ones_only_by_name(tmp_path):
    path = tmp_path / "recorded.json"
    record(RUN, path=path)
    other = {"environment": "there", "cases": {"a": {"hashes": {"pos": "9"}}}}
    record(other, path=path)
    assert read(path) == {"here": hashes_in(RUN), "there": {"a": {"pos": "9"}}}
    before = path.read_text()
    changed = {"environment": "here", "cases": {"a": {"hashes": {"pos": "5"}}, "b": {"hashes": {"pos": "6"}}}}
    for overwritten in ((), ("b",)):
        with pytest.raises(SystemExit, match="a: differs from what is recorded"):
            record(changed, overwritten, path=path)
        assert path.read_text() == before
    record(changed, ("a",), path=path)
    assert read(path)["here"] == {"a": {"pos": "5"}, "b": {"pos": "6"}}
    assert read(path)["there"] == {"a": {"pos": "9"}}
    record(changed, (), ["b"], path=path)
    assert read(path)["here"] == {"b": {"pos": "6"}}


def test_a_run_with_a_fault_is_not_recorded(tmp_path):
    path = tmp_path / "recorded.json"
    wrong = {
        "environment": "here",
        "cases": {"a": {"hashes": {"pos": "1"}, "wrong": ["no particle has moved"]}},
    }
    with pytest.raises(SystemExit, match="no particle has moved"):
        record(wrong, path=path)
    assert not path.exists()


def test_what_is_recorded_is_of_the_cases_that_there_are():
    names = set(final_arrays.every_case())
    recorded = read()
    assert recorded
    assert all(set(cases) == names for cases in recorded.values())
