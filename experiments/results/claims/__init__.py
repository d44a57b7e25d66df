"""Verdicts on the claims of the sources, from rules on queries of committed tables."""
