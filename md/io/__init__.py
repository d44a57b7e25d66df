"""Files: trajectories (GSD), checkpoints, and atomic writes."""
