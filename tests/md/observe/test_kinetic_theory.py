"""Kinetic theory: functions against the numbers of their papers, and against each other."""

import math

import numpy as np
import pytest

from md.observe import kinetic_theory


def test_the_contact_correlation_is_that_of_the_virial_series():
    small = 1e-4
    assert kinetic_theory.contact_correlation(0.0) == kinetic_theory.contact_correlation(0.0, 2) == 1
    assert (kinetic_theory.contact_correlation(small) - 1) / small == pytest.approx(5 / 2, rel=1e-3)
    assert (kinetic_theory.contact_correlation(small, 2) - 1) / small == pytest.approx(25 / 16, rel=1e-3)


def test_a_dilute_gas_has_maxwells_collision_rate_and_free_path():
    phi = 1e-6
    density = phi / (math.pi / 6)
    assert kinetic_theory.mean_free_path(phi) == pytest.approx(
        1 / (math.sqrt(2) * math.pi * density), rel=1e-4
    )
    assert kinetic_theory.collision_rate(phi, 4.0) == pytest.approx(
        2 * kinetic_theory.collision_rate(phi, 1.0)
    )
    disc = phi / (math.pi / 4)
    assert kinetic_theory.mean_free_path(phi, 2) == pytest.approx(1 / (2 * math.sqrt(2) * disc), rel=1e-4)


def test_an_elastic_gas_does_not_cool_and_a_sticky_one_cools_faster():
    assert kinetic_theory.cooling_time(0.1, 1.0, 1.0) == math.inf
    times = [kinetic_theory.cooling_time(0.1, 1.0, e) for e in (0.5, 0.8, 0.95)]
    assert times == sorted(times)
    assert kinetic_theory.sonine_coefficient(1 / math.sqrt(2)) == pytest.approx(0, abs=1e-15)
    assert kinetic_theory.sonine_coefficient(0.5) > 0 > kinetic_theory.sonine_coefficient(0.9)


def test_the_energy_lost_in_a_collision_gives_the_time_of_cooling():
    # Each collision dissipates (1 - e^2) T, and involves two particles.
    phi, temperature, e = 0.1, 2.0, 0.9
    for dim in (2, 3):
        lost = (1 - e**2) * temperature * kinetic_theory.collision_rate(phi, temperature, dim) / 2
        slope = 2 * lost / dim  # of the temperature
        excess = 1 + 3 * kinetic_theory.sonine_coefficient(e, dim) / 16
        assert kinetic_theory.cooling_time(phi, temperature, e, dim) == pytest.approx(
            2 * temperature / slope / excess
        )


def test_the_numbers_are_those_of_the_papers():
    # a_2 of van Noije and Ernst in 3D, 16 (1 - e) (1 - 2 e^2) / (81 - 17 e + 30 e^2 (1 - e)), worked by hand
    assert kinetic_theory.sonine_coefficient(0.8) == pytest.approx(-0.896 / 71.24)
    assert kinetic_theory.sonine_coefficient(0.5) == pytest.approx(4 / 76.25)
    # in 2D, with 57 - 25 e in place of 81 - 17 e
    assert kinetic_theory.sonine_coefficient(0.5, 2) == pytest.approx(4 / 48.25)
    # of Carnahan and Starling, and of Henderson, at 0.3
    assert kinetic_theory.contact_correlation(0.3) == pytest.approx(0.85 / 0.343)
    assert kinetic_theory.contact_correlation(0.3, 2) == pytest.approx(0.86875 / 0.49)


@pytest.mark.parametrize(
    "call",
    [
        lambda: kinetic_theory.contact_correlation(1.0),
        lambda: kinetic_theory.contact_correlation(0.1, 4),
        lambda: kinetic_theory.collision_rate(0.1, -1.0),
        lambda: kinetic_theory.sonine_coefficient(0.0),
        lambda: kinetic_theory.cooling_time(0.1, 1.0, 1.1),
        lambda: kinetic_theory.sphere_volume(1),
        lambda: kinetic_theory.sphere_volume(4),
    ],
)
def test_what_is_no_gas_is_refused(call):
    with pytest.raises(ValueError, match="allowed"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: kinetic_theory.contact_correlation("0.1"),
        lambda: kinetic_theory.contact_correlation(0.1, 2.5),
        lambda: kinetic_theory.collision_rate(0.1, None),
        lambda: kinetic_theory.collision_rate(0.1, 1.0, True),
        lambda: kinetic_theory.sonine_coefficient(True),
        lambda: kinetic_theory.cooling_time(0.1, 1.0, [0.9]),
        lambda: kinetic_theory.mean_free_path(None),
        lambda: kinetic_theory.mean_free_path(0.2, np.zeros(3)),
        lambda: kinetic_theory.mean_free_path(0.2, "2"),
        lambda: kinetic_theory.sphere_volume(2.0),
        lambda: kinetic_theory.sphere_volume(None),
    ],
)
def test_what_is_no_number_is_refused(call):
    with pytest.raises(TypeError, match=r"\w+ = .* of class \w+; allowed: a"):
        call()


def test_narrow_numbers_are_computed_with_as_pythons():
    found = kinetic_theory.cooling_time(np.float16(0.25), np.uint8(200), np.float32(0.5), np.int8(3))
    assert found == kinetic_theory.cooling_time(0.25, 200.0, 0.5, 3)
    assert kinetic_theory.sonine_coefficient(
        np.float16(0.5), np.int8(3)
    ) == kinetic_theory.sonine_coefficient(0.5)
