"""Damaged records are named with file, line and remedy; a flipped bit is seen; what is written is whole."""

import json
import os
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.core import main, record, save_table
from experiments.core.record import (
    ERROR,
    JOURNAL,
    PROVENANCE,
    TABLE,
    TABLE_CRC,
    Record,
    read_provenance,
    read_table,
)
from experiments.core.settings import UsageError
from tests.experiments import toy
from tests.experiments.core.test_survival import only, provenance, run
from tests.tiers import by_default, full, product

ROWS = [{"size": 1, "share": 1 / 7, "part": None, "name": "red"}, {"size": -1, "share": float("nan")}]
NESTED = "[" * 100_000
DAMAGED = {
    "empty": "",
    "no JSON": "{",
    "no object": "1",
    "nested": NESTED,
    "grammars": '{"grammars": null}',
    "a grammar": '{"grammars": {"coil": 3}}',
    "config": '{"config": []}',
    "experiment": '{"experiment": ["toy"]}',
    "code": '{"config": {}, "code": "none"}',
    "resumed": '{"config": {}, "resumed": 3}',
    "crc": '{"table_crc32": "a"}',
    "quick": '{"config": {}, "quick": 1}',
    "command": '{"config": {}, "command": "--quick"}',
    "a word": '{"config": {}, "command": ["python", 3]}',
    "a commit": '{"config": {}, "code": {"commit": 3}}',
    "finished": '{"config": {}, "finished": "3"}',
    "reference": '{"config": {}, "reference": "HEAD"}',
    "a resumption": '{"config": {}, "resumed": [3]}',
    "its code": '{"config": {}, "resumed": [{"code": 3}]}',
    "bytes": "\xff\xfe\x00",
}


@pytest.fixture(scope="module")
def complete(tmp_path_factory) -> Path:
    """The folder of a run of two cases that is complete."""
    results = tmp_path_factory.mktemp("complete")
    assert run("--results", results, "--size", 1, "--colour", "red", "blue") == 0
    return only(results)


@pytest.fixture(scope="module")
def failed(tmp_path_factory) -> Path:
    """The folder of a run that ended before its last case."""
    results = tmp_path_factory.mktemp("failed")
    assert run("--results", results, "--size", 1, 2, 13, "--colour", "red") == 1
    return only(results)


@pytest.fixture
def cut(failed, tmp_path) -> Path:
    """A copy of the folder of such a run."""
    return copied(failed, tmp_path / "cut")


def copied(folder: Path, to: Path) -> Path:
    to.mkdir()
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def refused(folder: Path, flag: str, capsys, *more) -> str:
    """The message of a run that ends with status 2."""
    capsys.readouterr()
    assert run(flag, folder, *more) == 2
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return message


@pytest.mark.quick
@pytest.mark.parametrize(
    ("damage", "flag"), product(list(DAMAGED), ["--replot", "--resume", "--from"], 3, full)
)
def test_a_damaged_provenance_is_named_with_its_remedy(complete, tmp_path, capsys, damage, flag):
    folder = copied(complete, tmp_path / "run")
    (folder / PROVENANCE).write_text(DAMAGED[damage], encoding="latin-1")
    (folder / JOURNAL).touch()
    message = refused(folder, flag, capsys, *(("--results", tmp_path) if flag == "--from" else ()))
    assert f"{folder / PROVENANCE} is damaged" in message
    assert "restore a copy of it, or move it away" in message
    (folder / PROVENANCE).unlink()
    (folder / JOURNAL).unlink()
    assert run("--replot", folder) == 0  # as the remedy says


@pytest.mark.quick
@pytest.mark.parametrize(
    "change", [{"size": "big"}, {"size": [None]}, {"seed": -1}, {"repeats": 1.5}, {"colour": 3}]
)
def test_settings_of_a_wrong_class_in_a_provenance_are_refused_by_its_name(
    complete, tmp_path, capsys, change
):
    folder = copied(complete, tmp_path / "run")
    origin = provenance(folder)
    (folder / PROVENANCE).write_text(json.dumps(origin | {"config": origin["config"] | change}))
    message = refused(folder, "--from", capsys, "--results", tmp_path)
    assert f"its settings are refused: --{next(iter(change))}" in message
    assert str(folder / PROVENANCE) in message


