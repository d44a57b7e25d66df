"""The page of all results: the former name of `python -m experiments.results.page`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("experiments.results.page", run_name="__main__", alter_sys=True)
