"""The records of pages and verdicts: each number, word, link and chart of a page is in them."""

import json

import numpy as np
import pytest

from experiments.results.estimate import Spread
from tests.shown import entries, pages
from tests.shown.arrays import digest, plain
from tests.shown.comparing import coarse, differences

CHART = {
    "spec": {"mark": "point", "encoding": {"x": {"field": "at", "title": "n"}}},
    "fields": ["at", "value", "low", "high", "order"],
    "rows": [["2^17", 1.5, 1.25, 1.75, "hilbert"], ["2^21", 3.5, 3.25, 3.75, "hilbert"]],
}
HTML = """<!doctype html><html><body><h1>Results</h1><p>Of <b>90 kept</b> runs</p>
<section id="answer"><h2>The answer</h2><p>A gain of 1.79<br>(1.78 to 1.81)</p><a href="#T4">T4</a>
<select><option>H100</option><option selected>H200</option></select><img src="data:1" alt="a map">
<div role="img" aria-label="gain by order"></div><svg><text>hilbert</text></svg>
<table id="claims"><tr><th>id</th><th>verdict</th></tr><tr><td>T1</td><td><b>depends</b></td></tr></table>
<section id="inner"><p>inside</p></section><p>after</p></section>
<script type="application/json">DATA</script><script>let program = 1;</script></body></html>"""


def record(monkeypatch, html: str = HTML, chart: dict = CHART) -> dict:
    """The record of a page that the program of pages would have written."""
    data = json.dumps({"charts": {"worth": chart}, "runs": {"timing/h100": {"where": "H100"}}})

    def write(module, *arguments):
        folder = arguments[arguments.index("--results") + 1]
        with open(f"{folder}/{entries.PAGE_FILE}", "w") as file:
            file.write(html.replace("DATA", data))

    monkeypatch.setattr(entries, "output_of", write)
    return pages.page()


def test_a_page_has_its_charts_and_the_texts_tables_links_and_pictures_of_its_sections(monkeypatch):
    found = record(monkeypatch)
    assert found["charts"]["worth"]["drawn"] == [["2^17", 1.5, 1.25, 1.75], ["2^21", 3.5, 3.25, 3.75]]
    assert found["data"] == [{"runs": {"timing/h100": {"where": "H100"}}}]
    assert found["parts"]["start"]["texts"] == ["Results", "Of 90 kept runs"]
    answer = found["parts"]["answer"]
    assert answer["texts"][:3] == ["The answer", "A gain of 1.79", "(1.78 to 1.81)"]
    assert answer["tables"] == {"claims": [["id", "verdict"], ["T1", "depends"]]}
    assert answer["links"] == ["#T4"]
    assert found["parts"]["inner"]["texts"] == ["inside"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("1.79", "1.80", "parts / answer / texts / 2"),
        ("90 kept", "89 kept", "parts / start / texts / 2"),
        ("depends", "refuted", "parts / answer / tables / claims / 2 / 2"),
        ("#T4", "#T5", "parts / answer / links / 1"),
        (
            "<option>H100</option><option selected>",
            "<option selected>H100</option><option>",
            "answer / texts",
        ),
        ("data:1", "data:2", "parts / answer / pictures / 1 / source"),
        ("gain by order", "gain by n", "parts / answer / texts"),
        (">hilbert<", ">row<", "parts / answer / texts"),
        ("<p>after</p>", "", "parts / answer / texts"),
    ],
)
def test_a_change_of_a_page_is_seen_at_its_place(monkeypatch, old, new, place):
    assert HTML.count(old) == 1
    found = differences(record(monkeypatch), record(monkeypatch, HTML.replace(old, new)))
    assert any(place in where for where, _ in found)


def test_a_change_of_a_chart_is_seen_and_its_points_do_not_depend_on_where_its_data_are(monkeypatch):
    before = record(monkeypatch)
    moved = CHART | {"rows": [[*CHART["rows"][0][:4], "row"], CHART["rows"][1]]}
    after = record(monkeypatch, chart=moved)
    assert [place for place, _ in differences(before, after)] == ["charts / worth / rows / 1 / order"]
    assert coarse(after) == coarse(before)
    rows = [dict(zip(CHART["fields"], row, strict=True)) for row in reversed(CHART["rows"])]
    other = {"layer": [{"mark": "bar", "encoding": {}}], "data": {"values": rows}}
    assert coarse(record(monkeypatch, chart=other)) == coarse(before)
    rows[0]["high"] = 3.76
    assert coarse(record(monkeypatch, chart=other)) != coarse(before)


def test_a_page_whose_charts_cannot_be_read_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="no chart in the data"):
        record(monkeypatch, chart={"points": []})


def test_a_page_in_markdown_is_kept_by_its_headings():
    text = "intro\n# Results\nA gain\n## How sure\nyes\n"
    assert pages.by_heading(text) == {
        "start": ["intro"],
        "# Results": ["# Results", "A gain"],
        "## How sure": ["## How sure", "yes"],
    }


def test_a_program_that_fails_says_why():
    with pytest.raises(entries.ProgramFailedError, match=r"status 2: error: unknown claim 'X9'"):
        entries.output_of("experiments.verdicts", "X9")


def test_a_last_bit_in_a_spread_leaves_the_digest_of_an_answer():
    spread, moved, other = (Spread(sd, 2) for sd in (0.1, np.nextafter(0.1, 1), 0.1001))
    before, after, changed = (digest(plain({"spreads": (of,)})) for of in (spread, moved, other))
    assert before == after != changed
    with pytest.raises(TypeError, match="no rule for object"):
        plain({"spreads": object()})


def test_the_verdicts_have_every_claim_and_every_number_in_full_precision():
    found = pages.verdicts()
    assert (
        len(found["list"]) == len(found["claims"].keys() - {key for key in found["claims"] if " " in key}) + 1
    )
    answer = found["answers"]["claim T1, ordered"]
    assert answer["low"] < answer["value"] < answer["high"]
    assert f"{answer['value']:.3g}" in found["answers"]["claim T1"]["here"]
    assert len(f"{answer['value']!r}") > 10
    assert any(name.startswith("numbers of results, ") for name in found["answers"])
