"""Observables of a simulation at one step. Only sums are copied from the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from md import checks
from md.domain.together import of_all_ranks
from md.laws import PairLaw
from md.laws.pair import EnergyLaw, gives_increments
from md.observe.pair_tally import PairTally
from md.observe.profile import Profile, Profiled, profiled, profiles_of, thermal_energy
from md.observe.sums import MOST_BINS, binned, cells_along, summed, total
from md.simulation import Simulation


class Observation(NamedTuple):
    """Observables at one step. Energies are in m d^2 / time^2; without particles all means are NaN.

    Sums and means are over all particles, also over those beyond an open side of the box. Profiles and local
    means are of the particles in the box.

    Attributes:
        step: steps taken.
        time: the time since step 0, in the law's time units.
        kinetic_energy_per_particle: m <v^2> / 2.
        contact_energy_per_particle: by the law's `potential` of the touching pairs; NaN for a law without
            one. It does not include energy in walls or in gravity.
        temperature: granular, m <v^2> / dim. Goldhirsch, Annu. Rev. Fluid Mech. 35 (2003) 267.
        temperature_about_local_mean: m <(v - u)^2> / dim of the particles in the box, where u is the mean
            velocity in the cell of the particle (`cells` of `look`). For k particles in a cell it is too low
            by a fraction of 1 / k. NaN if no particle is in the box.
        momentum: (dim,) total, in m d / time.
        mean_speed: <|v|> in d / time.
        touching_pairs: pairs closer than the law's cutoff, in sums of two radii if radii differ; for boids,
            which have no size, the pairs within the largest radius of their rules.
        contacts_begun: touching pairs that did not touch one step before (`md.observe.pair_tally`); 0 if that
            is unknown: at step 0, and with an integrator with a `last_drift` of 0.
        collision_rate_per_particle: 2 contacts_begun / (n dt), in 1 / time; NaN if `contacts_begun` is
            unknown, and for a law of increments, such as that of boids. It has no bias, but the noise of the
            contacts of one step: average it over many steps.
        collision_rate_by_touching: 2 touching_pairs / (n contact_time), in 1 / time; NaN for a law without a
            finite `contact_time`. It counts about 50 times as many contacts, so that it
            has less noise. But contacts that graze, or that a third particle disturbs, do not last the
            time of the closed form: in the elastic benchmark gas it is about 6 % low at 5 % filling and 3 %
            high at 35 %.
        mean_free_path_d: mean_speed / collision_rate_per_particle; infinite if no contact has started. For
            the value over many steps divide the mean of the one by that of the other.
        profiles: one for each of the argument `profiles`.
    """

    step: int
    time: float
    kinetic_energy_per_particle: float
    contact_energy_per_particle: float
    temperature: float
    temperature_about_local_mean: float
    momentum: np.ndarray
    mean_speed: float
    touching_pairs: int
    contacts_begun: int
    collision_rate_per_particle: float
    collision_rate_by_touching: float
    mean_free_path_d: float
    profiles: tuple[Profiled, ...]


@of_all_ranks
def look(
    simulation: Simulation, profiles: Sequence[Profile] = (), cells: int | tuple[int, ...] = 1
) -> Observation:
    """Measure the observables of a simulation at its step, without changing the run.

    The run stays the same to the extent that `Simulation.state` guarantees. Takes about as long as two steps.
    On the CPU each thread sums a part of the particles, so that the last bits of the observables, but not of
    the run, depend on the number of threads (`NUMBA_NUM_THREADS`).

    Args:
        simulation: the simulation.
        profiles: profiles to measure.
        cells: parts of the box along each axis, or one number for all axes, for the mean velocities of
            `temperature_about_local_mean`; at most 1000 in all. With 1 it is the mean of all in the box.

    Returns:
        The observables.

    Raises:
        TypeError: no `md.Simulation`, profiles that are not `md.Profile`, or cells that are not integers.
        ValueError: a profile or cells that do not fit the box.
        SimulationFault: the fault that ended the run.
    """
    profiles = profiles_of(profiles)
    view = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
    box, n = view.particles.box, view.total
    bins, slices = cells_along(cells, box.dim, MOST_BINS), [profile.along(box) for profile in profiles]
    sums = binned(view, bins)
    sized = len(view.particles.radius) > 0
    measured = tuple(
        profiled(profile.axis, binned(view, along).reshape(profile.bins, -1), box, sized)
        for profile, along in zip(profiles, slices, strict=True)
    )
    tally = PairTally(view.law, view.drift, view.particles.n, view.backend)
    view.search.force(tally, view.particles.spare[0])
    energy, touching, started = total(tally, view)

    _, speed, square, *momentum = summed(view, sums).tolist()
    held = sums[sums[..., 0] > 0]  # cells with particles
    thermal = (thermal_energy(held) * held[:, 0]).sum()
    mean_speed, mean_square = _ratio(speed, n), _ratio(square, n)
    collides = view.drift and not gives_increments(view.law)
    rate = _ratio(2 * started, n * view.drift) if collides else math.nan
    return Observation(
        step=view.step,
        time=view.time,
        kinetic_energy_per_particle=mean_square / 2,
        contact_energy_per_particle=_ratio(energy, n) if isinstance(view.law, EnergyLaw) else math.nan,
        temperature=mean_square / box.dim,
        temperature_about_local_mean=_ratio(thermal * 2 / box.dim, held[:, 0].sum()),
        momentum=np.array(momentum),
        mean_speed=mean_speed,
        touching_pairs=touching,
        contacts_begun=started,
        collision_rate_per_particle=rate,
        collision_rate_by_touching=_ratio(2 * touching, n * _contact_time(view.law)),
        mean_free_path_d=_ratio(mean_speed, rate),
        profiles=measured,
    )


def _contact_time(law: PairLaw) -> float:
    """Return the duration of a contact; NaN for a law without a finite one."""
    try:
        time = getattr(law, "contact_time", math.nan)
    except ValueError:  # overdamped
        return math.nan
    return time if math.isfinite(time) else math.nan


def _ratio(numerator: float, denominator: float) -> float:
    """Compute a quotient by the rules of IEEE 754: infinite or NaN for a denominator of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(numerator) / denominator)
