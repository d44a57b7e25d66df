"""Curves read from a grammar file."""

import os
from pathlib import Path

import numpy as np
import pytest

import sfc

COIL = """
name = "{name}"
dim = 2
axiom = "A"
[rules]
A = ">BF<AFA<FB>"
B = "<AF>BFB>FA<"
"""


@pytest.mark.quick
def test_a_grammar_file_is_a_curve(tmp_path):
    path = tmp_path / "coil.toml"
    path.write_text(COIL.format(name="coil"))
    curve = sfc.read_curve(path)
    assert (curve.name, curve.dim) == ("coil", 2)
    assert np.array_equal(curve.traversal(4), sfc.curve("hilbert", 2).traversal(4))


def test_a_mark_that_an_editor_puts_first_is_passed_over(tmp_path):
    path = tmp_path / "coil.toml"
    path.write_text(COIL.format(name="coil"), encoding="utf-8-sig")
    assert sfc.read_curve(path).name == "coil"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dim = 2", "no 'name'"),
        ('name = "x"\ndim = "2"\n[rules]\nA = "A"', "dim = '2'"),
        ('name = "x"\ndim = true\n[rules]\nA = "A"', "dim = True"),
        ('name = "x"\ndim = 2\naxion = "A"\n[rules]\nA = "A"', "unknown key 'axion'"),
        ('name = "x"\ndim = 2\n[rules]\nAB = "A"', "rule 'AB'"),
        ('name = "x"\ndim = 2\n[rules]\nA = 3', "rule 'A' = 3"),
        ('name = "x"\ndim = 2\n[rules]', "no rule"),
        ('name = ""\ndim = 2\n[rules]\nA = "A"', "name = ''"),
        ('name = 3\ndim = 2\n[rules]\nA = "A"', "name = 3 of class int; allowed: a str"),
        ('name = "x"\ndim = 2\nrules = "A"', "rules = 'A' of class str; allowed: a mapping"),
        ('name = "x"\ndim = 2\naxiom = ["A"]\n[rules]\nA = "A"', r"axiom = \['A'\]"),
        ("a = " + "[" * 3000, "nested too deeply; allowed: TOML with name"),
        ("a = " + "{a=" * 3000, "nested too deeply; allowed: TOML with name"),
        ("a = " + "9" * 5000, "allowed: TOML with name"),
        ("a = 2020-13-45", "allowed: TOML with name"),
        (
            'name = "x"\ndim = 2\n[rules]\nA = "' + "F".join("A" * 65**2) + '"',
            "base = 65; allowed: an integer",
        ),
        ('name = "x"\ndim = 7\n[rules]\nA = "A"', "dim = 7; allowed: 2 or 3"),
        ('name = "x"\ndim = 2\n[rules]\nA = "AFA"', "2 symbols"),
        ("name =", "Invalid value"),
    ],
)
def test_a_file_that_is_no_curve_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(sfc.GrammarError, match=rf"curve file .*wrong\.toml: .*{message}"):
        sfc.read_curve(path)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "/", "/proc/self/mem"])
def test_what_is_no_file_is_refused_without_reading_it(place):
    if not Path(place).exists():
        pytest.skip(f"there is no {place} here")
    with pytest.raises(
        sfc.GrammarError, match=rf"curve file {place}(:| is no regular file; allowed: a file of)"
    ):
        sfc.read_curve(place)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(sfc.GrammarError, match=r"pipe\.toml is no regular file"):
        sfc.read_curve(tmp_path / "pipe.toml")


@pytest.mark.quick
def test_a_file_that_is_much_too_large_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(2**40)  # without a block on the disk
    with pytest.raises(
        sfc.GrammarError, match=rf"large\.toml has at least {2**40:,} bytes; allowed: up to 1,048"
    ):
        sfc.read_curve(path)


@pytest.mark.parametrize("path", [None, 0, True, b"coil.toml", ["coil.toml"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(
        TypeError, match=r"path = .* of class .*; allowed: a path, as a str or a pathlib.Path"
    ):
        sfc.read_curve(path)


@pytest.mark.parametrize("path", ["", "coil\0.toml"])
def test_a_path_of_no_file_is_refused(path):
    with pytest.raises(ValueError, match=r"path = .*; allowed: a path of at least one character"):
        sfc.read_curve(path)


@pytest.mark.parametrize("text", [None, 3, COIL.encode(), Path("coil.toml")])
def test_what_is_no_text_is_not_parsed(text):
    with pytest.raises(TypeError, match=r"text = .* of class .*; allowed: a str of TOML"):
        sfc.parse_curve(text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(sfc.GrammarError, match=r"none\.toml: .*No such file"):
        sfc.read_curve(tmp_path / "none.toml")
