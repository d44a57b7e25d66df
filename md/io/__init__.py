"""Files: trajectories (GSD), checkpoints, and writing a file so that it is whole or not there."""
