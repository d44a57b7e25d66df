"""Sections of the page in their order: charts and pictures of each. Words are in `templates/`.

A section has the claims of the file of `claims/subjects` with its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.results.claims.claim import by_subject


@dataclass(frozen=True)
class Section:
    """Section of the page.

    Args:
        id: on the page, and of its template.
        title: its heading.
        charts: ids of its charts.
        pictures: path below `results/reference` -> what it shows.
    """

    id: str
    title: str
    charts: tuple[str, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def claims(self) -> tuple[str, ...]:
        """Ids of the claims that it answers."""
        return tuple(claim.id for claim in by_subject().get(self.id, ()))


OWN = Section("own", "Your runs")  # only with --run, before the last
SECTIONS = (
    Section("answer", "The answer", ("worth",)),
    Section("scoreboard", "Verdicts on the claims"),
    Section(
        "compared",
        "What is compared",
        (),
        {"curves/cpu/orderings_16x16.png": "Orders of 16 x 16 cells, drawn as paths"},
    ),
    Section("predicted", "What order should buy", ("misses",)),
    Section(
        "lasts",
        "How long it lasts",
        ("decay",),
        {"wear/h200/wear_2097152.png": "Measured loss of an order beside the predicted one, 2^21 spheres"},
    ),
    Section("buys", "What it does buy", ("sizes", "phases", "box")),
    Section(
        "foreseen",
        "Which model foresees it",
        ("foreseen", "surface"),
        {
            "counters/h200_three_runs/counted.png": "Misses that the chip counts beside those of models, "
            "eight orders, three runs"
        },
    ),
    Section("reorder", "What a reorder costs, and how often", ("interval", "cost")),
    Section(
        "lift",
        "The tree and the wing",
        ("ladder",),
        {
            "lift/h200/lift_and_drag.png": "Lift and drag over the angle of attack",
            "mixture/h100/mixture.png": "Spheres of different size: time of a step by search",
        },
    ),
    Section(
        "flock",
        "The flock",
        ("flock",),
        {"flock_order/cpu/still.png": "6000 boids after 1000 steps, arrows coloured by heading"},
    ),
    Section(
        "cavity",
        "The cavity",
        ("cavity",),
        {"cavity_flow/cpu/flow_1000.png": "Steady flow in the cavity at Re 1000"},
    ),
    Section(
        "physics",
        "Checks of the physics",
        (),
        {
            "shaken/h200/profiles.png": "Profiles of the shaken gas over the height",
            "shaken/h200/balance.png": "Energy of the shaken gas: what comes in and what is lost",
            "cavity_flow/cpu/errors.png": "Errors of the cavity's flow over the number of points",
        },
    ),
    Section(
        "fast",
        "How fast, beside the peers",
        ("searches", "encode"),
        {"gas_ladder/h100/gains.png": "From linked lists to pruned neighbour lists, gain of each step"},
    ),
    Section("open", "Not done, not sure"),
    Section("runs", "All runs"),
)
