"""A file of every format, with the same particles as far as the format holds them."""

import warnings
from pathlib import Path

import gsd.hoomd
import laspy
import meshio
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse

N = 60
LENGTHS = np.array([6.0, 5.0, 4.0])
ORIGIN = np.array([-1.0, 2.0, 0.5])


def cloud(seed: int = 0) -> dict[str, np.ndarray]:
    """Points in the box of `LENGTHS` from `ORIGIN`, and what else formats hold."""
    draw = np.random.default_rng(seed)
    points = np.round(ORIGIN + (0.02 + 0.96 * draw.random((N, 3))) * LENGTHS, 6)
    return {
        "points": points,
        "velocities": np.round(draw.normal(size=(N, 3)), 6),
        "diameters": np.round(0.5 + draw.random(N), 6),
        "ids": draw.permutation(N) + 1,
        "types": draw.integers(1, 4, N),
        "edges": np.stack([draw.permutation(N)[:20], draw.permutation(N)[:20]], axis=1),
        "triangle": np.array([draw.permutation(N)[:3] for _ in range(15)]),
    }


def gsd_file(path: Path, frames: int = 3) -> Path:
    """Frames of particles of several sizes, with bonds and a logged number a particle."""
    has = cloud()
    with gsd.hoomd.open(str(path), "w") as file:
        for step in range(frames):
            frame = gsd.hoomd.Frame()
            frame.configuration.step, frame.configuration.box = 10 * step + 10, [*LENGTHS, 0, 0, 0]
            frame.particles.N = N
            moved = has["points"] - ORIGIN - LENGTHS / 2 + 0.01 * step * np.sign(has["velocities"])
            frame.particles.position, frame.particles.velocity = moved * 0.99, has["velocities"]
            frame.particles.diameter, frame.particles.mass = has["diameters"], has["diameters"]
            frame.particles.typeid, frame.particles.types = has["types"] - 1, ["A", "B", "C"]
            frame.bonds.N, frame.bonds.group = 20, has["edges"]
            frame.bonds.types, frame.bonds.typeid = ["a", "b"], np.arange(20) % 2
            frame.log["particles/weight"] = np.arange(N, dtype=np.float64)
            file.append(frame)
    return path


def dump_file(path: Path, names: str = "x y z", frames: int = 3) -> Path:
    """Frames of a dump, each with its rows in another order."""
    has, draw, text = cloud(), np.random.default_rng(1), []
    for k in range(frames):
        pos = has["points"] + 0.001 * k
        if "s" in names:
            pos = (pos - ORIGIN) / LENGTHS
        bounds = [f"{low:g} {low + length:g}" for low, length in zip(ORIGIN, LENGTHS, strict=True)]
        text += ["ITEM: TIMESTEP", str(100 * k), "ITEM: NUMBER OF ATOMS", str(N)]
        text += ["ITEM: BOX BOUNDS pp pp ff", *bounds, f"ITEM: ATOMS id type {names} vx vy vz radius q"]
        for i in draw.permutation(N) if k else range(N):
            row = [has["ids"][i], has["types"][i], *map(repr, pos[i].tolist()), *has["velocities"][i]]
            text.append(" ".join(map(str, [*row, has["diameters"][i] / 2, i])))
    path.write_text("\n".join([*text, ""]))
    return path


def data_file(path: Path) -> Path:
    """A data file of spheres, with velocities in another order than the atoms, and bonds."""
    has, ids = cloud(), cloud()["ids"]
    axes = zip("xyz", ORIGIN.tolist(), LENGTHS.tolist(), strict=True)
    text = ["made for a test", "", f"{N} atoms", "20 bonds", "3 atom types", "1 bond types", ""]
    text += [f"{low} {low + length} {axis}lo {axis}hi" for axis, low, length in axes]
    text += ["", "Masses", "", "1 1.0", "2 1.0", "3 2.0", "", "Atoms # sphere", ""]
    for i in range(N):
        row = [ids[i], has["types"][i], has["diameters"][i], 1.0, *has["points"][i], 0, 0, 0]
        text.append(" ".join(map(str, row)))
    text += ["", "Velocities", ""]
    text += [" ".join(map(str, [ids[i], *has["velocities"][i], 0, 0, 0])) for i in range(N)[::-1]]
    text += ["", "Bonds", ""]
    text += [f"{k + 1} 1 {ids[a]} {ids[b]}" for k, (a, b) in enumerate(has["edges"])]
    path.write_text("\n".join([*text, ""]))
    return path


