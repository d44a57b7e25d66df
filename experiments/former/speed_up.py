"""Gains of the shaken box: the former name of `python -m experiments.timing --scene box`."""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("speed_up")
