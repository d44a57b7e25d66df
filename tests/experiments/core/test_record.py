"""Damaged records are named with file, row and remedy; a flipped bit is seen; what is written is whole."""

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.core import main, record, save_table
from experiments.core.provenance import PROVENANCE, TABLE_CRC, read_provenance
from experiments.core.record import DATABASE, ERROR, OLD_JOURNAL, TABLE, Record, read_table
from experiments.core.settings import UsageError
from tests.experiments import toy
from tests.experiments.core.test_survival import only, provenance, run
from tests.experiments.faults import largest_file
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
    message = refused(folder, flag, capsys, *(("--results", tmp_path) if flag == "--from" else ()))
    assert f"{folder / PROVENANCE} is damaged" in message
    assert "restore a copy of it, or move it away" in message
    (folder / PROVENANCE).unlink()
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


def change(folder: Path, statement: str) -> None:
    """Change the database of a run as its user may."""
    with contextlib.closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as database:
        database.execute(statement)


def flipped(path: Path, count: int, end: int | None = None, first: int = 0) -> Iterator[int]:
    """The numbers of bits of a file, each flipped meanwhile: `first`, and some before byte `end`."""
    whole = path.read_bytes()
    for bit in [first, *np.random.default_rng(0).choice(8 * (end or len(whole)), count, replace=False)]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield bit


def recorded(tmp_path: Path, *rows: tuple[int, list[dict], int | None]) -> Path:
    """The folder of a run that has these rounds and is measured by no process."""
    held = Record.create(tmp_path, "toy", {})
    for number, some, round_number in rows:
        held.add(number, some, round_number)
    held.release()
    return held.folder


@pytest.mark.quick
@pytest.mark.parametrize(
    ("damage", "row"),
    [
        ("UPDATE rounds SET rows = replace(rows, 'red', 'rod') WHERE rowid = 1", 1),
        ("UPDATE rounds SET number = 'x' WHERE rowid = 2", 2),
        ("UPDATE rounds SET last = 0 WHERE rowid = 1", 1),
        ("UPDATE rounds SET crc32 = NULL WHERE rowid = 2", 2),
        ("INSERT INTO rounds SELECT * FROM rounds WHERE rowid = 1", 3),
    ],
)
def test_a_damaged_row_is_named_and_measured_again_once_it_is_deleted(cut, capsys, damage, row):
    change(cut, damage)
    remedy = f"DELETE FROM rounds WHERE rowid >= {row}"
    for flag in ("--replot", "--resume"):
        message = refused(cut, flag, capsys)
        assert f"{cut / DATABASE} is damaged: row {row}, of case" in message
        assert f"after {remedy} --resume measures the rest again; restore a copy of it, or repeat" in message
    change(cut, remedy)
    assert Record.reopen(cut).finished == set(range(row - 1))


@pytest.mark.quick
def test_a_round_that_is_missing_is_named(tmp_path):
    folder = recorded(tmp_path, *((0, [{"round": number}], number) for number in (0, 1, 2, None)))
    assert Record.reopen(folder).finished == {0}
    change(folder, "DELETE FROM rounds WHERE rowid = 2")
    with pytest.raises(UsageError, match=r"row 3, of case 0, round 2, .* follows a gap; after DELETE FROM"):
        read_table(folder)
    change(folder, "DELETE FROM rounds WHERE rowid >= 3")
    again = Record.reopen(folder)
    assert (again.finished, again.first_missing_round(0)) == (set(), 1)


@pytest.mark.quick
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"rows" * 2000,
        lambda data: data[:-999],
        lambda data: data[:4100] + bytes([data[4100] - 1]) + data[4101:],  # the number of rows of a page
    ],
)
def test_a_database_that_is_none_or_cut_short_is_named(cut, capsys, damage):
    (cut / DATABASE).write_bytes(damage((cut / DATABASE).read_bytes()))
    for flag in ("--replot", "--resume"):
        message = refused(cut, flag, capsys)
        assert f"{cut / DATABASE} is damaged: " in message
        assert f"or repeat the run with --from {cut}" in message


@pytest.mark.quick
def test_a_flipped_bit_of_the_database_is_seen_or_changes_no_row(tmp_path):
    many = [row | {"text": "words " * 100} for row in ROWS]
    folder = recorded(tmp_path, *((number, many, None) for number in range(8)))
    table, seen = read_table(folder), 0
    for _ in flipped(folder / DATABASE, 250):
        try:
            pd.testing.assert_frame_equal(read_table(folder), table, check_exact=True)
        except UsageError as error:
            seen += str(folder / DATABASE) in str(error)
    assert seen > 120  # the others are in bytes without a meaning


