"""experiments.contacts: additions counted by hand, lists that overflow as the search itself counts them."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import contacts
from md.search import Reflexive
from sfc.cache import AccessStream
from tests.experiments.runs import one


def additions_by_hand(partners: list[list[int]]) -> dict[str, int]:
    found = dict.fromkeys([*contacts.KINDS, "requests"], 0)
    for begin in range(0, len(partners), contacts.WARP):
        lanes = partners[begin : begin + contacts.WARP]
        found["plain"] += sum(map(len, lanes))
        found["least"] += len({j for lane in lanes for j in lane})
        for k in range(max(map(len, lanes))):
            together = [lane[k] for lane in lanes if len(lane) > k]
            found["aggregated"] += len(set(together))
            found["requests"] += 1
    return found


@pytest.mark.parametrize("seed", range(3))
def test_additions_are_those_of_a_count_by_hand(seed):
    generator = np.random.default_rng(seed)
    partners = [generator.integers(0, 30, generator.integers(0, 6)).tolist() for _ in range(100)]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in partners])])
    stream = AccessStream(offsets, np.array([j for own in partners for j in own]))
    assert contacts.additions(stream) == additions_by_hand(partners)


def test_the_summary_counts_additions_per_disc():
    counts = dict.fromkeys([*contacts.KINDS, "requests", "contacts", "own"], 40) | {"aggregated": 10}
    row = {"n": 20, "curve": "hilbert", "step": 1, "room": 8, "overflow_share": 0.25, "most_partners": 6}
    found = contacts.summary(pd.DataFrame([row | counts])).iloc[0]
    assert (found["plain_per_disc"], found["aggregated_per_disc"]) == (2, 0.5)
    assert (found["aggregated_over_plain"], found["overflow_share_8"], found["most_partners"]) == (
        0.25,
        0.25,
        6,
    )


def test_lanes_that_share_a_partner_make_one_addition():
    stream = AccessStream(np.arange(65), [7] * 32 + list(range(32)))
    assert contacts.additions(stream) == {"plain": 64, "aggregated": 33, "least": 33, "requests": 2}


def test_no_contact_makes_no_addition():
    stream = AccessStream([0, 0, 0], np.empty(0, int))
    assert set(contacts.additions(stream).values()) == {0}


def test_each_pair_that_touches_is_visited_once():
    case = one(contacts, n=(1000,), curve=("morton",), step=(5,), room=(4, 64))
    rows = pd.DataFrame(contacts.measure(case)).set_index("room")
    lift = md.scenes.newtonian_lift(1000, seed=0)
    sim = md.Simulation(lift.state, lift.law, search="coherent", **lift.options | {"backend": "cpu"})
    sim.run(5)
    assert rows.loc[4, "overflow_share"] > 0 == rows.loc[64, "overflow_share"]
    assert (rows["least"] <= rows["aggregated"]).all()
    assert (rows["aggregated"] < rows["plain"]).all()
    assert (rows["plain"] == rows["contacts"]).all()
    assert rows["contacts"].iloc[0] == len(sim.pairs())


def test_a_list_overflows_if_it_has_more_partners_than_room(monkeypatch):
    stream = AccessStream([0, 4, 12, 13, 13], list(range(13)))
    monkeypatch.setattr(contacts, "contacts_of", lambda sim: stream)
    rows = pd.DataFrame(
        contacts.measure(one(contacts, n=(100,), curve=("morton",), step=(0,), room=(3, 4, 8)))
    )
    assert rows["overflow_share"].tolist() == [0.5, 0.25, 0]
    assert rows[["contacts", "own", "most_partners"]].drop_duplicates().to_numpy().tolist() == [[13, 100, 8]]


@pytest.mark.full
def test_the_lists_that_overflow_are_those_that_the_search_counts():
    case = one(contacts, n=(1000,), curve=("morton",), step=(5,), room=(4, 8))
    rows = pd.DataFrame(contacts.measure(case)).set_index("room")
    lift = md.scenes.newtonian_lift(1000, seed=0)
    options = lift.options | {"backend": "cpu"}
    sim = md.Simulation(lift.state, lift.law, search="coherent", **options)
    sim.run(5)
    for room in (4, 8):
        search = Reflexive("morton", data="sorted", contacts="listed", room=room)
        listed = md.Simulation(sim.state, lift.law, search=search, **options)
        listed.forces()
        assert rows.loc[room, "overflow_share"] == listed.search.crowded / 1000 > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"curve": ("peano",)}, "unknown curve 'peano'"),
        ({"room": (0,)}, "--room = 0"),
        ({"step": (-1,)}, "--step = -1"),
    ],
)
def test_what_cannot_be_counted_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        contacts.Config(**fields)
