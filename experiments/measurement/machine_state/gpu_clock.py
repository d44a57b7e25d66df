"""Read a GPU's clock, power, temperature and throttle reasons from nvidia-smi while samples are taken."""

from __future__ import annotations

import operator
import subprocess
import threading
import time
from collections import deque
from contextlib import ExitStack
from functools import reduce
from typing import Any, NamedTuple

from experiments.processes.lifetime import program
from sfc import checks

EVERY_MS = 50  # between two readings
WANTED = "clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active"
_OLDER = WANTED.replace("event", "throttle")  # the name in drivers before 535
_KEPT = 20_000  # readings: a quarter of an hour
# Bits that hold a clock down. NVIDIA, NVML API reference, nvmlClocksEventReasons.
REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "thermal", 0x40: "hardware thermal"}
REASONS |= {0x80: "power brake"}


class Clock(NamedTuple):
    """Summary of the readings in an interval of time.

    Attributes:
        clock_MHz: lowest clock of the multiprocessors.
        power_W: highest power drawn.
        chip_celsius: highest temperature of the chip.
        throttle: reasons that held the clock down, "none" if there were none.
    """

    clock_MHz: float | None  # noqa: N815 - the unit
    power_W: float | None  # noqa: N815
    chip_celsius: float | None
    throttle: str | None


class Reading(NamedTuple):
    """One line of nvidia-smi.

    Attributes:
        at: `time.perf_counter` when it was read.
        clock_MHz: of the multiprocessors.
        power_W: drawn.
        chip_celsius: temperature of the chip.
        reasons: bits.
    """

    at: float
    clock_MHz: float  # noqa: N815
    power_W: float  # noqa: N815
    chip_celsius: float
    reasons: int


class GpuClock:
    """Context in which a thread reads a GPU's clock.

    Args:
        bus: PCI bus id of the device.

    Raises:
        TypeError: a bus that is no str.
        ValueError: an empty one.
    """

    def __init__(self, bus: str):
        checks.text("bus", bus, "such as 0000:01:00.0")
        self._bus = bus
        self._process: Any = None  # a subprocess.Popen while it is open
        self._readings: deque[Reading] = deque(maxlen=_KEPT)

    def __enter__(self) -> GpuClock:
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "encoding": "ascii"}
        for wanted in (WANTED, _OLDER):
            command = ["nvidia-smi", f"--id={self._bus}", f"--query-gpu={wanted}", f"-lms={EVERY_MS}"]
            command += ["--format=csv,noheader,nounits"]
            with ExitStack() as opened:
                try:
                    process: Any = opened.enter_context(program(command, **pipes, bufsize=1))
                except OSError:
                    return self
                if (reading := read_line(process.stdout.readline())) is not None:
                    self._readings.append(reading)
                    self._process, self._reader = process, threading.Thread(target=self._read, daemon=True)
                    self._reader.start()
                    self._opened = opened.pop_all()
                    return self
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._reader.join()
            self._opened.close()
            self._process = None

    def _read(self) -> None:
        for line in self._process.stdout:
            if (reading := read_line(line)) is not None:
                self._readings.append(reading)

    def between(self, begin: float, end: float) -> Clock:
        """Return the readings between two times, or the nearest reading if there is none between them.

        Args:
            begin: start of the interval, of `time.perf_counter`.
            end: end of the interval.

        Returns:
            The summary, with None for values that are unknown.

        Raises:
            TypeError: a time that is no number.
            ValueError: a time that is not finite.
        """
        begin, end = checks.number("begin", begin, unit="s"), checks.number("end", end, unit="s")
        near = 2e-3 * EVERY_MS
        inside = self._read_between(begin, end)
        if inside or self._process is None:
            return summed(inside)
        if not self._readings or self._readings[-1].at < end:
            time.sleep(near)  # the reading of a short sample arrives after the sample
        around = self._read_between(begin - near, end + near)
        return summed(sorted(around, key=lambda reading: max(begin - reading.at, reading.at - end))[:1])

    def _read_between(self, begin: float, end: float) -> list[Reading]:
        return [reading for reading in list(self._readings) if begin <= reading.at <= end]


def read_line(line: str) -> Reading | None:
    """Parse a line of nvidia-smi; None if it has no clock.

    Args:
        line: as "1980, 412.33, 45, 0x0000000000000004".

    Raises:
        TypeError: no str.
    """
    checks.instance("line", line, str, "a line of nvidia-smi")
    try:
        clock, power, celsius, reasons = line.split(",")
        return Reading(time.perf_counter(), float(clock), float(power), float(celsius), int(reasons, 16))
    except ValueError:
        return None


def summed(readings: list[Reading]) -> Clock:
    """Reduce readings to the lowest clock, the highest power and temperature, and all throttle reasons."""
    if not readings:
        return Clock(None, None, None, None)
    _, clocks, powers, temperatures, reasons = zip(*readings, strict=True)
    bits = reduce(operator.or_, reasons)
    held = ", ".join(name for bit, name in REASONS.items() if bits & bit)
    return Clock(min(clocks), max(powers), max(temperatures), held or "none")
