"""A machine on which each command of a claim is allowed."""

from types import SimpleNamespace

import pytest

from experiments.peers import PEERS


@pytest.fixture
def a_large_machine(monkeypatch):
    """One that has room for all of them, and the peers."""
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=2**40))
    for peer in PEERS.values():
        monkeypatch.setattr(peer, "require", lambda: None)
