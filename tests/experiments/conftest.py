"""Figures of the tests are drawn small, and with fonts that need not be cut to size."""

import pytest

from experiments.core import style

PUBLISHED = dict(style.SETTINGS)


@pytest.fixture(scope="session", autouse=True)
def drawn_for_tests():
    style.SETTINGS.update({"savefig.dpi": 60, "pdf.fonttype": 3})
    yield
    style.SETTINGS.update(PUBLISHED)


@pytest.fixture
def as_published(drawn_for_tests, monkeypatch):
    """Figures as users get them."""
    for name, value in PUBLISHED.items():
        monkeypatch.setitem(style.SETTINGS, name, value)
