"""Capabilities of a strategy, in one place: read by the compatibility table and by the step loop."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a search, an integrator, a trigger or a boundary.

    Attributes:
        fusable: it can be part of one kernel that takes a whole step. A search: its force kernel has the
            whole force on a particle at once, in the particle's own row. An integrator: it gives such a
            kernel the output that moves the particle (`Stepper.fused_output`). On a device all that a search
            does for fused steps is launches by `Backend.kernels` and `Backend.fill`, which are made again
            without the search's code; what decides them is in `Search.launch_state`.
        capturable: on a device all its work is kernel launches that neither wait nor allocate, so that steps
            can be captured in a graph. An integrator: its last kernel also counts the step.
        moves_particles: the build of a search sorts the particle arrays, so that neither a separate reorder
            nor a work order makes sense.
        bitwise_on: backends on which a search repeats a run bit for bit.
        packs: the fused steps of a search read and write packed rows (`ParticleArrays.pack`), if law and
            backend do.
        relaxes: an integrator that removes overlaps and leaves velocities alone: a deep overlap at the start
            is no fault, and there is no energy to monitor.
        moves_before_force: an integrator that moves the particles before their force is computed too.
        adds_external_field: `advance` of an integrator adds the external field itself.
        kicks_and_drifts: a step of an integrator is one kick and one drift (`Stepper.step_times`).
        takes_increments: an integrator for laws of increments of velocity
            (`md.laws.pair.gives_increments`), and for no others.
        needs_times: a trigger that reads the times of phases, or of captured steps.
        changes_velocities: `after_step` of a boundary may change velocities.
    """

    fusable: bool = False
    capturable: bool = False
    moves_particles: bool = False
    bitwise_on: tuple[str, ...] = ("cpu", "cuda")
    packs: bool = False
    relaxes: bool = False
    moves_before_force: bool = False
    adds_external_field: bool = False
    kicks_and_drifts: bool = False
    takes_increments: bool = False
    needs_times: bool = False
    changes_velocities: bool = False
