"""Pages link to files that are there, and the committed results stay small."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick
ROOT = Path(__file__).parents[3]
PAGES = ("*.md", "results/*.md", "sfc/*.md", "md/*.md", "experiments/*.md")
LARGEST_RESULTS_MB = 40
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


def committed() -> list[str]:
    """The files that git tracks, as paths from the top."""
    if not (ROOT / ".git").exists():
        pytest.skip("these sources are in no checkout")
    found = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    return [name for name in found.decode().split("\0") if name and (ROOT / name).is_file()]


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
        f"results/ has {size / 1e6:.1f} MB; take python -m experiments.reference shrink, or remove runs"
    )
