"""Sorts of integer keys: counting sort for few distinct keys, radix sort for keys of 32 or 64 bits."""
