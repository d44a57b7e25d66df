"""Places of the rows of all ranks: so much room that many migrations later they are still the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from md.domain.communicator import Communicator

GHOSTS_MORE = 8  # times as much more room for ghosts and border rows, of which there are few; at most twice
LEAVE = 2  # of the ghosts of a rank at a peer, one in so many may leave for it in one migration
LEAST = 64  # rows of each part, and to which they are rounded up


@dataclass(frozen=True)
class Layout:
    """Room of each rank; the same on all of them.

    Rows of a rank are in this order: owned particles, of which the first are those of the border, and ghosts
    peer by peer. Behind the particles of each part there may be rows without any.

    Attributes:
        owned: (ranks,) rows of owned particles.
        borders: (ranks,) rows of border particles, the first of these.
        ghosts: (ranks, ranks) rows of ghosts, of the particles of a rank (row) at another one (column).
        leaving: (ranks, ranks) records of particles that go from a rank to another one in one migration.
    """

    owned: np.ndarray
    borders: np.ndarray
    ghosts: np.ndarray
    leaving: np.ndarray

    @classmethod
    def of(
        cls, communicator: Communicator, owned: int, borders: int, sent: dict[int, int], more: float
    ) -> Layout:
        """Make the layout for the present numbers of rows; all ranks call it.

        Args:
            communicator: of the ranks.
            owned: number of owned particles.
            borders: number of those of the border, or as many as are expected.
            sent: peer -> number of its ghosts that are owned here, or as many as are expected.
            more: share of the owned rows for which there is more room; 0 for no more than there are rows.
        """
        own = np.full(communicator.size + 2, -1)
        own[-2:] = owned, borders
        for peer, count in sent.items():
            own[peer] = count
        every = communicator.gather(own)
        share = np.full(len(own), min(GHOSTS_MORE * more, 1.0))
        share[-2] = more
        rows = every if more == 0 else np.ceil((1 + share) * every / LEAST).astype(np.int64) * LEAST + LEAST
        rows[every < 0] = 0
        ghosts = rows[:, :-2]
        leaving = ghosts if more == 0 else np.maximum(ghosts // LEAVE, np.minimum(ghosts, LEAST))
        return cls(rows[:, -2], np.minimum(rows[:, -1], rows[:, -2]), ghosts, leaving)

    def first_ghost(self, owner: int, at: int) -> int:
        """Return the row of the first ghost of a rank at another one."""
        return int(self.owned[at] + self.ghosts[:owner, at].sum())

    def rows(self, rank: int) -> int:
        """Return the number of all rows of a rank."""
        return int(self.owned[rank] + self.ghosts[:, rank].sum())
