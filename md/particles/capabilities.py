"""Capabilities of strategies, a class for each kind: read by the compatibility table and by the step loop."""

from __future__ import annotations

from dataclasses import dataclass

from md import checks


@dataclass(frozen=True, kw_only=True)
class StepCapabilities:
    """Capabilities of a part of a simulation that acts in each step.

    Attributes:
        capturable: on a device all its work is kernel launches that neither wait nor allocate, so that steps
            can be captured in a graph. An integrator: its last kernel also counts the step.
        divisible: it works for the particles of one rank, with ghosts beside them, which follow after each
            step; a search leaves the rows where they are there.
    """

    capturable: bool = False
    divisible: bool = False


@dataclass(frozen=True, kw_only=True)
class SearchCapabilities(StepCapabilities):
    """Capabilities of a search; `md.search.Capabilities`.

    Attributes:
        fusable: the force kernel has the whole force on a particle at once, in the particle's own row, so
            that it can take a whole step. On a device all that the search does for fused steps is launches by
            `Backend.kernels` and `Backend.fill`, which are made again without the search's code; what decides
            them is in `Search.launch_state`.
        moves_particles: a build sorts the particle arrays, so that neither a separate reorder nor a work
            order makes sense.
        bitwise_on: backends on which the search repeats a run bit for bit.
        packs: fused steps read and write packed rows (`ParticleArrays.pack`), if law and backend do.
    """

    fusable: bool = False
    moves_particles: bool = False
    bitwise_on: tuple[str, ...] = ("cpu", "cuda")
    packs: bool = False


@dataclass(frozen=True, kw_only=True)
class IntegratorCapabilities(StepCapabilities):
    """Capabilities of an integrator; `md.integrate.Capabilities`.

    Attributes:
        fusable: the integrator gives a force kernel the output that moves the particle
            (`Stepper.fused_output`), so that one kernel takes a whole step.
        relaxes: it removes overlaps and leaves velocities alone: a deep overlap at the start is no fault, and
            there is no energy to monitor.
        moves_before_force: it moves the particles before their force is computed too.
        adds_external_field: `Stepper.advance` adds the external field itself.
        kicks_and_drifts: a step is one kick and one drift (`Stepper.step_times`).
        takes_increments: for laws of increments of velocity (`md.laws.pair.gives_increments`), and for no
            others.
    """

    fusable: bool = False
    relaxes: bool = False
    moves_before_force: bool = False
    adds_external_field: bool = False
    kicks_and_drifts: bool = False
    takes_increments: bool = False


@dataclass(frozen=True, kw_only=True)
class TriggerCapabilities:
    """Capabilities of a trigger; `md.reorder.Capabilities`.

    Attributes:
        needs_times: the trigger reads the times of phases, or of captured steps.
    """

    needs_times: bool = False


@dataclass(frozen=True, kw_only=True)
class BoundaryCapabilities(StepCapabilities):
    """Capabilities of a boundary; `md.boundaries.Capabilities`.

    Attributes:
        changes_velocities: `ActiveBoundary.after_step` may change velocities.
    """

    changes_velocities: bool = False


class Capable:
    """Base of the strategies' base classes: each sets `capabilities`, of the class of its kind.

    Raises:
        TypeError: a derived class with capabilities of another kind.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        given = [vars(base)["capabilities"] for base in cls.__mro__ if "capabilities" in vars(base)]
        if given and isinstance(given[0], StepCapabilities | TriggerCapabilities):
            kind, name = type(given[-1]), f"capabilities of {cls.__qualname__}"  # the kind of the base class
            remedy = "take `Capabilities` of the base class's room: md.search, integrate, reorder, boundaries"
            checks.instance(name, given[0], kind, f"md.particles.capabilities.{kind.__name__}", remedy)
