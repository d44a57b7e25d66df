"""Gains of a gas: the former name of `python -m experiments.ladder --scene gas`."""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("gas_ladder")
