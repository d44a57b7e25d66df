"""Curves of one's own: read from a grammar file, and known by name once registered."""

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


@pytest.mark.quick
def test_a_registered_curve_is_known_wherever_a_built_in_one_is(tmp_path, monkeypatch):
    monkeypatch.setattr("sfc.catalogue._registered", {})
    (tmp_path / "coil.toml").write_text(COIL.format(name="coil"))
    curve = sfc.read_curve(tmp_path / "coil.toml")
    sfc.register(curve)
    sfc.register(sfc.read_curve(tmp_path / "coil.toml"))
    assert sfc.curve("coil", 2) is curve
    assert "coil" in sfc.curves(2)
    assert "coil" in sfc.orderings(2)
    assert "coil" not in sfc.orderings(3)
    sfc.testing.check_ordering(sfc.ordering("coil", (5, 7)))
    with pytest.raises(ValueError, match=r"'coil' exists in 2D, not in 3D"):
        sfc.curve("coil", 3)
    other = sfc.Curve("coil", 2, 2, np.arange(4)[None], np.zeros((1, 4), int))
    with pytest.raises(ValueError, match=r"'coil' in 2D: the name is taken"):
        sfc.register(other)


@pytest.mark.parametrize("name", ["hilbert", "row"])
def test_a_name_that_is_taken_is_refused(name):
    curve = sfc.Curve(name, 2, 2, np.arange(4)[None], np.zeros((1, 4), int))
    with pytest.raises(ValueError, match=rf"'{name}' in 2D: the name is taken; choose another than"):
        sfc.register(curve)


def test_what_is_no_curve_is_not_registered():
    with pytest.raises(ValueError, match="'hilbert' to register; allowed: a Curve"):
        sfc.register("hilbert")


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


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(sfc.GrammarError, match=r"none\.toml: .*No such file"):
        sfc.read_curve(tmp_path / "none.toml")
