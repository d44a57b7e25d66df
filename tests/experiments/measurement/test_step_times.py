"""Times of steps and of their phases."""

from contextlib import contextmanager
from types import SimpleNamespace

import md
from experiments.measurement import step_times
from experiments.measurement.step_times import benchmark_simulation, entry_of, phases_of


def test_phases_are_timed_with_the_host_some_steps_ahead(monkeypatch):
    gas = md.State([[1.0, 1, 1], [5, 5, 5]], [[0.1, 0, 0], [0, 0, 0]], md.Box((8.0, 8, 8)))
    simulation = md.Simulation(gas, md.laws.SpringDashpot(0.0, 0.0), dt=1e-3, backend="cpu")
    held, taken = [], []

    @contextmanager
    def delay_device(seconds):
        held.append(seconds)
        yield
        held.append(None)

    def run(steps):
        taken.append((steps, len(held)))
        md.Simulation.run(simulation, steps)

    monkeypatch.setattr(simulation.backend, "delay_device", delay_device)
    monkeypatch.setattr(simulation, "run", run)
    simulation.run(4)
    times = phases_of(simulation, 60)
    assert taken == [(4, 0), (25, 1), (25, 1), (10, 1)]
    assert held[0] > 0
    assert held[1:] == [None]
    assert {len(ms) for ms in times.values()} == {60}
    assert set(times) == {"build", "force", "integrate"}


def test_phases_are_means_of_a_step_and_their_sum_is_a_part_of_the_whole(monkeypatch):
    gas = md.State([[1.0, 1, 1], [5, 5, 5]], [[0.1, 0, 0], [0, 0, 0]], md.Box((8.0, 8, 8)))
    simulation = md.Simulation(gas, md.laws.SpringDashpot(0.0, 0.0), dt=1e-3, backend="cpu")
    times = {"build": [1.0, 3.0], "force": [2.0, 2.0]}
    monkeypatch.setattr(step_times, "phases_of", lambda *_: times)
    found = step_times.phase_columns(simulation, 2, 16.0)
    assert found == {"build_ms": 2.0, "force_ms": 2.0, "phases_over_step": 0.5}


def test_a_simulation_is_a_case_with_its_working_set_and_its_temperature_at_both_ends():
    gas = md.State([[1.0, 1, 1], [2, 1, 1]], [[3.0, 0, 0], [0, 0, 0]], md.Box((8.0, 8, 8)))
    law = md.laws.SpringDashpot(stiffness=1e4, damping=50.0)
    simulation = md.Simulation(gas, law, dt=1e-3, backend="cpu", precision="float32")
    entry = entry_of(simulation, {"name": "hit"}, list, lambda: {"builds": 2})
    assert list(entry.columns) == ["name", "temperature_start", "working_set_MB", "cache_MB"]
    assert entry.columns["temperature_start"] == 1.5
    assert entry.columns["working_set_MB"] == 2 * 9 * 4 / 1e6
    simulation.run(20)
    end = md.observe.temperature(simulation.state)
    assert entry.at_end() == {"temperature_end": end, "steps_per_build": 1, "builds": 2}
    assert end < 1.4


def test_a_case_with_lists_tells_their_widths_and_how_long_they_last():
    gas = md.scenes.benchmark_gas(200, 0.1, backend="cpu")
    case = SimpleNamespace(backend="cpu", precision="float64")
    simulation = benchmark_simulation(gas, case, md.search.Verlet("row", 0.5, 0.2), fused=True)
    simulation.run(30, phases=False)
    entry, built = entry_of(simulation, {}, list), simulation.builds
    simulation.run(100, phases=False)
    found = entry.at_end()
    assert (found["skin_d"], found["inner_skin_d"]) == (0.5, 0.2)
    assert found["steps_per_build"] == 100 / (simulation.builds - built) > 5


def test_simulations_of_a_case_may_share_a_backend_that_counts_all_their_graphs():
    gas = md.scenes.benchmark_gas(100, 0.1, backend="cpu")
    case, place = SimpleNamespace(backend="cpu", precision="float32"), md.backend.get("cpu")
    ones = [benchmark_simulation(gas, case, "linked", backend=place, fused=True) for _ in range(2)]
    assert all(one.backend is place for one in ones)
    assert all((one.dt, one.config.precision) == (md.scenes.BENCHMARK_DT, "float32") for one in ones)
    assert benchmark_simulation(gas, case, "linked").backend is not place