@pytest.mark.quick
@pytest.mark.parametrize(
    "line",
    [b"", b"1", b"{}", b"[1]", b"[0, 1, 2]", b"[true, []]", b'[0, [{"a": []}]]', b"\xff", NESTED.encode()],
)
def test_a_damaged_line_of_the_journal_is_named_and_may_be_deleted(cut, capsys, line):
    lines = (cut / JOURNAL).read_bytes().splitlines()
    (cut / JOURNAL).write_bytes(b"\n".join([line, *lines[1:], b""]))
    for flag in ("--replot", "--resume"):
        message = refused(cut, flag, capsys)
        assert f"{cut / JOURNAL}, line 1, is damaged" in message
        assert "restore a copy of the file, or delete that line" in message
    (cut / JOURNAL).write_bytes(b"\n".join([*lines[1:], b""]))
    assert Record.reopen(cut).finished == {1}


@pytest.mark.quick
def test_a_flipped_bit_of_the_journal_is_seen(tmp_path):
    held = Record.create(tmp_path, "toy", {})
    held.add(0, ROWS)
    held.add(1, ROWS)
    held.release()
    journal = held.folder / JOURNAL
    whole = journal.read_bytes()
    first, last = whole.index(b"\n"), len(whole) - 1
    for bit in np.random.default_rng(0).choice(8 * last, 250, replace=False):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        journal.write_bytes(damaged)
        with pytest.raises(UsageError, match=f"line {1 if bit // 8 <= first else 2}, is damaged"):
            read_table(held.folder)
    journal.write_bytes(whole[:last] + b"!")  # the last line has no end: its case was not finished
    assert Record.reopen(held.folder).finished == {0}


@pytest.mark.quick
@pytest.mark.parametrize(("missing", "begin"), [(0, 0), (1, 1), (2, 2), (3, 3), (None, 3)])
def test_a_case_without_one_of_its_lines_is_not_finished(missing, begin, tmp_path):
    held = Record.create(tmp_path, "toy", {})
    for number in (0, 1, 2, None):
        held.add(0, [{"round": number}], number)
    held.release()
    journal = held.folder / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for k, line in enumerate(lines) if k != missing))
    again = Record.reopen(held.folder)
    assert again.finished == ({0} if missing is None else set())
    assert begin == (3 if missing is None else again.first_missing_round(0))


@pytest.mark.parametrize("other", [{}, {"seed": None}, {"seed": float("nan")}])
def test_a_wide_integer_is_kept_where_another_row_has_none(other, tmp_path):
    record, seed = Record.create(tmp_path, "toy", {}), 2**63 - 1
    for wide in (2**63, 2**64 - 1, -(2**63) - 1):
        with pytest.raises(ValueError, match=rf"'seed' = {wide}; allowed: an integer from -2\*\*63 to"):
            record.add(0, [{"seed": wide}, {"size": 2} | other])
    record.add(0, [{"size": 1, "seed": seed}, {"size": 2} | other, {"size": 3, "seed": -seed}])
    record.write_tables()
    for table in (record.table, read_table(record.folder), pd.read_parquet(record.folder / "table.parquet")):
        assert table["seed"].dropna().tolist() == [seed, -seed]
    assert f",{seed}\n" in (record.folder / "table.csv").read_text()
    record.release()


@pytest.mark.quick
def test_lines_without_a_checksum_are_of_older_code_and_are_read(tmp_path):
    (tmp_path / JOURNAL).write_text(json.dumps([0, ROWS]) + "\n")
    assert read_table(tmp_path)["size"].tolist() == [1, -1]
    assert Record.reopen(tmp_path).finished == {0}


