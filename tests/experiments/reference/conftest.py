"""A git checkout of its own for each test."""

import pytest

from tests.experiments.reference.checkout import Checkout


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    root.mkdir()
    return Checkout(root)
