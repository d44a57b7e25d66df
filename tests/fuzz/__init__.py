"""A fuzz of the public constructors and functions, files and command lines; see `tests.fuzz.harness`."""
