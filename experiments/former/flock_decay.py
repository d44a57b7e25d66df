"""How long an order lasts in a flock: the former name of `python -m experiments.decay --scene flock`."""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("flock_decay")
