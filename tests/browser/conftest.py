"""A browser and the page of the results, each made once."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUIET = (  # nothing but the page, from a machine without a network as well
    "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def address(tmp_path_factory) -> str:
    """Address of the page, made as a user makes it."""
    folder = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "experiments.results.page", "--results", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (path,) = folder.iterdir()
    return path.as_uri()


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium."""
    from playwright.sync_api import sync_playwright  # here, because the other tests are collected without it

    path = shutil.which("chromium")
    assert path, "no chromium; install it from the distribution's packages"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="session")
def opened(browser, address):
    """Function that opens the page once for each set of options of a browser context."""
    contexts = []

    def open_page(scripts: bool = True, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.faults, page.requests = [], []
        page.on("console", lambda said: said.type == "error" and page.faults.append(said.text))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def wide(opened):
    """The page on a wide light screen; a test leaves it as it was."""
    return opened(color_scheme="light")


@pytest.fixture(scope="session")
def narrow(opened):
    """The page on a dark phone."""
    return opened(color_scheme="dark", viewport={"width": 390, "height": 844}, has_touch=True)


@pytest.fixture
def expect() -> Callable:
    """Assertions of Playwright, which wait until they hold."""
    from playwright.sync_api import expect

    return expect
