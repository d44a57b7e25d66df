"""The table of the verdicts in a terminal and on a page."""

import re
import resource

import pytest

from experiments.results.claims import __main__ as command
from experiments.results.claims import table as page
from experiments.results.claims import table_6_1
from tests.experiments.results.claims.judged import IDS, judged


@pytest.fixture(scope="module")
def judgements():
    return [judged(name) for name in IDS]


def test_a_terminal_gets_a_line_a_claim_and_a_count(judgements):
    found = page.lines(judgements)
    assert len(found) == len(IDS) + 1
    assert max(map(len, found)) <= 100
    assert [line.split()[0] for line in found[:-1]] == list(IDS)
    counts = [int(count) for count in re.findall(r"\d+", found[-1])]
    assert counts[0] == sum(counts[1:]) == len(IDS)


def test_the_table_has_a_row_a_claim_whose_figures_exist(judgements):
    rows = page.markdown(judgements).splitlines()
    assert len(rows) == len(IDS) + 2
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    links = re.findall(r"\]\((reference/[^)]+)\)", "\n".join(rows))
    assert len(links) == sum(bool(one.claim.figure) for one in judgements)
    for row, one in zip(rows[2:], judgements, strict=True):
        assert f"|{one.word}|" in row
        assert one.claim.short in row
        assert one.here.removesuffix("; 3 runs") in row


def test_all_of_a_claim_is_shown_in_full(judgements):
    text = "\n".join(line for one in judgements for line in page.details(one))
    for one in judgements:
        assert one.claim.claim in text
        for query in one.claim.queries.values():
            assert query.where in text


def test_the_table_stands_between_the_marks(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write("| new |", path)
    page.write("| newer |", path)
    assert path.read_text() == f"before\n{page.BEGIN}\n| newer |\n{page.END}\nafter\n"


def test_a_page_without_room_for_a_new_one_stays(tmp_path):
    path, text = tmp_path / "README.md", f"{page.BEGIN}\nold\n{page.END}\n"
    path.write_text(text)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(OSError, match=r"README\.md"):
            page.write("| new |", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    ["no marks", page.BEGIN, f"{page.END}\n{page.BEGIN}", f"{page.BEGIN}\n{page.BEGIN}\n{page.END}"],
)
def test_a_page_without_the_marks_is_refused_and_kept(tmp_path, text):
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(ValueError, match="allowed: one of each, in this order; add both lines"):
        page.write("| new |", path)
    assert path.read_text() == text


def test_the_command_prints_writes_and_fails(tmp_path, monkeypatch, capsys, judgements):
    path = tmp_path / "README.md"
    path.write_text(f"{page.BEGIN}\n{page.END}\n")
    other = tmp_path / "thesis.md"
    other.write_text(f"{table_6_1.BEGIN}\n{table_6_1.END}\n")
    monkeypatch.setattr(command, "PAGE", path)
    monkeypatch.setattr(command, "THESIS", other)
    found = {one.claim.id: one for one in judgements}
    monkeypatch.setattr(command, "judge", lambda claim: found[claim.id])
    assert command.main(["--write"]) == 0
    assert capsys.readouterr().out.splitlines() == page.lines(judgements)
    assert page.markdown(judgements) in path.read_text()
    assert other.read_text() == f"{table_6_1.BEGIN}\n{table_6_1.markdown()}\n{table_6_1.END}\n"
    path.write_text("no marks")
    assert command.main(["--write"]) == 2
    assert "has 0 marks" in capsys.readouterr().err
    assert command.main(["T1", "--write"]) == 2
    assert "id = ['T1']; allowed: none beside --write" in capsys.readouterr().err
    assert command.main(["T99"]) == 2
    assert "unknown claim 'T99'; allowed: one of T1" in capsys.readouterr().err
    assert command.main(["L5"]) == 0
    assert capsys.readouterr().out.startswith("L5: ")


def test_a_verdict_that_does_not_follow_ends_with_status_1(monkeypatch, capsys):
    monkeypatch.setattr(command, "judge", lambda claim: page.Judgement(claim, "refuted", {}))
    assert command.main(["L8"]) == 1
    assert "L8: the claim says 'depends', the rules 'refuted'" in capsys.readouterr().err
