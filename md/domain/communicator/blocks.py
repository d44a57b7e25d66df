"""Blocks of work that ranks do together, and what they say when one leaves such a block with an error.

A rank that has left a block with an error says so to all others, with the number of its calls. If each comes
to an error in that block after as many calls, by itself, all go on: their messages still match. A rank that
waits for one that has left after fewer calls says that it ends for good, and so do all that receive this.
"""

from __future__ import annotations

from collections.abc import Collection

from md.errors import RankFailedError

FOR_GOOD = -1  # number of no block: of a rank that does not go on
TORN = -1  # number of calls of a rank that was stopped within one


class Blocks:
    """Blocks of one rank, and what it has received about those of others.

    Args:
        rank, size: of the communicator.

    Attributes:
        now: number of the present block, or of the last one; each that is left with an error has its own.
        calls: calls of the communicator that this rank has begun; `TORN` after an error within one.
        ended: why this rank and others do not go on; empty if they do.
    """

    def __init__(self, rank: int, size: int):
        self.rank, self._others = rank, {*range(size)} - {rank}
        self.now, self.calls, self.ended = 0, 0, ""
        self._left: dict[int, tuple[int, str]] = {}  # block -> calls until then, and why
        self._notices: dict[int, dict[int, tuple[int, str]]] = {other: {} for other in self._others}

    def leave(self, why: str) -> tuple[int, int, str]:
        """Leave the present block, and return what to notify the others of: block, calls and why."""
        block = self.now
        self._left[block] = self.calls, why
        self.now += 1
        return block, self.calls, why

    def receive(self, rank: int, block: int, calls: int, why: str) -> None:
        """Note that a rank has left a block, or all of them."""
        if block == FOR_GOOD:
            self.ended = self.ended or why
        else:
            self._notices[rank][block] = calls, why

    def is_settled(self) -> bool:
        """Return whether all ranks have left the blocks that this one has left; end if they cannot match."""
        for block, (calls, why) in list(self._left.items()):
            said = {rank: one for rank, one in self._notices.items() if one and max(one) >= block}
            if calls == TORN or any(one.get(block, (TORN,))[0] != calls for one in said.values()):
                self.ended = self.ended or f"{why}; another rank was elsewhere"
                return False
            if len(said) < len(self._others):
                return False
            del self._left[block]
            for one in said.values():
                del one[block]
        return True

    def alone(self) -> str:
        """Return why this rank ends, where the others have not left the block that it has left."""
        return f"{next(iter(self._left.values()))[1]}; the others went on"

    def absent(self, awaited: Collection[int]) -> str:
        """Return why a rank has left that this one waits for; empty if there is no such rank.

        One that has left after as many calls as this one has begun has done its part of each of them.

        Args:
            awaited: ranks whose messages are missing.
        """
        if self.ended:
            return self.ended
        for rank in awaited:
            for calls, why in self._notices.get(rank, {}).values():
                if calls == TORN or calls < self.calls:
                    return why
        return ""

    def end(self, why: str) -> RankFailedError:
        """End for good, and return the error that says so."""
        self.ended = self.ended or why
        return RankFailedError(f"{self.ended}; to go on, ranks need another communicator")