@pytest.mark.quick
def test_a_flipped_bit_of_the_table_is_seen(complete, tmp_path):
    folder = copied(complete, tmp_path / "run")
    whole = (folder / TABLE).read_bytes()
    for bit in np.random.default_rng(1).integers(8 * len(whole), size=300):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (folder / TABLE).write_bytes(damaged)
        with pytest.raises(UsageError, match=r"table\.parquet is damaged: its CRC-32 is .*--from"):
            read_table(folder)


def test_without_a_provenance_what_cannot_be_read_of_a_table_is_named_and_its_pages_are_checked(
    complete, tmp_path
):
    folder = copied(complete, tmp_path / "run")
    (folder / PROVENANCE).unlink()
    whole = (folder / TABLE).read_bytes()
    page = whole.index(b"red") * 8  # the first value of a page
    seen = []
    for bit in [page, *np.random.default_rng(2).integers(8 * len(whole), size=150)]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (folder / TABLE).write_bytes(damaged)
        try:
            read_table(folder)
        except UsageError as error:
            seen.append((bit, str(error)))
    assert seen[0][0] == page
    assert len(seen) > 60
    for _, message in seen:
        assert f"{folder / TABLE} cannot be read" in message
        assert f"--from {folder}" in message


@pytest.mark.quick
@pytest.mark.parametrize("data", [b"", b"PAR1", b"case,repeat\n1,2\n"])
def test_a_table_that_is_none_is_refused_on_the_command_line(complete, tmp_path, capsys, data):
    folder = copied(complete, tmp_path / "run")
    (folder / TABLE).write_bytes(data)
    assert f"{folder / TABLE} is damaged" in refused(folder, "--replot", capsys)
    (folder / PROVENANCE).unlink()
    assert f"{folder / TABLE} cannot be read" in refused(folder, "--replot", capsys)


@pytest.mark.quick
def test_a_table_that_the_experiment_cannot_draw_is_named(complete, tmp_path, capsys):
    def lacking(table, out):
        table["weight"]

    with pytest.raises(SystemExit) as ended:
        main(toy.Config, toy.measure, lacking, {}, ["--replot", str(complete)])
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert f"the table of {complete} cannot be drawn: KeyError: 'weight'" in message


@pytest.mark.quick
def test_a_table_that_was_changed_on_purpose_can_be_drawn(complete, tmp_path, capsys):
    folder = copied(complete, tmp_path / "run")
    read_table(folder).iloc[:1].to_parquet(folder / TABLE)
    assert f"delete '{TABLE_CRC}' from {PROVENANCE}" in refused(folder, "--replot", capsys)
    origin = provenance(folder)
    del origin[TABLE_CRC]
    (folder / PROVENANCE).write_text(json.dumps(origin))
    assert run("--replot", folder) == 0
    assert (folder / "toy.png").read_text() == "1"


@pytest.mark.quick
def test_a_folder_that_may_not_be_written_is_named_when_figures_are_drawn_again(
    complete, capsys, monkeypatch
):
    def draw(table, out):
        save_table(table, out, "summary")

    monkeypatch.setattr("os.replace", refusing)
    with pytest.raises(SystemExit) as ended:
        main(toy.Config, toy.measure, draw, {}, ["--replot", str(complete)])
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert f"'{complete / 'summary.csv'}'" in message
    assert "make room, or give another with --out" in message


def refusing(*arguments, **others):
    raise PermissionError(13, "Permission denied")


