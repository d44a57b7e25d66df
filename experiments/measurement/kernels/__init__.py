"""Kernels that are measured beside those of steps: of other workloads, and of structures that race."""
