"""What can go wrong while a simulation runs, each with the step and the particle."""


class SimulationFault(RuntimeError):  # noqa: N818 - named, as its kinds are, for what happened
    """A run that cannot go on.

    Attributes:
        step: the step at which it happened, counted from the simulation's start.
        particle: id of a particle concerned, one of them where there are several.
    """

    def __init__(self, message: str, step: int, particle: int):
        super().__init__(message)
        self.step, self.particle = step, particle


class NonFiniteState(SimulationFault):
    """A position became NaN or infinite."""

    def __init__(self, step: int, particle: int):
        super().__init__(
            f"step {step}: particle {particle} has a position that is not finite; the time step is too "
            "long for the "
            "stiffness, or the start overlaps deeply; allowed: about contact_time / 50; lower dt or relax "
            "the start",
            step,
            particle,
        )


class ParticleEscaped(SimulationFault):
    """A particle left the box through a closed axis, or went a whole length past a periodic one."""

    def __init__(self, step: int, particle: int):
        super().__init__(
            f"step {step}: particle {particle} is outside the box; allowed in a step: at most one box length "
            f"past a side on a periodic axis, nothing on any other; lower dt, or make the axis periodic",
            step,
            particle,
        )
