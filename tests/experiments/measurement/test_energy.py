"""Energy of steps: a counter that changes now and then, repetition, columns, and a GPU's counter."""

import math
import subprocess
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from experiments import timing
from experiments.core.settings import cases
from experiments.measurement import energy
from experiments.measurement.energy import LEAD_S, Mark, Taken, Tick, energies, repeated, used
from experiments.measurement.energy_gains import (
    ABOVE_IDLE,
    ENERGY,
    TIME,
    by_resource,
    in_words,
    summary_of_energy,
)
from experiments.measurement.machine_state.energy_counter import NoCounterError, counter_of
from experiments.measurement.machine_state.gpu_clock import GpuClock
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import KeptYoung
from experiments.processes.separate_run import all_rows

CPU = md.backend.get("cpu")
START = 4.2e9  # joules that the counter held before


@given(
    period=st.floats(0.02, 0.1),
    batch=st.floats(0.001, 0.7),
    watts=st.floats(50, 700),
    seed=st.integers(0, 2**32 - 1),
)
def test_energy_and_steps_between_two_changes_are_free_of_the_resolution_of_the_counter(
    period, batch, watts, seed
):
    phase, step = np.random.default_rng(seed).uniform([0, 1e-4], [period, 1e-3])
    changes = phase + period * np.arange(int(3 / period))
    lag = 0.05  # of the counter, which shows what was used before
    ticks = [Tick(at, START + watts * (at - lag)) for at in changes]
    number = int(2 / batch) + 1
    marks = [Mark(k * batch, round(k * batch / step)) for k in range(number + 1)]
    use = used(ticks, marks, LEAD_S)
    assert use.joules / use.steps == pytest.approx(watts * step, rel=5e-3)
    assert use.watts == pytest.approx(watts, rel=1e-6)
    assert marks[-1].at - LEAD_S - 2 * period <= use.seconds <= marks[-1].at - LEAD_S


def test_work_of_other_power_before_the_lead_and_after_the_end_does_not_count():
    ticks = [Tick(0.1, 5000.0), Tick(0.35, 6000.0), Tick(0.6, 6100.0), Tick(0.85, 6200.0), Tick(1.1, 9e9)]
    use = used(ticks, [Mark(0.0, 0), Mark(0.5, 50), Mark(1.0, 150)], 0.3)
    assert use == (200.0, 0.5, pytest.approx(120 - 35), None)


@pytest.mark.parametrize("ticks", [[], [Tick(0.5, 1.0)], [Tick(0.1, 1.0), Tick(0.5, 2.0), Tick(1.5, 3.0)]])
def test_a_counter_that_changes_less_than_twice_gives_nothing(ticks):
    assert used(ticks, [Mark(0.0, 0), Mark(1.0, 10)], 0.3) is None


def test_the_age_is_the_largest():
    marks = [Mark(0.0, 0), Mark(0.5, 5, 7), Mark(1.0, 10, 3)]
    assert used([Tick(0.4, 1.0), Tick(0.9, 2.0)], marks, 0.3).age_steps == 7


class Steps:
    """Steps that last a millisecond, and the counter of their energy, which changes after every `every`."""

    name = "steps"

    def __init__(self, joules=2.0, idle=0.0, every=10):
        self.taken, self.calls, self.energy = 0, 0, START
        self._joules, self._idle, self._every, self._begin = joules, idle, every, time.perf_counter()

    def work(self):
        for _ in range(5):
            time.sleep(1e-3)
            self.taken += 1
        self.calls += 1
        return Taken(5)

    def joules(self):
        done = self.taken - self.taken % self._every
        rested = math.floor(100 * (time.perf_counter() - self._begin)) / 100
        return self.energy + self._joules * done + self._idle * rested


def test_repeated_work_has_the_energy_of_its_steps():
    steps = Steps()
    use = repeated(steps.work, steps, 0.3, lead=0.05)
    assert use.joules / use.steps == pytest.approx(2.0, rel=0.2)
    assert use.seconds >= 0.3
    assert use.steps < steps.taken


