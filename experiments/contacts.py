"""How many atomic additions does a step take, with and without aggregation, and which lists overflow?

In the case of [lift] a disc visits its partners of later leaves, and adds the force of each pair to both of
them: to its own once, and to that of each partner at the visit, atomically. Nothing is timed: contacts are
counted at some steps of the flow, in the tree's order of the leaves, which is that of memory and of the
threads. An addition is one of a vector, of two numbers.

- `plain`: an addition for each contact, as in the rung `shared stack` of `experiments.ladder`.
- `aggregated`: lanes that visit the same partner at the same time sum first (`match_any`), as in the rung
  `aggregated atomics`. Counted as if all lanes of a warp made their first visits together, their second ones,
  and so on. Lanes that diverge make more additions.
- `least`: one addition for each partner of a warp, whenever its lanes visit it. No aggregation within a warp
  makes fewer.

Each disc also adds its own sum once, in any case (`own`). `requests` is the number of plain additions by
instructions of a warp instead of lanes. Lists of contacts hold `room` partners; the discs of `overflow_share`
have more, and traverse the tree a second time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, figures, main, save_table, style
from experiments.core.terminal import FEW_PARTICLES
from experiments.results.answers import Answer, headline, percent, rounded, rows_of
from md.search import Reflexive
from md.search.bvh.curve_keys import halving
from sfc.cache import AccessStream

WARP = 32  # lanes
KINDS = {
    "plain": "one a contact",
    "aggregated": "lanes at the same visit",
    "least": "one a partner of a warp",
}
_CASE = ["n", "curve", "step"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of sizes and steps of the flow."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("curve", "step", "room")

    n: Axis[int] = (2**14, 2**17)
    """Number of discs. Figures show the largest."""
    curve: tuple[str, ...] = ("morton", "hilbert")
    """Curves along which the leaves are ordered: 2D curves of base 2 with tables."""
    step: tuple[int, ...] = (10, 300, 600)
    """Steps at which contacts are counted. 131072 discs meet the wing at about step 336."""
    room: tuple[int, ...] = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48)
    """Capacities of a list, in partners; 32 in `md.search.Reflexive`."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"curve": halving(2)})
        self.check_least({"n": 100, "step": 0, "room": 1})
        self.check_particles(2)


QUICK = {"n": (2**12,), "curve": ("morton",), "step": (10, 50)}
MINUTES = 1.5  # CPU time of the smaller size, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each step, curve and room."""
    lift = md.scenes.newtonian_lift(case.n, seed=case.seed)
    options: dict[str, Any] = lift.options | {"backend": case.backend}
    sim = md.Simulation(lift.state, lift.law, search="coherent", **options)
    for step in sorted(case.step):
        sim.run(step - sim.step, phases=False)
        for curve in case.curve:
            search = Reflexive(curve, data="sorted")
            stream = contacts_of(md.Simulation(sim.state, lift.law, search=search, **options))
            partners = np.diff(stream.offsets)
            common = {
                "curve": curve,
                "step": step,
                "contacts": len(stream.reads),
                "own": case.n,
                "most_partners": int(partners.max()),
                **additions(stream),
            }
            for room in case.room:
                yield common | {"room": room, "overflow_share": float((partners > room).mean())}


def contacts_of(sim: md.Simulation) -> AccessStream:
    """Return the touching partners of later leaves of each disc, in the order of its visits.

    Args:
        sim: of discs in an open box, with a `Reflexive` search that moves them to the order of the leaves.
            The traversal also reads leaves that do not touch; these are left out.
    """
    stream, n = sim.accesses(), len(sim)
    reader = np.repeat(np.arange(n), np.diff(stream.offsets))
    if stream.readers is not None:
        reader = np.asarray(stream.readers)[reader]
    pos = sim.state.pos
    touches = np.linalg.norm(pos[reader] - pos[stream.reads], axis=1) < 1.0  # d
    partners = np.bincount(reader[touches], minlength=n)
    return AccessStream(np.concatenate([[0], np.cumsum(partners)]), stream.reads[touches])


