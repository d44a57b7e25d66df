"""The core, on a toy experiment that measures nothing physical: sweep, record, provenance, command line."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from experiments.core import Settings, main, provenance
from experiments.core.settings import UsageError, axes, cases
from experiments.results.answers import Answer
from tests.experiments import toy
from tests.processes import all_heard, started


@dataclass(frozen=True)
class Config(Settings):
    """A toy sweep."""

    size: tuple[int, ...] = (1, 2)
    """Size of the toy."""
    colour: tuple[str, ...] = ("red", "blue")
    """Colour of the toy."""
    weight: float = 0.5
    """Weight of the toy."""


def measure(case):
    yield {"area": case.size**2, "mass": case.weight}
    yield {"area": -case.size, "mass": case.weight}


def draw(table, out):
    (out / "toy.png").write_text(str(len(table)))


def run(tmp_path, *arguments, measure=measure, config=Config):
    main(
        config,
        measure,
        draw,
        quick={"size": (7,)},
        arguments=["--backend", "cpu", "--results", str(tmp_path), *arguments],
    )


def only_run(results: Path, experiment: str = "test_cli") -> Path:
    (folder,) = (results / experiment).iterdir()
    return folder


@pytest.mark.quick
def test_every_case_is_the_config_with_one_value_an_axis_and_the_last_axis_runs_fastest():
    config = Config(size=(1, 2), colour=("red", "blue"))
    assert axes(config) == {"size": (1, 2), "colour": ("red", "blue")}
    found = [(case.config.size, case.config.colour, case.config.weight) for case in cases(config)]
    assert found == [(1, "red", 0.5), (1, "blue", 0.5), (2, "red", 0.5), (2, "blue", 0.5)]
    assert [case.place for case in cases(config)][2] == {"case": 2, "repeat": 0, "size": 2, "colour": "red"}


@pytest.mark.quick
def test_every_repeat_has_a_seed_that_its_cases_share():
    found = cases(Config(size=(1, 2), colour=("red",), seed=5, repeats=3))
    assert [case.number for case in found] == list(range(6))
    assert [(case.place["repeat"], case.config.seed) for case in found] == [
        (0, 5), (0, 5), (1, 6), (1, 6), (2, 7), (2, 7)
    ]  # fmt: skip
    assert {case.config.repeats for case in found} == {1}
    with pytest.raises(ValueError, match="--repeats = 0; allowed: an integer of at least 1"):
        Config(repeats=0)


@pytest.mark.quick
def test_an_empty_axis_is_refused_by_its_flag():
    with pytest.raises(UsageError, match=r"--size has no value.*allowed: one value or more"):
        cases(Config(size=()))


@pytest.mark.quick
def test_a_run_leaves_a_tidy_table_in_both_formats_with_provenance_and_figure(tmp_path, capsys):
    run(tmp_path, "--weight", "2.5")
    folder = only_run(tmp_path)
    table = pd.read_parquet(folder / "table.parquet")
    pd.testing.assert_frame_equal(table, pd.read_csv(folder / "table.csv"))
    assert list(table.columns) == ["case", "repeat", "size", "colour", "area", "mass"]
    assert len(table) == 8
    assert table["mass"].eq(2.5).all()
    origin = json.loads((folder / "provenance.json").read_text())
    assert origin["status"] == "complete"
    assert origin["cases"] == origin["finished"] == 4
    assert origin["config"]["weight"] == 2.5
    assert origin["packages"]["numpy"]
    assert origin["machine"]["cpu"]
    assert origin["backend"]["threads"] >= 1
    assert origin["code"] == provenance.code_of(Path(provenance.__file__).parents[2])
    assert (folder / "toy.png").read_text() == "8"
    assert str(folder) in capsys.readouterr().out
    assert not list(folder.glob(".*"))


@pytest.mark.quick
def test_quick_changes_the_defaults_and_a_flag_beside_it_still_holds(tmp_path):
    run(tmp_path, "--quick", "--colour", "green")
    table = pd.read_parquet(only_run(tmp_path) / "table.parquet")
    assert set(table["size"]) == {7}
    assert set(table["colour"]) == {"green"}


@pytest.mark.quick
def test_replot_draws_again_from_the_table_alone(tmp_path):
    run(tmp_path)
    folder = only_run(tmp_path)
    (folder / "toy.png").unlink()

    def forbidden(case):
        raise AssertionError("measured")

    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(folder), measure=forbidden)
    assert ended.value.code == 0
    assert (folder / "toy.png").read_text() == "8"


@pytest.mark.quick
@pytest.mark.parametrize("again", [False, True])
def test_a_pipe_that_breaks_is_no_file_that_cannot_be_written(again, tmp_path):
    def draw(table, out):
        raise BrokenPipeError

    run(tmp_path)
    arguments = ["--replot", str(only_run(tmp_path))] if again else ["--results", str(tmp_path / "more")]
    with pytest.raises(BrokenPipeError):
        main(Config, measure, draw, {}, ["--backend", "cpu", *arguments])


@pytest.fixture
def reference(tmp_path) -> Path:
    """A run that is kept as a reference, without a figure."""
    run(tmp_path)
    folder = tmp_path / "kept" / "results" / "reference" / "test_cli" / "cpu"
    folder.parent.mkdir(parents=True)
    only_run(tmp_path).rename(folder)
    (folder / "toy.png").unlink()
    return folder


@pytest.mark.quick
def test_replot_of_a_reference_draws_nowhere_but_where_out_says(reference, tmp_path, capsys):
    before = sorted(reference.iterdir())
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(reference))
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert f"--replot {reference} would draw into results/reference, whose files are kept" in message
    assert f"allowed: with --out FOLDER; --out {reference} draws there" in message
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(reference), "--out", str(tmp_path / "new" / "folder"))
    assert ended.value.code == 0
    assert (tmp_path / "new" / "folder" / "toy.png").read_text() == "8"
    assert sorted(reference.iterdir()) == before
    assert capsys.readouterr().out.splitlines()[-1] == f"figures: {tmp_path / 'new' / 'folder'}"
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(reference), "--out", str(reference))
    assert ended.value.code == 0
    assert (reference / "toy.png").read_text() == "8"


@pytest.mark.quick
def test_out_without_replot_and_out_that_is_a_file_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--out", str(tmp_path / "new"))
    assert ended.value.code == 2
    assert "without --replot; allowed: beside it; new runs take --results" in capsys.readouterr().err
    run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(only_run(tmp_path)), "--out", str(tmp_path / "file"))
    assert ended.value.code == 2
    assert f"--out {tmp_path / 'file'}: File exists; allowed: a folder" in capsys.readouterr().err


@pytest.mark.quick
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(
    ("flags", "is_quick"),
    [
        ([], True),
        (["--colour", "green"], True),
        (["--repeats", "2"], True),
        (["--weight", "2"], True),
        (["--size", "7"], True),
        (["--weight", "2", "--size", "8"], False),
    ],
)
def test_a_run_with_the_settings_of_a_quick_one_is_quick_while_it_has_a_size_of_it(
    tmp_path, capsys, flags, is_quick, older
):
    quick = {"size": (7,), "weight": 1.5, "repeats": 1}
    options = {"answer": lambda table: Answer(table, "Seen."), "quick_limit": "--quick: too small to see."}

    def once(results, *arguments):
        main(
            Config,
            measure,
            draw,
            quick,
            ["--backend", "cpu", "--results", str(results), *arguments],
            **options,
        )
        return only_run(results)

    folder = once(tmp_path / "first", "--quick")
    if older:
        origin = json.loads((folder / "provenance.json").read_text())
        assert origin.pop("quick") is True
        (folder / "provenance.json").write_text(json.dumps(origin))
    for generation in ("second", "third"):
        capsys.readouterr()
        folder = once(tmp_path / generation, "--from", str(folder), *flags)
        assert ("--quick: too small to see." in capsys.readouterr().out) == is_quick
        assert json.loads((folder / "provenance.json").read_text())["quick"] == is_quick
    with pytest.raises(SystemExit):
        main(Config, measure, draw, quick, ["--replot", str(folder)], **options)
    assert ("--quick: too small to see." in capsys.readouterr().out) == is_quick


@pytest.mark.quick
def test_a_run_and_its_replot_end_with_the_answer_and_quick_says_what_it_cannot_show(tmp_path, capsys):
    def answer(table):
        return Answer(pd.DataFrame({"rows": [len(table)]}, ["toy"]), f"There are {len(table)} rows.")

    options = {"answer": answer, "quick_limit": "--quick: too small to see."}
    arguments = ["--backend", "cpu", "--results", str(tmp_path)]
    main(Config, measure, draw, {"size": (7,)}, [*arguments, "--quick"], **options)
    folder = only_run(tmp_path)
    expected = ["There are 4 rows.", "--quick: too small to see.", f"figures: {folder}"]
    out, err = capsys.readouterr()
    assert out.splitlines()[-3:] == expected
    assert len(out.splitlines()) == 5
    assert f"results in {folder}" in err
    assert "case 2 of 2: blue" in err
    with pytest.raises(SystemExit):
        main(Config, measure, draw, {}, ["--replot", str(folder)], **options)
    assert capsys.readouterr().out.splitlines()[-3:] == expected
    main(Config, measure, draw, {}, [*arguments, "--size", "1"], **options)
    assert "--quick" not in capsys.readouterr().out


@pytest.mark.quick
def test_replot_of_a_folder_without_a_table_says_so(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(tmp_path))
    assert ended.value.code == 2
    assert "no table.parquet in" in capsys.readouterr().err


@pytest.mark.quick
def test_an_empty_axis_on_the_command_line_ends_with_status_2_and_leaves_nothing(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--size")
    assert ended.value.code == 2
    assert "--size has no value" in capsys.readouterr().err
    assert not (tmp_path / "test_cli").exists()


@pytest.mark.quick
def test_an_unwritable_results_folder_ends_with_status_2_and_the_remedy(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(SystemExit) as ended:
        run(blocked)
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert f"cannot write results to {blocked}" in message
    assert "--results" in message


def test_cuda_asked_for_where_there_is_none_ends_with_status_2_before_anything_is_measured(tmp_path, capsys):
    from md import BackendUnavailableError
    from md.backend import get

    try:
        get("cuda")
    except BackendUnavailableError:
        pass
    else:
        pytest.skip("there is a CUDA device here")
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--backend", "cuda")
    assert ended.value.code == 2
    assert "backend 'cuda' cannot run here" in capsys.readouterr().err
    assert not (tmp_path / "test_cli").exists()


@pytest.mark.quick
@pytest.mark.parametrize("seed", [2**63, 2**64, 10**30])
def test_an_integer_that_no_table_holds_ends_with_a_line(seed, tmp_path, capsys):
    def seeded(case):
        yield {"seed": case.seed}

    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--seed", str(seed), measure=seeded)
    assert ended.value.code == 1
    expected_message = (
        f"error: column 'seed' = {seed}; allowed: an integer from -2**63 to 2**63 - 1; give it as text"
    )
    assert expected_message in capsys.readouterr().err
    run(tmp_path, "--seed", str(2**63 - 2), "--repeats", "2", measure=seeded)


@pytest.mark.quick
def test_a_case_that_fails_keeps_the_finished_ones_and_the_traceback(tmp_path, capsys):
    def fragile(case):
        if case.size == 2:
            raise ValueError("size 2 breaks")
        yield from measure(case)

    with pytest.raises(SystemExit) as ended:
        run(tmp_path, measure=fragile)
    assert ended.value.code == 1
    folder = only_run(tmp_path)
    assert len(pd.read_parquet(folder / "table.parquet")) == 4
    assert (
        json.loads((folder / "provenance.json").read_text())["status"] == "failed: ValueError: size 2 breaks"
    )
    assert "size 2 breaks" in (folder / "error.txt").read_text()
    assert "size 2 breaks" in capsys.readouterr().err


def test_ctrl_c_in_the_middle_keeps_and_draws_the_finished_cases(tmp_path):
    flags = ["--size", "1", "2", "60", "--colour", "red", "--log", str(tmp_path / "log")]
    process, heard = started(toy.interrupted, ["--backend", "cpu", "--results", str(tmp_path), *flags])
    assert heard.recv() == "waiting"
    time.sleep(0.1)  # into the sleep, past the word
    os.kill(process.pid, signal.SIGINT)
    (errors,) = all_heard(heard)
    process.join()
    assert process.exitcode == 130, errors
    folder = only_run(tmp_path, "toy")
    assert pd.read_parquet(folder / "table.parquet")["area"].tolist() == [1, -1, 4, -2]
    assert (folder / "toy.png").read_text() == "4"
    origin = json.loads((folder / "provenance.json").read_text())
    assert origin["status"] == "interrupted"
    assert origin["finished"] == 2
    assert origin["table_crc32"] == zlib.crc32((folder / "table.parquet").read_bytes())
    assert f"interrupted; the finished cases are in {folder}" in errors


def interrupting(*arguments, **others):
    raise KeyboardInterrupt


@pytest.mark.quick
@pytest.mark.parametrize(
    ("place", "expected_message"),
    [
        ("experiments.core.command_line._register_curves", "interrupted; nothing was measured"),
        ("experiments.core.cli.cases", "interrupted; nothing was measured"),
        (
            "experiments.core.sweep.cases",
            "interrupted; the finished cases are in {run}; --resume {run} continues",
        ),
        (
            "experiments.core.cli.style.use",
            "interrupted; the table is in {run}; --replot {run} draws its figures",
        ),
        (
            "experiments.core.sweep.Progress",
            "interrupted; the finished cases are in {run}; --resume {run} continues",
        ),
    ],
)
def test_ctrl_c_outside_the_cases_ends_with_status_130_and_a_line(
    place, expected_message, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(place, interrupting)
    with pytest.raises(SystemExit) as ended:
        run(tmp_path)
    assert ended.value.code == 130
    folders = list(tmp_path.glob("test_cli/*"))
    assert f"error: {expected_message.format(run=folders[0] if folders else '')}" in capsys.readouterr().err


@pytest.mark.quick
@pytest.mark.parametrize(
    "place", ["experiments.core.record._open", "experiments.core.provenance.write_atomically"]
)
def test_ctrl_c_while_a_folder_is_made_leaves_one_that_goes_on(place, tmp_path, capsys, monkeypatch):
    module, _, name = place.rpartition(".")
    plain = getattr(sys.modules[module], name)

    def pressed(*arguments):
        monkeypatch.setattr(place, plain)
        signal.raise_signal(signal.SIGINT)
        return plain(*arguments)

    monkeypatch.setattr(place, pressed)
    with contextlib.suppress(SystemExit):
        run(tmp_path)
    gc.collect()  # the exception held the record, and with it the lock of its folder
    assert "error: interrupted; " in capsys.readouterr().err
    folder = only_run(tmp_path)
    main(Config, measure, draw, quick={}, arguments=["--resume", str(folder)])
    assert len(pd.read_parquet(folder / "table.parquet")) == 8


@pytest.mark.quick
def test_a_disk_without_room_for_the_provenance_leaves_no_folder(tmp_path, capsys, monkeypatch):
    def full(path, write):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("experiments.core.provenance.write_atomically", full)
    with pytest.raises(SystemExit) as ended:
        run(tmp_path)
    assert ended.value.code == 2
    assert f"cannot write results to {tmp_path}: No space left on device" in capsys.readouterr().err
    assert not list((tmp_path / "test_cli").iterdir())


@pytest.mark.quick
def test_ctrl_c_while_python_imports_ends_with_status_130_and_a_line(tmp_path):
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt")
    root = Path(provenance.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "experiments.curves"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.quick
def test_ctrl_c_while_figures_are_drawn_again_ends_with_status_130(tmp_path, capsys, monkeypatch):
    run(tmp_path)
    folder = only_run(tmp_path)
    monkeypatch.setattr("experiments.core.cli.read_table_now", interrupting)
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--replot", str(folder))
    assert ended.value.code == 130
    assert f"interrupted; --replot {folder} draws the figures again" in capsys.readouterr().err


@pytest.mark.quick
def test_help_shows_the_docstring_of_every_field_and_the_core_flags(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--help")
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for wanted in ("Size of the toy", "--colour", "--quick", "--results", "--replot", "--seed", "--backend"):
        assert wanted in text


@pytest.mark.quick
@pytest.mark.parametrize(
    ("change", "expected_message"),
    [
        ({"config_type": dict}, "config_type = .*; allowed: a class that extends Settings"),
        ({"measure": 3}, "measure = 3 of class int; allowed: a function"),
        ({"draw": None}, "draw = None"),
        ({"quick": "yes"}, "quick = 'yes' of class str; allowed: a dict"),
        ({"spreads": 1}, "spreads = 1 of class int; allowed: True or False"),
    ],
)
def test_main_refuses_arguments_of_a_wrong_class(change, expected_message):
    right = {"config_type": Config, "measure": measure, "draw": draw, "quick": {}, "arguments": []}
    with pytest.raises(TypeError, match=expected_message):
        main(**(right | change))
