"""Space-filling curves computed by operations on bits, for more dims than tables can have.

`bits` interleaves the bits of coordinates and separates them again; a `BitwiseCurve` has two such kernels.
"""

from sfc.bitwise.curve import BitwiseCurve, Kernel

__all__ = ["BitwiseCurve", "Kernel"]
