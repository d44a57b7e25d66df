"""Rules of the sources, checked by reading them."""
