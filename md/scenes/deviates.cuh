// Random numbers of a seed, a particle and a stream; see deviates.py, whose functions have the same names and the same bits.
//
// No product and sum may be fused, whatever the options of the compiler: hence `times`, `plus` and `minus`.

#define STREAM_JITTER 0u
#define STREAM_VELOCITY 1u

struct Block4 {
    unsigned word[4];
};

struct Three {
    double x[3];
};

__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dadd_rn(a, -b); }

// Philox4x32-10.
__device__ __forceinline__ Block4 philox(unsigned c0, unsigned c1, unsigned c2, unsigned c3, unsigned key_0, unsigned key_1) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        unsigned long long first = 0xD2511F53ull * c0, second = 0xCD9E8D57ull * c2;
        c0 = (unsigned)(second >> 32) ^ c1 ^ key_0;
        c2 = (unsigned)(first >> 32) ^ c3 ^ key_1;
        c1 = (unsigned)second;
        c3 = (unsigned)first;
        key_0 += 0x9E3779B9u;
        key_1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// Three numbers between -1/2 and 1/2, odd multiples of 2^-43.
__device__ __forceinline__ Three uniforms(unsigned number, unsigned stream, unsigned key_0, unsigned key_1) {
    Block4 block = philox(number, 0, 0, stream, key_0, key_1);
    Three u;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        unsigned long long high = (block.word[3] >> (10 * k)) & 0x3FFu;
        u.x[k] = times(minus((double)(block.word[k] | high << 32), 0x1p41 - 0.5), 0x1p-42);
    }
    return u;
}

__device__ __forceinline__ double horner(const double (&c)[8], double x) {
    double sum = c[7];
#pragma unroll
    for (int k = 6; k >= 0; --k) sum = plus(times(sum, x), c[k]);
    return sum;
}

__device__ __forceinline__ double logarithm(double x) {
    long long bits = __double_as_longlong(x);
    long long exponent = (bits >> 52) - 1023;
    double m = __longlong_as_double((bits & 0xFFFFFFFFFFFFFll) | 0x3FF0000000000000ll);
    if (m > 1.4142135623730951) {
        m = times(m, 0.5);
        exponent += 1;
    }
    double s = __ddiv_rn(minus(m, 1.0), plus(m, 1.0));
    double z = times(s, s), series = 1.0 / 21;
#pragma unroll
    for (int k = 19; k >= 1; k -= 2) series = plus(times(series, z), 1.0 / k);
    return plus(times((double)exponent, 0.6931471805599453), times(plus(s, s), series));
}

// Wichura's algorithm AS 241.
__device__ __forceinline__ double normal(double u) {
    const double middle[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                              1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                              3.3430575583588128105e4, 2.5090809287301226727e3};
    const double middle_below[8] = {1.0,
                                    4.2313330701600911252e1,
                                    6.8718700749205790830e2,
                                    5.3941960214247511077e3,
                                    2.1213794301586595867e4,
                                    3.9307895800092710610e4,
                                    2.8729085735721942674e4,
                                    5.2264952788528545610e3};
    const double tail[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,  5.76949722146069140550e0,
                            3.64784832476320460504e0,  1.27045825245236838258e0,  2.41780725177450611770e-1,
                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
    const double tail_below[8] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
    const double far[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                           2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
    const double far_below[8] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
    double size = fabs(u);
    if (size <= 0.425) {
        double r = minus(0.180625, times(u, u));
        return times(u, __ddiv_rn(horner(middle, r), horner(middle_below, r)));
    }
    double r = __dsqrt_rn(-logarithm(minus(0.5, size)));
    if (r <= 5.0) {
        r = minus(r, 1.6);
        size = __ddiv_rn(horner(tail, r), horner(tail_below, r));
    } else {
        r = minus(r, 5.0);
        size = __ddiv_rn(horner(far, r), horner(far_below, r));
    }
    return u < 0 ? -size : size;
}
