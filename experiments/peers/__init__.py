"""Peers: other codes, timed in the same rounds as ours. A new peer is a file and one line here.

`PEERS` run the same gas as `md`, `ENCODERS` encode the same cells as `sfc`.
"""

from experiments.peers.encoder import Encoder
from experiments.peers.geopandas import Geopandas
from experiments.peers.hilbertsfc import Hilbertsfc
from experiments.peers.lammps import Lammps
from experiments.peers.numpy_hilbert_curve import NumpyHilbertCurve
from experiments.peers.peer import Peer, PeerError, Sample

PEERS: dict[str, type[Peer]] = {"lammps": Lammps}
ENCODERS: dict[str, type[Encoder]] = {kind.name: kind for kind in (Hilbertsfc, NumpyHilbertCurve, Geopandas)}

__all__ = ["ENCODERS", "PEERS", "Encoder", "Lammps", "Peer", "PeerError", "Sample"]
