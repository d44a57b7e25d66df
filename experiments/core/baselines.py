"""What a memory order is compared with: the words for it, in columns, legends and text.

- shuffled: memory in a random permutation, a worst case that no running program has.
- lattice: memory in the order of the lattice from which the gas was made.
- aged (s steps): memory that was in an order s steps ago and was not reordered since.
- fresh: memory that was reordered along a curve a few steps ago.
- reordered every k: memory that is reordered every k steps, the cost of the reorders included.

Every gain names the one that it is over. A second case of the same name and ` again` after it is the same
case measured twice: what the two differ by is noise.
"""

from sfc import checks

SHUFFLED, LATTICE, FRESH = "shuffled", "lattice", "fresh"
BASELINES = (SHUFFLED, LATTICE)  # memory orders that reorder nothing
_AGAIN = " again"


def aged(steps: int) -> str:
    """The name of memory that was in an order some steps ago and was not reordered since.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 0.
    """
    return f"aged ({checks.integer('steps', steps, 0, unit='steps')} steps)"


def reordered_every(steps: int) -> str:
    """The name of memory that is reordered every so many steps.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: one below 1.
    """
    return f"reordered every {checks.integer('steps', steps, unit='steps')}"


def again(name: str) -> str:
    """The name of the same case, measured a second time beside the first."""
    return checks.text("name", name) + _AGAIN


def is_again(name: object) -> bool:
    """Whether a name is that of a case measured a second time."""
    return isinstance(name, str) and name.endswith(_AGAIN)


def original(name: str) -> str:
    """The name of the case that one is the second measurement of, or the name itself."""
    return checks.text("name", name).removesuffix(_AGAIN)


def gain_over(baseline: str) -> str:
    """The name of the column that holds gains over a baseline."""
    return f"gain_over_{checks.text('baseline', baseline)}"
