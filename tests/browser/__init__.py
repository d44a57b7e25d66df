"""Tests of the page in Chromium, driven by Playwright: `pytest -m browser -n 0`."""
