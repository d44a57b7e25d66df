"""Kept runs: the former name of `python -m experiments.results.kept`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("experiments.results.kept", run_name="__main__", alter_sys=True)
