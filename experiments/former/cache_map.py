"""Maps of predicted hits.

The former name of `python -m experiments.cache_hit --average tiles`.
"""

from experiments.core.old_names import run_by_old_name

if __name__ == "__main__":
    run_by_old_name("cache_map")
