"""What nvidia-smi tells of a GPU while samples are taken; a program of that name stands for it."""

import os
import time

import pandas as pd
import pytest

from experiments.measurement.machine_state.gpu_clock import GpuClock, Reading, read_line, summed
from experiments.results import reliability

LINE = "1980, 412.33, 45, 0x0000000000000004"


def test_a_line_is_read():
    reading = read_line(LINE)
    assert reading[1:] == (1980.0, 412.33, 45.0, 4)


@pytest.mark.parametrize(
    "line",
    ["", "clocks.sm", "[N/A], 1, 45, 0x0", "1980, 3", "1980, 412.33, 0x0", "Field is not a valid field"],
)
def test_what_is_no_reading_is_none(line):
    assert read_line(line) is None


@pytest.mark.quick
def test_arguments_of_a_wrong_class_are_refused():
    with pytest.raises(TypeError, match="line = b'1, 2, 0x0' of class bytes; allowed: a line of nvidia-smi"):
        read_line(b"1, 2, 0x0")
    with pytest.raises(TypeError, match="bus = None of class NoneType; allowed: a str; such as 0000:01:00"):
        GpuClock(None)
    with pytest.raises(TypeError, match="begin = '1' of class str; allowed: a finite number"):
        GpuClock("0").between("1", 2)


def test_readings_of_a_stretch_are_summed():
    readings = [read_line(line) for line in ("1980, 400, 61, 0x0", "1500, 700, 60, 0x24")]
    assert summed(readings) == (1500.0, 700.0, 61.0, "power cap, thermal")
    assert summed(readings[:1]).throttle == "none"
    assert summed([]) == (None, None, None, None)


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts a script in the place of nvidia-smi."""

    def put(script):
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return put


def test_the_clock_is_read_while_it_is_open(nvidia_smi):
    nvidia_smi(f'while :; do echo "{LINE}"; sleep 0.01; done')
    begin = time.perf_counter()
    with GpuClock("0000:00:00.0") as clock:
        time.sleep(0.05)
        found = clock.between(begin, time.perf_counter())
        process = clock._process
    assert found == (1980.0, 412.33, 45.0, "power cap")
    assert process.poll() is not None


def test_an_older_driver_knows_the_reasons_by_another_name(nvidia_smi):
    nvidia_smi(
        f'case "$*" in *throttle*) while :; do echo "{LINE}"; sleep 0.01; done;; *) echo no such field;; esac'
    )
    with GpuClock("0") as clock:
        assert clock.between(time.perf_counter(), time.perf_counter()).clock_MHz == 1980


@pytest.mark.parametrize(
    ("begin", "end", "clock"),
    [
        (10.0, 10.2, 1200),  # readings within, those beside do not count
        (10.06, 10.08, 1200),  # none within: the nearest
        (10.01, 10.03, 1980),
        (10.16, 10.17, 345),
        (20.0, 20.1, None),  # none near
    ],
)
def test_readings_of_a_sample_come_before_those_beside_it(monkeypatch, begin, end, clock):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    opened = GpuClock("0")
    opened._process = opened  # as if it was running
    for at, of in ((9.99, 600), (10.0, 1980), (10.1, 1200), (10.21, 345)):
        opened._readings.append(Reading(at, of, 100.0, 45.0, 0))
    assert opened.between(begin, end).clock_MHz == clock


@pytest.mark.parametrize("script", ["exit 1", "echo '[N/A], [N/A], [N/A], [N/A]'"])
def test_where_nothing_is_told_columns_are_empty(nvidia_smi, script):
    nvidia_smi(script)
    with GpuClock("0") as clock:
        assert clock.between(0, time.perf_counter()) == (None, None, None, None)


def test_without_the_program_columns_are_empty(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with GpuClock("0") as clock:
        assert clock.between(0, 1) == (None, None, None, None)


@pytest.mark.parametrize(
    ("clocks", "warned"),
    [
        ([1980, 1980, 1980], False),
        ([1980, 1890, 1980], False),
        ([1980, 1860, 1980], True),
        ([None, None], False),
    ],
)
def test_a_clock_that_fell_by_more_than_5_percent_is_warned_of(clocks, warned):
    rows = pd.DataFrame({"clock_MHz": clocks, "time_ms": 1.0, "round": 0})
    assert (reliability.CLOCK in reliability.warned(rows)["warning"].iloc[0]) is warned
