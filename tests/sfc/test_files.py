"""`python -m sfc sort`: every column and array of a file is sorted, and nothing is lost or replaced."""

import csv
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from sfc.__main__ import main
from sfc.files import sort_file

POINTS = np.random.default_rng(0).random((60, 3))
PAIR = ("a.npz", "b.npz")
ORDER = sfc.argsort(POINTS, "row")


def table(delimiter=",", end="\n", head="id,x,y,z,note\n", last=True):
    """A text of names, coordinates with all digits, and notes that need quotes."""
    rows = [
        delimiter.join([f"{k:03}", *map(repr, point), f'"a{delimiter} ""{k}"""'])
        for k, point in enumerate(POINTS.tolist())
    ]
    return head.replace(",", delimiter).replace("\n", end) + end.join(rows) + (end if last else "")


@pytest.mark.quick
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_of_a_table_stay_as_they_are_written(tmp_path, delimiter, end):
    text = table(delimiter, end, last=False)
    (tmp_path / "a.csv").write_bytes(text.encode())
    found = sort_file(tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "p.npy", curve="row")
    head, *rows = (text + end).splitlines(keepends=True)
    expected = head + "".join(rows[k] for k in ORDER)
    assert (tmp_path / "b.csv").read_bytes().decode() == expected
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), ORDER)
    assert (found.order.tolist(), found.dim, found.notes) == (ORDER.tolist(), 3, [])
    assert (tmp_path / "a.csv").read_bytes() == text.encode()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "b.csv", "p.npy"]


@pytest.fixture(scope="module")
def folder_of_all(tmp_path_factory):
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("tables")


@given(
    notes=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    seed=st.integers(0, 99),
)
def test_any_text_beside_the_coordinates_moves_with_its_row(folder_of_all, notes, end, seed):
    folder = folder_of_all
    points = np.random.default_rng(seed).random((len(notes), 2))
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["note", "y", "x"])
    writer.writerows([note, y, x] for note, (x, y) in zip(notes, points.tolist(), strict=True))
    (folder / "a.csv").write_bytes(stream.getvalue().encode())
    sort_file(folder / "a.csv", folder / "b.csv", overwrite=True, curve="str", capacity=1)
    with (folder / "b.csv").open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    order = sfc.argsort(points, "str", capacity=1)
    assert names == ["note", "y", "x"]
    assert rows == [[notes[k], repr(points[k, 1].item()), repr(points[k, 0].item())] for k in order]


def test_what_numpy_writes_as_text_is_read(tmp_path):
    for head in ("", "x y z", "made by hand\nx y z", "made by hand"):
        for delimiter in (" ", ","):
            names = head.replace("x y z", delimiter.join("xyz"))
            np.savetxt(tmp_path / "a.csv", POINTS, header=names, delimiter=delimiter)
            sort_file(tmp_path / "a.csv", tmp_path / "b.csv", curve="row", overwrite=True)
            np.testing.assert_array_equal(
                np.loadtxt(tmp_path / "b.csv", delimiter=delimiter.strip() or None), POINTS[ORDER]
            )
            comments = [line for line in (tmp_path / "a.csv").read_text().splitlines() if line[0] == "#"]
            assert (tmp_path / "b.csv").read_text().splitlines()[: len(comments)] == comments


def test_bytes_of_no_utf_8_a_mark_and_blank_lines(tmp_path):
    rows = [b"3,4,caf\xe9\n", b"1,2,b\n", b"5,9,c\n"]
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfX,y,name\n" + rows[0] + b"\n" + rows[1] + rows[2] + b" \n")
    found = sort_file(tmp_path / "a.csv", tmp_path / "b.csv", curve="row", cells=2)
    assert found.notes == ["left out: 2 blank lines"]
    order = sfc.argsort([[3, 4.0], [1, 2], [5, 9]], "row", cells=2)
    assert found.order.tolist() == order.tolist() != [0, 1, 2]
    expected = b"\xef\xbb\xbfX,y,name\n" + b"".join(rows[k] for k in found.order)
    assert (tmp_path / "b.csv").read_bytes() == expected


def test_columns_of_one_array(tmp_path):
    wide = np.column_stack([np.arange(60.0), POINTS])
    np.save(tmp_path / "a.npy", wide)
    sort_file(tmp_path / "a.npy", tmp_path / "b.npy", columns=["1", "2", "3"], curve="row")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), wide[ORDER])
    np.save(tmp_path / "a.npy", POINTS.astype("f4"))
    sort_file(tmp_path / "a.npy", tmp_path / "c.npy", curve="hilbert", bits=9)
    found = np.load(tmp_path / "c.npy")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, sfc.sort(POINTS.astype("f4"), bits=9))


