// One point of the scheme of md/cavity/scheme.py, for all CUDA kernels of the cavity.
//
// Contract. A kernel has a parameter `Factors factors`, which is `md.cavity.scheme.Coefficients`: its fields have the
// precision of the cavity, and so has `number`.

typedef decltype(Factors::quarter) number;

// A value and those of the four neighbours.
struct Cross {
    number centre, west, east, south, north;
};

// What diffusion and advection by (u, v) add to a velocity in a step.
__device__ __forceinline__ number change(const Cross& at, number u, number v, const Factors& factors) {
    number laplacian = at.west + at.south - factors.four * at.centre + at.east + at.north;
    number carried = u * (at.east - at.west) + v * (at.north - at.south);
    return factors.diffusion * laplacian - factors.advection * carried;
}
