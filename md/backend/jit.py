"""The decorator of every Numba kernel of `md`."""

from sfc.compile import compiler

kernel = compiler("sfc", "md")
