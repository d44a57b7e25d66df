"""Pages link to files that are there, and the committed results stay small."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick
ROOT = Path(__file__).parents[4]
PAGES = (
    "*.md",
    "results/*.md",
    "results/details/*.md",
    "sfc/*.md",
    "md/*.md",
    "experiments/*.md",
    "tests/*.md",
)
LARGEST_RESULTS_MB = 30
MOST_WORDS = {"results/README.md": 1500, "results/GUIDE.md": 650}
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


def committed() -> list[str]:
    """The files that git tracks, as paths from the top."""
    if not (ROOT / ".git").exists():
        pytest.skip("these sources are in no checkout")
    found = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    return [name for name in found.decode().split("\0") if name and (ROOT / name).is_file()]


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, code blocks left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def words(text: str) -> int:
    """Count the words of a page in markdown: all between blanks and bars that has a letter or digit."""
    return sum(bool(re.search(r"\w", word)) for word in re.split(r"[\s|]+", text))


def broken_links(root: Path, files: list[str]) -> list[str]:
    """Links of the pages to something that is none of the files, nor a folder of some."""
    known = {(root / name).resolve() for name in files}
    known |= {parent for path in known for parent in path.parents}
    wrong = []
    for page in (path for pattern in PAGES for path in sorted(root.glob(pattern))):
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            target = link.partition("#")[0]
            is_file = target and not re.match(r"[a-z]+:", target)
            if is_file and (page.parent / target).resolve() not in known:
                wrong.append(f"{page.relative_to(root)}: {link}")
    return wrong


def broken_anchors(root: Path) -> list[str]:
    """Links of the pages to a heading that the page they name does not have."""
    wrong = []
    for page in (path for pattern in PAGES for path in sorted(root.glob(pattern))):
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            path = page.parent / target if target else page
            is_page = anchor and path.suffix == ".md" and path.is_file()
            if is_page and anchor not in anchors(path):
                wrong.append(f"{page.relative_to(root)}: {link}")
    return wrong


def test_no_page_has_a_broken_anchor():
    assert broken_anchors(ROOT) == []


@pytest.mark.parametrize("link", ["#gone", "more.md#gone"])
def test_a_broken_anchor_is_found(tmp_path, link):
    (tmp_path / "more.md").write_text("# T1: `cost` of it\n")
    (tmp_path / "README.md").write_text(f"# Top\n[a](#top) [b](more.md#t1-cost-of-it) [c]({link})\n")
    assert broken_anchors(tmp_path) == [f"README.md: {link}"]


@pytest.mark.parametrize("page", MOST_WORDS)
def test_the_first_pages_are_short(page):
    count = words((ROOT / page).read_text(encoding="utf-8"))
    assert 100 < count <= MOST_WORDS[page], f"{page} has {count} words; move some to results/details/"


def test_words_are_counted_without_bars_and_marks():
    assert words("|one|two three|\n|---|\n\n- four | 5 %, [six](seven.md)\n<!-- -->") == 6


def test_no_page_has_a_broken_link():
    assert broken_links(ROOT, committed()) == []


@pytest.mark.parametrize("link", ["gone.png", "../README.md#top", "reference/run", "reference/run/"])
def test_a_broken_link_is_found(tmp_path, link):
    page = tmp_path / "results" / "README.md"
    page.parent.mkdir()
    page.write_text(f"![x](there.png) [web](https://example.org/x) [here](#top) and [y]({link}).\n")
    files = ["results/README.md", "results/there.png"]
    assert broken_links(tmp_path, files) == [f"results/README.md: {link}"]
    target = link.partition("#")[0].rstrip("/")
    more = "README.md" if target == "../README.md" else f"results/{target}"
    assert broken_links(tmp_path, [*files, f"{more}/table" if "run" in target else more]) == []


def test_the_committed_results_are_small():
    size = sum((ROOT / name).stat().st_size for name in committed() if name.startswith("results/"))
    assert 1 < size / 1e6 < LARGEST_RESULTS_MB, (
        f"results/ has {size / 1e6:.1f} MB; allowed: {LARGEST_RESULTS_MB}; leave out films and rows (keep "
        "runs with --without, and without --films), draw large pictures smaller, or remove runs"
    )
