"""Verdicts on the claims: the former name of `python -m experiments.results.claims`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("experiments.results.claims", run_name="__main__", alter_sys=True)
