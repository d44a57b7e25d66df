"""Capabilities: each kind of strategy has flags of its own, and no other."""

import re

import pytest

import md
from md.particles.capabilities import StepCapabilities

FLAGS = {
    md.search: ("capturable", "fusable", "moves_particles", "bitwise_on", "packs"),
    md.integrate: (
        *("capturable", "fusable", "relaxes", "moves_before_force", "adds_external_field"),
        *("kicks_and_drifts", "takes_increments"),
    ),
    md.reorder: ("needs_times",),
    md.boundaries: ("capturable", "changes_velocities"),
}
BASES = {
    md.search: md.search.SearchConfig,
    md.integrate: md.integrate.Integrator,
    md.reorder: md.reorder.ActiveTrigger,
    md.boundaries: md.boundaries.ActiveBoundary,
}
ALL = sorted({flag for flags in FLAGS.values() for flag in flags})
every_room = pytest.mark.parametrize("room", FLAGS, ids=lambda room: room.__name__)


@pytest.mark.quick
@every_room
@pytest.mark.parametrize("flag", ALL)
def test_a_flag_of_the_kind_is_taken_and_another_is_named(room, flag):
    if flag in FLAGS[room]:
        assert getattr(room.Capabilities(**{flag: "given"}), flag) == "given"
    else:
        with pytest.raises(TypeError, match=rf"\w+Capabilities\W.*'{flag}'"):
            room.Capabilities(**{flag: True})


@pytest.mark.quick
@every_room
def test_a_strategy_has_the_capabilities_of_its_kind(room):
    base = BASES[room]
    type("Mine", (base,), {"capabilities": room.Capabilities()})
    for other in FLAGS.keys() - {room}:
        kind = re.escape(type(base.capabilities).__name__)
        with pytest.raises(
            TypeError, match=rf"capabilities of Mine = .*; allowed: .*{kind}; take .*md\.search"
        ):
            type("Mine", (base,), {"capabilities": other.Capabilities()})


@pytest.mark.quick
def test_all_that_acts_in_a_step_says_whether_it_can_be_captured():
    assert {room for room in FLAGS if issubclass(room.Capabilities, StepCapabilities)} == FLAGS.keys() - {
        md.reorder
    }