def test_a_counter_that_stands_still_ends_the_work(monkeypatch):
    monkeypatch.setattr(energy, "LONGEST_TICK_S", 0.05)
    steps = Steps(joules=0.0)
    assert repeated(steps.work, steps, 0.1, lead=0.0) is None
    assert steps.calls > 1


def test_a_counter_that_fails_later_ends_the_work(monkeypatch):
    monkeypatch.setattr(energy, "LONGEST_TICK_S", 0.05)

    class Lost(Steps):
        def joules(self):
            raise NoCounterError("GPU is lost")

    steps = Lost()
    assert repeated(steps.work, steps, 0.1, 0.0) is None


@pytest.mark.quick
def test_wrong_arguments_are_refused():
    steps = Steps()
    with pytest.raises(TypeError, match="work = 3 of class int; allowed: a function that takes steps"):
        repeated(3, steps, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"seconds = 0.0; allowed: a finite number above 0"):
        repeated(steps.work, steps, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"seconds = -1.0; allowed: a finite number of at least 0"):
        energies({}, CPU, -1.0, [0])


@pytest.fixture
def counter(monkeypatch):
    """Puts a counter in the place of that of the machine, and shortens the rest."""
    monkeypatch.setattr(energy, "SETTLE_S", 0.02)
    monkeypatch.setattr(energy, "IDLE_S", 0.1)
    monkeypatch.setattr(energy, "LEAD_S", 0.05)

    def put(given):
        @contextmanager
        def opened(backend):
            if isinstance(given, NoCounterError):
                raise given
            yield given

        monkeypatch.setattr(energy, "counter_of", opened)
        return given

    return put


def test_energy_above_idle_is_less_by_idle_power_times_the_time_of_a_step(counter):
    steps = counter(Steps(joules=2.0, idle=100.0))
    row = energies({4: steps.work}, CPU, 0.3, [0])[4]
    assert row["idle_W"] == pytest.approx(100, rel=0.3)
    assert row["energy_J"] == pytest.approx(2.0 + 0.1 * row["energy_step_ms"], rel=0.2)
    assert row["energy_above_idle_J"] == pytest.approx(2.0, rel=0.2)
    assert row["mean_power_W"] == pytest.approx(1e3 * row["energy_J"] / row["energy_step_ms"])
    assert row["energy_s"] >= 0.3
    assert "energy_age_steps" not in row


def rounds_of(steps, energy_seconds, rounds=2):
    taken = []

    def sample():
        taken.append(steps.calls)
        yield {"time_ms": 1.0, "sample_ms": 1.0}
        yield {"time_ms": 2.0, "sample_ms": 2.0}

    entries = [Entry({"ordering": "a"}, sample, work=steps.work), Entry({"ordering": "b"}, sample)]
    found = all_rows(take_rounds(entries, rounds, CPU, seed=0, energy_seconds=energy_seconds))
    assert set(taken) == {0}  # the work comes after the last sample
    return pd.DataFrame(found)


def test_the_rows_of_the_last_round_have_the_energy_of_cases_with_work(counter):
    rows = rounds_of(counter(Steps(idle=50.0)), 0.2)
    has = rows["energy_J"].notna()
    assert has.tolist() == ((rows["round"] == 1) & (rows["ordering"] == "a")).tolist()
    assert has.sum() == 2
    assert rows["energy_J"].nunique() == 1


