"""What the ranks of a divided simulation say to each other."""

from md.domain.communicator.base import Communicator
from md.domain.communicator.in_turn import in_turn

__all__ = ["Communicator", "in_turn"]
