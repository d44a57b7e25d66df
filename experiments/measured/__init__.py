"""What measurements share: when the memory is reordered, and the check before anything is timed."""
