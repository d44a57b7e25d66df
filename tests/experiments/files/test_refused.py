"""Faults that libraries read without a word, each refused with its name, or read right."""

import struct
import zipfile

import gsd.hoomd
import meshio
import numpy as np
import pytest
import scipy.sparse

from experiments.files import FORMATS, FileError, read, write
from experiments.files.opening import INSTALL
from tests.experiments.files import samples

THREE = "1,2,3\n4,5,6\n7,8,9\n"
GOOD_MTX = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.0\n2 2 2.0\n"


@pytest.mark.parametrize(
    ("content", "points"),
    [
        (THREE, [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),  # without a header no row is lost
        ("x;y;z\n1,5;2;3\n4;5,25;6\n", [[1.5, 2, 3], [4, 5.25, 6]]),
        ("x\ty\n1,5\t2\n4\t5,25\n", [[1.5, 2], [4, 5.25]]),
        ("# x y z\n1 2 3\n4 5 6\n", [[1, 2, 3], [4, 5, 6]]),
        ("z,name,X [mm],y\r\n3,a,1,2\r\n6,b,4,5\r\n", [[1, 2, 3], [4, 5, 6]]),
        ('"x","y"\n"1.5",2\n3,4\n\n', [[1.5, 2], [3, 4]]),
        ("\ufeffx,y\n1,2\n", [[1, 2]]),
    ],
)
def test_tables_are_read_whole(tmp_path, content, points):
    path = tmp_path / "p.csv"
    path.write_bytes(content.encode())
    data = read(path)
    np.testing.assert_array_equal(data.points, points)
    order = np.arange(len(points))[::-1]
    np.testing.assert_array_equal(read(write(data, order, tmp_path / "q.csv")).points, data.points[order])


def test_columns_are_chosen_by_name(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b,c,d\n1,2,3,4\n5,6,7,8\n")
    data = read(path, columns=("d", "b"))
    np.testing.assert_array_equal(data.points, [[4, 2], [8, 6]])
    assert list(data.columns) == ["a", "c"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x,y\n1,2\n3,oops\n", "line 3 has 'oops' in column 'y'"),
        ("x,y\n1,2\n3\n", "line 3 has 1 fields .*allowed: 2"),
        ("x,y\n1,2\n3,4,5\n", "line 3 has 3 fields"),
        ("x,y\n1,2\n3,nan\n", r"points\[1, 1\] = nan"),
        ("x,y\n1,2\n3,\n", r"points\[1, 1\] = nan"),
        ("x,y\n1,2\n3,1e400\n", r"points\[1, 1\] = inf"),
        ("x;y\n1,5;2\n3.5;4\n", "line 3 has '3.5' in column 'x'"),
        ("1,2,oops\n1,2,3\n", "line 1, the first, holds numbers and 'oops'"),
        ("a,b\n1,2\n", "no columns x and y; the columns are 'a', 'b'"),
        ("1,2,3,4\n", "no columns x and y"),
        ("x,y\n", "a line of names and no rows"),
        ("x,x\n1,2\n", "column 'x' twice"),
        ("", "an empty file"),
        ("\n\n", "no rows"),
        ('x,y\n1,"2\n3",4\n', "a quote that does not end"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, content, text):
    path = tmp_path / "p.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=text):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("ITEM: BOX BOUNDS pp pp ff", "ITEM: BOX BOUNDS xy xz yz pp pp ff", "a tilted box"),
        ("ATOMS\n60", "ATOMS\n61", "states 61 atoms, and 60 rows"),
        ("vx vy vz", "vx vy vx", "distinct names"),
        ("ATOMS id type x y z", "ATOMS id type a b c", "columns id type a b c|columns 'id type a"),
        ("-1 5\n", "5 -1\n", "a box of lengths"),
        ("-1 5\n", "-1 1\n", "lengths outside the box"),
    ],
)
def test_wrong_dumps_are_refused(tmp_path, old, new, text):
    path = samples.dump_file(tmp_path / "p.dump")
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    with pytest.raises(FileError, match=text):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("60 atoms", "61 atoms", "the header states 61 atoms, Atoms has 60 lines"),
        ("20 bonds", "21 bonds", "the header states 21 bonds, Bonds has 20 lines"),
        ("Atoms # sphere", "Atoms # wiggle", "atoms of style 'wiggle'"),
        ("\nMasses", "0.5 0 0 xy xz yz\n\nMasses", "a tilted box"),
        ("1 1 44 ", "1 1 777 ", "Bonds name id 777"),
        ("zlo zhi", "zlo zlo", "no zlo zhi|zlo zlo"),
    ],
)
def test_wrong_data_files_are_refused(tmp_path, old, new, text):
    path = samples.data_file(tmp_path / "p.data")
    content = path.read_text()
    if old.startswith("1 1 "):
        old = content.partition("Bonds\n\n")[2].partition("\n")[0]
        new = f"1 1 777 {old.split()[3]}"
    assert old in content
    path.write_text(content.replace(old, new))
    with pytest.raises(FileError, match=text):
        read(path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (GOOD_MTX.replace("real", "complex").replace(".0", ".0 1.0"), "a complex coordinate"),
        ("%%MatrixMarket matrix array real general\n1 1\n1.0\n", "a real array general matrix"),
        (GOOD_MTX.replace("2 2 2\n", "2 2 3\n"), "3 entries stated, 2 lines"),
        (GOOD_MTX.replace("2 2 2\n", "2 2 999999\n"), "999999 entries in"),
        (GOOD_MTX.replace("2 2 2\n", "2147483648 2 2\n"), "2147483648 rows"),
        (GOOD_MTX.replace("2 2 2.0", "2 3 2.0"), "column 3; allowed: 1 to 2"),
        (GOOD_MTX.replace("2 2 2.0", "2 2 nan"), "not finite|without a row"),
        (GOOD_MTX.replace("2 2 2.0", "2 2 2.0 7"), "a line of other fields"),
        (GOOD_MTX.replace("2 2 2.0", "2 2\x00 2.0"), "byte b'.x00'"),
    ],
)
def test_wrong_matrices_are_refused(tmp_path, content, text):
    path = tmp_path / "m.mtx"
    path.write_text(content)
    with pytest.raises(FileError, match=text):
        read(path)


