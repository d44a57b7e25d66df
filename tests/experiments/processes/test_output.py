"""A program shows no traceback if its output is not read to the end; other errors are shown."""

import ast
import os
import signal
import subprocess
import sys

import pytest

from experiments.processes.output import readable, until_output_closes
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


PROGRAMS = ("run", "Popen", "program")  # their `text` takes the encoding of the locale
PARQUET = ("read_parquet", "read_schema", "read_metadata", "ParquetFile")  # refuse paths of undecoded letters
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize("letters", ["\\u00e4", "\\udcc3\\udca4"])  # as in the locale UTF-8, C
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_letters_that_a_terminal_has_not_are_escaped(letters, stream):
    code = WRITER.replace('"line" * 100', f'"out_{letters}", file=sys.{stream}').replace("10_000", "1")
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"], cwd=ROOT, env=os.environ | ASCII, capture_output=True
    )
    assert (ended.returncode, getattr(ended, stream)) == (0, b"out_\\xe4\n")


def test_the_list_of_experiments_is_printed_in_any_locale():
    command = [sys.executable, "-m", "experiments"]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | ASCII, capture_output=True)
    assert ended.returncode == 0
    assert b"timing" in ended.stdout


@pytest.mark.parametrize(
    ("given", "expected"),
    [("out_\udcc3\udca4", "out_ä"), ("ä", "ä"), ("a\udcff", "a\\xff"), ("\ud800", "\\ud800")],
)
def test_words_that_python_could_not_decode_are_readable(given, expected):
    assert readable(given) == expected


def test_files_and_programs_are_read_in_the_same_encoding_in_any_locale():
    for path in (ROOT / "experiments").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call):
                words = {word.arg for word in call.keywords}
                given = len(call.args) + ("encoding" in words)
                needed = {"read_text": 1, "write_text": 2}.get(getattr(call.func, "attr", ""), 0)
                assert given >= needed, (path, call.lineno)
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                assert not (name in PROGRAMS and "text" in words), (path, call.lineno)
                if name in PARQUET or ast.unparse(call.func) == "pq.read_table":
                    assert ast.unparse(call.args[0]).startswith("io.BytesIO("), (path, call.lineno)


@pytest.mark.parametrize(
    ("begin", "status", "expected"),
    [
        ("import experiments.core.record", 1, "ImportError: experiments do not run on"),
        ("sys.argv = ['-m']; import experiments", 2, "error: experiments do not run on"),
    ],
)
def test_a_system_without_posix_is_refused_by_name(begin, status, expected):
    code = f"import importlib.util, sys; importlib.util.find_spec = lambda name: None; {begin}"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == status
    assert expected in ended.stderr
    assert ("Traceback" in ended.stderr) == (status == 1)
    assert "allowed: Linux and macOS; on Windows take WSL" in ended.stderr


def test_a_program_without_standard_output_ends_as_usual(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with until_output_closes():
        pass
