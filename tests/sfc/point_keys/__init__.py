"""Tests of the room `sfc.point_keys`."""
