"""Blocks of work that ranks do together, and what they say when one leaves such a block with an error.

A rank that has left a block with an error says so to all others. If each comes to an error in that block, by
itself, all go on. One that waits for a rank that has left, or has gone past that block, says that it ends for
good, and so do all that receive this: their messages no longer match.
"""

from __future__ import annotations

from md.errors import RankFailedError

FOR_GOOD = -1  # number of no block: of a rank that does not go on


class Blocks:
    """Blocks of one rank, and what it has heard of those of others.

    Args:
        rank, size: of the communicator.

    Attributes:
        now: number of the present block, or of the last one.
        left: number of the block that this rank has left, until the others have too; None for none.
        ended: why this rank and others do not go on; empty if they do.
    """

    def __init__(self, rank: int, size: int):
        self.rank, self._others = rank, {*range(size)} - {rank}
        self.now, self.ended = 0, ""
        self.left: int | None = None
        self._notices: dict[int, tuple[int, str]] = {}  # rank -> block that it has left, and why

    def receive(self, rank: int, block: int, why: str) -> None:
        """Note that a rank has left a block, or all of them."""
        if block == FOR_GOOD:
            self.ended = why
        else:
            self._notices[rank] = block, why

    def is_settled(self) -> bool:
        """Return whether all ranks have left the block that this one has left, or none has."""
        if self.left is not None and all(
            self._notices.get(rank, (None,))[0] == self.left for rank in self._others
        ):
            self.left = None
            self._notices.clear()
        return self.left is None

    def absent(self) -> tuple[str, bool]:
        """Return why a rank has left that this one waits for, and whether it may still come to an error here.

        The reason is empty if there is no such rank.
        """
        if self.ended:
            return self.ended, False
        for block, why in self._notices.values():
            if block <= self.now and self.left is None:
                return why, block == self.now
        return "", True

    def end(self, why: str) -> RankFailedError:
        """End for good, and return the error that says so."""
        self.ended = why
        return RankFailedError(f"{why}; to go on, ranks need another communicator")
