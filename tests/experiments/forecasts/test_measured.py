"""Launches that were foreseen: checked, timed and counted, as far as a CPU can tell."""

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import md
from experiments.forecasts import measured
from experiments.forecasts.measured import (
    COUNTERS,
    FORCE,
    ROUNDS,
    STEPS,
    Job,
    counted,
    timed,
)
from experiments.measurement.correctness import WrongResultError
from experiments.measurement.hardware_counters import CannotCountError
from experiments.measurement.kernels.index_kernels import IndexKernel
from experiments.prediction import foreseen_systems
from experiments.prediction.drawn_gases import PROPERTIES, Gas
from experiments.prediction.foreseen_systems import TAKEN
from experiments.prediction.index_cases import KINDS
from md.backend import Cpu
from md.search.lists.step_costs import StepCosts
from tests.md.search.lists.device_of_lists import DeviceOfLists
from tests.tiers import full

CPU = Cpu()
ORDERS = {"coherent": ("random", "row"), "verlet": ("random", "row"), "wide_bvh": ("hilbert", "morton")}
SEED = 2


def gas_of(kernel: str, precision: str = "float64", n: int = 512) -> Gas:
    return Gas(kernel, n, 0.2, precision, ORDERS.get(kernel, ("shuffled", "hilbert", "window 64")))


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """What is made for a device is made on the CPU, with the particles of the start."""
    made = foreseen_systems.simulations
    monkeypatch.setattr(foreseen_systems, "moved", lambda state, *_: state)
    monkeypatch.setattr(measured, "simulations", lambda gas, _, seed: made(gas, "cpu", seed))
    monkeypatch.setattr(
        md.backend, "get", lambda name, get=md.backend.get: CPU if name == "cuda" else get(name)
    )


@pytest.mark.parametrize(
    "kernel", [one if one in ("linked", "gather", "spmv") else full(one) for one in PROPERTIES["kernel"]]
)
def test_orders_are_timed_in_rounds_each_once(kernel):
    gas = gas_of(kernel)
    rows = list(timed(gas, SEED))
    assert all(row["time_us"] > 0 for row in rows)
    for turn in range(ROUNDS):
        names = [row["ordering"] for row in rows if row["round"] == turn]
        assert sorted(names) == sorted(gas.orderings)
    assert len(rows) == ROUNDS * len(gas.orderings)


def test_the_turns_of_a_round_are_drawn():
    gas = gas_of("gather")._replace(orderings=("shuffled", "lattice", "hilbert", "gray", "morton"))
    names = [row["ordering"] for row in timed(gas, SEED)]
    rounds = [tuple(names[5 * k : 5 * k + 5]) for k in range(ROUNDS)]
    assert len(set(rounds)) > 1
    assert names == [row["ordering"] for row in timed(gas, SEED)]


def test_a_time_is_the_median_of_the_forces_some_steps_after_the_start(monkeypatch):
    times, begun = [1.0, 9.0, 2.0, 4.0], []
    assert len(times) == STEPS

    def phases(case, steps):
        begun.append(case.step)
        return {"force": times[:steps], "build": [7]}

    monkeypatch.setattr(measured, "phases_of", phases)
    assert {row["time_us"] for row in timed(gas_of("linked"), SEED)} == {3000.0}
    assert begun == [TAKEN] * 3 * (1 + ROUNDS)  # each sample begins with the same particles


@pytest.mark.parametrize(
    "kernel",
    [
        one if one in ("linked", "scattered") else full(one)
        for one in PROPERTIES["kernel"]
        if one not in KINDS
    ],
)
def test_no_time_of_wrong_forces_is_kept(kernel, monkeypatch):
    """Forces of one component of one particle that are half of what they are."""
    forces = md.Simulation.forces

    def wrong(simulation):
        found = forces(simulation)
        if simulation.config.search.name == ("linked" if kernel == "boids" else kernel):
            found[np.unravel_index(np.abs(found).argmax(), found.shape)] *= 0.5
        return found

    monkeypatch.setattr(md.Simulation, "forces", wrong)
    with pytest.raises(WrongResultError, match="the forces in float64 differ from those of another search"):
        next(timed(gas_of(kernel), SEED))


def test_a_search_that_finds_nothing_is_refused(monkeypatch):
    """All forces are zero at the start of a gas, so that these are not compared."""
    start = next(foreseen_systems.simulations(gas_of("linked"), "cpu", SEED))[1]
    assert not start.forces().any()
    forces = md.Simulation.forces

    def none(simulation):
        found = forces(simulation)
        return 0 * found if simulation.config.search.name in silent else found

    monkeypatch.setattr(md.Simulation, "forces", none)
    silent = ["linked"]
    with pytest.raises(WrongResultError, match="the forces in float64 differ"):
        next(timed(gas_of("linked"), SEED))
    silent.append("scattered")
    with pytest.raises(WrongResultError, match="no forces of linked to be compared"):
        next(timed(gas_of("linked"), SEED))


def test_steps_with_another_temperature_are_refused(monkeypatch):
    temperatures = iter((1.0, 1.01))
    monkeypatch.setattr(md.observe, "temperature", lambda _: next(temperatures))
    with pytest.raises(WrongResultError, match=r"the temperature 1 .* 'shuffled' differs from 1\.01"):
        next(timed(gas_of("linked"), SEED))


