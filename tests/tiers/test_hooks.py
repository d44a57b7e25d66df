"""The hooks of `tests/conftest.py` leave out what is of a tier that was not asked for, and nothing else."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest
from tests.tiers import by_default, first, full, nightly, quick

pytestmark = pytest.mark.quick


@pytest.fixture
def left_out(monkeypatch):
    """Set of the marks whose tests are not collected, in place of those of this session."""
    marks: set[str] = set()
    monkeypatch.setattr(conftest, "_left_out", marks)
    return marks


def config_of(expression: str, cuda: bool = False, arguments: tuple[str, ...] = ("tests",)):
    """Stand in for pytest's configuration of `-m expression`."""
    return SimpleNamespace(option=SimpleNamespace(markexpr=expression, cuda=cuda), args=arguments)


@pytest.mark.parametrize(
    ("expression", "apart"),
    [
        ("", {"full", "nightly", "browser", "gpu"}),
        ("quick", {"full", "nightly", "browser", "gpu"}),
        ("full", {"nightly", "browser", "gpu"}),
        ("nightly", {"browser", "gpu"}),
        ("gpu", {"nightly", "browser"}),
        ("gpu and not nightly", {"browser"}),
        ("browser", {"full", "nightly", "gpu"}),
        ("not full", {"nightly", "browser", "gpu"}),
    ],
)
def test_a_tier_is_left_out_unless_the_command_asks_for_it(left_out, monkeypatch, expression, apart):
    profiles = []
    monkeypatch.setattr(conftest, "settings", SimpleNamespace(load_profile=profiles.append))
    config = config_of(expression)
    conftest.pytest_configure(config)
    assert left_out == apart
    assert config.option.cuda == (expression.startswith("gpu"))
    conditions = [f"({expression})"] * bool(expression) + [f"not {tier}" for tier in apart - {"gpu"}]
    assert sorted(config.option.markexpr.split(" and ")) == sorted(" and ".join(conditions).split(" and "))
    assert profiles == (["nightly"] if expression == "nightly" else [])


def test_a_test_named_on_the_command_line_is_made_whatever_its_tier(left_out):
    conftest.pytest_configure(config_of("", arguments=("tests/test_a.py::test_b[case]",)))
    assert left_out == set()


def made(values: list, ids=None) -> tuple[list, list | None]:
    """Values and ids with which the hook calls pytest's `parametrize`."""
    calls = []

    def parametrize(names, values, indirect=False, ids=None):
        assert (names, indirect) == ("case", True)
        calls.append((values, ids))

    conftest._parametrized(parametrize, "case", iter(values), True, ids=ids)
    (call,) = calls
    return call


def test_cases_of_a_tier_that_was_not_asked_for_are_not_made_and_all_others_are(left_out):
    cases = ["a", full("b"), quick("c"), nightly("d"), "e"]
    assert made(cases) == (cases, None)
    left_out.add("full")
    assert made(cases) == ([cases[0], *cases[2:]], None)
    left_out.add("nightly")
    assert made(cases, ids=["A", "B", "C", "D", "E"]) == (["a", cases[2], "e"], ["A", "C", "E"])
    assert made(cases, ids=str) == (["a", cases[2], "e"], str)
    assert made(first(range(4))) == ([0], None)


@pytest.mark.parametrize("values", [(), ("a", "b")])
def test_a_case_without_a_value_for_each_name_is_refused_in_each_tier(left_out, values):
    left_out.add("full")
    with pytest.raises(pytest.UsageError, match="values for 'case', not 1"):
        made(["a", *by_default([values], lambda *_: False, full)])


def test_a_test_without_a_case_left_keeps_its_cases_which_are_deselected_later(left_out):
    left_out.add("full")
    cases = by_default(["a", "b"], lambda _: False, full)
    assert made(cases) == (cases, None)


def test_no_test_is_made_of_a_function_with_a_mark_that_is_left_out(left_out):
    left_out.add("full")

    @pytest.mark.full
    def sample():
        """Stand in for a test."""

    assert conftest.pytest_pycollect_makeitem(sample) == []
    assert conftest.pytest_pycollect_makeitem(pytest.mark.quick(sample)) == []
    left_out.clear()
    assert conftest.pytest_pycollect_makeitem(sample) is None
    assert conftest.pytest_pycollect_makeitem(SimpleNamespace(pytestmark="not a list")) is None
    assert conftest.pytest_pycollect_makeitem(lambda: None) is None


def ignored(path: Path, text: str, expression: str = "not full") -> bool | None:
    """Answer of the hook for a file with that text."""
    path.write_text(text)
    return conftest.pytest_ignore_collect(path, config_of(expression))


def test_a_file_is_not_imported_only_if_all_its_tests_are_left_out(left_out, tmp_path):
    left_out.add("full")
    file = tmp_path / "test_a.py"
    assert ignored(file, "pytestmark = pytest.mark.full\n")
    assert ignored(file, "import pytest\n\npytestmark = pytest.mark.full\n")
    assert ignored(file, "pytestmark = pytest.mark.nightly\n") is None
    assert ignored(file, "    pytestmark = pytest.mark.full\n") is None  # of a class
    assert ignored(file, "@pytest.mark.full\ndef test_a(): ...\n") is None
    assert ignored(tmp_path / "a.txt", "pytestmark = pytest.mark.full\n") is None
    left_out.clear()
    assert ignored(file, "pytestmark = pytest.mark.full\n") is None


def test_quick_imports_the_files_with_that_word_alone(left_out, tmp_path):
    file = tmp_path / "test_a.py"
    assert ignored(file, "def test_a(): ...\n", "(quick) and not full")
    assert ignored(file, "@pytest.mark.quick\ndef test_a(): ...\n", "(quick) and not full") is None
    assert ignored(file, "def test_a(): ...\n", "(quick or full) and not nightly") is None
