"""Radix sort of keys of 32 or 64 bits: that of the CPU is `sfc.radix_sort`, radix.cu sorts on a device.

On a device: Satish, Harris and Garland, Designing efficient sorting algorithms for manycore GPUs (2009).
"""

from md.backend.kernels.on_device import OnDevice
from sfc.radix_sort import DIGIT, MAX_PARTS, VALUES, passes_of, radix_sort

__all__ = ["DIGIT", "MAX_PARTS", "VALUES", "passes_of", "radix_sort"]

count_digits = place_digits = OnDevice(threads=256)
