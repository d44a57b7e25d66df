"""The page of the results, with a run of a reader, read without a browser."""

import base64
import hashlib
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.results.claims import judgement
from experiments.results.claims.claim import collected
from experiments.results.claims.judgement import Shown
from experiments.results.claims.numbers import NUMBERS
from experiments.results.claims.origins import origins
from experiments.results.kept.queries import REFERENCE, evaluate
from experiments.results.page import __main__ as command
from experiments.results.page import build as pages
from experiments.results.page import pictures
from experiments.results.page.chart_list import CHARTS
from experiments.results.page.numbers import of_page
from experiments.results.page.sections import OWN, SECTIONS
from tests.experiments.results.claims.caveats import missing
from tests.experiments.results.claims.judged import IDS, judged
from tests.experiments.results.page.document import Document, spaced

SOURCE, NAME = "timing/h100", "20260101T000000Z-0123abcd"
HEADLINE = "timing/h200_three_runs"


@pytest.fixture(scope="module")
def html(tmp_path_factory, judgements):
    """The page beside a copy of a kept run, which a reader may have made; claims are judged once."""
    folder = tmp_path_factory.mktemp("report")
    run = folder / "mine" / "timing" / NAME
    shutil.copytree(REFERENCE / SOURCE, run)
    (run / "about.toml").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judgement, "judge", lambda claim: judgements[claim.id])
        patch.setattr(pictures, "WIDEST", 40)
        assert command.main(["--results", str(folder / "new" / "results"), "--run", str(run)]) == 0
    return (folder / "new" / "results" / command.FILE).read_text()


@pytest.fixture(scope="module")
def document(html):
    return Document(html)


@pytest.fixture(scope="module")
def judgements():
    return {name: judged(name) for name in IDS}


@pytest.fixture(scope="module")
def data(document):
    return json.loads(document.by_id("data").text)


def test_sections_are_all_there_in_order(document):
    (main,) = document.all("main")
    found = [one.attributes["id"] for one in main.children if one.tag == "section"]
    assert found == [*(section.id for section in SECTIONS[:-1]), OWN.id, SECTIONS[-1].id]
    contents = [one.attributes["href"] for one in document.all("a", inside="contents")]
    assert contents == [f"#{id}" for id in found]


def test_each_claim_is_in_the_scoreboard_and_in_one_section(document):
    assert sorted(id for section in SECTIONS for id in section.claims) == sorted(IDS)
    rows = [one.attributes["data-id"] for one in document.all("tr") if "data-id" in one.attributes]
    assert rows == list(IDS)
    articles = [one.attributes["id"] for one in document.all("article")]
    assert sorted(articles) == sorted([*IDS, f"run-timing-{NAME}"])
    for name, claim in collected().items():
        assert {part.id.replace(" ", "-") for part in claim.parts} <= {
            one.attributes.get("id") for one in document.all("section", inside=name)
        }


def test_the_scoreboard_says_what_the_verdicts_say(document, judgements):
    rows = {one.attributes["data-id"]: one for one in document.all("tr") if "data-id" in one.attributes}
    for name, found in judgements.items():
        texts = [spaced(cell.text) for cell in rows[name].children]
        assert texts[:4] == [name, found.claim.short, found.word, spaced(found.cell)]
        assert found.claim.there in texts[4]


def test_the_rows_of_a_claim_have_all_that_is_behind_its_verdict(document, judgements):
    text, claim = spaced(document.by_id("T12").text), judgements["T12"].claim
    rows = [one for one in document.all("tr", inside="T12") if one.children[-1].tag == "td"]
    for row, (name, answer) in zip(rows, judgements["T12"].answers.items(), strict=True):
        cells = [spaced(cell.text) for cell in row.children]
        assert cells[:3] == [name, str(Shown(answer)), answer.interval]
        assert cells[3].startswith("NVIDIA H")
        assert cells[5] == " ".join(claim.queries[name].run)
        assert claim.queries[name].where in cells[6]
    for one in origins(claim):
        assert f"{one.run}{one.device}; n {one.n}; commit {one.commit}: {one.command}" in text


def test_numbers_of_sentences_and_points_are_answers_of_queries(document, data):
    found = of_page()["hilbert"]
    assert str(found) in spaced(document.by_id("answer").text)
    chart = data["charts"]["worth"]
    rows = [dict(zip(chart["fields"], row, strict=True)) for row in chart["rows"]]
    wanted = {"run": HEADLINE, "order": "hilbert", "over": "shuffled", "filling": "20 %", "size": "2^21"}
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    assert row["text"] == str(found)
    T4 = collected()["T4"].queries["measured_5"]  # noqa: N806 # its id
    rows = [
        dict(zip(data["charts"]["foreseen"]["fields"], row, strict=True))
        for row in data["charts"]["foreseen"]["rows"]
    ]
    (row,) = [
        row
        for row in rows
        if (wanted | {"run": SOURCE, "filling": "5 %"}).items() - {("over", "shuffled")} <= row.items()
    ]
    assert row["text"] == str(Shown(evaluate(T4)))


