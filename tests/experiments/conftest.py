"""What the runs of the tests do without: figures fit for print, and a look at the checkout for each run."""

import functools
import sys

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from experiments.core import provenance
from experiments.drawing import solid, style
from experiments.drawing.charts import draw
from experiments.drawing.style import saving
from tests.processes import preloaded

PUBLISHED, PIXELS = {"text.parse_math": True} | saving.SETTINGS, solid.PIXELS
SMALL = {
    "savefig.dpi": 40,
    "pdf.fonttype": 3,  # fonts that need not be cut to size
    "figure.constrained_layout.use": False,
    "text.parse_math": False,
}


as_it_is = Figure.savefig


def empty(figure: Figure, path, kinds=("png", "pdf"), **options) -> None:
    """As files of these kinds an empty page of the size of the figure; as frames of a film what there is."""
    if {options.get("format"), str(path)[-3:]} & set(kinds):
        for part in figure.get_children():
            part.set_visible(False)
    as_it_is(figure, path, **options)


def empty_in_print(figure: Figure, path, **options) -> None:
    """As PNG what there is to see, as PDF, for which all is drawn a second time, an empty page."""
    empty(figure, path, ("pdf",), **options)


@pytest.fixture(scope="session", autouse=True)
def drawn_for_tests():
    """Figures small, with formulas as they are typed, their parts made, but neither fitted nor painted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "SETTINGS", saving.SETTINGS | SMALL)
        patch.setattr(solid, "PIXELS", 30)
        patch.setattr(Figure, "savefig", empty)
        yield


@pytest.fixture
def with_contents(drawn_for_tests, monkeypatch):
    """Figures small, but painted."""
    monkeypatch.setattr(Figure, "savefig", empty_in_print)


@pytest.fixture
def as_published(drawn_for_tests, monkeypatch):
    """Figures as users get them."""
    monkeypatch.setattr(saving, "SETTINGS", PUBLISHED)
    monkeypatch.setattr(solid, "PIXELS", PIXELS)
    monkeypatch.setattr(Figure, "savefig", as_it_is)


@pytest.fixture(scope="session", autouse=True)
def one_look_at_the_checkout():
    """The sources are hashed once, and git is called once for the commit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "code_of", functools.cache(provenance.code_of))
        yield


@pytest.fixture
def preloaded_workers(monkeypatch):
    """Workers that need no second for their imports."""
    preloaded(monkeypatch)


@pytest.fixture(autouse=True)
def closed():
    """Figures that a test catches before they are written are closed at its end."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw the views of a table: name -> figure, open until the test ends."""

    def figures_of(views, table) -> dict[str, Figure]:
        found: dict[str, Figure] = {}
        monkeypatch.setattr(style, "save", lambda figure, out, name, *_: found.update({name: figure}))
        draw(views, table, tmp_path)
        return found

    yield figures_of
    plt.close("all")
