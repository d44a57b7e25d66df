"""Files of points: arrays of numpy and tables of text, sorted as wholes; the command `python -m sfc sort`.

`file_sort.py` has `sort_file`. `arrays.py` reads and writes .npy and .npz, `text.py` .csv. `columns.py` finds
the coordinates among the columns of a file.
"""

from sfc.files.file_sort import Sorted, sort_file

__all__ = ["Sorted", "sort_file"]
