"""Random numbers of a seed, a particle and a stream: the same bits on every backend.

A counter-based generator has no state: its numbers are a function of key and counter, so that threads draw
them in any order. Normal deviates are made by additions, multiplications, divisions and square roots alone,
which round the same everywhere, in a fixed order and never fused. `deviates.cuh` holds the same functions.

- Philox4x32-10: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, Proc. SC (2011).
- Inverse of the normal distribution: Wichura, Algorithm AS 241, Applied Statistics 37 (1988) 477; to 1e-15.
"""

import math

import numpy as np

from sfc.compile import callee, inlined

JITTER, VELOCITY = np.uint64(0), np.uint64(1)  # streams

BITS = 42  # of a random number: a third of a block of the generator
HALF = 2.0 ** (BITS - 1) - 0.5
UNIT = 2.0**-BITS
LOW = np.uint64(2**32 - 1)
WORD = np.uint64(32)
TEN = np.uint64(10)
TEN_BITS = np.uint64(2**10 - 1)

FACTOR_0, FACTOR_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10

# Coefficients of AS 241, of the powers 0 to 7: numerator and denominator in the middle, in the tails, and far
# out in the tails.
CENTRE = 0.425, 0.180625
MIDDLE = (
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
)  # fmt: skip
MIDDLE_BELOW = (
    1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
)  # fmt: skip
TAIL = (
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
    1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
)  # fmt: skip
TAIL_BELOW = (
    1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
    6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
    5.47593808499534494600e-4, 1.05075007164441684324e-9,
)  # fmt: skip
FAR = (
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7,
)  # fmt: skip
FAR_BELOW = (
    1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
    1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
    1.42151175831644588870e-7, 2.04426310338993978564e-15,
)  # fmt: skip
LN2, SQRT_HALF = 0.6931471805599453, 1.4142135623730951 / 2
ARTANH = tuple(1.0 / k for k in range(1, 22, 2))  # coefficients of artanh(s) / s, of the powers of s^2


@callee
def philox(c0, c1, c2, c3, key_0, key_1):
    """Return the four words of a counter of four words under a key: all are uint64 below 2^32.

    Philox4x32-10.
    """
    for _ in range(ROUNDS):
        first, second = FACTOR_0 * c0, FACTOR_1 * c2
        c0, c2 = (second >> WORD) ^ c1 ^ key_0, (first >> WORD) ^ c3 ^ key_1
        c1, c3 = second & LOW, first & LOW
        key_0, key_1 = (key_0 + WEYL_0) & LOW, (key_1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@inlined
def uniforms(number, stream, key_0, key_1):
    """Return three uniform numbers of a particle and a stream, between -1/2 and 1/2 without the ends.

    They are odd multiples of 2^-43, so that 1/2 plus or minus each is exact.
    """
    none = np.uint64(0)
    w0, w1, w2, w3 = philox(number, none, none, stream, key_0, key_1)
    return (
        (np.float64(w0 | ((w3 & TEN_BITS) << WORD)) - HALF) * UNIT,
        (np.float64(w1 | (((w3 >> TEN) & TEN_BITS) << WORD)) - HALF) * UNIT,
        (np.float64(w2 | (((w3 >> (TEN + TEN)) & TEN_BITS) << WORD)) - HALF) * UNIT,
    )


@inlined
def horner(c, x):
    """Compute the polynomial of some coefficients, that of power 0 first."""
    total = c[len(c) - 1]
    for k in range(len(c) - 2, -1, -1):
        total = total * x + c[k]
    return total


@callee
def logarithm(x):
    """Compute the natural logarithm of a positive normal number, to some 1e-16.

    The series of log m = 2 artanh((m - 1) / (m + 1)), for m within a factor of sqrt(2) of 1.
    """
    m, exponent = math.frexp(x)  # 1/2 <= m < 1
    if m <= SQRT_HALF:
        m, exponent = 2.0 * m, exponent - 1
    s = (m - 1.0) / (m + 1.0)
    return np.float64(exponent) * LN2 + (s + s) * horner(ARTANH, s * s)


@callee
def normal(u):
    """Return the normal deviate below which a fraction 1/2 + u of a normal distribution is.

    AS 241, with a logarithm of correctly rounded operations.

    Args:
        u: of `uniforms`; the deviate is between -7.4 and 7.4.
    """
    if abs(u) <= CENTRE[0]:
        r = CENTRE[1] - u * u
        return u * (horner(MIDDLE, r) / horner(MIDDLE_BELOW, r))
    r = math.sqrt(-logarithm(0.5 - abs(u)))
    if r <= 5.0:
        r -= 1.6
        size = horner(TAIL, r) / horner(TAIL_BELOW, r)
    else:
        r -= 5.0
        size = horner(FAR, r) / horner(FAR_BELOW, r)
    return -size if u < 0 else size
