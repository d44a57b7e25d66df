"""One HTML page of all results: verdicts, charts, pictures and the list of runs, from the kept runs.

The command is `python -m experiments.results.page`; it has a `--help`. It needs the extra `report`.

The picture of its first screen, `results/report.png`, is made by

    chromium --headless --no-sandbox --hide-scrollbars --window-size=1280,800 --virtual-time-budget=5000 \
        --screenshot=results/report.png results/report.html
"""