@pytest.mark.parametrize(
    ("idle", "fails", "said"),
    [
        (0.0, False, "while the device was idle the counter steps changed less than twice"),
        (50.0, False, "in their steps the counter steps changed less than twice"),
        (50.0, True, "in their steps the counter steps could not be read: GPU is lost"),
    ],
)
def test_cases_without_energy_are_named_once_with_the_reason(counter, monkeypatch, capsys, idle, fails, said):
    class Stopping(Steps):
        """A counter that stands still, or fails, from the first step on."""

        def joules(self):
            if self.calls and fails:
                raise NoCounterError("GPU is lost")
            return START if self.calls else super().joules()

    monkeypatch.setattr(energy, "LONGEST_TICK_S", 0.05)
    assert "energy_J" not in rounds_of(counter(Stopping(joules=0.0, idle=idle)), 0.2)
    assert capsys.readouterr().err == f"no energy of a step of a: {said}\n"


def test_no_energy_is_measured_unless_asked_for_or_without_a_counter(counter):
    steps = counter(Steps(idle=50.0))
    assert "energy_J" not in rounds_of(steps, 0.0)
    assert steps.calls == 0
    counter(NoCounterError("none here"))
    assert "energy_J" not in rounds_of(steps, 0.5)
    assert steps.calls == 0


@pytest.mark.quick
def test_a_run_says_once_how_energy_is_measured_or_why_it_is_not(counter):
    counter(Steps())
    config = timing.Config(backend="cpu")
    begin, end = "after the last round each compared case takes more steps for 1.5 s", "(steps)"
    assert config.notes == (f"{begin}, while its energy is read {end}",)
    counter(NoCounterError("none here"))
    assert config.notes == ("the energy of a step is not measured: none here",)
    assert timing.Config(backend="cpu", energy_seconds=0.0).notes == ()
    assert timing.Config(backend="cpu", scene="box", ordering=("aged",)).notes == ()


@pytest.mark.quick
@pytest.mark.parametrize("seconds", [-1.0, 0.1])
def test_too_short_a_time_is_refused(seconds):
    with pytest.raises(ValueError, match=r"--energy-seconds = .*; .* at least 0.5 \(s\); 0 measures"):
        timing.Config(backend="cpu", energy_seconds=seconds)


def test_memory_is_kept_as_young_as_its_interval():
    gas = md.scenes.benchmark_gas(200, 0.2)
    reorder = md.Reorder("hilbert", lambda step: False)
    sim = md.Simulation(gas, md.scenes.BENCHMARK_LAW, dt=1e-4, reorder=reorder, backend="cpu")
    work = KeptYoung(sim, 3, 7, False)
    taken, reorders = [], []
    for _ in range(5):
        before = sim.step
        taken.append(work())
        reorders += [before] * bool(sim.timings.milliseconds.get("reorder"))
    assert taken == [(3, 3), (3, 6), (1, 7), (3, 3), (3, 6)]
    assert sim.step == 13
    assert KeptYoung(sim, 4, 0, True)() == (4, 17)
    assert KeptYoung(sim, 4, 0, False)() == (4, None)


def test_the_main_job_has_the_energy_of_every_order_and_its_gain(counter):
    counter(Steps(joules=0.0, idle=50.0))
    config = timing.Config(
        backend="cpu", n=512, filling_fraction=0.2, rounds=2, runs=1, energy_seconds=0.5,
        ordering=("shuffled", "lattice", "hilbert"), reorder_every=(40,),
    )  # fmt: skip
    (case,) = cases(config)
    table = pd.DataFrame([case.place | row for row in all_rows(timing.measure(case.config))])
    rows = table[(table["phase"] == "step") & (table["round"] == 1)].set_index("ordering")
    assert set(rows.index) == {"shuffled", "lattice", "hilbert", "shuffled again"}
    assert rows["energy_J"].to_numpy() == pytest.approx(0.05 * rows["energy_step_ms"].to_numpy(), rel=0.2)
    assert rows.loc["hilbert", "energy_age_steps"] == 40
    assert rows.loc["lattice", "energy_age_steps"] > rows.loc["lattice", "age_steps"]
    assert rows["energy_age_steps"].isna()["shuffled"]


