"""Origin of the table of a figure in one line: device, size, run and commit, from its provenance."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.processes.output import readable
from experiments.results.tables import sizes_of, table_of
from md.checks import path as as_path
from sfc import checks

_ABOUT = "about.toml"  # of a kept run: `code` and `where` replace what its provenance says


@dataclass(frozen=True)
class Origin:
    """Origin of a table; a part that is not known is empty.

    Args:
        device: where its run was made.
        sizes: of its systems, as `sizes_of` describes them.
        run: and its experiment.
        code: that made it.
    """

    device: str = ""
    sizes: str = ""
    run: str = ""
    code: str = ""

    @property
    def text(self) -> str:
        """All parts in one line; empty if nothing is known."""
        sizes = f"n = {self.sizes}" if self.sizes else ""
        return " | ".join(filter(None, [self.device, sizes, self.run, self.code]))

    def of_rows(self, rows: pd.DataFrame) -> Origin:
        """Return the origin of some rows of the table: their sizes alone, if they have a column of sizes.

        Args:
            rows: that a figure shows.

        Raises:
            TypeError: no table.
        """
        found = sizes_of(table_of("rows", rows), {}) if self.sizes and len(rows) else ""
        return replace(self, sizes=found) if found else self

    def metadata(self, path: Path) -> dict[str, Any]:
        """Return the metadata of a figure.

        Args:
            path: of the figure; a PDF calls the text its subject, a PNG its description. A PDF gets no time,
                so that the same table gives the same file.
        """
        path = as_path("path", path)
        if path.suffix == ".pdf":
            return {"Title": path.stem, "Subject": self.text, "CreationDate": None}
        return {"Title": path.stem, "Description": self.text} if path.suffix == ".png" else {}


UNKNOWN = Origin()


def origin_of(run: Path, provenance: dict[str, Any], table: pd.DataFrame) -> Origin:
    """Describe the origin of a run's table.

    Args:
        run: folder of the run; a kept one may describe its device and its code in `about.toml`.
        provenance: of the run; its entries may be missing.
        table: of the run.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: an `about.toml` that is damaged.
        OSError: one that cannot be read.
    """
    run = as_path("run", run)
    checks.instance("provenance", provenance, dict, "the provenance of a run")
    sizes = sizes_of(table_of("table", table), provenance.get("config", {}))
    path = run / _ABOUT
    about = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    commit = commit_of(provenance)
    return Origin(
        device=about.get("where") or device_of(provenance),
        sizes=sizes,
        run=readable(f"run {run.resolve().parent.name}/{run.resolve().name}"),
        code=about.get("code") or (commit and f"commit {commit}"),
    )


def device_of(provenance: dict[str, Any]) -> str:
    """Name the GPU of a run, or its processor and the number of threads; empty if neither is known.

    Args:
        provenance: of the run.
    """
    machine, backend = provenance.get("machine", {}), provenance.get("backend", {})
    if backend.get("name") == "cuda":
        return str(backend.get("device", ""))
    threads = machine.get("threads")
    words = [str(machine["cpu"])] if machine.get("cpu") else []
    words += [f"{threads} thread{'s' * (threads != 1)}"] if threads else []
    return ", ".join(words)


def commit_of(provenance: dict[str, Any]) -> str:
    """Name the commit of a run in seven digits: of its last part, if it was resumed.

    It is the one rule for lists of runs, figures, verdicts and the page. `keep` puts the commit that
    introduced the sources into the provenance of a kept run.

    Args:
        provenance: of the run.

    Returns:
        The commit, "... with changes" if a source differed from it, or nothing if it is not known.
    """
    last = [provenance, *provenance.get("resumed", [])][-1]
    code = last.get("code", {})
    return f"{code['commit']:.7}{' with changes' * bool(code.get('dirty'))}" if code.get("commit") else ""