def test_no_time_of_a_wrong_sum_is_kept(monkeypatch):
    monkeypatch.setattr(IndexKernel, "launch", lambda one: setattr(one, "launches", one.launches + 1))
    for kernel in KINDS:
        with pytest.raises(WrongResultError, match="not recorded"):
            next(timed(gas_of(kernel), SEED))


GASES = [gas_of("linked"), gas_of("spmv", "float32"), gas_of("verlet")]
CASES = [(place, name) for place, gas in enumerate(GASES) for name in gas.orderings]


def page(launches: int) -> str:
    """A page of Nsight Compute with as many launches; counter k of launch i is 1000 i + k."""
    units = {"time_us": "ns", "dram_read": "byte", "dram_written": "byte"}
    lines = [
        ["ID", "Kernel Name", *COUNTERS.values()],
        ["", "", *(units.get(name, "sector") for name in COUNTERS)],
        *([str(i), "force", *(f"{1000 * i + k:,}" for k in range(len(COUNTERS)))] for i in range(launches)),
    ]
    return "==PROF== Connected\n" + "\n".join(",".join(f'"{word}"' for word in line) for line in lines)


@pytest.fixture
def profiler(monkeypatch):
    """A profiler that has seen `launches`; it notes how it was called."""
    seen = SimpleNamespace(launches=len(CASES))

    def run_under(program, flags, job):
        seen.program, seen.flags, seen.job = program, flags, job
        return subprocess.CompletedProcess([], 0, page(seen.launches))

    monkeypatch.setattr(measured, "run_under", run_under)
    return seen


def test_each_launch_belongs_to_its_gas_and_order(profiler):
    rows = list(counted(GASES, SEED))
    assert [(row["place"], row["ordering"]) for row in rows] == CASES
    assert [row["l1_loads"] for row in rows] == [1000 * i + 1 for i in range(len(CASES))]
    assert rows[2]["time_us"] == pytest.approx(2000 / 1000)
    assert set(COUNTERS) <= set(rows[0])
    assert profiler.program == "ncu"
    flags = profiler.flags
    assert flags[flags.index("--metrics") + 1].split(",") == [*COUNTERS.values()]
    assert profiler.job.seed == SEED


@pytest.mark.parametrize("launches", [len(CASES) - 1, len(CASES) + 1])
def test_other_numbers_of_launches_are_refused(profiler, launches):
    profiler.launches = launches
    message = rf"ncu profiled {launches} force kernels; allowed: {len(CASES)}"
    with pytest.raises(CannotCountError, match=message):
        list(counted(GASES, SEED))


@pytest.mark.parametrize("kernel", PROPERTIES["kernel"])
def test_the_kernels_that_compute_forces_are_counted_by_name_and_no_others(profiler, kernel):
    gases = [gas_of(kernel)] if kernel in KINDS else GASES
    profiler.launches = sum(len(gas.orderings) for gas in gases)
    list(counted(gases, SEED))
    pattern = profiler.flags[profiler.flags.index("--kernel-name") + 1].removeprefix("regex:")
    if kernel in KINDS:
        (_, one), *_ = measured.index_kernels(gas_of(kernel), SEED)
        name = one.name
    else:
        name = next(foreseen_systems.simulations(gas_of(kernel), "cpu", SEED))[1].search._kernel
    assert re.search(pattern, name)
    for other in ("link", "force_rows", "scatter_forces", "keep", "sort", "gather_rows", "my_force"):
        assert not re.search(pattern, other)


def test_lists_launch_one_force_kernel_in_a_step(monkeypatch):
    """As on a device with many particles: in some steps by the kernel that prunes the lists."""
    for name in ("STEP_LAUNCH", "BUILD_LAUNCHES", "PRUNING_LAUNCHES"):
        monkeypatch.setattr(StepCosts, name, 0.0)
    device, names = DeviceOfLists(), set()
    one = next(foreseen_systems.simulations(gas_of("verlet"), "cpu", SEED))[1]
    run = md.Simulation(
        one.state,
        one.law,
        search=one.config.search,
        dt=one.dt,
        backend=device,
        fused=True,
        precision="float64",
    )
    run.run(TAKEN)
    for _ in range(10):
        device.launches.clear()
        run.run(1)
        ((name, times),) = device.launches.items()
        assert times == 1
        names.add(name.split(".")[1])
    assert names == {"force", "force_and_prune"} <= set(FORCE)


def test_the_program_takes_a_profiled_step_of_each_case(monkeypatch):
    work, profiled = [], []

    @contextmanager
    def noted(_):
        work.clear()
        yield
        profiled.append(tuple(work))

    run, launch = md.Simulation.run, IndexKernel.launch

    def step(one, steps, **more):
        work.append((one.config.search.name, one.step, steps))
        return run(one, steps, **more)

    def launched(one):
        work.append((one.name, one.launches))
        launch(one)

    monkeypatch.setattr(Cpu, "profiled", noted)
    monkeypatch.setattr(md.Simulation, "run", step)
    monkeypatch.setattr(IndexKernel, "launch", launched)
    job = Job([[*gas] for gas in GASES], SEED)
    monkeypatch.setattr(sys, "argv", ["program", json.dumps(job._asdict())])
    measured.main()
    searches = [("linked", TAKEN, 1)] * 3, [("spmv", 1)] * 3, [("verlet", TAKEN, 1)] * 2
    assert profiled == [(one,) for part in searches for one in part]
