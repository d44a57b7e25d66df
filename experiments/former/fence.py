"""Races of the build of a tree.

The former name of `python -m experiments.contacts --array boxes`.
"""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("fence")
