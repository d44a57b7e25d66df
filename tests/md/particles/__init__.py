"""Tests of md/particles."""
