"""The page of the results in a browser: by mouse, by keyboard, on a phone, on paper and without scripts."""

from pathlib import Path

import pytest

from experiments.results.claims.claim import collected
from experiments.results.page.sections import SECTIONS

pytestmark = pytest.mark.browser
IDS = tuple(collected())
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
IN_VIEW = """id => {
    const box = document.querySelector(id).getBoundingClientRect();
    return box.top >= -1 && box.top < innerHeight && box.height > 0;
}"""


def ids(page) -> list[str]:
    """Ids of the claims that the scoreboard shows, from top to bottom."""
    return page.locator("#claims tbody tr:visible th").all_inner_texts()


def points(page, chart: str) -> int:
    return page.locator(f"#chart-{chart} .points_marks path").count()


def test_it_loads_nothing_and_says_no_error(wide, address):
    assert wide.faults == []
    assert [url for url in wide.requests if not url.startswith(("data:", "blob:"))] == [address]
    refused = """() => fetch("https://example.org/").then(() => "answered", () => "refused")"""
    assert wide.evaluate(refused) == "refused"
    wide.faults.clear()  # what the browser said of this request


def test_every_section_has_its_charts_drawn(wide):
    for section in SECTIONS:
        assert wide.locator(f"section#{section.id} > h2").inner_text() == section.title
        for chart in section.charts:
            assert points(wide, chart) > 0
            box = wide.locator(f"#chart-{chart} svg.marks").bounding_box()
            assert box["width"] > 300
            assert box["height"] > 60


def test_the_first_screen_has_the_answer_with_its_chart(wide):
    wide.evaluate("scrollTo(0, 0)")
    bottom = wide.locator("#chart-worth").bounding_box()
    last = wide.locator("#answer li").last.bounding_box()
    assert max(bottom["y"] + bottom["height"], last["y"] + last["height"]) <= 900
    text = wide.locator("#answer").inner_text()
    for word in ("Worth.", "Curve.", "Interval.", "Spread.", "Refuted.", "2^21", "NVIDIA H"):
        assert word in text


def test_the_scoreboard_is_filtered_by_verdict_and_text(wide):
    words = {name: claim.verdict for name, claim in collected().items()}
    assert ids(wide) == list(IDS)
    wide.select_option("#filter-verdict", "refuted")
    assert ids(wide) == [name for name, word in words.items() if word == "refuted"]
    assert wide.locator("#filter-count").inner_text() == f"{len(ids(wide))} of {len(IDS)} claims"
    wide.select_option("#filter-verdict", "")
    wide.fill("#filter-text", "STACK in shared memory")
    assert ids(wide) == ["L2"]
    wide.fill("#filter-text", "")
    assert ids(wide) == list(IDS)


def test_the_scoreboard_is_filtered_and_sorted_by_keyboard(wide):
    wide.focus("#filter-verdict")
    wide.keyboard.type("conf")
    wide.keyboard.press("Tab")
    assert {collected()[name].verdict for name in ids(wide)} == {"confirmed"}
    rows = {name: wide.locator(f"#claims tr[data-id='{name}']").inner_text() for name in ids(wide)}
    wide.keyboard.type("hits")
    assert ids(wide) == [name for name, text in rows.items() if "hits" in text.lower()]
    assert {"T5", "T6"} <= set(ids(wide)) < set(rows)
    wide.keyboard.press("Control+a")
    wide.keyboard.press("Delete")
    wide.select_option("#filter-verdict", "")
    head = wide.locator("#claims thead th").first
    head.locator("button").focus()
    wide.keyboard.press("Enter")
    assert (ids(wide), head.get_attribute("aria-sort")) == (list(IDS), "ascending")
    wide.keyboard.press("Space")
    assert (ids(wide), head.get_attribute("aria-sort")) == (list(IDS)[::-1], "descending")
    wide.locator("#claims thead th button").nth(2).click()
    shown = wide.locator("#claims tbody .verdict").all_inner_texts()
    assert shown == sorted(shown)
    head.locator("button").click()
    assert ids(wide) == list(IDS)


@pytest.mark.parametrize("screen", ["wide", "narrow"])
def test_a_link_of_the_scoreboard_leads_to_the_rows_of_its_claim(wide, narrow, screen):
    page = {"wide": wide, "narrow": narrow}[screen]
    assert not page.locator("#T12 .queries").is_visible()
    page.locator("#claims a", has_text="T12").click()
    page.wait_for_function(f"({IN_VIEW})('#T12')")
    assert page.evaluate(IN_VIEW, "#T12 .queries tbody tr")
    assert page.locator("#T12 .queries tbody tr").count() == len(collected()["T12"].queries)
    page.locator("#T12 .queries a").first.click()
    page.wait_for_function(f"({IN_VIEW})('#run-timing-h100_box')")
    page.evaluate("location.hash = 'L8-lock_free'")
    page.wait_for_function(f"({IN_VIEW})('#L8-lock_free')")
    page.evaluate("location.hash = 'answer'")


