"""From rows to numbers: names of baselines, gains with their intervals, warnings about times."""
