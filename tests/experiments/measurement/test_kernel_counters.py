"""Counters of every kernel: Nsight Compute's page is read in its units and reduced to a row a kernel."""

import math
import subprocess

import pytest

from experiments.measurement import kernel_counters
from experiments.measurement.hardware_counters import CannotCountError
from experiments.measurement.kernel_counters import by_kernel, counted_cycle, launches_of, read_cycle
from experiments.measurement.profiler_target import Cycle, CycleJob

JOB = CycleJob("start.npz")

# Invented numbers in the format of `ncu --csv --page raw`: names, units, a line a launch, other lines around.
NAMES = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC", "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum",
    "launch__registers_per_thread", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    "sm__cycles_elapsed.max", "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
]  # fmt: skip
UNITS = [""] * 11 + ["byte", "byte", "ns", "register/thread", "sector", "sector", "cycle", "%"]
UNITS += ["inst", "inst", "inst", "inst", "%"]


def line(number: int, kernel: str, *values: str) -> list[str]:
    place = [str(number), "77", "python3.11", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(8, 1, 1)", "0"]
    return [*place, "9.0", *values]


LAUNCHES = [
    line(0, "cell_keys", "1,500", "512", "2,000", "16", "100", "10", "3,000", "80", "5", "1", "1",
         "640", "20"),
    line(1, "force", "1,024,000", "2,048", "10,000", "32", "2,000", "40", "15,000", "60", "8", "1", "2",
         "24,000", "40"),
    line(2, "motion", "1", "1", "1,000,000", "32", "1", "1", "9", "50", "1", "1", "1", "1", "1"),
    line(3, "force", "3,072,000", "2,048", "30,000", "32", "2,000", "40", "45,000", "n/a", "9", "1", "2",
         "24,000", "50"),
    line(4, "force(int, float *)", "2,048,000", "2,048", "20,000", "32", "2,000", "40", "30,000", "70", "7",
         "1", "2", "24,000", "45"),
]  # fmt: skip


def page(names=NAMES, units=UNITS, launches=LAUNCHES) -> str:
    quoted = "\n".join(",".join(f'"{value}"' for value in row) for row in (names, units, *launches))
    around = '==PROF== Connected to process 77\n{"steps": 3, "builds": 1}\n==PROF== Disconnected\n'
    return around + quoted + "\n"


def without(name: str) -> str:
    place = NAMES.index(name)
    return page(*(row[:place] + row[place + 1 :] for row in (NAMES, UNITS)),
                [row[:place] + row[place + 1 :] for row in LAUNCHES])  # fmt: skip


def rows_of(text: str) -> list[dict]:
    return launches_of(text).to_dict("records")


def test_each_launch_is_read_in_its_units():
    first, second, *_, last = rows_of(page())
    assert [one["kernel"] for one in rows_of(page())] == [
        "cell_keys",
        "force",
        "motion",
        "force",
        "force",
    ]
    assert (first["time_us"], first["dram_read"], first["dram_written"]) == (2, 1500, 512)
    assert (second["instructions"], second["cycles"], second["registers"]) == (24000, 15000, 32)
    assert (second["l2_read"], second["l2_written"]) == (64000, 1280)  # sectors of 32 bytes
    assert second["occupancy_percent"] == 60
    assert {name: last[name] for name in last if name.startswith("stall_")} == {
        "stall_long_scoreboard": 7,
        "stall_selected": 1,
        "stall_wait": 2,
    }


def test_a_counter_that_a_chip_may_lack_is_not_a_number_and_one_that_is_needed_is_named():
    launch = rows_of(without("launch__registers_per_thread"))[1]
    assert math.isnan(launch["registers"])
    assert math.isnan(launch["lanes"])  # not on the page
    assert launch["occupancy_percent"] == 60
    fewer = rows_of(without(NAMES[19]))[1]
    assert "stall_long_scoreboard" not in fewer
    assert fewer["stall_wait"] == 2
    with pytest.raises(CannotCountError, match=r"ncu printed no dram__bytes_read\.sum: "):
        rows_of(without("dram__bytes_read.sum"))
    with pytest.raises(CannotCountError, match=r"ncu printed no .*dram.*'==ERROR== no permission'"):
        rows_of("==ERROR== no permission")
    with pytest.raises(CannotCountError, match="ncu printed no "):
        rows_of(page().splitlines()[3])  # names alone
    with pytest.raises(CannotCountError, match=r"gpu__time_duration\.sum in 'fortnight', a unit that is not"):
        rows_of(page(units=["fortnight" if unit == "ns" else unit for unit in UNITS]))
    broken = [[*row[:13], "n/a", *row[14:]] for row in LAUNCHES]
    with pytest.raises(CannotCountError, match=r"counted no gpu__time_duration\.sum of cell_keys: 'n/a'"):
        rows_of(page(launches=broken))


def test_launches_of_a_kernel_are_one_row_and_polls_are_left_out():
    force, keys = by_kernel(launches_of(page()), Cycle(steps=3, builds=1))
    assert (force["kernel"], force["launches"], force["cycle_us"], force["step_us"]) == ("force", 3, 60, 20)
    assert (force["time_us"], force["dram_read"]) == (20, 2048e3)  # medians
    assert force["occupancy_percent"] == 65  # of those that were counted
    assert (keys["kernel"], keys["launches"], keys["step_us"]) == ("cell_keys", 1, pytest.approx(2 / 3))
    assert (force["share"], keys["share"]) == (pytest.approx(60 / 62), pytest.approx(2 / 62))
    with pytest.raises(CannotCountError, match="profiled 0 launches of 3 steps"):
        by_kernel(launches_of(page(launches=LAUNCHES[2:3])), Cycle(3, 1))


def test_the_cycle_is_that_which_the_program_printed():
    assert read_cycle(page()) == Cycle(3, 1)
    for text in ("", "{1", '{"steps": 3}'):
        with pytest.raises(CannotCountError, match="the program printed no cycle"):
            read_cycle(text)


def test_counters_that_are_refused_are_left_out_and_not_tried_again(monkeypatch, capsys):
    asked = []

    def profiler(program, flags, job):
        assert (program, job) == ("ncu", JOB)
        asked.append(flags[-1].split(","))
        if any("issue_stalled" in metric for metric in asked[-1]):
            raise CannotCountError("ncu ended with 1: no such metric")
        return subprocess.CompletedProcess([], 0, page())

    monkeypatch.setattr(kernel_counters, "run_under", profiler)
    monkeypatch.setattr(kernel_counters, "_REFUSED", set())
    cycle, kernels = counted_cycle(JOB)
    assert (cycle, [row["kernel"] for row in kernels]) == (Cycle(3, 1), ["force", "cell_keys"])
    assert len(asked) == 2
    assert set(asked[0]) > set(asked[1])
    assert "gpu__time_duration.sum" in asked[1]
    assert "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio" in asked[0]
    assert "no such metric" in capsys.readouterr().err
    counted_cycle(JOB)
    assert len(asked) == 3


def test_a_profiler_that_fails_with_every_set_of_counters_is_an_error(monkeypatch):
    def profiler(*_):
        raise CannotCountError("no permission")

    monkeypatch.setattr(kernel_counters, "run_under", profiler)
    monkeypatch.setattr(kernel_counters, "_REFUSED", refused := set())
    with pytest.raises(CannotCountError, match="no permission"):
        counted_cycle(JOB)
    assert not refused  # the next case tries all of them
