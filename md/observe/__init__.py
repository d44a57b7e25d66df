"""What is seen of a run: energies, temperatures, contacts, profiles. Summed where the particles are.

`look` is one glance at a simulation; an `Observer` looks at intervals and makes a table of it; an
`EnergyBalance` adds up what comes in and what is lost; a `field` is what there is in each cell of a grid. The
functions of a state (`kinetic_energy` and so on, and `section`, for pictures) work on the host.
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
