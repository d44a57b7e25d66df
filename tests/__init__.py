"""The test suite; its tree mirrors the project's."""
