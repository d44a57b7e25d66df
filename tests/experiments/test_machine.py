"""Rates of a machine's memory: what is measured where, the file of a machine, the answer, the figures."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments import machine
from experiments.core.settings import UsageError
from experiments.machine import PUBLISHED, SIZES, Config, answer, machine_of, text_of, write_machine
from sfc.cache import Machine
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


def test_a_cpu_takes_fewer_threads_and_is_no_machine(rates):
    table = pd.DataFrame(list(machine.measure(one(machine, size=(2**20,)))))
    assert list(table["what"]) == ["random sectors", "chain", "copy"]
    assert rates == [(machine.FEW, 512)]
    assert set(table["device"]) == {"CPU"}


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