def test_an_index_out_of_range_of_a_sparse_matrix_is_refused(tmp_path):
    matrix = samples.sparse()
    matrix.indices[7] = 10**6
    np.savez(
        tmp_path / "m.npz", data=matrix.data, indices=matrix.indices, indptr=matrix.indptr,
        format=b"csr", shape=np.array([60, 60]),
    )  # fmt: skip
    with pytest.raises(FileError, match=r"m.npz cannot be read .*ind"):
        read(tmp_path / "m.npz")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, points=np.zeros((2**20, 3)))
    monkeypatch.setattr("experiments.files.arrays.MOST_BYTES", 2**20)
    with pytest.raises(FileError, match=r"bytes \(.*GiB\) unpacked; allowed: up to 1,048,576"):
        read(path)
    with zipfile.ZipFile(tmp_path / "declares.npz", "w") as archive, archive.open("points.npy", "w") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (900_000_000_000, 3)}
        )
    with pytest.raises(FileError, match=r"declares shape \(900000000000, 3\)"):
        read(tmp_path / "declares.npz")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"box": [6, 5, 4, 0.1, 0, 0]}, "a tilted box"),
        ({"N": 3}, "frame 0 of 2 particles, frame 1 of 3"),
        ({"position": [[0, 0, 0], [3.1, 0, 0]]}, r"points\[1\] = .* is outside the box"),
        ({"position": [[0, 0, 0], [np.nan, 0, 0]]}, r"points\[1, 0\] = nan"),
        ({"diameter": [1, 0]}, r"diameter\[1\] = 0"),
        ({"step": 0}, "step 0 after step 0"),
    ],
)
def test_wrong_trajectories_are_refused(tmp_path, changes, text):
    path = tmp_path / "p.gsd"
    with gsd.hoomd.open(str(path), "w") as file:
        for k in range(2):
            frame, now = gsd.hoomd.Frame(), changes if k else {}
            frame.configuration.step = now.get("step", k)
            frame.configuration.box = now.get("box", [6, 5, 4, 0, 0, 0])
            frame.particles.N = now.get("N", 2)
            frame.particles.position = now.get("position", (1 + 0.1 * k) * np.eye(frame.particles.N, 3))
            frame.particles.diameter = now.get("diameter", np.ones(frame.particles.N))
            file.append(frame)
    with pytest.raises(FileError, match=text):
        read(path)
    assert read(path, frame=0).n == 2