def xyz_file(path: Path) -> Path:
    """Frames of an extended XYZ file."""
    has, text = cloud(), []
    lattice = " ".join(map(str, np.diag(LENGTHS).ravel()))
    for k in range(2):
        keys = f'Lattice="{lattice}" Origin="{" ".join(map(str, ORIGIN))}" pbc="T T F" step={5 * k}'
        text += [str(N), f"{keys} Properties=species:S:1:pos:R:3:velo:R:3:radius:R:1:charge:R:1"]
        for i in range(N):
            row = [*(has["points"][i] + 0.001 * k), *has["velocities"][i], has["diameters"][i] / 2, i]
            text.append(" ".join(["Fe" if i % 2 else "O", *map(str, row)]))
    path.write_text("\n".join([*text, ""]))
    return path


def table() -> pd.DataFrame:
    """Rows of a table, with a column of text and one with missing values."""
    has = cloud()
    columns = dict(
        zip(["x", "y", "z", "vx", "vy", "vz"], [*has["points"].T, *has["velocities"].T], strict=True)
    )
    name = [f"grain {i}" for i in range(N)]
    mass = np.where(np.arange(N) % 7 == 3, np.nan, has["diameters"])
    return pd.DataFrame({"name": name, **columns, "diameter": has["diameters"], "mass": mass})


def csv_file(path: Path, **options) -> Path:
    """A table of text."""
    table().to_csv(path, index=False, **options)
    return path


def parquet_file(path: Path) -> Path:
    """The same table."""
    table().to_parquet(path, compression="zstd")
    return path


def npy_file(path: Path) -> Path:
    """Points alone."""
    np.save(path, cloud()["points"])
    return path


def trace_file(path: Path) -> Path:
    """A trace of accesses to `N` items."""
    np.save(path, np.r_[np.random.default_rng(3).integers(0, N, 500), N - 1].astype(np.int32))
    return path


def npz_file(path: Path) -> Path:
    """Arrays by name, with a box and cells."""
    has = cloud()
    np.savez_compressed(
        path,
        points=has["points"],
        vel=has["velocities"],
        radius=has["diameters"] / 2,
        box=LENGTHS,
        origin=ORIGIN,
        periodic=np.array([True, True, False]),
        triangle=has["triangle"],
        tensor=np.arange(N * 4.0).reshape(N, 2, 2),
        note=np.array("kept"),
    )
    return path


def sparse() -> scipy.sparse.csr_array:
    """A square matrix."""
    draw = np.random.default_rng(5)
    full = np.where(draw.random((N, N)) < 0.3, draw.random((N, N)), 0)
    return scipy.sparse.csr_array(np.triu(np.tril(full, 9), -9))


def sparse_file(path: Path, form: str = "csr") -> Path:
    """A matrix of scipy."""
    scipy.sparse.save_npz(path, sparse().asformat(form))
    return path


def mtx_file(path: Path, **options) -> Path:
    """A matrix of the Matrix Market."""
    scipy.io.mmwrite(path, sparse(), **({"symmetry": "general"} | options))
    return path


def las_file(path: Path) -> Path:
    """A scan with intensities and times."""
    has = cloud()
    header = laspy.LasHeader(point_format=3, version="1.2")
    header.offsets, header.scales = ORIGIN, np.full(3, 1e-6)
    scan = laspy.LasData(header)
    scan.x, scan.y, scan.z = has["points"].T
    scan.intensity, scan.gps_time = has["ids"], has["diameters"]
    scan.write(str(path))
    return path


def mesh_file(path: Path, **options) -> Path:
    """A mesh of triangles with numbers a node, and a cell where the format has them."""
    has = cloud()
    cell = {} if path.suffix == ".ply" else {"level": [np.arange(15.0)]}
    mesh = meshio.Mesh(
        has["points"], [("triangle", has["triangle"])], point_data={"heat": has["diameters"]}, cell_data=cell
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meshio.write(str(path), mesh, **options)
    return path


MAKERS = {  # name of a file -> its maker
    "points.npy": npy_file,
    "trace.npy": trace_file,
    "arrays.npz": npz_file,
    "matrix.npz": sparse_file,
    "run.gsd": gsd_file,
    "run.dump": dump_file,
    "start.data": data_file,
    "run.xyz": xyz_file,
    "table.csv": csv_file,
    "table.parquet": parquet_file,
    "matrix.mtx": mtx_file,
    "scan.las": las_file,
    "mesh.ply": mesh_file,
    "mesh.vtk": mesh_file,
    "mesh.vtu": mesh_file,
    "text.ply": lambda path: mesh_file(path, binary=False),
    "text.vtk": lambda path: mesh_file(path, binary=False),
}
