"""A core of a CPU: its loads one after the other, what its caches hold of them, and the time that it takes.

A `CoreStream` has the loads and stores of each item of a kernel, in bytes, in the order of the program.
`lines` follows them through the three caches of a `Processor`, in which lines that are loaded in sequence are
known before they are asked for; `foresee` adds the time, and that for which additions to the same number wait
for each other. The GPU's counterparts are in `sfc.cache`.
"""

from sfc.cache.core.forecast import CoreFitted, CoreForecast, foresee
from sfc.cache.core.lines import CoreLines, lines
from sfc.cache.core.loads import CoreStream, one_by_one
from sfc.cache.core.processor import Processor

__all__ = [
    "CoreFitted",
    "CoreForecast",
    "CoreLines",
    "CoreStream",
    "Processor",
    "foresee",
    "lines",
    "one_by_one",
]