def energy_table(power):
    """Three orders in three runs; Hilbert's takes half the time of shuffled memory, at `power` its power."""
    rows = [
        {"run": run, "round": last, "case": run, "ordering": name, "time_ms": 1.0,
         "energy_step_ms": (1 + 0.01 * run) * ms if last else np.nan,
         "energy_J": (1 + 0.02 * run) * 1e-3 * ms * watts if last else np.nan,
         "energy_above_idle_J": 1e-3 * ms * (watts - 100) if last else np.nan}
        for run in range(3)
        for last in (0, 1)
        for name, ms, watts in (("shuffled", 4.0, 400.0), ("row", 3.0, 400.0 * power),
                               ("hilbert", 2.0, 400.0 * power))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_gain_in_energy_stands_beside_that_in_time():
    words = in_words(energy_table(1.25), "ordering", ("shuffled", "lattice"), " memory")
    assert words == (
        "hilbert takes 1.02 (0.97 to 1.07) J a step; its energy is lower than that of shuffled memory by a "
        "factor of 1.60, its time by a factor of 2.00"
    )
    assert in_words(energy_table(1.25).drop(columns="energy_J"), "ordering", ("shuffled",)) == ""
    alone = energy_table(1.25).query("ordering != 'shuffled'")
    assert in_words(alone, "ordering", ("shuffled",)) == "hilbert takes 1.02 (0.97 to 1.07) J a step"


def test_verdicts_are_on_energy_not_on_speed():
    found = summary_of_energy((), "ordering", ("row",)).table(energy_table(1.25))
    verdicts = found.set_index(["resource", "ordering"])["difference_from_row"]
    assert (verdicts[ENERGY, "hilbert"], verdicts[ENERGY, "shuffled"]) == ("less", "more")


def test_rows_by_resource_are_those_with_energies_and_numbers_above_0():
    found = by_resource(energy_table(0.2))  # less than the idle power
    assert found.groupby(["resource", "ordering"]).size().to_dict() == {
        (ABOVE_IDLE, "shuffled"): 3, (ENERGY, "hilbert"): 3, (ENERGY, "row"): 3, (ENERGY, "shuffled"): 3,
        (TIME, "hilbert"): 3, (TIME, "row"): 3, (TIME, "shuffled"): 3,
    }  # fmt: skip
    assert (found["used"] > 0).all()
    energies_of = found[(found["resource"] == ENERGY) & (found["run"] == 0)].set_index("ordering")["used"]
    assert energies_of.to_dict() == pytest.approx({"shuffled": 1.6, "row": 0.24, "hilbert": 0.16})


@pytest.mark.gpu
def test_a_copy_on_the_device_takes_between_idle_and_full_power(device):
    try:
        with counter_of(device):
            pass
    except NoCounterError as error:
        pytest.skip(str(error))
    source = device.zeros(2**27, np.float64)  # 1 GiB, more than any cache
    target = device.zeros(2**27, np.float64)

    def work():
        with device.stopwatch():
            for _ in range(20):
                target[...] = source
        return Taken(20)

    with GpuClock(device.bus) as clock:
        begin = time.perf_counter()
        row = energies({0: work}, device, 3.0, [0])[0]
        end = time.perf_counter()
        # the last second of a repetition of more than three: the power that is read is a mean over a second
        powers = [reading.power_W for reading in clock._read_between(end - 1.0, end)]
    assert end - begin > 3
    assert 20 < row["idle_W"] < row["mean_power_W"] < 1000
    assert row["mean_power_W"] < 1.05 * power_limit(device.bus)
    assert row["energy_J"] == pytest.approx(1e-3 * row["mean_power_W"] * row["energy_step_ms"])
    assert row["mean_power_W"] == pytest.approx(np.mean(powers), rel=0.15)


def power_limit(bus):
    """The power limit of a device in W, by nvidia-smi."""
    command = ["nvidia-smi", f"--id={bus}", "--query-gpu=power.limit", "--format=csv,noheader,nounits"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
