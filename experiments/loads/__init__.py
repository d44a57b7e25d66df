"""Loads and stores of our GPU kernels, warp by warp, for the model of memory in `sfc.cache`.

A kernel is a file here: a compiled walk through it as one thread takes it (`sfc.cache.in_lockstep`), or the
elements of arrays that its threads take (`sfc.cache.LoadStream.of`).
"""
