"""Tests of experiments/peers."""
