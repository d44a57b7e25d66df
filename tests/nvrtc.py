"""Compiles CUDA source for a GPU that need not be there, by the NVRTC library of its Python wheel."""

import ctypes
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ARCHITECTURE = "sm_90"


def library() -> ctypes.CDLL:
    """NVRTC; the test is skipped where its wheel does not exist (it is on x86-64 Linux)."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else ():
        for path in sorted(Path(root).glob("*/lib*/libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")


def compile_cubin(source: str) -> bytes:
    """Machine code of a source for `ARCHITECTURE`.

    Raises:
        AssertionError: the compiler's log.
    """
    return compiled(source)[0]


def local_bytes(log: str, kernel: str) -> int:
    """Bytes of local memory of each thread of a kernel, without those of the functions that it calls."""
    return int(re.search(rf"Function properties for {kernel}\n.*?(\d+) bytes stack frame", log)[1])


def compiled(source: str) -> tuple[bytes, str]:
    """Machine code of a source for `ARCHITECTURE`, and the compiler's log with the resources of each kernel.

    Raises:
        AssertionError: the compiler's log.
    """
    return made_of(source, "CUBIN")


def instructions(source: str) -> list[str]:
    """Instructions of PTX of a source for `ARCHITECTURE`, in their order: "ld.global.nc.f32", and so on.

    Raises:
        AssertionError: the compiler's log.
    """
    text = made_of(source, "PTX")[0].decode()
    return re.findall(r"^\s*(?:@!?%\w+ )?([a-z]\w*(?:\.\w+)*)\b.*;", text, re.MULTILINE)


def made_of(source: str, kind: str) -> tuple[bytes, str]:
    """What NVRTC makes of a source, "CUBIN" or "PTX", and its log.

    Raises:
        AssertionError: the compiler's log.
    """
    nvrtc = library()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"case.cu", 0, None, None)
    flags = [b"--std=c++17", f"--gpu-architecture={ARCHITECTURE}".encode(), b"--ptxas-options=-v"]
    status = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    made = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, made)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return made.raw, log.value.decode()
