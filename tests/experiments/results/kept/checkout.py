"""A git checkout of a few sources, and complete runs made by them, for the tests of kept runs."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from experiments.core.provenance import code_of
from experiments.core.record import Record

SOURCES = (
    "sfc/curve.py", "sfc/curve/table.py", "sfc/curve-3d.py", "md/search/linked.cu", "md/state.cuh",
    "experiments/timing.py", "pyproject.toml", "README.md", "md/notes.txt",
)  # fmt: skip


class Checkout:
    """A git checkout in a folder, with its first commit."""

    def __init__(self, root: Path, copied: "Checkout | None" = None):
        """Make it, or copy another as it is, which takes no calls of git."""
        self.root = root
        if copied is not None:
            shutil.copytree(copied.root, root)
            self.first = copied.first
            return
        root.mkdir()
        self.git("init", "-q")
        for name in SOURCES:
            self.write(name, f"{name}\n")
        self.first = self.commit("one")

    def git(self, *arguments: str) -> str:
        author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", "-C", self.root, *author, *arguments], capture_output=True, check=True)
        return done.stdout.decode().strip()

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    @property
    def sources(self) -> str:
        return code_of(self.root)["sources"]


def complete_run(folder: Path, code: dict, rows: Sequence[dict], **provenance) -> Path:
    """A complete run in a new folder, written as an experiment writes it; with a status, its database."""
    origin = {
        "experiment": "timing",
        "config": {"n": [64, 8]},
        "command": ["python", "-m", "experiments.timing", "--n", "64", "8"],
        "started": "2026-11-26T00:00:00+00:00",
        "code": code,
        "backend": {"name": "cpu", "device": "the CPU (2 threads)"},
        "machine": {"cpu": "A Processor", "threads": 2},
    } | provenance
    record = Record.create(folder, "timing", origin)
    record.add(0, list(rows))
    record.write_tables()
    record.describe({"status": "complete", "ended": "2026-11-26T00:20:34+00:00"} | origin)
    record.close() if "status" not in provenance else record.release()
    record.release()
    return record.folder
