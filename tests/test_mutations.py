"""Each of ten broken versions of the code is seen by the tier `quick`, by an assertion of a named test."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]
FOUND = ast.ClassDef | ast.FunctionDef
QUICK = re.compile(r"\bpytest\.mark\.quick\b|\bquick\(")
COPIED = ("sfc", "md", "experiments", "tests", "pyproject.toml", "README.md")


def outcome(root: Path, test: str) -> tuple[int, list[str]]:
    """Exit status of a quick test on a copy of the project, and what each failure or error says."""
    report = root / "report.xml"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-m", "quick"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    done = subprocess.run(
        [*command, f"--junitxml={report}", test], cwd=root, env=environment, capture_output=True, text=True
    )
    found = [
        f"{element.tag}: {element.get('message')}"
        for element in ElementTree.parse(report).iter()
        if element.tag in ("failure", "error")
    ]
    return done.returncode, found


def copied(root: Path) -> Path:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, root)
    return root


@pytest.mark.nightly
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_quick_test_fails_by_an_assertion(tmp_path, mutation):
    root = copied(tmp_path)
    assert outcome(root, mutation.test) == (0, [])
    path = root / mutation.file
    text = path.read_text()
    path.write_text(text.replace(mutation.old, mutation.new))
    status, found = outcome(root, mutation.test)
    assert status == 1
    assert found
    for message in found:
        assert message.startswith(("failure: AssertionError", "failure: assert"))


def marks_of(test: str) -> str:
    """Decorators of the function or method of a test's id, as text, and those of its class."""
    file, *names = test.split("::")
    body, found = ast.parse((ROOT / file).read_text()).body, ""
    for name in names:
        (node,) = (one for one in body if isinstance(one, FOUND) and one.name == name)
        found += "\n".join(["", *map(ast.unparse, node.decorator_list)])
        body = node.body
    return found


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_code_and_names_a_quick_test(mutation: Mutation):
    assert (ROOT / mutation.file).read_text().count(mutation.old) == 1
    assert QUICK.search(marks_of(mutation.test))
