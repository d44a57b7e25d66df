"""Sizes of the caches of a CPU and a GPU."""

from pathlib import Path

import pytest

from experiments.measurement.hardware_caches import caches, system_caches


class TestCaches:
    def folder(self, tmp_path, levels) -> Path:
        for number, message in enumerate(levels):
            (tmp_path / f"index{number}").mkdir()
            for name, value in message.items():
                (tmp_path / f"index{number}" / name).write_text(f"{value}\n")
        return tmp_path

    def test_those_of_a_core_are_read_without_that_of_instructions(self, tmp_path):
        common = {"coherency_line_size": 64}
        found = system_caches(self.folder(tmp_path, [
            {"level": 3, "type": "Unified", "size": "32768K", "ways_of_associativity": 16} | common,
            {"level": 2, "type": "Unified", "size": "1024K", "ways_of_associativity": 0} | common,
            {"level": 2, "type": "Unified", "size": "1024K", "ways_of_associativity": 8},
            {"level": 1, "type": "Instruction", "size": "32K", "ways_of_associativity": 8} | common,
            {"level": 1, "type": "Data", "size": "48K", "ways_of_associativity": 12} | common,
        ]))  # fmt: skip
        assert [tuple(cache) for cache in found] == [
            ("L1", 48 * 2**10, 64, 12), ("L3", 32 * 2**20, 64, 16),
        ]  # fmt: skip
        assert all(cache.usable == cache.bytes for cache in found)

    def test_a_system_that_tells_none_is_named(self, tmp_path):
        with pytest.raises(ValueError, match=f"{tmp_path} lists no data cache"):
            system_caches(tmp_path)

    def test_those_of_a_device_go_by_its_kind(self):
        class Device:
            name = "cuda"

            def __init__(self, kind):
                self.kind = kind

            def describe(self):
                return {"compute_capability": self.kind, "l2_MiB": 60.0}

        first, last = caches(Device("9.0"))
        assert (first.bytes, last.bytes) == (256 * 2**10, 60 * 2**20)
        with pytest.raises(ValueError, match=r"compute capability 99\.0 is not known; known: 7\.0"):
            caches(Device("99.0"))