@pytest.mark.quick
@pytest.mark.parametrize("begin", ["--replot", "--resume"])
def test_a_transaction_cut_short_is_rolled_back(cut, tmp_path, begin):
    before, torn = read_table(cut), tmp_path / "torn"
    with contextlib.closing(sqlite3.connect(cut / DATABASE, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")  # pages are written before the end of the transaction
        database.execute("BEGIN")
        database.execute("UPDATE rounds SET crc32 = 0, rows = zeroblob(9000)")
        database.execute("INSERT INTO rounds SELECT * FROM rounds")
        copied(cut, torn)  # as a kill leaves it
    assert (torn / DATABASE).read_bytes() != (cut / DATABASE).read_bytes()
    assert run(begin, torn) == (0 if begin == "--replot" else 1)
    pd.testing.assert_frame_equal(read_table(torn), before, check_exact=True)


@pytest.mark.quick
def test_values_come_back_as_they_were_given_those_of_numpy_as_plain_ones(tmp_path):
    values = [0.1, -0.0, 5e-324, 1.7976931348623157e308, np.inf, -np.inf, np.nan, None, True, 0, -(2**63)]
    values += [2**63 - 1, 2**53 + 1, "", "a\n\"'\0ä", "NaN", 0.5, 2**40, False, "x"]
    given = [*values[:-4], np.float32(0.5), np.int64(2**40), np.bool_(False), np.str_("x")]
    again = Record.reopen(recorded(tmp_path, (3, [dict(zip("abcdefghijklmnopqrst", given, strict=True))], 0)))
    assert repr(again.table.astype(object).iloc[0].tolist()) == repr(values)
    assert (again.finished, again.first_missing_round(3)) == (set(), 1)


@pytest.mark.quick
def test_a_round_is_recorded_once(tmp_path):
    held = Record.create(tmp_path, "toy", {})
    held.add(0, ROWS, 0)
    for number in (0, 2):
        with pytest.raises(
            ValueError, match=f"round of case 0 = {number}; allowed: 1, the first missing one"
        ):
            held.add(0, ROWS, number)
    held.add(0, ROWS)
    with pytest.raises(ValueError, match="number of a case = 0; allowed: a case that is not finished"):
        held.add(0, ROWS, 2)
    assert len(held.table) == 4


@pytest.mark.quick
def test_the_files_of_a_process_that_was_killed_go_when_its_run_is_closed(tmp_path):
    held = Record.create(tmp_path, "toy", {})
    held.add(0, ROWS)
    folder = copied(held.folder, tmp_path / "killed")
    assert sorted(path.name for path in folder.glob("rows*")) == [DATABASE, f"{DATABASE}-journal"]
    Record.reopen(folder).close()
    assert not list(folder.glob("rows*"))


@pytest.mark.quick
def test_a_run_of_older_code_is_drawn_and_says_how_it_is_resumed(cut, tmp_path, capsys):
    wanted = read_table(cut)
    texts = [
        json.dumps([number, wanted.iloc[k : k + 1].to_dict("records"), round_number])[:-1].encode()
        for k, number, round_number in ((2, 1, 0), (0, 0, 0), (1, 0, ~1), (3, 1, 1))
    ]
    lines = [b"%b, %d]\n" % (text, zlib.crc32(text)) for text in texts]
    (cut / DATABASE).unlink()
    (cut / OLD_JOURNAL).write_bytes(b"".join(lines) + lines[0][:-1])  # the last line was cut short
    pd.testing.assert_frame_equal(read_table(cut), wanted, check_exact=True)
    assert run("--replot", cut) == 0
    message = refused(cut, "--resume", capsys)
    assert f"no {DATABASE} in {cut}, but {OLD_JOURNAL} of older code: resume it with the commit in" in message
    assert "--from repeats a finished run" in message
    for bit in flipped(cut / OLD_JOURNAL, 100, sum(map(len, lines[:2])) - 1):
        where = f"line {1 if bit // 8 < len(lines[0]) else 2} has another CRC-32; restore a copy"
        with pytest.raises(UsageError, match=f"{OLD_JOURNAL} cannot be read: ValueError: {where}"):
            read_table(cut)


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
def test_a_flipped_bit_of_the_table_is_seen(complete, tmp_path):
    folder = copied(complete, tmp_path / "run")
    for _ in flipped(folder / TABLE, 300):
        with pytest.raises(UsageError, match=r"table\.parquet is damaged: its CRC-32 is .*--from"):
            read_table(folder)


def test_without_a_provenance_what_cannot_be_read_of_a_table_is_named_and_its_pages_are_checked(
    complete, tmp_path
):
    folder = copied(complete, tmp_path / "run")
    (folder / PROVENANCE).unlink()
    page, seen = 8 * (folder / TABLE).read_bytes().index(b"red"), 0  # the first value of a page
    for bit in flipped(folder / TABLE, 150, first=page):
        try:
            read_table(folder)
        except UsageError as error:
            seen += f"{folder / TABLE} cannot be read" in str(error) and f"--from {folder}" in str(error)
        else:
            assert bit != page
    assert seen > 60


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
    def draw(table, out):
        with largest_file(0):
            save_table(table, out, "summary")

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
    assert not list(folder.glob(f"{DATABASE}*"))


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
    with pytest.raises(UsageError, match="no table"):
        read_table(tmp_path)
    with pytest.raises(TypeError, match=r"table = \[\] of class list; allowed: a pandas.DataFrame"):
        save_table([], tmp_path, "x")


KEPT = sorted(Path(record.__file__).parents[2].glob("results/reference/*/*"))
ONE_EACH = {folder.parent: folder for folder in KEPT}.values()  # of each experiment


@pytest.mark.parametrize("folder", by_default(KEPT, lambda folder: folder in ONE_EACH, full), ids=str)
def test_the_committed_tables_are_read(folder):
    assert len(read_table(folder)) > 0
    assert read_provenance(folder)["experiment"] == folder.parent.name
