"""Gains that [thesis] prints: its Table 6.1, of force, other and total in the shaken box."""

import pandas as pd

# Time without reorders over time with reorders along the Hilbert pancake every 500 steps, on a Tesla K20.
TABLE_6_1 = pd.DataFrame(
    {
        "filling_fraction": [0.05, 0.2, 0.4],
        "force": [1.47, 2.97, 3.14],
        "other": [1.02, 1.25, 1.19],
        "total": [1.38, 2.74, 3.01],
    }
)
