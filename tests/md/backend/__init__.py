"""Tests of md/backend."""
