"""A rank on a device: its rows, its peers, and migration without the host."""
