"""Cavities with random fields, for tests of device strategies against the reference."""

import numpy as np

import md
from md.cavity.boundary import apply

TOLERANCE = {"float64": 5e-14, "float32": 2e-6}  # of the largest value, after a few steps


def cavity(shape, strategy, backend, **choices):
    """Make a cavity with random fields, whose pressure has its boundary values."""
    made = md.Cavity(shape, viscosity=0.1, strategy=strategy, backend=backend, **choices)
    u, v, p = np.random.default_rng(7).uniform(-1, 1, (3, *shape)).astype(made.scheme.dtype)
    apply(p, "p", made.scheme.conditions)
    made._solver.load(u, v, p)
    return made


def largest_error(found, expected):
    """Return the largest difference of a field, in units of its largest value."""
    errors = []
    for name in "uvp":
        right = getattr(expected, name).astype(float)
        errors.append(np.abs(getattr(found, name) - right).max() / np.abs(right).max())
    return max(errors)


def assert_kept(one):
    """Check that fields which are not given keep all bits, and those which are given are taken."""
    before, v = one._solver.state_dict(), one.v
    one.set_fields()
    one.set_fields(v=2 * v)
    for name, array in one._solver.state_dict().items():
        np.testing.assert_array_equal(array, 2 * v if name == "v" else before[name])
    one.set_fields(v=v)


def assert_as_reference(shape, strategy, backend, pieces=(3, 3), **choices):
    """Run a cavity beside the reference, and compare the fields after each piece of the run.

    A run takes one step at first, and then up to as many at once as were taken.
    """
    found = cavity(shape, strategy, backend, **choices)
    assert_kept(found)
    expected = cavity(shape, "numpy", "cpu", **choices)
    for steps in pieces:
        found.run(steps)
        expected.run(steps)
        assert largest_error(found, expected) < TOLERANCE[found.scheme.precision]
