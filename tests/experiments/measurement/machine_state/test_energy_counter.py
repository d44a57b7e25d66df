"""Energy counters of a GPU (a library that stands for NVML) and of processors (files that stand for RAPL)."""

import ctypes

import pytest

import md
from experiments.measurement.machine_state import energy_counter
from experiments.measurement.machine_state.energy_counter import NoCounterError, counter_of

CPU = md.backend.get("cpu")
NOT_SUPPORTED = 3
BUS = "0000:01:00.0"


class Device(type(CPU)):
    """Stands for a backend with a device."""

    name, bus = "cuda", BUS


class Nvml:
    """Stands for NVML, of one GPU.

    Args:
        millijoules: readings of its counter, the last for ever.
        status: of a reading of the counter.
    """

    def __init__(self, millijoules=(0,), status=0):
        self.readings, self.status, self.is_open = list(millijoules), status, False

        def text(status):
            return {2: b"Invalid Argument", NOT_SUPPORTED: b"Not Supported"}[status]

        self.nvmlErrorString = text

    def nvmlInit_v2(self):  # noqa: N802 - a name of NVML
        self.is_open = True
        return 0

    def nvmlShutdown(self):  # noqa: N802
        self.is_open = False

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus, device):  # noqa: N802
        device._obj.value = 77
        return 0 if bus == BUS.encode() else 2

    def nvmlDeviceGetTotalEnergyConsumption(self, device, millijoules):  # noqa: N802
        assert self.is_open
        assert device.value == 77
        millijoules._obj.value = self.readings[0]
        self.readings = self.readings[1:] or self.readings
        return self.status


@pytest.fixture
def nvml(monkeypatch):
    """Puts a library in the place of NVML."""

    def put(library):
        monkeypatch.setattr(ctypes, "CDLL", lambda name: {"libnvidia-ml.so.1": library}[name])
        return library

    return put


def test_the_counter_of_a_gpu_is_read_in_joules_up_to_64_bits(nvml):
    library = nvml(Nvml([2**33, 5_000, 2**50]))  # the first reading is the one that tries it
    with counter_of(Device()) as counter:
        assert [counter.joules(), counter.joules()] == [5.0, pytest.approx(2**50 / 1000, rel=1e-15)]
        assert counter.name == "NVML"
    assert not library.is_open


@pytest.mark.parametrize(
    ("library", "bus", "reason"),
    [
        (Nvml(status=NOT_SUPPORTED), BUS, "NVML's energy counter: Not Supported"),
        (Nvml(), "0", "NVML's energy counter: Invalid Argument"),
    ],
)
def test_a_gpu_without_a_counter_is_told_and_nvml_is_closed(nvml, monkeypatch, library, bus, reason):
    nvml(library)
    monkeypatch.setattr(Device, "bus", bus)
    with pytest.raises(NoCounterError, match=f"^{reason}$"), counter_of(Device()):
        pass
    assert not library.is_open


def test_a_library_that_is_older_than_the_counter_is_told(nvml, monkeypatch):
    monkeypatch.delattr(Nvml, "nvmlDeviceGetTotalEnergyConsumption")
    nvml(Nvml())
    with pytest.raises(NoCounterError, match="NVML has no energy counter"), counter_of(Device()):
        pass


def test_without_nvml_that_is_told(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(NoCounterError, match=r"NVML cannot be loaded: libnvidia-ml\.so\.1"):
        counter_of(Device()).__enter__()


@pytest.mark.quick
def test_what_is_no_backend_is_refused():
    with pytest.raises(TypeError, match=r"backend = 'cuda' of class str; allowed: an md\.backend\.Backend"):
        counter_of("cuda").__enter__()


@pytest.fixture
def domain(tmp_path, monkeypatch):
    """Puts a folder in the place of RAPL, and writes domains into it."""
    monkeypatch.setattr(energy_counter, "RAPL", tmp_path)

    def put(folder, name, microjoules, most=1_000_000):
        path = tmp_path / folder
        path.mkdir(exist_ok=True)
        for file, content in (("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", most)):
            (path / file).write_text(f"{content}\n")

    return put


def test_packages_and_memory_count_once_and_start_again_after_their_range(domain):
    domain("intel-rapl:0", "package-0", 900_000)
    domain("intel-rapl:0:0", "core", 0)  # a part of the package
    domain("intel-rapl:0:1", "dram", 100)
    domain("intel-rapl:1", "psys", 0)  # that of which the package is a part
    domain("intel-rapl-mmio:0", "package-0", 0)  # the same package by another way
    with counter_of(CPU) as counter:
        assert counter.joules() == 0
        domain("intel-rapl:0", "package-0", 100_000)
        domain("intel-rapl:0:0", "core", 300_000)
        domain("intel-rapl:0:1", "dram", 50_100)
        domain("intel-rapl:1", "psys", 500_000)
        domain("intel-rapl-mmio:0", "package-0", 700_000)
        assert counter.joules() == pytest.approx(0.2 + 0.05)
        domain("intel-rapl:0", "package-0", 99_999)
        assert counter.joules() == pytest.approx(0.25 + 0.999999)


def test_a_processor_without_a_counter_or_with_one_for_root_alone_is_told(domain, tmp_path):
    with pytest.raises(NoCounterError, match="has no counter of this processor"):
        counter_of(CPU).__enter__()
    domain("intel-rapl:0", "package-0", "")
    with pytest.raises(NoCounterError, match="energy_uj holds no number"):
        counter_of(CPU).__enter__()
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    with pytest.raises(NoCounterError, match=r"energy_uj \(RAPL\): No such file"):
        counter_of(CPU).__enter__()
