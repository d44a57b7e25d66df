"""Tests of sfc.cache: the models of a cache."""
