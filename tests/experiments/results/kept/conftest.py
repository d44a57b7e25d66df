"""A git checkout of its own for each test, a copy of one that is made once."""

import pytest

from tests.experiments.results.kept.checkout import Checkout


@pytest.fixture(scope="package")
def first_checkout(tmp_path_factory):
    return Checkout(tmp_path_factory.mktemp("first") / "checkout")


@pytest.fixture
def checkout(first_checkout, tmp_path):
    return Checkout(tmp_path / "checkout", first_checkout)
