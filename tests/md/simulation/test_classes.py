"""Objects of a wrong class: a TypeError that names argument, value, class and what is allowed."""

import datetime
import decimal

import numpy as np
import pytest

import md
from md.integrate import integrator
from md.search import Coherent, Lbvh, Reflexive, Scattered, Tiles, Verlet, search

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
BOX = md.Box((5, 5, 5))
NONE_OF_THEM = [
    None,
    3,
    2.5,
    True,
    "word",
    b"word",
    object,
    [1],
    {"a": 1},
    np.timedelta64(3, "s"),
    datetime.date.min,
]
NO_NUMBERS = ["2", None, True, 1j, decimal.Decimal(2), np.timedelta64(2, "s"), datetime.date.min, [2.0]]


def state() -> md.State:
    return md.State([[1.0, 1, 1], [3.0, 3, 3]], np.zeros((2, 3)), BOX)


def simulated(**options) -> md.Simulation:
    options = {"state": state(), "law": LAW, "dt": DT, "backend": "cpu"} | options
    return md.Simulation(**options)


def refused(name: str) -> pytest.RaisesExc:
    return pytest.raises(TypeError, match=rf"(?s){name}.* = .* of class \w+; allowed: \S")


TAKEN = {  # of what a simulation takes, what of the above is no wrong class
    "state": (),
    "search": ("word",),
    "integrator": ("word",),
    "backend": ("word",),
    "precision": ("word",),
    "walls": (None,),
    "reorder": (None,),
    "surroundings": (),
    "layout": (None, "word"),
    "fused": (True,),
    "allow_overlap": (True,),
    "dt": (None, 3, 2.5),
    "post_mortem": (None, "word"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_arguments_of_a_simulation(name):
    taken = [(type(value), value) for value in TAKEN[name]]
    for wrong in NONE_OF_THEM:
        if (type(wrong), wrong) not in taken:
            with refused(name):
                simulated(**{name: wrong})


def test_classes_in_place_of_objects():
    for name, kind in (
        ("search", Verlet),
        ("reorder", md.Reorder),
        ("walls", md.Walls),
        ("state", md.State),
    ):
        with refused(name):
            simulated(**{name: kind})
    for schedule in (md.Every, md.Never, None, 500):
        with refused("schedule"):
            md.Reorder("hilbert", schedule)


@pytest.mark.parametrize("wrong", [w for w in NONE_OF_THEM if w != "word"], ids=str)
def test_names(wrong):
    for name, make in (
        ("search", search),
        ("integrator", integrator),
        ("backend", md.backend.get),
        ("layout", lambda w: md.backend.Cpu(w or 0)),
        ("ordering", lambda w: md.Reorder(w, md.Never())),
        ("mode", lambda w: md.Reorder("row", md.Never(), mode=w)),
        ("via", lambda w: md.Reorder("row", md.Never(), via=w)),
        *(("cell_order", kind) for kind in (Coherent, Scattered, Tiles, Lbvh, Reflexive)),
        ("stack", lambda w: Reflexive(stack=w)),
        ("contacts", lambda w: Reflexive(contacts=w)),
    ):
        with refused(name):
            make(wrong)
    if wrong is not None:  # the order of the backend
        with refused("cell_order"):
            Verlet(wrong)


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=str)
def test_numbers(wrong):
    run = simulated()
    for name, make in (
        ("lengths", lambda: md.Box((5, wrong))),
        ("fraction", lambda: md.Moved(wrong)),
        ("dt", lambda: simulated(dt=wrong) if wrong is not None else simulated(dt="2")),
        ("distance", lambda: run.pairs(wrong) if wrong is not None else run.pairs("2")),
        ("at", lambda: md.observe.section(state(), at=wrong if wrong is not None else "2")),
        ("skin", lambda: Verlet(skin=wrong) if wrong not in (None, "2") else Verlet(skin=b"2")),
        ("loss", lambda: md.Decayed(wrong) if wrong != "2" else md.Decayed(b"2")),
    ):
        with refused(name):
            make()


@pytest.mark.parametrize("wrong", [*NO_NUMBERS, 2.5, np.float64(2)], ids=str)
def test_integers(wrong):
    for name, make in (
        ("steps", lambda: simulated().run(wrong)),
        ("interval", lambda: md.Every(wrong)),
        ("interval", lambda: md.Moved(0.5, wrong)),
        ("window", lambda: md.Decayed("auto", wrong)),
        ("interval", lambda: md.Observer(wrong)),
        ("interval", lambda: md.observe.EnergyBalance(wrong)),
        ("interval", lambda: md.observe.Fields(wrong, 3)),
        ("cells", lambda: md.observe.Fields(3, (3, wrong))),
        ("bins", lambda: md.Profile(0, wrong)),
        ("axis", lambda: md.Profile(wrong)),
        ("axis", lambda: md.observe.section(state(), wrong)),
        ("rebuild_every", lambda: Lbvh(rebuild_every=wrong)),
        ("room", lambda: Reflexive(room=wrong)),
        ("width", lambda: Tiles(width=wrong if wrong is not None else "2")),
    ):
        with refused(name):
            make()


@pytest.mark.parametrize("wrong", ["no", 0, 1, None, "False", np.int8(1)], ids=repr)
def test_flags(wrong):
    for name, make in (
        ("periodic", lambda: md.Box((6, 6), wrong)),
        ("periodic", lambda: md.Box((6, 6), [wrong, True])),
        ("open", lambda: md.Box((6, 6), False, wrong)),
        ("fused", lambda: simulated(fused=wrong)),
        ("allow_overlap", lambda: simulated(allow_overlap=wrong)),
        ("phases", lambda: simulated().run(1, phases=wrong)),
        ("progress", lambda: simulated().run(1, progress=wrong)),
    ):
        with refused(name):
            make()


@pytest.mark.parametrize(
    "lengths", [("6", "7"), (True, True), "67", 6, None, {6: 7}, [datetime.date.min] * 2]
)
def test_lengths_of_a_box(lengths):
    with refused("lengths"):
        md.Box(lengths)


def test_objects_of_a_state():
    for wrong in (None, (5, 5, 5), md.Box, "box"):
        with refused("box"):
            md.State([[1.0, 1, 1]], [[0.0, 0, 0]], wrong)
    for wrong in (None, object(), {"x": 1}):
        with refused("pos"):
            md.State(wrong, [[0.0, 0, 0]], BOX)
        with refused("pos"):
            BOX.wrap(wrong)
        with refused("order"):
            state().take(wrong)


@pytest.mark.parametrize("wrong", [None, "state", [[1.0, 1, 1]], md.State], ids=str)
def test_states_and_simulations_that_are_none(wrong):
    observe = md.observe
    for see in (observe.kinetic_energy, observe.temperature, observe.momentum, observe.section):
        with refused("state"):
            see(wrong)
    with refused("state"):
        observe.contact_energy(wrong, np.empty((0, 2), int), LAW)
    with refused("law"):
        observe.contact_energy(state(), np.empty((0, 2), int), type(LAW))
    for see in (
        observe.look,
        observe.virial,
        lambda s: observe.field(s, 3),
        observe.Fields(1, 3).report,
        md.Observer(1).report,
        observe.EnergyBalance().report,
    ):
        with refused("simulation"):
            see(wrong)


def test_narrow_numbers_of_doors_are_kept_as_pythons():
    assert type(md.Reorder(np.str_("row"), md.Every(3)).ordering) is str
    assert type(md.search.Coherent(np.str_("row")).cell_order) is str
    run = simulated(dt=np.float32(1e-4), gravity=np.zeros(3, np.float16), surroundings=[])
    assert (type(run.dt), type(run.config.gravity[0])) == (float, float)
    box = md.Box(np.array([6, 7], np.int8), np.array([True, False]))
    assert {type(side) for side in box.lengths} == {float}
    assert {type(flag) for flag in box.periodic} == {bool}
    assert (box.lengths, box.periodic) == ((6.0, 7.0), (True, False))
    assert md.observe.section(state(), np.int8(1), np.float16(2.5)).id.tolist() == []
