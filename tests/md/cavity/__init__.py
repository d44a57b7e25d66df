"""Tests of md/io."""
