"""Kernels of workloads other than ours, with what they were compiled to; their loads are in `prediction`."""
