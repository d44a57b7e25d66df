"""What measurements share: when to reorder, the check before a time is taken, and what a chip counts."""
