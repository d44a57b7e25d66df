"""Sections of the page in their order: claims, charts and pictures of each. Words are in `templates/`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """Section of the page.

    Args:
        id: on the page, and of its template.
        title: its heading.
        claims: ids of the claims that it answers.
        charts: ids of its charts.
        pictures: path below `results/reference`, and what it shows.
    """

    id: str
    title: str
    claims: tuple[str, ...] = ()
    charts: tuple[str, ...] = ()
    pictures: tuple[tuple[str, str], ...] = ()


OWN = Section("own", "Your runs")  # only with --run, before the last
SECTIONS = (
    Section("answer", "The answer", charts=("worth",)),
    Section("scoreboard", "Verdicts on the claims"),
    Section(
        "compared",
        "What is compared",
        pictures=(("curves/cpu/orderings_16x16.png", "Orders of 16 x 16 cells, drawn as paths"),),
    ),
    Section("predicted", "What order should buy", ("T2", "T3", "T6", "T9"), ("misses",)),
    Section(
        "lasts",
        "How long it lasts",
        ("T5", "T7", "T8"),
        ("decay",),
        (("wear/h200/wear_2097152.png", "Measured loss of an order beside the predicted one, 2^21 spheres"),),
    ),
    Section("buys", "What it does buy", ("T10", "T11", "T12", "T16"), ("sizes", "box")),
    Section(
        "foreseen",
        "Which model foresees it",
        ("T4",),
        ("foreseen",),
        (
            (
                "counters/h200_three_runs/counted.png",
                "Misses that the chip counts beside those of models, eight orders, three runs",
            ),
        ),
    ),
    Section("reorder", "What a reorder costs, and how often", ("T1", "T14", "T15"), ("interval", "cost")),
    Section(
        "lift",
        "The tree and the wing",
        tuple(f"L{k}" for k in range(1, 9)),
        ("ladder",),
        (
            ("lift/h200/lift_and_drag.png", "Lift and drag over the angle of attack"),
            ("mixture/h100/mixture.png", "Spheres of different size: time of a step by search"),
        ),
    ),
    Section(
        "flock",
        "The flock",
        ("B1",),
        ("flock",),
        (("flock_order/cpu/still.png", "6000 boids after 1000 steps, arrows coloured by heading"),),
    ),
    Section(
        "cavity",
        "The cavity",
        ("F1", "F2", "F3"),
        ("cavity",),
        (("cavity_flow/cpu/flow_1000.png", "Steady flow in the cavity at Re 1000"),),
    ),
    Section(
        "physics",
        "Checks of the physics",
        ("T13",),
        pictures=(
            ("shaken/h200/profiles.png", "Profiles of the shaken gas over the height"),
            ("shaken/h200/balance.png", "Energy of the shaken gas: what comes in and what is lost"),
            ("cavity_flow/cpu/errors.png", "Errors of the cavity's flow over the number of points"),
        ),
    ),
    Section(
        "fast",
        "How fast, beside the peers",
        charts=("searches", "encode"),
        pictures=(
            ("gas_ladder/h100/gains.png", "From linked lists to pruned neighbour lists, gain of each step"),
        ),
    ),
    Section("open", "Not done, not sure"),
    Section("runs", "All runs"),
)