def test_cells_that_name_absent_points_are_refused(tmp_path):
    mesh = meshio.Mesh(np.eye(3), [("triangle", [[0, 1, 2], [0, 1, 7]])])
    meshio.write(str(tmp_path / "m.vtu"), mesh)
    with pytest.raises(FileError, match="cells of 'triangle' that name item 7; allowed: 0 to 2"):
        read(tmp_path / "m.vtu")


def test_a_point_far_from_all_others_is_refused(tmp_path):
    points = samples.cloud()["points"]
    points[5, 1] = 1e30
    np.save(tmp_path / "p.npy", points)
    with pytest.raises(FileError, match=r"points\[5\] .* is far from all others"):
        read(tmp_path / "p.npy")


def test_a_scan_of_fewer_points_than_stated_is_refused(tmp_path):
    path = samples.las_file(tmp_path / "p.las")
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 107, 61)
    path.write_bytes(content)
    with pytest.raises(FileError, match="61 points of 34 bytes"):
        read(path)


def test_an_absent_library_is_named_with_the_line_that_installs_it(tmp_path, monkeypatch):
    path = samples.mesh_file(tmp_path / "m.vtu")
    monkeypatch.setitem(__import__("sys").modules, "meshio", None)
    with pytest.raises(
        FileError, match=r"needs meshio, which is absent; pip install 'spatial-locality\[files\]'"
    ):
        read(path)
    assert "[files]" in INSTALL


@pytest.mark.parametrize("ending", FORMATS)
def test_empty_files_folders_and_absent_files_are_refused(tmp_path, ending):
    path = tmp_path / f"p{ending}"
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read(path)
    path.touch()
    with pytest.raises(FileError, match="an empty file"):
        read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(FileError, match="a folder; allowed: a file"):
        read(path)


def test_an_unknown_ending_names_the_known_ones(tmp_path):
    with pytest.raises(FileError, match=r"ending '.png'; allowed: .gsd, .data, .*.mtx"):
        read(tmp_path / "p.png")


def test_unsafe_advice_is_not_passed_on(tmp_path):
    for content in (b"\x89PNG\r\n\x1a\n" + bytes(200), b"\x80\x04K\x01."):
        (tmp_path / "p.npy").write_bytes(content)
        with pytest.raises(FileError) as found:
            read(tmp_path / "p.npy")
        assert "pickle" not in str(found.value)
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match="holds Python objects; allowed: numbers"):
        read(tmp_path / "o.npy")


@pytest.mark.parametrize("order", [[0, 0, 1], [0, 1], [1, 2, 3], [0.0, 1.0, 2.0]])
def test_no_permutation_is_refused_and_another_ending(tmp_path, order):
    np.save(tmp_path / "p.npy", np.eye(3))
    data = read(tmp_path / "p.npy")
    with pytest.raises(FileError, match=r"a permutation of 0 \.\. 2"):
        write(data, order, tmp_path / "q.npy")
    with pytest.raises(FileError, match=r"allowed: '\.npy'"):
        write(data, [0, 1, 2], tmp_path / "q.csv")
    assert not (tmp_path / "q.npy").exists()


def test_a_sparse_matrix_of_complex_numbers_is_refused(tmp_path):
    scipy.sparse.save_npz(tmp_path / "m.npz", samples.sparse() * 1j)
    with pytest.raises(FileError, match="a matrix of complex128; allowed: real"):
        read(tmp_path / "m.npz")
