"""Tests of sfc.bitwise: operations on bits, and curves computed by them."""
