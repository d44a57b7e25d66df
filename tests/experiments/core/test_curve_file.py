"""Curves of one's own on the command line of an experiment: `--curve-file`."""

import importlib
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import sfc
from experiments import curves, timing
from experiments.__main__ import listing
from experiments.core import main
from experiments.core.command_line import read
from tests.experiments.runs import views
from tests.tiers import full, product

GRAMMAR = """
name = "{name}"
dim = 3
axiom = "A"
[rules]
A = "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<"
B = "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<"
C = "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<"
D = "|C#B-#+B|#A&#^A&&#B-#+B|#C<<"
"""
README = Path(__file__).parents[3] / "README.md"
WRONG = {
    "no file": (None, r"No such file.*allowed: TOML with name"),
    "no TOML": ("name = coil", r"\(at line 1, column 8\).*allowed: TOML with name"),
    "a key missing": ('name = "coil"\ndim = 2', r"no 'rules'; allowed: .* a table \[rules\]"),
    "no curve": ('name = "coil"\ndim = 2\n[rules]\nA = "AFAFAFA"', r"rule 'A'"),
}


@pytest.fixture(autouse=True)
def catalogue():
    """What a run registers is forgotten after its test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfc.registry._registered", {})
        yield
    assert "coil" not in sfc.orderings()


def run(tmp_path, *arguments):
    small = ["--quick", "--n", "512", "--filling-fraction", "0.1", "--rounds", "1"]
    given = ["--backend", "cpu", "--results", str(tmp_path / "results"), *small, *arguments]
    main(timing.Config, timing.measure, views(timing), quick=timing.QUICK, arguments=given)


def refusal(tmp_path, capsys, *arguments) -> str:
    """The message of a run that ends with status 2 and leaves nothing."""
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, *arguments)
    assert ended.value.code == 2
    assert not (tmp_path / "results").exists()
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return message


@pytest.mark.nightly
def test_the_readme_s_curve_is_run_beside_a_built_in_one_and_its_grammar_kept(tmp_path):
    (grammar,) = re.findall(r"```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "coil.toml"
    path.write_text(grammar, encoding="utf-8")
    run(tmp_path, "--curve-file", str(path), "--ordering", "hilbert", "coil")
    (folder,) = (tmp_path / "results" / "timing").iterdir()
    table = pd.read_parquet(folder / "table.parquet")
    phases = {name: set(rows["phase"]) for name, rows in table.groupby("ordering")}
    assert set(phases) == {"hilbert", "coil", "hilbert again"}
    assert phases["coil"] == phases["hilbert"] > {"force", "reorder", "step"}
    origin = json.loads((folder / "provenance.json").read_text())
    assert origin["grammars"] == {"coil": grammar}
    assert origin["config"]["ordering"] == ["hilbert", "coil"]


def test_without_its_file_the_name_is_unknown(tmp_path, capsys):
    assert "unknown ordering 'coil'" in refusal(tmp_path, capsys, "--ordering", "coil")


@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_that_describes_no_curve_ends_with_status_2_and_names_the_file(tmp_path, capsys, wrong):
    text, reason = WRONG[wrong]
    path = tmp_path / "wrong.toml"
    if text is not None:
        path.write_text(text)
    message = refusal(tmp_path, capsys, "--curve-file", str(path))
    assert re.match(rf"error: curve file {re.escape(str(path))}: .*{reason}", message), message


def test_a_name_that_is_taken_ends_with_status_2(tmp_path, capsys):
    path = tmp_path / "row.toml"
    path.write_text('name = "row"\ndim = 2\n[rules]\nA = ">BF<AFA<FB>"\nB = "<AF>BFB>FA<"')
    message = refusal(tmp_path, capsys, "--curve-file", str(path))
    assert "curve 'row' has the name of an ordering that exists" in message
    assert "choose another name in the file" in message


@pytest.mark.parametrize("flag", ["--curve-file=", "--curve_file="])
def test_the_flag_may_be_spelled_as_any_other(tmp_path, capsys, flag):
    assert "No such file" in refusal(tmp_path, capsys, f"{flag}{tmp_path / 'none.toml'}")


@pytest.mark.quick
def test_curves_given_in_several_flags_are_all_known(tmp_path):
    names = ("coil", "spool", "reel")
    for name in names:
        (tmp_path / f"{name}.toml").write_text(GRAMMAR.format(name=name), encoding="utf-8")
    coil, spool, reel = (str(tmp_path / f"{name}.toml") for name in names)
    flags = ["--curve-file", coil, spool, "--curve-file", reel, "--ordering", *names]
    line = read(timing.Config, timing.QUICK, flags, "timing")
    assert (line.config.ordering, set(line.grammars)) == (names, set(names))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../out", r"curve name '\.\./out'; allowed: letters, digits, _ and -"),
        ("my curve", "curve name 'my curve'; allowed: letters"),
        ("shuffled", "curve 'shuffled' has the name of an ordering.*allowed: any name but shuffled, lattice"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name, message, tmp_path, capsys):
    path = tmp_path / "wrong.toml"
    path.write_text(GRAMMAR.format(name=name), encoding="utf-8")
    assert re.search(message, refusal(tmp_path, capsys, "--curve-file", str(path)))


PLANE = 'name = "{name}"\ndim = 2\n[rules]\nA = ">BF<AFA<FB>"\nB = "<AF>BFB>FA<"\n'


@pytest.mark.quick
@pytest.mark.parametrize(
    ("experiment", "name"), product(list(listing()), ["shuffled", "lattice", "pancake", "butz"], 4, full)
)
def test_no_experiment_takes_a_plane_curve_with_the_name_of_another_order(name, experiment, tmp_path, capsys):
    path = tmp_path / "plane.toml"
    path.write_text(PLANE.format(name=name))
    module = importlib.import_module(f"experiments.{experiment}")
    with pytest.raises(SystemExit) as ended:
        main(module.Config, module.measure, views(module), module.QUICK, ["--curve-file", str(path)])
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert f"curve file {path}: curve {name!r} has the name of an ordering" in message
    assert "choose another name in the file" in message


@pytest.mark.quick
@pytest.mark.parametrize("error", [RecursionError, MemoryError, KeyError, OSError])
def test_a_file_that_breaks_its_reader_is_named(error, tmp_path, capsys, monkeypatch):
    def breaks(*arguments):
        raise error("deep")

    path = tmp_path / "deep.toml"
    path.write_text(PLANE.format(name="coil"))
    monkeypatch.setattr("sfc.read_curve", breaks)
    message = refusal(tmp_path, capsys, "--curve-file", str(path))
    assert re.match(
        rf"error: curve file {re.escape(str(path))} cannot be read: \w+: .*deep.*allowed", message
    )


@pytest.mark.quick
def test_a_nested_file_ends_with_status_2(tmp_path, capsys):
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 3000)
    assert f"curve file {path}" in refusal(tmp_path, capsys, "--curve-file", str(path))


@pytest.mark.quick
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/"])
def test_what_is_no_file_is_not_read(path, tmp_path, capsys):
    message = refusal(tmp_path, capsys, "--curve-file", path)
    assert f"curve file {path} is no regular file; allowed: a file" in message


@pytest.mark.quick
def test_a_curve_of_two_dimensions_is_kept_in_both_and_an_editor_s_mark_is_none(tmp_path):
    texts = [PLANE.format(name="coil"), GRAMMAR.format(name="coil")]
    for dim, text in zip((2, 3), texts, strict=True):
        (tmp_path / f"{dim}.toml").write_text(text, encoding="utf-8-sig")
    flags = ["--curve-file", str(tmp_path / "2.toml"), str(tmp_path / "3.toml"), "--results", str(tmp_path)]
    arguments = [*flags, "--ordering", "coil-2d", "coil-3d", "--size", "1"]
    main(curves.Config, curves.measure, views(curves), curves.QUICK, arguments)
    (folder,) = (tmp_path / "curves").iterdir()
    assert json.loads((folder / "provenance.json").read_text())["grammars"] == {
        "coil": texts[0],
        "coil-3d": texts[1],
    }
    sfc.registry._registered.clear()
    assert replotted(folder, curves) == 0
    assert "coil" in sfc.orderings(2)
    assert "coil" in sfc.orderings(3)


def replotted(folder: Path, module) -> int:
    with pytest.raises(SystemExit) as ended:
        main(module.Config, module.measure, views(module), module.QUICK, ["--replot", str(folder)])
    return ended.value.code


def test_a_run_is_drawn_again_with_the_curves_it_was_given_and_by_its_own_experiment(tmp_path, capsys):
    path = tmp_path / "coil.toml"
    path.write_text(GRAMMAR.format(name="coil"), encoding="utf-8")
    arguments = [
        "--curve-file",
        str(path),
        "--ordering",
        "coil-3d",
        "--size",
        "1",
        "--results",
        str(tmp_path),
    ]
    main(curves.Config, curves.measure, views(curves), curves.QUICK, arguments)
    (folder,) = (tmp_path / "curves").iterdir()
    (folder / "coil-3d.png").unlink()
    sfc.registry._registered.clear()
    assert replotted(folder, curves) == 0
    assert (folder / "coil-3d.png").exists()
    assert replotted(folder, timing) == 2
    assert "is a run of curves; allowed: one of timing; take python -m experiments.curves --replot" in (
        capsys.readouterr().err
    )
