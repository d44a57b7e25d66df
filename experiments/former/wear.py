"""Loss measured and predicted: the former name of `python -m experiments.decay --measured RUN`."""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("wear")
