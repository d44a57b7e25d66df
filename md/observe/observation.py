"""One look at a simulation: what its particles amount to now. Only sums leave the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from md import checks
from md.laws import PairLaw
from md.observe.pair_tally import PairTally
from md.observe.profile import Profile, Profiled, profiled, profiles_of, thermal_energy
from md.observe.sums import MOST_BINS, binned, cells_along, total
from md.simulation import Simulation


class Observation(NamedTuple):
    """What is seen at some step. Energies are in m d^2 / time^2; without particles all means are NaN.

    Attributes:
        step: steps taken.
        time: the time since step 0, in the law's time units.
        kinetic_energy_per_particle: m <v^2> / 2.
        contact_energy_per_particle: by the law's `potential` of the touching pairs; NaN if it has none. What
            particles have in walls or in gravity is not in it.
        temperature: granular, m <v^2> / dim. Goldhirsch, Annu. Rev. Fluid Mech. 35 (2003) 267.
        temperature_about_local_mean: m <(v - u)^2> / dim, where u is the mean velocity of the cell of the box
            that a particle is in (`cells` of `look`). A mean over k particles takes 1 / k of the temperature
            along.
        momentum: (dim,) total, in m d / time.
        mean_speed: <|v|> in d / time.
        touching_pairs: pairs closer than the law's cutoff, where radii differ in sums of two of them.
        contacts_begun: those of them that were not, a step ago (`md.observe.pair_tally`); 0 where that cannot be
            told: at step 0, and with an integrator whose `last_drift` is 0.
        collision_rate_per_particle: 2 contacts_begun / (n dt), in 1 / time; NaN where they cannot be told. It
            has no bias, but the noise of what happens to begin in one step: average it over many looks.
        collision_rate_by_touching: 2 touching_pairs / (n contact_time), in 1 / time; NaN for a law without a
            finite `contact_time`, and where radii differ. It counts some 50 times as many contacts, so it is
            steadier; but those that graze, or that a third particle disturbs, do not last the closed form's
            time: in the elastic benchmark gas it is some 6 % low at 5 % filling and 3 % high at 35 %.
        mean_free_path_d: mean_speed / collision_rate_per_particle; infinite where no contact began. For one
            of many looks divide the mean of the one by that of the other.
        profiles: one for each that was asked for.
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


def look(
    simulation: Simulation, profiles: Sequence[Profile] = (), cells: int | tuple[int, ...] = 1
) -> Observation:
    """Look at a simulation, without changing its run (as far as `Simulation.state` promises that).

    Takes about as long as two steps. On the CPU each thread sums a part of the particles: another number of
    threads (`NUMBA_NUM_THREADS`) gives other last bits of what is seen, though not of the run.

    Args:
        simulation: the simulation.
        profiles: to take along.
        cells: parts of the box along each axis, or one number for all axes, for the mean velocities that
            `temperature_about_local_mean` is about; at most 1000 in all. With 1 it is that of all particles.

    Raises:
        TypeError: no `md.Simulation`, profiles that are none, or cells that are no integers.
        ValueError: a profile or cells that do not fit the box.
        SimulationFault: the run has ended with it.
    """
    profiles = profiles_of(profiles)
    inside = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
    box, n = inside.particles.box, inside.particles.n
    cells, slices = cells_along(cells, box.dim, MOST_BINS), [profile.along(box) for profile in profiles]
    sums = binned(inside, cells)
    sized = len(inside.particles.radius) > 0
    taken = tuple(
        profiled(profile.axis, binned(inside, along).reshape(profile.bins, -1), box, sized)
        for profile, along in zip(profiles, slices, strict=True)
    )
    measure = PairTally(inside.law, inside.drift, n, inside.backend)
    inside.search.force(measure, inside.particles.spare[0])
    energy, touching, begun = total(measure, inside.backend)

    _, speed, square, *momentum = sums.reshape(-1, 3 + box.dim).sum(axis=0).tolist()
    peopled = sums[..., 0] > 0
    thermal = (thermal_energy(sums[peopled]) * sums[peopled, 0]).sum()
    mean_speed, mean_square = _ratio(speed, n), _ratio(square, n)
    rate = _ratio(2 * begun, n * inside.drift) if inside.drift else math.nan
    return Observation(
        step=inside.step,
        time=inside.time,
        kinetic_energy_per_particle=mean_square / 2,
        contact_energy_per_particle=_ratio(energy, n) if hasattr(inside.law, "potential") else math.nan,
        temperature=mean_square / box.dim,
        temperature_about_local_mean=_ratio(thermal * 2 / box.dim, n),
        momentum=np.array(momentum),
        mean_speed=mean_speed,
        touching_pairs=touching,
        contacts_begun=begun,
        collision_rate_per_particle=rate,
        collision_rate_by_touching=_ratio(
            2 * touching, n * (math.nan if sized else _contact_time(inside.law))
        ),
        mean_free_path_d=_ratio(mean_speed, rate),
        profiles=taken,
    )


def _contact_time(law: PairLaw) -> float:
    """Duration of a contact; NaN for a law without one."""
    try:
        time = getattr(law, "contact_time", math.nan)
    except ValueError:  # overdamped
        return math.nan
    return time if math.isfinite(time) else math.nan


def _ratio(over: float, under: float) -> float:
    """A quotient by IEEE's rules: infinite or NaN over 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(over) / under)
