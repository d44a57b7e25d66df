"""Limits of a uniform grid.

The former name of `python -m experiments.contacts --array cells`.
"""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("grid_limits")
