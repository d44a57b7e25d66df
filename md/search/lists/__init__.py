"""Neighbour lists: the format on a device, pruned lists, and the width of the skin."""
