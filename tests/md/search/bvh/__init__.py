"""Tests of md/search/bvh."""
