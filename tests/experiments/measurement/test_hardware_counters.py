"""Hardware counters by Nsight Compute, perf and cachegrind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import md
from experiments.measurement import hardware_counters as counted
from experiments.measurement import profiler_target
from experiments.measurement.hardware_caches import system_caches
from experiments.measurement.hardware_counters import (
    CannotCountError,
    read_cachegrind,
    read_launches,
    read_perf,
)
from experiments.measurement.profiler_target import Job
from experiments.measurement.step_times import phases_of

JOB = Job(512, 0.2, "linked", "float64", "cpu", 0, ("shuffled", "lattice", "hilbert"))


NSIGHT = """==PROF== Connected
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",\
"lts__t_sectors_srcunit_tex_op_read.sum","lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"
"","","byte","byte","ns","sector","sector","sector","sector"
"0","force","51,200,256","9,500,000","74,400","30,000,000","24,000,000","6,000,000","4,500,000"
"1","force","1","2","3","4","3","1","1"
"""


class TestCounted:
    def test_nsight_compute_is_read_in_its_units(self):
        first, second = read_launches(NSIGHT, counted._METRICS).to_dict("records")
        assert first == {
            "kernel": "force", "l1_loads": 3e7, "l1_hits": 2.4e7, "l2_reads": 6e6, "l2_hits": 4.5e6,
            "dram_read": 51200256, "dram_written": 9.5e6, "time_us": pytest.approx(74.4),
        }  # fmt: skip
        assert second["l1_hits"] == 3
        with pytest.raises(CannotCountError, match=r"ncu printed no .*: '==ERROR== no permission'"):
            read_launches("==ERROR== no permission", counted._METRICS)

    def test_each_launch_of_nsight_belongs_to_its_order(self, monkeypatch):
        line = NSIGHT.splitlines()
        text = "\n".join([*line[:3], *[line[3]] * 6, *[line[4]] * 3])
        monkeypatch.setattr(counted, "run_under", lambda *_: subprocess.CompletedProcess([], 0, text))
        rows = list(counted.counted("nsight", JOB))
        assert [row["ordering"] for row in rows] == ["shuffled"] * 3 + ["lattice"] * 3 + ["hilbert"] * 3
        assert [row["on_chip"] for row in rows] == pytest.approx([0.95] * 6 + [1.0] * 3)
        with pytest.raises(CannotCountError, match="profiled 9 force kernels; allowed: 6"):
            list(counted.counted("nsight", JOB._replace(orderings=("row", "zigzag"))))

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: system_caches(3), TypeError, "folder = 3 of class int; allowed: a path"),
            (lambda: phases_of(None, 3), TypeError, "simulation = None of class NoneType; allowed: an md.Si"),
        ],
    )
    def test_arguments_that_are_none_are_refused_at_once(self, call, error, message):
        with pytest.raises(error, match=f"^{message}"):
            call()

    def test_perf_is_read_and_says_what_it_does_not_count(self):
        text = "1000,,L1-dcache-loads:u,1,,,\n50,,L1-dcache-load-misses,1,,,\n7,,LLC-load-misses,1,,,\n"
        assert read_perf("a warning\n" + text) == (1000, 50, 7)
        with pytest.raises(CannotCountError, match="perf does not count LLC-load-misses"):
            read_perf(text.replace("7,,LLC", "<not supported>,,LLC"))

    def test_cachegrind_is_read_by_its_names(self):
        text = "desc: I1 cache: 32 B\ncmd: python\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfn=x\n"
        assert read_cachegrind(text + "summary: 9 8 7 600 50 4 3 2 1\n") == (600, 50, 4)
        with pytest.raises(CannotCountError, match="cachegrind wrote no sums"):
            read_cachegrind(text)

    def test_counts_of_a_process_are_those_of_what_it_does_more_often(self, monkeypatch):
        def message(job):
            k = job.times * len(job.orderings[0])
            return 1000 + 100 * k, 50 + 20 * k, 5 + 2 * k

        monkeypatch.setattr(counted, "_by_perf", message)
        rows = list(counted.counted("perf", JOB))
        assert [row["ordering"] for row in rows] == list(JOB.orderings)
        assert rows[0]["l1_loads"] == 100 * len("shuffled")
        assert rows[0]["l1_hits"] == 80 * len("shuffled")
        assert [row["on_chip"] for row in rows] == pytest.approx([0.98] * 3)
        monkeypatch.setattr(counted, "_by_perf", lambda job: (7, 5, 1))
        with pytest.raises(CannotCountError, match="perf counted 0 loads"):
            list(counted.counted("perf", JOB))
        monkeypatch.setattr(counted, "_by_perf", lambda job: (100 * job.times, 130 * job.times, 0))
        with pytest.raises(CannotCountError, match="400 loads, 520 and 0 missed"):
            list(counted.counted("perf", JOB))

    def test_a_program_that_is_missing_or_fails_is_named(self, monkeypatch, tmp_path):
        monkeypatch.setattr(shutil, "which", lambda name: None)
        with pytest.raises(CannotCountError, match="ncu is not installed"):
            list(counted.counted("nsight", JOB))
        assert counted.counter_for("cuda", 1000) is None
        monkeypatch.undo()
        (tmp_path / "ncu").write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
        (tmp_path / "ncu").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        with pytest.raises(CannotCountError, match="ncu ended with 3: out of order"):
            list(counted.counted("nsight", JOB))

    def test_the_probe_finds_the_forces_of_each_order_as_often_as_it_is_told(self, monkeypatch, capfd):
        found = []
        monkeypatch.setattr(md.Simulation, "forces", lambda sim: found.append(sim.state.id))
        monkeypatch.setattr(sys, "argv", ["probe", json.dumps(JOB._replace(times=2)._asdict())])
        profiler_target.main()
        assert capfd.readouterr() == ("", "")
        assert len(found) == 2 * len(JOB.orderings)
        for k in range(0, len(found), 2):
            assert np.array_equal(found[k], found[k + 1])
            assert not np.array_equal(found[k], found[k - 1])

    @pytest.mark.full
    def test_the_probe_is_a_program_that_finds_forces(self):
        done = subprocess.run(
            [sys.executable, "-m", "experiments.measurement.profiler_target", json.dumps(JOB._asdict())],
            cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
            env=os.environ | {"NUMBA_NUM_THREADS": "1"},  # whose kernels compile in half the time
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
