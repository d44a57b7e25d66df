"""Tests of experiments/measurement/machine_state."""
