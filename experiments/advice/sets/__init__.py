"""Data sets, and the plain code that uses them, by which advice on memory order is checked.

`SETS` has 24 data sets: particles, clouds of points, meshes, sparse matrices, images, traces of programs.
`make` makes one of them, `write` writes one to a file as its users have it, `CODES` has the users' code,
and `put` moves the items of a data set into an order.
"""

from experiments.advice.sets.codes import CODES, NotCoveredError, code_of
from experiments.advice.sets.data import SetData
from experiments.advice.sets.files import write
from experiments.advice.sets.permutations import Order, along, given, put, shuffled, undo
from experiments.advice.sets.table import SETS, DataSet, make

__all__ = [
    "CODES",
    "SETS",
    "DataSet",
    "NotCoveredError",
    "Order",
    "SetData",
    "along",
    "code_of",
    "given",
    "make",
    "put",
    "shuffled",
    "undo",
    "write",
]
