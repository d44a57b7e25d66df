"""A program shows no traceback if its output is not read to the end; other errors are shown."""

import os
import signal
import subprocess
import sys

import pytest

from experiments.processes.output import until_output_closes
from tests.experiments.core.test_executor import ROOT

WRITER = """
from experiments.processes.output import until_output_closes
with until_output_closes():
    for _ in range(10_000):
        print("line" * 100)
"""
FAILING = """
import sys
from experiments.processes.output import until_output_closes
with until_output_closes():
    sys.stdin.read()
    print("line")
    raise ValueError("of the program")
"""


def started(code: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=os.environ | {"PYTHONUNBUFFERED": ""})  # fmt: skip


def test_no_traceback_if_the_reader_ends_first():
    with started(WRITER) as program:
        assert program.stdout.readline().startswith("line")
        program.stdout.close()
        assert program.stderr.read() == ""
    assert program.returncode == 128 + signal.SIGPIPE


def test_an_error_of_the_program_is_shown_though_the_reader_has_ended():
    with started(FAILING) as program:
        program.stdout.close()
        program.stdin.close()
        assert "ValueError: of the program" in program.stderr.read()
    assert program.returncode not in (0, 128 + signal.SIGPIPE)


def test_a_broken_pipe_that_is_not_the_output_is_raised():
    with pytest.raises(BrokenPipeError, match="of a worker"), until_output_closes():
        raise BrokenPipeError("of a worker")


def test_a_program_without_standard_output_ends_as_usual(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with until_output_closes():
        pass
