"""Rates of a machine's memory: what is measured where, the file of a machine, the answer, the figures."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments import machine
from experiments.core.settings import UsageError
from experiments.machine import (
    PUBLISHED,
    SIZES,
    Config,
    answer,
    machine_of,
    processor_of,
    text_of,
    write_machine,
)
from sfc.cache import Machine
from sfc.cache.core import Processor
from sfc.cache.machine import FOLDER, KNOWN
from tests.experiments.runs import one

L2 = 2**25  # bytes of the second cache
DEVICE = {
    "what": "device", "clock": 1.5, "threads": 2048, "registers": 65536, "shared_bytes": 2**17,
    "l1_bytes": 2**18, "multiprocessors": 100, **PUBLISHED["9.0"],
}  # fmt: skip


def table_of(sizes=(2**20, 2**22, 2**23, 2**25, 2**28, 2**29), *, device=True) -> pd.DataFrame:
    """Rates of 100, 90, 80 ... and loads of 200, 210, 220 ... ns, a copy of 2000.5 GB/s."""
    rows = [
        {"what": "random sectors", "bytes": size, "sectors_G_per_s": 100.0 - 10 * k}
        for k, size in enumerate(sizes)
    ]
    rows += [{"what": "chain", "bytes": size, "load_ns": 200.0 + 10 * k} for k, size in enumerate(sizes)]
    rows += [{"what": "copy", "GB_per_s": 2000.5}, *([DEVICE] if device else [])]
    return pd.DataFrame([{"repeat": 0, "device": "Chip 1", "l2_bytes": L2, **row} for row in rows])


def test_a_machine_has_the_numbers_of_its_table():
    found = machine_of(table_of())
    assert found is not None
    assert found.name == "Chip 1"
    assert found.l2_rate == 90  # the median of 1, 4 and 8 MiB
    assert found.memory_rate == 2000.5
    assert found.random_rate == 50  # of the largest size
    assert found.l2_latency == 200  # of the smallest size
    assert found.memory_latency == 245  # of 8 times the second cache and more
    assert (found.l2_bytes, found.l2_halves, found.granule) == (L2, 2, 64)
    assert (found.clock, found.multiprocessors, found.l1_bytes) == (1.5, 100, 2**18)
    assert type(found.l1_ways) is int


@pytest.mark.parametrize("table", [
    table_of(device=False),
    table_of((2**20, 2**27)),  # none that is far beyond the second cache
    table_of((2**24, 2**29)),  # none within a quarter of it
])  # fmt: skip
def test_there_is_no_machine_of_a_cpu_or_of_few_sizes(table, tmp_path):
    assert machine_of(table) is None
    write_machine(table, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_file_of_a_machine_is_read_again(tmp_path):
    write_machine(table_of(), tmp_path)
    found, made = Machine.read(tmp_path / "machine.toml"), machine_of(table_of())
    assert made is not None
    assert found == replace(made, memory_rate=2000)  # four digits
    text = (tmp_path / "machine.toml").read_text()
    for source in machine.SOURCES:
        assert f"# {source}." in text


@pytest.mark.parametrize("name", KNOWN)
def test_the_files_of_known_chips_are_as_they_are_written(name):
    assert (FOLDER / f"{name}.toml").read_text() == text_of(Machine.read(name))


def test_the_defaults_have_sizes_for_a_machine_of_the_known_chips():
    for name in KNOWN:
        cache = Machine.read(name).l2_bytes
        assert min(SIZES) <= cache / 4
        assert max(SIZES) >= machine.FAR * cache


class Device:
    """A device of which the rates are given."""

    name = "cuda"

    def __init__(self, kind: str):
        self.kind = kind

    def describe(self) -> dict:
        return {
            "device": "Chip 1", "compute_capability": self.kind, "clock_GHz": 1.5, "threads": 2048,
            "registers": 65536, "shared_bytes": 2**17, "multiprocessors": 100, "l2_MiB": L2 / 2**20,
        }  # fmt: skip


@pytest.fixture
def rates(monkeypatch):
    """Rates that are given, of threads and loads that are noted."""
    noted = []
    monkeypatch.setattr(
        machine, "sector_rate", lambda _, size, threads, each: noted.append((threads, each)) or 5.0
    )
    monkeypatch.setattr(machine, "load_time", lambda _, size: size / 2**20)
    monkeypatch.setattr(machine, "copy_bandwidth", lambda _: 16.0)
    return noted


@pytest.mark.parametrize(("kind", "is_known"), [("9.0", True), ("8.0", False)])
def test_a_device_of_a_known_kind_is_a_machine(monkeypatch, rates, kind, is_known):
    monkeypatch.setattr(machine, "md", SimpleNamespace(backend=SimpleNamespace(get=lambda _: Device(kind))))
    monkeypatch.setattr(
        machine, "caches", lambda _: (SimpleNamespace(bytes=2**18), SimpleNamespace(bytes=L2))
    )
    table = pd.DataFrame(list(machine.measure(one(machine, size=(2**20, 2**29), loads=7))))
    assert list(table["what"]) == ["random sectors", "chain"] * 2 + ["copy"] + ["device"] * is_known
    assert rates == [(machine.THREADS, 7)] * 2
    found = machine_of(table)
    assert (found is not None) == is_known
    if found is not None:
        assert (found.l2_rate, found.memory_latency, found.clock) == (5.0, 512.0, 1.5)


CORES = {
    "what": "cores", "line": 64, "l1_bytes": 2**15, "l1_ways": 8, "l2_bytes": 2**20, "l2_ways": 8,
    "l3_bytes": 2**25, "l3_ways": 16,
}  # fmt: skip


def of_cores(last: int = 2**23, sizes=tuple(2**k for k in range(14, 29)), *, known=True) -> pd.DataFrame:
    """Loads of 2, 5, 16 and 144 ns of the caches, of which the last one has so many bytes, and of memory."""
    rows = []
    for size in sizes:
        level = sum(size > most for most in (2**15, 2**20, last))
        rows.append({"what": "chain", "bytes": size, "load_ns": (2.0, 5.0, 16.0, 144.0)[level]})
        times = {"line_ns": (0.5, 0.625, 1.0, 9.0)[level], "sequence_ns": 2.5}
        rows.append({"what": "lines", "bytes": size, **times})
    rows += [CORES] if known else []
    return pd.DataFrame([{"repeat": 0, "device": "CPU 1", "threads": 2, **row} for row in rows])


def test_a_cpu_has_the_numbers_of_its_table():
    found = processor_of(of_cores())
    assert found is not None
    assert (found.name, found.threads, found.line, found.l2_ways) == ("CPU 1", 2, 64, 8)
    assert (found.l1_latency, found.l2_latency, found.l3_latency) == (2.0, 3.0, 14.0)
    assert (found.l2_line, found.memory_latency, found.memory_line) == (0.125, 142.0, 8.5)
    # at 4 MiB, of which the second cache serves a quarter
    assert found.l3_line == pytest.approx((1.0 - 0.25 * 0.625) / 0.75 - 0.5)
    assert found.sequence == 2.5
    assert found.l3_bytes == pytest.approx(2**23.5, rel=1e-3)  # between the sizes of 16 and 144 ns
    assert found.l3_bytes % (64 * 16) == 0


def test_the_last_cache_has_no_more_bytes_than_the_system_names():
    assert processor_of(of_cores(2**26)).l3_bytes == 2**25


@pytest.mark.parametrize("table", [
    table_of(), of_cores(known=False), of_cores(sizes=(2**18, 2**28)), of_cores(sizes=(2**14, 2**26)),
])  # fmt: skip
def test_there_is_no_cpu_of_a_gpu_of_unknown_caches_or_of_few_sizes(table):
    assert processor_of(table) is None


def test_the_file_of_a_cpu_is_read_again(tmp_path):
    write_machine(of_cores(), tmp_path)
    assert Processor.read(tmp_path / "machine.toml") == processor_of(of_cores())


def test_a_cpu_is_measured_on_its_threads(monkeypatch):
    monkeypatch.setattr(machine, "chain_time", lambda size: size / 2**20)
    monkeypatch.setattr(machine, "line_times", lambda size, threads: (size / threads, 1.0))
    monkeypatch.setattr(machine, "thread_count", lambda: 2)
    table = pd.DataFrame(list(machine.measure(one(machine, size=(2**7, 2**20), threads=2))))
    assert list(table["what"])[:3] == ["chain", "chain", "lines"]  # two lines for each thread, or none
    assert table["line_ns"].dropna().tolist() == [2**19]
    assert set(table["threads"]) == {2}


def test_a_system_that_lists_no_caches_is_measured(monkeypatch):
    monkeypatch.setattr(machine, "chain_time", lambda size: 1.0)
    monkeypatch.setattr(machine, "line_times", lambda size, threads: (1.0, 1.0))
    monkeypatch.setattr(machine, "SYSTEM", Path("/nowhere"))
    table = pd.DataFrame(list(machine.measure(one(machine, size=(2**20,)))))
    assert list(table["what"]) == ["chain", "lines"]
    assert processor_of(table) is None


def test_times_that_do_not_grow_make_no_cpu():
    table = of_cores()
    flat = table.assign(load_ns=table["load_ns"].clip(upper=16.0))
    assert processor_of(flat) is None
    lost = table.assign(line_ns=table["line_ns"].where(table["bytes"] != 2**14))
    assert processor_of(lost) is None


def test_times_of_memory_are_the_median_from_an_eighth_of_the_largest_size_on():
    table = of_cores()
    table.loc[(table["what"] == "lines") & (table["bytes"] == 2**28), "line_ns"] = 30.0
    found = processor_of(table)
    assert found.memory_line == 8.5
    table.loc[(table["what"] == "lines") & (table["bytes"] >= 2**26), "line_ns"] = 10.0
    assert processor_of(table).memory_line == 9.5
    table.loc[(table["what"] == "lines") & (table["bytes"] < 2**25), "line_ns"] = 0.75
    assert processor_of(table).memory_line == 10.0 - 0.75


def test_a_small_last_cache_is_found():
    cores = CORES | {"l2_bytes": 2**21, "l3_bytes": 6 * 2**20}
    table = of_cores(5 * 2**20)
    rows = table["bytes"].between(2**20 + 1, 2**21)
    table.loc[rows & (table["what"] == "chain"), "load_ns"] = 5.0
    for name, value in cores.items():
        table.loc[table["what"] == "cores", name] = value
    found = processor_of(table)
    assert found.l3_latency == 14.0
    assert found.l3_line > 0.5  # half of the lines of 4 MiB are in the second cache
    assert 2**22 < found.l3_bytes <= 6 * 2**20


def test_the_first_cache_has_the_least_time_of_its_sizes_and_the_last_one_that_of_the_flattest():
    sizes = (2**13, 2**14, *(int(2 ** (21 + k / 4)) for k in range(29)))
    table = of_cores(2**23, (*sizes[:2], 2**18, *sizes[2:]))
    chain = table["what"] == "chain"
    table.loc[chain & (table["bytes"] == 2**13), "load_ns"] = 2.5  # other work was in the way
    found = processor_of(table)
    assert found.l1_latency == 2.0
    for k, size in enumerate(sizes[2:11]):  # times grow from size to size, but for the sixth
        table.loc[chain & (table["bytes"] == size), "load_ns"] = 16 * 1.05 ** (k - (k >= 5))
    assert processor_of(table).l3_latency == pytest.approx(16 * 1.05**4 - 2)


def test_the_answer_of_a_cpu_names_its_times_and_its_last_cache():
    found = answer(of_cores())
    assert found.sentence == (
        "A load that waits for the one before takes 2.00 ns of 0.02 MB and 144 ns of 268 MB; the last cache "
        "serves 12 MB (CPU 1)."
    )
    assert found.table["a load that waits (ns)"].iloc[0] == "2.00"


def test_the_answer_names_the_rates_of_the_smallest_and_largest_memory():
    found = answer(table_of())
    assert found.sentence == (
        "Chip 1 serves 100 x 10^9 random sectors a second of 1 MB and 50.0 of 537 MB; a copy reads and "
        "writes 2,000 GB/s."
    )
    assert list(found.table.index) == ["1 MB", "4 MB", "8 MB", "34 MB", "268 MB", "537 MB"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": (2**20, 63)}, "--size = 63; allowed: .* of at least 64, up to"),
        ({"size": (2**36,)}, "--size = 68719476736; allowed: .* up to 68719476704"),
        ({"loads": 0}, "--loads = 0"),
    ],
)
def test_settings_out_of_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Config(**fields)


def test_memory_for_two_copies_is_required(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=2**21))
    Config(size=(2**19, 2**20))
    with pytest.raises(UsageError, match=r"--size 1048640: 65,540 sectors, at least 32 bytes each"):
        Config(size=(2**19, 2**20 + 64))


def test_axes_have_units_and_nothing_is_said_of_gases(drawn):
    figures = drawn(machine.VIEWS, table_of())
    assert set(figures) == {"rates", "latencies"}
    labels = {"rates": "sectors of 32 bytes ($10^9$/s)", "latencies": "time of a load (ns)"}
    for name, figure in figures.items():
        (axes,) = figure.axes
        assert axes.get_xlabel() == "memory that is read (bytes)"
        assert axes.get_ylabel() == labels[name]
        assert axes.get_legend() is None
        title = " ".join(text.get_text() for text in figure.texts) + axes.get_title()
        assert "Chip 1" in title + str(figure.get_suptitle())
        assert "gas" not in title + str(figure.get_suptitle())