@pytest.mark.quick
def test_a_disk_that_is_full_while_figures_are_drawn_is_named_with_the_way_on(tmp_path, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def draw(table, out):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            save_table(table, out, "summary")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with pytest.raises(SystemExit) as ended:
        main(
            toy.Config, toy.measure, draw, {}, ["--backend", "cpu", "--results", str(tmp_path), "--size", "1"]
        )
    assert ended.value.code == 1
    message = capsys.readouterr().err
    folder = only(tmp_path)
    assert f"'{folder / 'summary.csv'}'" in message
    assert f"--replot {folder} draws its figures" in message
    assert "--resume" not in message
    assert not list(folder.glob("*summary*"))
    assert run("--replot", folder) == 0


@pytest.mark.quick
def test_the_error_of_a_failed_attempt_goes_when_the_run_is_completed(tmp_path):
    broken = [13]

    def measure(case):
        if case.size in broken:
            raise ValueError("breaks")
        yield {"area": case.size}

    assert run("--results", tmp_path, "--size", 1, 13, measure=measure) == 1
    folder = only(tmp_path)
    assert "breaks" in (folder / ERROR).read_text()
    broken.clear()
    assert run("--resume", folder, measure=measure) == 0
    assert not (folder / ERROR).exists()
    assert not (folder / JOURNAL).exists()


@pytest.mark.quick
def test_the_provenance_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    held, order = Record.create(tmp_path, "toy", {}), []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (order.append("fsync"), fsync(handle)))
    monkeypatch.setattr("os.replace", lambda *names: (order.append("replace"), replace(*names)))
    held.describe({"status": "running"})
    assert order == ["fsync", "replace", "fsync"]  # the file, its place, the folder
    assert read_provenance(held.folder) == {"status": "running"}


@pytest.mark.quick
@pytest.mark.parametrize("name", [PROVENANCE, TABLE, "table.csv"])
def test_no_planted_link_is_followed(tmp_path, name):
    held = Record.create(tmp_path, "toy", {})
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    (held.folder / f".{name}.partial").symlink_to(victim)
    held.add(0, ROWS)
    held.write_tables()
    held.describe({})
    assert victim.read_text() == "mine"
    assert not (held.folder / name).is_symlink()


@pytest.mark.quick
def test_a_disk_that_is_full_names_the_journal(tmp_path):
    held = Record.create(tmp_path, "toy", {})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(OSError, match=str(held.folder / JOURNAL)):
            held.add(0, ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (held.folder / JOURNAL).read_bytes()


@pytest.mark.quick
def test_a_run_whose_end_cannot_be_told_is_not_complete(tmp_path, capsys, monkeypatch):
    describe = Record.describe

    def full(self, origin):
        if origin["status"] == "complete":
            raise OSError(28, "No space left on device", str(self.folder / PROVENANCE))
        describe(self, origin)

    monkeypatch.setattr(Record, "describe", full)
    assert run("--results", tmp_path, "--size", 1) == 1
    folder = only(tmp_path)
    message = capsys.readouterr().err
    assert str(folder / PROVENANCE) in message
    assert f"--resume {folder} continues" in message
    monkeypatch.setattr(Record, "describe", describe)
    assert run("--resume", folder) == 0
    assert provenance(folder)["status"] == "complete"


@pytest.mark.quick
def test_arguments_of_a_wrong_class_are_refused(tmp_path):
    with pytest.raises(TypeError, match="folder = 3 of class int; allowed: a path"):
        Record(3)
    held = Record.create(tmp_path, "toy", {})
    with pytest.raises(TypeError, match="number of a case = '1'"):
        held.add("1", ROWS)
    with pytest.raises(ValueError, match="number of a case = -1"):
        held.add(-1, ROWS)
    with pytest.raises(TypeError, match=r"table = \[\] of class list; allowed: a pandas.DataFrame"):
        save_table([], tmp_path, "x")


KEPT = sorted(Path(record.__file__).parents[2].glob("results/reference/*/*"))
ONE_EACH = {folder.parent: folder for folder in KEPT}.values()  # of each experiment


@pytest.mark.parametrize("folder", by_default(KEPT, lambda folder: folder in ONE_EACH, full), ids=str)
def test_the_committed_tables_are_read(folder):
    assert len(read_table(folder)) > 0
    assert read_provenance(folder)["experiment"] == folder.parent.name
