"""Peers: other codes, timed in turns with `md`. A new peer is a file and one line here."""

from experiments.peers.lammps import Lammps
from experiments.peers.peer import Peer, PeerError, Sample

PEERS: dict[str, type[Peer]] = {"lammps": Lammps}

__all__ = ["PEERS", "Lammps", "Peer", "PeerError", "Sample"]
