"""Observables of a run: energies, temperatures, contacts, profiles, fields. Sums are computed on the device.

`look` measures a simulation once. An `Observer` measures at intervals and makes tables. An `EnergyBalance`
integrates energy input and dissipation. `field` measures density, velocity, temperature and pressure in the
cells of a grid. The functions of a state (`kinetic_energy` and so on, and `section`, for pictures) run on the
host.
"""

from md.observe.energy_balance import EnergyBalance
from md.observe.field import Field, Fields, field, virial
from md.observe.observation import Observation, look
from md.observe.observer import Observer
from md.observe.profile import Profile, Profiled
from md.observe.reference import contact_energy, kinetic_energy, momentum, temperature
from md.observe.section import Section, section

__all__ = [
    "EnergyBalance",
    "Field",
    "Fields",
    "Observation",
    "Observer",
    "Profile",
    "Profiled",
    "Section",
    "contact_energy",
    "field",
    "kinetic_energy",
    "look",
    "momentum",
    "section",
    "temperature",
    "virial",
]
