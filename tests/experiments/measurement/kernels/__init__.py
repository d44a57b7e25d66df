"""Structures that race: boxes of a tree, nodes of a free list."""
