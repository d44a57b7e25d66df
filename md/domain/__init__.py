"""Division of a system among ranks: which cells each owns, copies of the particles around them, migration."""
