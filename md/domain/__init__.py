"""Division of a system among ranks: what they say to each other, cells, copies, migration."""
