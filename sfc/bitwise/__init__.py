"""Space-filling curves computed by operations on the bits of coordinates, for dims beyond the reach of tables.

`bits` interleaves the bits of coordinates and separates them again; `BitwiseCurve` is a curve of such kernels.
"""

from sfc.bitwise.curve import BitwiseCurve, Kernel

__all__ = ["BitwiseCurve", "Kernel"]
