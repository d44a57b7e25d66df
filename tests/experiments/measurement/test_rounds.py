"""Samples in rounds: order, rounds that go on, recording kept outside, what the host did meanwhile."""

import multiprocessing
import time
from collections import Counter

import pandas as pd
import pytest

import md
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.machine_state import gpu_clock
from experiments.measurement.machine_state.host_load import HostLoad
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import whole_steps
from experiments.processes.separate_run import all_rows
from experiments.results import reliability

CPU = md.backend.get("cpu")


def entry(name, seen, backend=CPU, records=()):
    """One that notes when it is sampled, and records at some of its samples."""
    calls = Counter()

    def sample():
        seen.append(name)
        calls["samples"] += 1
        if calls["samples"] in records:
            backend.recorded += 1
        yield {"time_ms": 1.0, "sample_ms": 1.0, "taken": calls["samples"]}

    return Entry({"ordering": name}, sample)


def test_every_round_has_every_entry_once_in_an_order_of_its_own():
    seen = []
    rows = all_rows(take_rounds([entry(name, seen) for name in "abcd"], 20, CPU, seed=0))
    assert [row["ordering"] for row in rows] == list("abcd") * 20
    rows.sort(key=lambda row: (row["round"], row["turn"]))
    rounds = [tuple(row["ordering"] for row in rows if row["round"] == k) for k in range(20)]
    assert all(sorted(order) == list("abcd") for order in rounds)
    assert len(set(rounds)) > 10
    assert seen[:4] == list("abcd")  # a round that is not timed comes first
    assert [row["ordering"] for row in rows] == seen[4:]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"entries": []}, ValueError, r"entries = \[\]; allowed: one Entry or more"),
        ({"entries": [{}]}, TypeError, r"entries\[0\] = {} of class dict; allowed: an Entry"),
        ({"entries": None}, TypeError, "entries = None of class NoneType; allowed: a sequence of Entry"),
        ({"rounds": 0}, ValueError, "rounds = 0; allowed: an integer of at least 1"),
        ({"rounds": 2.5}, TypeError, "rounds = 2.5 of class float; allowed: an integer"),
        ({"begin": -1}, ValueError, "begin = -1; allowed: an integer of at least 0"),
        ({"settle": True}, TypeError, "settle = True of class bool; allowed: an integer"),
        ({"settle": 13}, ValueError, "settle = 13; allowed: an integer of at least 0, up to 12"),
        ({"seed": -1}, ValueError, "seed = -1; allowed: an integer of at least 0"),
        ({"backend": "cpu"}, TypeError, "backend = 'cpu' of class str; allowed: an md.backend.Backend"),
    ],
    ids=str,
)
def test_rounds_of_arguments_that_are_none_are_refused_before_the_first(wrong, error, message):
    given = {"entries": [entry("a", [])], "rounds": 1, "backend": CPU, "seed": 0} | wrong
    with pytest.raises(error, match=f"^{message}"):
        take_rounds(given.pop("entries"), given.pop("rounds"), given.pop("backend"), **given)


@pytest.mark.quick
def test_steps_and_working_sets_of_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match=r"simulation = None of class NoneType; allowed: an md\.Simulation"):
        whole_steps(None, 3)
    for wrong in (
        (2.0, 3, "float32", CPU),
        (8, True, "float32", CPU),
        (8, 3, None, CPU),
        (8, 3, "float32", 1),
    ):
        with pytest.raises(TypeError, match=r"= .* of class .*; allowed: "):
            working_set(*wrong)
    for wrong in ((8, 4, "float32", CPU), (8, 3, "float16", CPU), (-1, 3, "float32", CPU)):
        with pytest.raises(
            ValueError, match=r"(n|dim) = .*; allowed: |unknown precision 'float16'; allowed: "
        ):
            working_set(*wrong)


def test_rounds_go_on_where_they_ended():
    whole = all_rows(take_rounds([entry(name, []) for name in "abc"], 6, CPU, seed=3))
    later = all_rows(take_rounds([entry(name, []) for name in "abc"], 6, CPU, seed=3, begin=4))
    message = [(row["round"], row["ordering"], row["turn"]) for row in whole]
    assert [(row["round"], row["ordering"], row["turn"]) for row in later] == message[12:]
    assert not all_rows(take_rounds([entry("a", [])], 6, CPU, seed=3, begin=6))


def test_it_settles_until_nothing_is_recorded():
    backend = type(CPU)()
    rows = all_rows(take_rounds([entry("a", [], backend, records=(1, 2, 3))], 2, backend, seed=0))
    assert [row["taken"] for row in rows] == [5, 6]  # the fourth recorded nothing
    assert not any(row["recorded"] for row in rows)


def test_a_sample_in_which_something_is_recorded_is_taken_again():
    backend = type(CPU)()
    rows = all_rows(take_rounds([entry("a", [], backend, records=(3, 4))], 3, backend, seed=0))
    assert [row["taken"] for row in rows] == [2, 5, 6]
    assert not any(row["recorded"] for row in rows)


def test_what_records_for_ever_is_told():
    backend = type(CPU)()
    rows = all_rows(take_rounds([entry("a", [], backend, records=range(99))], 1, backend, seed=0))
    assert rows[0]["recorded"]
    assert reliability.RECORDED in "; ".join(reliability.warned(pd.DataFrame(rows))["warning"])


