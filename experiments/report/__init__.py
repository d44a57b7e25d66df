"""One HTML page of all results: verdicts, charts, pictures and the list of runs, from the kept runs.

The command is `python -m experiments.report`; it has a `--help`. It needs the extra `report`.
"""
