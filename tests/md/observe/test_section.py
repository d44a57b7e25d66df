"""Plane sections: the discs in which a plane cuts the spheres."""

import numpy as np
import pytest

import md


def state(periodic=(True, True, False)) -> md.State:
    pos = [[1.0, 2.0, 3.0], [2.0, 2.3, 1.0], [3.0, 2.6, 1.0], [4.0, 5.8, 2.0], [5.0, 1.5, 2.0]]
    vel = np.arange(15.0).reshape(5, 3)
    return md.State(pos, vel, md.Box((7, 6, 5), periodic), id=[4, 3, 2, 1, 0])


def test_each_sphere_nearer_than_its_radius_is_a_disc():
    cut = md.observe.section(state(), axis=1, at=2.0)
    assert cut.id.tolist() == [3, 4]
    assert cut.centre.tolist() == [[2.0, 1.0], [1.0, 3.0]]
    assert cut.radius == pytest.approx([0.4, 0.5])
    assert cut.vel.tolist() == [[3, 4, 5], [0, 1, 2]]


def test_a_section_includes_images_along_a_periodic_axis():
    cut = md.observe.section(state(), axis=1, at=0.1)
    assert cut.id.tolist() == [1]
    assert cut.radius == pytest.approx([0.4])
    assert not len(md.observe.section(state((True, False, False)), axis=1, at=0.1).id)


def test_the_middle_is_cut_by_default():
    assert md.observe.section(state()).id.tolist() == [2]


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(ValueError, match=r"axis = 3; allowed: an integer of at least 0, up to 2"):
        md.observe.section(state(), axis=3)
    with pytest.raises(ValueError, match=r"at = 6\.5; allowed: a finite number of at least 0, up to 6 \(d, "):
        md.observe.section(state(), axis=1, at=6.5)
    with pytest.raises(ValueError, match="2 dimensions; allowed: 3"):
        md.observe.section(md.State([[1, 1]], [[0, 0]], md.Box((5, 5))))
