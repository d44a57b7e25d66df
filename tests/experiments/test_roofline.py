"""experiments.roofline: kernels beside their floors, phases where nothing can be counted."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import md
from experiments import roofline
from experiments.drawing.charts import draw
from experiments.measurement import memory_bandwidth
from experiments.measurement.correctness import WrongResultError
from experiments.measurement.hardware_counters import CannotCountError
from experiments.measurement.profiler_target import Cycle
from experiments.processes.separate_run import all_rows
from experiments.results import limits
from tests.experiments.runs import one, run

# Invented: name -> launches, time of one in us, share of it that memory and that issue takes
KERNELS = {
    "force": (15, 300.0, 0.8, 0.3),
    "build_lists": (1, 900.0, 0.2, 0.75),
    "gather": (1, 200.0, 0.75, 0.1),
    "sort_bins": (1, 60.0, 0.3, 0.2),
    "cell_keys": (1, 50.0, 0.6, 0.1),
    "place": (1, 40.0, 0.5, 0.1),
    "count": (1, 35.0, 0.5, 0.1),
    "scan": (1, 20.0, 0.2, 0.1),
}
REASONS = (
    "long_scoreboard",
    "wait",
    "not_selected",
    "lg_throttle",
    "barrier",
    "branch_resolving",
    "selected",
)
GAS = md.scenes.benchmark_gas(64, 0.2)
BANDWIDTH, MULTIPROCESSORS = 3000.0, 132


def counters(kernel: str, factor: float = 1.0) -> dict:
    """Invented counters of a kernel, as `by_kernel` returns them."""
    launches, time, memory, issue = KERNELS[kernel]
    time *= factor
    cycles = 1500 * time
    waits = {f"stall_{name}": factor * 4 / (place + 1) for place, name in enumerate(REASONS)}
    return {
        "kernel": kernel, "launches": launches, "cycle_us": launches * time, "step_us": launches * time / 15,
        "share": 0.1, "time_us": time, "cycles": cycles,
        "dram_read": memory * time * BANDWIDTH * 1e3 / 2, "dram_written": memory * time * BANDWIDTH * 1e3 / 2,
        "instructions": issue * cycles * 4 * MULTIPROCESSORS, "occupancy_percent": 60.0, "registers": 32.0,
    } | waits  # fmt: skip


def counted_table(runs: int = 1) -> pd.DataFrame:
    """A table as of a device, with invented numbers."""
    rows = []
    for case, (n, fraction) in enumerate([(2**17, 0.05), (2**17, 0.2), (2**21, 0.05), (2**21, 0.2)]):
        for number in range(runs):
            common = {"case": case, "run": number, "n": n, "filling_fraction": fraction, "search": "verlet"}
            common |= {"precision": "float32", "device": "INVENTED NUMBERS"}
            factor = n / 2**21 * (1 + fraction) * (1 + number)
            step = {"what": "step", "name": "step", "step_us": 420 * factor, "round": 0, "sample_ms": 1.0}
            rows.append(common | step)
            for name in KERNELS:
                row = counters(name, factor)
                ideal = 0.5 * (row["dram_read"] + row["dram_written"])
                device = SimpleNamespace(resident_blocks=MULTIPROCESSORS)
                found = roofline.with_floors(row, ideal, BANDWIDTH, device)
                cycle = {"cycle_steps": 15, "cycle_builds": 1}
                rows.append(common | {"what": "kernel", "name": found.pop("kernel")} | cycle | found)
    return pd.DataFrame(rows)


@pytest.fixture(autouse=True)
def small_copies(monkeypatch):
    monkeypatch.setitem(memory_bandwidth.BYTES, "cpu", 2**20)
    monkeypatch.setattr(memory_bandwidth, "TIMES", 0)
    memory_bandwidth.copy_bandwidth.cache_clear()
    yield
    memory_bandwidth.copy_bandwidth.cache_clear()


def small(**fields) -> roofline.Config:
    given = {"n": (500,), "filling_fraction": (0.2,), "precision": "float64", "rounds": 2, "steps": 5}
    return one(roofline, **(given | {"warm_up": 30} | fields))


def test_floors_of_a_kernel_by_hand():
    row = {"time_us": 100.0, "dram_read": 2e8, "dram_written": 1e8, "instructions": 264e5, "cycles": 1e5}
    found = roofline.with_floors(row | {"stall_wait": 3.0}, 6e7, 3000.0, SimpleNamespace(resident_blocks=132))
    assert found["floor_memory_us"] == pytest.approx(20)
    assert found["dram_us"] == pytest.approx(100)
    assert found["floor_issue_us"] == pytest.approx(50)  # 50,000 of 100,000 cycles
    assert (found["limit"], found["dram_bytes"], found["reason_1"]) == ("memory", 3e8, "wait")
    assert found["clock_of_kernel_MHz"] == pytest.approx(1000)


def test_a_cpu_has_phases_with_the_bytes_that_they_must_move(capsys):
    table = pd.DataFrame(all_rows(roofline.measure(small())))
    assert set(table["what"]) == {"step", "phase"}
    assert table.groupby("name")["round"].apply(list).to_dict() == {
        name: [0, 1] for name in ("step", "build", "force")
    }
    assert "nothing is counted: no Nsight Compute" in capsys.readouterr().err
    phases = table[table["what"] == "phase"]
    assert phases["floor_memory_us"].to_numpy() == pytest.approx(
        (phases["ideal_bytes"] / phases["copy_GB_per_s"] / 1e3).to_numpy()
    )
    force = phases[phases["name"] == "force"].iloc[0]
    rows, lists = 500 * 6 * 8, 500 * 5 * force["listed_per_particle"]
    assert 2 * rows + 500 * 5 < force["ideal_bytes"] < 2 * rows + 1.2 * lists  # most steps read pruned lists
    assert table["steps_per_build"].gt(1).all()
    step = table[table["what"] == "step"].iloc[0]
    assert step["step_us"] == pytest.approx(1e3 * step["sample_ms"] / 5)


def test_a_search_whose_bytes_are_not_known_and_one_that_cannot_be_fused():
    table = pd.DataFrame(all_rows(roofline.measure(small(search=("scattered",), fused=False))))
    assert set(table["name"]) == {"step", "build", "force", "integrate"}
    assert table["ideal_bytes"].isna().all()
    assert table["steps_per_build"].eq(1).all()
    assert list(roofline.measure(small(search=("reflexive",)))) == []


def test_each_kernel_of_a_device_has_its_floors(monkeypatch):
    loaded = []

    def counted(job):
        loaded.append(md.Simulation.load(job.checkpoint))
        return Cycle(15, 1), [counters("force"), counters("scan") | {"kernel": "of another search"}]

    checked, timed = roofline._checked, []
    monkeypatch.setattr(roofline, "_checked", lambda *args: timed.append(checked(*args)) or timed[-1])
    monkeypatch.setattr(roofline, "counted_cycle", counted)
    monkeypatch.setattr(roofline, "counter_for", lambda backend, n: "nsight")
    monkeypatch.setattr(type(md.backend.get("cpu")), "resident_blocks", MULTIPROCESSORS)
    table = pd.DataFrame(all_rows(roofline.measure(small())))
    sim = timed[0]
    assert sim.step > roofline.COMPARED  # after the rounds
    start = loaded[0]
    assert (start.search.name, start.config.fused, start.config.precision) == ("verlet", True, "float64")
    assert np.array_equal(start.state.pos, sim.state.pos)
    assert np.array_equal(start.state.by_id().vel, sim.state.by_id().vel)
    assert start.state.box == sim.state.box
    force, other = (row for _, row in table[table["what"] == "kernel"].iterrows())
    phase = table[(table["what"] == "phase") & (table["name"] == "force")].iloc[0]
    assert force["ideal_bytes"] < phase["ideal_bytes"]  # with steps that prune
    assert force["floor_issue_us"] == pytest.approx(0.3 * 300)
    assert (force["cycle_steps"], force["cycle_builds"], force["launches"]) == (15, 1, 15)
    assert np.isnan(other["ideal_bytes"])
    assert np.isnan(other["floor_memory_us"])
    assert np.isnan(force["round"])


def test_a_counter_that_was_asked_for_and_fails_ends_the_run(monkeypatch, capsys):
    def fails(job):
        raise CannotCountError("no permission")

    monkeypatch.setattr(roofline, "counted_cycle", fails)
    case = SimpleNamespace(**vars(small()) | {"counter": "nsight"})  # of a device
    with pytest.raises(ValueError, match="--counter nsight: no permission; allowed: none, or a device"):
        list(roofline._counted(case, GAS, md.backend.get("cpu"), {}, {}))
    monkeypatch.setattr(roofline, "counter_for", lambda backend, n: "nsight")
    assert list(roofline._counted(small(), GAS, md.backend.get("cpu"), {}, {})) == []
    assert list(roofline._counted(small(counter="none"), GAS, md.backend.get("cpu"), {}, {})) == []
    assert capsys.readouterr().err.splitlines() == [
        "nothing is counted: no permission",
        "nothing is counted: --counter none",
    ]


def with_wrong_law(monkeypatch, search: str, change):
    """Make the simulations of a search with another law or step, after the warm-up."""
    right = roofline.benchmark_simulation

    def wrong(state, case, name, **options):
        if name != search or "allow_overlap" not in options:
            return right(state, case, name, **options)
        same = {"law": md.scenes.BENCHMARK_LAW, "dt": md.scenes.BENCHMARK_DT, "backend": "cpu"}
        return md.Simulation(state, search=name, precision=case.precision, **(same | options | change))

    monkeypatch.setattr(roofline, "benchmark_simulation", wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": md.laws.SpringDashpot(stiffness=1.02e4, damping=5.0)}, "the forces in float64 differ"),
        (
            {"dt": 1.01 * md.scenes.BENCHMARK_DT},
            "positions of verlet after 10 steps differ from those of coherent",
        ),
    ],
)
def test_a_search_with_wrong_forces_or_steps_is_not_timed(monkeypatch, change, message):
    with_wrong_law(monkeypatch, "verlet", change)
    with pytest.raises(WrongResultError, match=message):
        next(iter(roofline.measure(small(filling_fraction=(0.4,), warm_up=60))))


def test_the_summary_has_medians_over_runs_and_what_limits_them():
    found = roofline.summary(counted_table(runs=3))
    one_case = found[(found["n"] == 2**21) & (found["filling_fraction"] == 0.05)].set_index("name")
    assert list(one_case.index[:2]) == ["step", "force"]
    assert one_case.loc["force", "time_us"] == pytest.approx(300 * 1.05 * 2)
    assert one_case.loc["force", "step_us"] == pytest.approx(300 * 1.05 * 2)
    assert one_case.loc["build_lists", "step_us"] == pytest.approx(900 * 1.05 * 2 / 15)
    expected = {"force": "memory", "build_lists": "issue", "gather": "memory", "scan": "latency"}
    assert {name: one_case.loc[name, "limit"] for name in expected} == expected
    assert one_case.loc["scan", "reason_1"] == "long_scoreboard"
    assert pd.isna(one_case.loc["step", "limit"])


def rows_of(panel) -> list[str]:
    return [label.get_text() for label in panel.get_yticklabels()]


def test_floors_are_drawn_where_they_belong(drawn):
    found = drawn(roofline.VIEWS, counted_table())
    assert set(found) == {f"{stem}_{n}" for stem in ("floors", "limits", "waits") for n in (131072, 2097152)}
    figure = found["floors_2097152"]
    title = figure.get_suptitle()
    assert title.startswith(
        "At 20 % filled force takes the longest, 360 us of a step\nINVENTED NUMBERS; 2,097,152"
    )
    assert (
        "; step 441 and 504 us, sum of its parts 406 and 464 us\na kernel is limited by what takes 70%"
        in title
    )
    panel = figure.axes[0]
    assert rows_of(panel) == ["force", "build_lists", "gather", "5 others"]
    bars = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in panel.patches}
    assert bars[0] == pytest.approx(300 * 1.05)
    assert bars[1] == pytest.approx(900 * 1.05 / 15)
    assert bars[3] == pytest.approx((60 + 50 + 40 + 35 + 20) * 1.05 / 15)
    assert {bars.get_label() for bars in panel.containers} == {
        "time, limited by memory", "time, limited by issue", "time",
    }  # fmt: skip
    marks = {line.get_label(): line.get_xdata() for line in panel.lines}
    assert marks["floor: its instructions"][1] == pytest.approx(0.75 * bars[1])
    assert marks["bytes it moved to and from memory"][0] == pytest.approx(0.8 * bars[0])
    assert marks["floor: bytes it must move"][0] == pytest.approx(0.4 * bars[0])


def test_shares_of_a_kernels_time_its_occupancy_and_its_time_are_dots(drawn):
    panels = drawn(roofline.VIEWS, counted_table())["limits_2097152"].axes
    shares, times = panels[0], panels[2]
    assert set(rows_of(shares)) == set(KERNELS)
    dots = {one.get_label(): one[0].get_xdata() for one in shares.containers}
    names = [name for name in rows_of(shares) if name in KERNELS]
    assert dots["bytes it moved to and from memory"] == pytest.approx([100 * KERNELS[n][2] for n in names])
    assert dots["floor: its instructions"] == pytest.approx([100 * KERNELS[n][3] for n in names])
    assert dots["occupancy"] == pytest.approx([60] * len(names))
    assert 100 * limits.SHARE in [line.get_xdata()[0] for line in shares.lines]
    (time,) = times.containers
    assert time[0].get_xdata()[:2] == pytest.approx([315, 63])


def test_waits_are_bars_without_the_instructions_that_are_issued(drawn):
    waits = drawn(roofline.VIEWS, counted_table())["waits_2097152"].axes[0]
    ends = [bar.get_x() + bar.get_width() for bar in waits.patches if round(bar.get_y()) == 0]
    assert max(ends) == pytest.approx(1.05 * sum(4 / (place + 1) for place in range(6)))  # without `selected`


def test_a_run_is_drawn_from_its_table_alone(tmp_path):
    flags = ["--quick", "--n", "500", "--precision", "float64", "--rounds", "1", "--filling-fraction", "0.2"]
    folder = run(roofline, tmp_path, *flags)
    assert {"floors.png", "summary.csv"} <= {path.name for path in folder.iterdir()}
    assert not list(folder.glob("waits*"))
    again = tmp_path / "again"
    again.mkdir()
    draw(roofline.VIEWS, pd.read_parquet(folder / "table.parquet"), again)
    assert (again / "summary.csv").read_text() == (folder / "summary.csv").read_text()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"counter": "perf"}, "unknown counter 'perf'; allowed: one of nsight, none, auto"),
        ({"counter": "nsight", "backend": "cpu"}, "--counter nsight beside --backend cpu; allowed: cuda"),
        ({"search": ("naive",)}, "unknown search 'naive'"),
        ({"filling_fraction": (0.6,)}, "--filling-fraction = 0.6"),
        ({"n": (10,)}, "--n = 10; allowed: an integer of at least 100"),
        ({"warm_up": 0}, "--warm-up = 0"),
    ],
)
def test_what_cannot_be_run_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        roofline.Config(**fields)