def test_structured_arrays(tmp_path):
    values = np.zeros(60, [("name", "U3"), ("y", "f8"), ("x", "f4"), ("pos", "f8", 3)])
    values["name"], values["y"], values["x"] = [str(k) for k in range(60)], POINTS[:, 1], POINTS[:, 0]
    values["pos"] = POINTS
    np.save(tmp_path / "a.npy", values)
    sort_file(tmp_path / "a.npy", tmp_path / "b.npy", curve="row")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), values[ORDER])
    found = sort_file(tmp_path / "a.npy", tmp_path / "c.npy", columns=["x", "y"], curve="row").order
    flat = np.column_stack([POINTS[:, 0].astype("f4"), POINTS[:, 1]])
    np.testing.assert_array_equal(found, sfc.argsort(flat, "row"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_by_name(tmp_path, save):
    x, y, z = POINTS.T
    arrays = {
        "mass": np.arange(60),
        "x": x,
        "y": y,
        "z": z,
        "box": np.ones(3),
        "t": np.array(7),
        "v": POINTS * 2,
    }
    save(tmp_path / "a.npz", **arrays)
    notes = sort_file(tmp_path / "a.npz", tmp_path / "b.npz", curve="row").notes
    assert notes == ["kept as they are: box (3,), t ()"]
    found = np.load(tmp_path / "b.npz")
    assert found.files == list(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(
            found[name], values[ORDER] if len(values.shape) and len(values) == 60 else values
        )
    kinds = [{one.compress_type for one in zipfile.ZipFile(tmp_path / name).infolist()} for name in PAIR]
    assert kinds[0] == kinds[1]
    again = sort_file(tmp_path / "a.npz", tmp_path / "c.npz", columns=["v"], curve="row").order
    np.testing.assert_array_equal(again, ORDER)
    save(tmp_path / "d.npz", pos=POINTS, mass=np.arange(60))
    sort_file(tmp_path / "d.npz", tmp_path / "e.npz", curve="row")
    np.testing.assert_array_equal(np.load(tmp_path / "e.npz")["mass"], ORDER)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files of each format, in which commands run."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", POINTS)
    np.save("objects.npy", np.array([[None, 1]], object), allow_pickle=True)
    np.save("flat.npy", POINTS[:, 0])
    np.savez("a.npz", p=POINTS, x=POINTS[:, 0], y=POINTS[:5, 1], names=np.full(60, "n"))
    (tmp_path / "a.csv").write_text("x,y,n\n1,2,3\n4,5,6\n")
    (tmp_path / "short.csv").write_text("x,y\n1,2\n4\n")
    (tmp_path / "word.csv").write_text("x,y\n1,2\n\n4,b\n")
    (tmp_path / "open.csv").write_text('x,y\n1,2\n4,"5\n')
    (tmp_path / "twice.csv").write_text("x,x,y\n1,2,3\n")
    (tmp_path / "empty.csv").write_text("# x y\n")
    (tmp_path / "nan.csv").write_text("x,y\n1,2\nnan,3\n")
    (tmp_path / "torn.npz").write_bytes(b"PK\3\4 no archive")
    (tmp_path / "a.gsd").write_bytes(b"")
    (tmp_path / "taken.npy").write_text("mine")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a.gsd --out b.gsd", "file = 'a.gsd'; allowed: a name ending in .npy, .npz, .csv; `python -m exp"),
        ("none.npy --out b.npy", "file = 'none.npy'; allowed: a file that exists"),
        ("a.npy", "out = None; allowed: a path"),
        ("a.npy --out b.csv", "out = 'b.csv'; allowed: a name ending in .npy"),
        ("a.npy --out b.npy --permutation p.txt", "permutation = 'p.txt'; allowed: a name ending in .npy"),
        ("a.npy --out no/b.npy", "folder of out = 'no'; allowed: a folder that exists"),
        ("a.npy --out taken.npy", "the name is taken; give another, or --overwrite"),
        ("a.npy --out a.npy", "the name is the file itself; give another, or --overwrite"),
        ("a.npy --out b.npy --permutation taken.npy", "permutation = 'taken.npy'; allowed: a name that"),
        ("a.npy --out b.npy --permutation b.npy", "permutation = 'b.npy'; allowed: another name than out"),
        ("a.npy --permutation a.npy --overwrite", "permutation = 'a.npy'; allowed: another name than"),
        ("a.npy --out b.npy --order rows", "unknown curve 'rows'; known in 3D"),
        ("a.npy --out b.npy --order row --tile 3", "ordering 'row' does not take ['tile']"),
        ("a.npy --out b.npy --box 0 1 2", "--box of 3 numbers; allowed: low high, or both corners"),
        ("a.npy --out b.npy --box 0 0.5", "allowed: a point in the box"),
        ("a.npy --out b.npy --columns 0 3", "column = '3'; allowed: a number from 0 to 2"),
        ("a.npy --out b.npy --columns 0 0", "columns = ['0', '0']; allowed: each column once"),
        ("flat.npy --out b.npy", "shape of the array in flat.npy = (60,); allowed: (n, columns)"),
        ("objects.npy --out b.npy", "objects.npy = 'no array'; allowed: a file of arrays"),
        ("torn.npz --out b.npz", "torn.npz = 'no array'"),
        ("a.npz --out b.npz", "shape of y = (5,); allowed: (60,)"),
        ("a.npz --out b.npz --columns q", "array = 'q'; allowed: one of p, x, y, names"),
        ("a.npz --out b.npz --columns x", "shape of x = (60,); allowed: (n, dim)"),
        ("a.npz --out b.npz --columns x names", "dtype of names = '<U1'; allowed: floats or integers"),
        ("a.csv --out b.csv --columns x m", "column = 'm'; allowed: x, y, n, or a number from 0 to 2"),
        ("short.csv --out b.csv", "fields of line 3 of short.csv = 1; allowed: 2"),
        ("word.csv --out b.csv", "column y in line 4 of word.csv = 'b'; allowed: a number"),
        ("open.csv --out b.csv", "line 3 of open.csv = "),
        ("twice.csv --out b.csv", "columns of the file = ['x', 'x', 'y']; allowed: x and y"),
        ("twice.csv --out b.csv --columns x y", "column = 'x'; allowed: a name of one column"),
        ("empty.csv --out b.csv", "rows of empty.csv = 0; allowed: at least one row"),
        ("nan.csv --out b.csv", "points[1] = [nan, 3.0]"),
    ],
)  # fmt: skip
def test_what_is_refused_is_said_in_a_line_and_leaves_no_file(folder, capsys, words, message):
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert main(["sort", *words.split()]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.startswith("python -m sfc sort: ")
    assert (shown.err.count("\n"), shown.out) == (1, "")
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


@pytest.mark.quick
def test_the_command_line(folder, capsys):
    words = "sort a.npy --order tiled --tile 3 --cells 9 --box 0 1 --out b.npy --permutation p.npy"
    assert main(words.split()) == 0
    assert capsys.readouterr().out == "60 points in 3D by tiled; sorted file in b.npy, permutation in p.npy\n"
    order = sfc.argsort(POINTS, "tiled", tile=3, cells=9, box=(0, 1))
    np.testing.assert_array_equal(np.load("p.npy"), order)
    np.testing.assert_array_equal(np.load("b.npy"), POINTS[order])
    words = "sort a.npy --bits 4 --stretch --box 0 0 -1 1 1 1 --permutation taken.npy --overwrite"
    assert main(words.split()) == 0
    order = sfc.argsort(POINTS, bits=4, box=((0, 0, -1), (1, 1, 1)), stretch=True)
    np.testing.assert_array_equal(np.load("taken.npy"), order)
    assert main("sort a.npy --out a.npy --overwrite --order str --capacity 4".split()) == 0
    np.testing.assert_array_equal(np.load("a.npy"), sfc.sort(POINTS, curve="str", capacity=4))


def test_an_error_while_writing_leaves_what_was_there(folder, monkeypatch):
    def fail(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr("numpy.save", fail)
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    with pytest.raises(OSError, match="no space left"):
        sort_file("a.csv", "a.csv", "p.npy", overwrite=True)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


def test_the_module_runs_with_numpy_alone(folder):
    code = (
        "import sys, sfc.__main__ as door; status = door.main(sys.argv[1:]); "
        "assert not {'pandas', 'tyro', 'shapely', 'geopandas'} & set(sys.modules); sys.exit(status)"
    )
    words = ["sort", "a.npy", "--order", "row", "--out", "b.npy"]
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
    np.testing.assert_array_equal(np.load("b.npy"), POINTS[ORDER])
    found = subprocess.run([sys.executable, "-m", "sfc", *words], capture_output=True, text=True)
    assert (found.returncode, "is taken" in found.stderr) == (2, True)
