"""Tests of md/scenes."""