def additions(stream: AccessStream) -> dict[str, int]:
    """Count the atomic additions to partners.

    Args:
        stream: the partners of each disc that it visits, disc by disc in the order of threads.

    Returns:
        The number for each of `KINDS`, and `requests`, the instructions of warps for the plain ones.
    """
    partners = np.diff(stream.offsets)
    reader = np.repeat(np.arange(len(partners), dtype=np.int64), partners)
    visit = np.arange(len(reader)) - np.repeat(stream.offsets[:-1], partners)
    warp, slots = reader // WARP, int(stream.reads.max(initial=0)) + 1
    together = warp * (int(partners.max(initial=0)) + 1) + visit
    return {
        "plain": len(reader),
        "aggregated": len(np.unique(together * slots + stream.reads)),
        "least": len(np.unique(warp * slots + stream.reads)),
        "requests": len(np.unique(together)),
    }


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the additions per disc and the lists that overflow; write the summary."""
    save_table(summary(table), out, "summary")
    largest = table[table["n"] == table["n"].max()]
    curves = list(largest["curve"].unique())
    titles = [f"additions, leaves along {name}" for name in curves] + ["lists"]
    figure, panels = figures.panels_in_a_row(titles, 2.9)
    per_disc = largest.melt(["curve", "step", "n"], list(KINDS), "kind", "additions")
    per_disc = per_disc.assign(additions=per_disc["additions"] / per_disc["n"])
    per_disc["kind"] = per_disc["kind"].map(KINDS)
    look = style.lines_in_turn(list(KINDS.values()), "kind")
    for panel, name in zip(panels, curves, strict=False):
        own = per_disc[per_disc["curve"] == name]
        figures.median_lines(panel, own, "step", "additions", look)
        panel.set(xlabel="step of the flow", ylabel="additions to partners per disc", ylim=(0, None))
    panels[len(curves) - 1].legend(title="atomic additions", fontsize=7)
    rooms = largest[largest["curve"] == curves[0]]
    rooms = rooms.assign(line=[f"{step}" for step in rooms["step"]])
    rooms = rooms[rooms["overflow_share"] > 0]
    look = style.steps_in_turn(list(dict.fromkeys(rooms["line"])), "line")
    figures.median_lines(panels[-1], rooms, "room", "overflow_share", look)
    panels[-1].set(yscale="log", xlabel="room of a list (partners)", ylabel="share of discs with more")
    figures.name_lines(panels[-1], "step")
    title = f"{largest['n'].iloc[0]:,} discs before a wing; median and range over repeats"
    figures.titled(figure, title, out, "contacts")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over repeats the additions per disc, and the share of lists that overflow at each room."""
    counts = [*KINDS, "requests", "contacts", "own"]
    table = table.assign(**{name: table[name] / table["n"] for name in counts})
    rows = table.groupby(_CASE, sort=False)[[*counts, "most_partners"]].median()
    rows = rows.rename(columns={name: f"{name}_per_disc" for name in counts})
    rows["aggregated_over_plain"] = rows["aggregated_per_disc"] / rows["plain_per_disc"]
    rows["least_over_plain"] = rows["least_per_disc"] / rows["plain_per_disc"]
    shares = table.groupby([*_CASE, "room"], sort=False)["overflow_share"].median().unstack("room")
    return rows.join(shares.add_prefix("overflow_share_")).reset_index()


def answer(table: pd.DataFrame) -> Answer:
    """Say which share of the atomic additions aggregation leaves, and which room is enough for all lists."""
    found = headline(summary(table), "n", "curve")
    cells = {
        "contacts a disc": lambda row: rounded(row["contacts_per_disc"]),
        "additions left": lambda row: percent(row["aggregated_over_plain"]),
        "least possible": lambda row: percent(row["least_over_plain"]),
    }
    row: dict[Any, Any] = headline(found, "step").iloc[0].to_dict()
    rooms = {name.rpartition("_")[2]: row[name] for name in row if name.startswith("overflow_share_")}
    enough = next((room for room, share in rooms.items() if share == 0), None)
    lists = f"no list overflows from room {enough} on" if enough else "lists overflow at every room"
    left, least = percent(row["aggregated_over_plain"]), percent(row["least_over_plain"])
    sentence = (
        f"At step {row['step']} of {row['n']:,} discs along {row['curve']}, aggregation leaves {left} of "
        f"{rounded(row['plain_per_disc'])} atomic additions a disc, where {least} is the least in a warp; "
        f"{lists}."
    )
    return Answer(rows_of(found, _CASE, cells), sentence)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