def test_a_number_of_a_sentence_has_its_words_behind_it(document, judgements):
    """So have the numbers of claims, and those of points."""
    templates = pages.HERE / "templates" / "sections"
    for section in SECTIONS:
        names = re.findall(r"{{ *([\w.]+)\b", (templates / f"{section.id}.html").read_text())
        text = document.by_id(section.id).text
        for name in (one for one in names if not one.endswith(".noise")):
            id, _, query = name.partition(".")
            query = query.partition(".")[0]
            if id == "n":
                assert missing(text, [evaluate(NUMBERS[query])]) == [], name
            elif id in IDS:
                assert missing(text, [judgements[id].answers[query]]) == [], name
    for id in IDS:
        cells = " | ".join(one.text for one in document.all("td", inside=id))
        assert missing(cells, judgements[id].answers.values()) == []


def test_a_point_has_its_words_too(data, judgements):
    fields, rows = data["charts"]["box"]["fields"], data["charts"]["box"]["rows"]
    texts = [row[fields.index("text")] for row in rows if row[fields.index("run")] == "timing/h100_box"]
    for phi in (5, 20, 40):
        answer = judgements["T12"].answers[f"lattice_{phi}"]
        (text,) = [text for text in texts if text == str(Shown(answer))]
        assert missing(text, [answer]) == []
        assert ("does not carry over)" in text) == (phi < 40)


def test_no_sentence_has_a_number_of_its_own():
    templates = pages.HERE / "templates" / "sections"
    assert len(list(templates.glob("*.html"))) == len(SECTIONS) + 1
    for path in templates.glob("*.html"):
        assert not re.findall(r"\d\.\d", path.read_text()), path.name
    used = "".join(path.read_text() for path in templates.glob("*.html"))
    names = list(NUMBERS)
    assert [name for name in names if f"n.{name}" not in used] == []


def test_it_is_one_file_that_loads_nothing(html, document):
    assert len(html.encode()) < pages.LARGEST == 8_000_000
    assert document.all("link", "iframe", "object", "base", "form") == []
    loads = [
        one.attributes[name]
        for one in document.elements
        for name in ("src", "href", "srcset", "xlink:href")
        if name in one.attributes
    ]
    assert {load[:1] if load[0] == "#" else load[:5] for load in loads} == {"#", "data:"}
    (style,) = document.all("style")
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_scripts_are_those_that_the_policy_names_and_the_library_is_there_once(document):
    (policy,) = [one for one in document.all("meta") if "http-equiv" in one.attributes]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    assert (rules["default-src"], rules["connect-src"], rules["img-src"]) == ("'none'", "'none'", "data:")
    assert "unsafe" not in rules["script-src"]
    scripts = [one.text for one in document.all("script") if "type" not in one.attributes]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert rules["script-src"].split() == [f"'sha256-{text}'" for text in hashes]
    bundles = [text for text in scripts if "window.vegaEmbed=" in text]
    assert len(bundles) == 1
    assert len(bundles[0].encode()) < 1_500_000


def test_every_link_leads_to_one_element(document):
    ids = [one.attributes["id"] for one in document.elements if "id" in one.attributes]
    assert sorted(ids) == sorted(set(ids))
    links = {one.attributes["href"][1:] for one in document.all("a")}
    assert links - set(ids) == set()


def test_it_can_be_read_without_eyes_and_without_scripts(document):
    levels = [int(one.tag[1]) for one in document.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(one.attributes["alt"] for one in document.all("img"))
    assert all(
        "scope" in one.attributes for one in document.all("th") if one.inside and one.inside[0] != "compared"
    )
    figures = [one for one in document.all("figure") if "data-chart" in one.attributes]
    assert [one.attributes["data-chart"] for one in figures] == list(dict.fromkeys(
        id for section in SECTIONS for id in section.charts
    ))  # fmt: skip
    assert sorted(CHARTS) == sorted(one.attributes["data-chart"] for one in figures)
    for figure in figures:
        assert document.all("svg", inside=figure.attributes["id"])


def test_a_run_of_the_reader_is_beside_the_kept_ones(document, data, judgements):
    name = f"timing/{NAME}"
    text = spaced(document.by_id(OWN.id).text)
    assert name in text
    assert "How much" in spaced(document.all("h1")[0].text)
    for id in ("worth", "sizes", "foreseen"):
        fields, rows = data["charts"][id]["fields"], data["charts"][id]["rows"]
        at = fields.index("run")
        mine = [[*row[:at], SOURCE, *row[at + 1 :]] for row in rows if row[at] == name]
        device = fields.index("device")
        assert {row[device] for row in mine} == {"your run: NVIDIA H100 80GB HBM3"}
        kept = [row for row in rows if row[at] == SOURCE]
        without = [[*row[:device], *row[device + 1 :]] for row in mine]
        assert without == [[*row[:device], *row[device + 1 :]] for row in kept]
    answer = str(Shown(judgements["T4"].answers["measured_20"]))
    rows = [[spaced(cell.text) for cell in one.children] for one in document.all("tr", inside=OWN.id)]
    at = [row[:3] for row in rows].index(["T4", "measured_20", "yours"])
    on = "NVIDIA H100 80GB HBM3 (cuda), n 2,097,152"
    assert rows[at][3:7] == [answer, "95 % over 3 runs", "yes", on]
    assert rows[at + 1][2:7] == ["kept", answer, "95 % over 3 runs", "", on]
    reason = r"Not compared: n 2,097,152 on .* \(cuda\) beside 1,048,576 on .* \(cpu\) \(T4 cpu_5, "
    assert re.search(reason, text)
    pictures = document.all("img", inside=OWN.id)
    assert len(pictures) == len(list(Path(REFERENCE / SOURCE).glob("*.png")))
