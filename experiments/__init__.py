"""One file per experiment: `python -m experiments` lists them."""
