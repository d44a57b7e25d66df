"""Tests of sfc.compile: compilation and the kernel cache."""
