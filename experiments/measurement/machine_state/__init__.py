"""State of the machine while samples are taken: clock of a GPU, load of the host, energy counters."""
