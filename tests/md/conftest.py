"""What is left to the night is not quick, though other cases of the same test are."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Cases of the night lose their mark `quick`."""
    for item in items:
        if item.get_closest_marker("nightly"):
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "quick"]