def test_choices_change_the_points_by_mouse_and_by_keyboard(wide, expect):
    chart = wide.locator("#chart-worth")
    assert points(wide, "worth") == 9
    chart.locator("select[data-column=order]").select_option("hilbert")
    assert points(wide, "worth") == 2
    chart.locator("select[data-column=order]").select_option("")
    first = chart.locator(".points_marks path").first
    expect(chart.locator(".points_marks path")).to_have_count(9)
    at_2_21 = first.get_attribute("transform")
    chart.locator("select[data-column=size]").select_option("2^17")
    expect(first).not_to_have_attribute("transform", at_2_21)  # another gain
    at_2_17 = first.get_attribute("transform")
    chart.locator("select[data-column=device]").focus()
    wide.keyboard.type("NVIDIA H1")
    expect(first).not_to_have_attribute("transform", at_2_17)
    assert chart.locator("select[data-column=size]").input_value() == "2^21"  # that device has no other
    assert points(wide, "worth") == 9
    assert wide.faults == []


def test_a_point_shows_its_row_and_its_command(wide):
    chart = wide.locator("#chart-worth")
    chart.scroll_into_view_if_needed()
    chart.locator(".points_marks path").first.hover()
    wide.wait_for_selector("#vg-tooltip-element.visible")
    assert "95 % over 3 runs" in wide.locator("#vg-tooltip-element").inner_text()
    assert not chart.locator(".point").is_visible()
    chart.locator(".points_marks path").first.click()
    text = chart.locator(".point").inner_text()
    assert "python -m experiments.timing" in text
    assert "95 % over 3 runs" in text
    chart.locator(".plot").focus()
    wide.keyboard.press("Escape")
    assert not chart.locator(".point").is_visible()
    wide.keyboard.press("ArrowDown")
    first = chart.locator(".at").inner_text()
    wide.keyboard.press("ArrowDown")
    assert chart.locator(".at").inner_text() != first
    assert chart.locator(".points_marks path.current").count() == 1
    wide.keyboard.press("ArrowUp")
    wide.keyboard.press("Enter")
    assert first in chart.locator(".point caption").inner_text()
    assert chart.locator(".point a").get_attribute("href") == "#run-timing-h100"
    wide.keyboard.press("Escape")


def test_the_skip_link_comes_first_and_focus_can_be_seen(opened):
    page = opened()
    page.keyboard.press("Tab")
    link = page.locator(".skip")
    assert link.evaluate("one => one === document.activeElement")
    assert link.bounding_box()["x"] >= 0
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate(outline) != "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(wide, narrow, scheme):
    page = {"light": wide, "dark": narrow}[scheme]
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = page.evaluate(CONTRAST)
    assert found["texts"] > 2000
    assert found["wrong"] == []
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = false; })")


def test_a_phone_does_not_scroll_sideways(narrow):
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert narrow.evaluate(wider) == 0
    narrow.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert narrow.evaluate(wider) == 0
    sticking_out = """() => [...document.querySelectorAll("main *")].filter(one =>
        !one.closest(".scroll, svg") && one.getBoundingClientRect().right > innerWidth + 1
    ).map(one => one.outerHTML.slice(0, 90))"""
    assert narrow.evaluate(sticking_out) == []
    narrow.evaluate("document.querySelectorAll('details').forEach(one => { one.open = false; })")
    for chart in ("worth", "sizes", "ladder"):
        assert narrow.locator(f"#chart-{chart} svg.marks").bounding_box()["width"] > 250
    assert narrow.faults == []


def test_without_scripts_charts_are_pictures_and_rows_are_open(opened):
    page = opened(java_script_enabled=False)
    for section in SECTIONS:
        for chart in section.charts:
            assert page.locator(f"#chart-{chart} .plot svg").bounding_box()["height"] > 60
    assert page.locator("#T12 .queries tbody tr").first.is_visible()
    assert page.locator("select:visible, input:visible").count() == 0
    assert page.faults == []


def test_paper_is_light_and_has_no_controls(opened):
    page = opened(color_scheme="dark")
    luminance = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(luminance) == "rgb(21, 24, 28)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(luminance) == "rgb(255, 255, 255)"
    assert page.evaluate("() => getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    assert page.locator("select:visible, nav:visible, .hint:visible").count() == 0
    page.set_viewport_size({"width": 760, "height": 1000})  # A4
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 760
    assert page.locator("#T12 .queries tbody tr").first.is_visible()
