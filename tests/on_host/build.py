"""C++ on the host: CUDA kernels behind one of the headers here, which is compiled once for all of them."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HEADERS = Path(__file__).parent
KEPT = HEADERS.parents[1] / ".pytest_cache" / "on_host"  # what was built, by all that it is made of
FLAGS = ["-std=c++17", "-Og", "-fno-exceptions", "-fPIC", "-pthread", "-w"]
FLAGS += ["-ffp-contract=off"]  # so that __dmul_rn and __dadd_rn round one by one
FLAGS += ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # takes a tenth of a build less


def built(header: str, code: str, name: str = "program", is_library: bool = False) -> Path:
    """A program or a library of some C++, from `KEPT` if it was built before.

    Args:
        header: name of one in this folder, before the code.
        code: C++.
        name: begins the name of the file.
        is_library: whether to build a shared library.
    """
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler (g++ or clang++) is installed")
    headers = _digest(compiler, *FLAGS, *(path.read_text() for path in sorted(HEADERS.glob("*_on_host.h"))))
    path = KEPT / f"{name}_{_digest(headers, header, code, str(is_library))}"
    if not path.exists():
        compiled = KEPT / headers
        compiled.mkdir(parents=True, exist_ok=True)
        if "clang" not in Path(compiler).name:  # it would not look for a compiled header
            _compile_header(compiler, header, compiled)
        own = path.with_suffix(f".{os.getpid()}")  # another process may build the same now
        source = own.with_name(f"{own.name}.cpp")
        source.write_text(f'#include "{header}"\n{code}')
        shared = ["-shared", "-Wl,-Bsymbolic"] if is_library else []
        includes = [f"-I{compiled}", f"-I{HEADERS}"]
        subprocess.run([compiler, *FLAGS, *shared, *includes, "-o", own, source], check=True)
        source.unlink()
        own.replace(path)
    return path


def _compile_header(compiler: str, header: str, folder: Path) -> None:
    path = folder / f"{header}.gch"
    with open(folder / f"{header}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            own = folder / f"{header}.{os.getpid()}"
            command = [compiler, *FLAGS, "-x", "c++-header", "-o", own, HEADERS / header]
            subprocess.run(command, check=True)
            own.replace(path)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