def test_columns_of_the_last_round():
    last = entry("a", [])._replace(at_end=lambda: {"temperature_end": 3.0})
    rows = all_rows(take_rounds([last], 2, CPU, seed=0))
    assert [row.get("temperature_end") for row in rows] == [None, 3.0]


class Device(type(CPU)):
    """Stands for a backend with a device."""

    name, bus, recorded = "cuda", "0", 0


class Clock:
    """Stands for the clock of a device."""

    opened = 0

    def __init__(self, bus):
        Clock.opened += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def between(self, begin, end):
        return gpu_clock.Clock(1980.0, 300.0, 45.0, "none")


def test_clock_and_threads_are_those_of_what_is_sampled(monkeypatch):
    monkeypatch.setattr("experiments.measurement.rounds.GpuClock", Clock)
    monkeypatch.setattr("numba.get_num_threads", lambda: 2)
    cores = HostLoad().cores
    entries = [
        entry("device", []),
        entry("host", [])._replace(on_device=False),
        entry("host and back", [])._replace(on_device=False, threads=3),
    ]
    rows = {row["ordering"]: row for row in all_rows(take_rounds(entries, 1, Device(), seed=0))}
    assert {name: row.get("clock_MHz") for name, row in rows.items()} == {
        "device": 1980.0, "host": None, "host and back": None
    }  # fmt: skip
    assert {name: cores - row["spare_cores"] for name, row in rows.items()} == {
        "device": 1, "host": 2, "host and back": 3
    }  # fmt: skip
    assert reliability.CLOCK not in "; ".join(reliability.warned(pd.DataFrame(rows.values()))["warning"])


def test_no_clock_is_read_where_nothing_runs_on_the_device(monkeypatch):
    monkeypatch.setattr("experiments.measurement.rounds.GpuClock", Clock)
    before = Clock.opened
    all_rows(take_rounds([entry("host", [])._replace(on_device=False)], 1, Device(), seed=0))
    assert Clock.opened == before


def test_on_the_cpu_steps_use_the_threads_of_numba(monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: 2)
    entries = [entry("all", []), entry("one", [])._replace(threads=1)]
    rows = {row["ordering"]: row for row in all_rows(take_rounds(entries, 1, CPU, seed=0))}
    assert {name: HostLoad().cores - row["spare_cores"] for name, row in rows.items()} == {"all": 2, "one": 1}


def test_whole_steps_are_those_of_one_run():
    sim = md.Simulation(md.scenes.benchmark_gas(60, 0.1), md.scenes.BENCHMARK_LAW, dt=1e-4, backend="cpu")
    sim.run(2)
    with pytest.raises(ValueError, match="steps = 0; allowed: an integer of at least 1"):
        whole_steps(sim, 0)
    ms = whole_steps(sim, 3)
    assert sim.step == 5
    assert sim.timings.total == [(3, ms)]


def spin(until):
    while time.time() < until:
        pass


def loaded(seconds):
    """Rows of samples that sleep while a process spins on each core."""
    host = HostLoad()
    until = time.time() + seconds + 5
    spinning = [
        multiprocessing.get_context("fork").Process(target=spin, args=(until,)) for _ in range(host.cores)
    ]
    for process in spinning:
        process.start()
    try:

        def sample():
            time.sleep(seconds)
            yield {"time_ms": 1.0, "sample_ms": 1e3 * seconds}

        return pd.DataFrame(all_rows(take_rounds([Entry({"ordering": "a"}, sample)], 1, CPU, seed=0)))
    finally:
        for process in spinning:
            process.kill()
            process.join()


def test_a_process_that_spins_on_each_core_is_seen_and_warned_of():
    rows = loaded(0.25)
    assert rows.loc[0, "other_load_cores"] > 0.5 * HostLoad().cores
    assert reliability.BUSY in reliability.warned(rows).loc[0, "warning"]


class Quiet(HostLoad):
    """A host on which nothing else runs."""

    def _counters(self):
        found = super()._counters()
        return found._replace(busy=found.own, waited=0.0)


def test_nobody_is_warned_on_a_quiet_machine(monkeypatch):
    monkeypatch.setattr("experiments.measurement.rounds.HostLoad", Quiet)
    rows = pd.DataFrame(all_rows(take_rounds([entry("a", [])], 3, CPU, seed=0)))
    assert reliability.warned(rows)["warning"].eq("").all()


def test_own_work_is_not_that_of_others(monkeypatch):
    # the counters of the system tick every 10 ms
    monkeypatch.setattr("psutil.cpu_times", lambda percpu: [Idle()] * 999)
    host = HostLoad()
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        pass
    load = host.stop()
    assert load.other_load_cores <= 0
    assert load.involuntary_switches is None or load.involuntary_switches >= 0


class Idle(tuple):
    """The times of a core that never works."""

    idle = iowait = 0.0


@pytest.mark.parametrize("missing", ["_THREADS", "resource"])
def test_what_the_system_does_not_tell_is_none(monkeypatch, tmp_path, missing):
    monkeypatch.setattr(
        f"experiments.measurement.machine_state.host_load.{missing}",
        tmp_path / "no" if missing == "_THREADS" else None,
    )
    load = HostLoad().stop()
    assert (load.waited_share if missing == "_THREADS" else load.involuntary_switches) is None
    row = {"round": 0, "waited_share": None, "sample_ms": 1.0}
    assert reliability.BUSY not in "; ".join(reliability.warned(pd.DataFrame([row]))["warning"])
