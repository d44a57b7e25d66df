// Contact of a disc with a wing; see wing.py.

#include "md/search/bvh/tree.cuh"

#define COLUMNS 8  // of a segment: start, end, outward normal, turn of the outline at the start, length^2
#define CHUNK 8    // consecutive segments that share a box; this and the next as in polygon.py
#define SURELY (real)1e-5
#define ACROSS 8   // parts of a segment's box, together a warp
#define UP 4

// Nearest point of the outline: its segment or -1, signed distance, outward normal.
struct Seen {
    int segment;
    real distance, nx, ny;
};

__device__ __forceinline__ Seen from_outline(int count, const real* segments, real within2, real x, real y) {
    int best = -1;
    real at = 0, nearest = within2;
    for (int first = 0; first < count; first += CHUNK) {
        const real* box = segments + COLUMNS * count + 4 * (first / CHUNK);
        real out_x = max(max(box[0] - x, x - box[2]), (real)0), out_y = max(max(box[1] - y, y - box[3]), (real)0);
        real gap2 = out_x * out_x + out_y * out_y;
        if (gap2 - SURELY * gap2 > nearest) continue;
        for (int s = first; s < min(first + CHUNK, count); ++s) {
            const real* p = segments + COLUMNS * s;
            real ax = x - p[0], ay = y - p[1], bx = p[2] - p[0], by = p[3] - p[1];
            real share = min(max((ax * bx + ay * by) / p[7], (real)0), (real)1);
            real dx = ax - share * bx, dy = ay - share * by, d2 = dx * dx + dy * dy;
            if (d2 < nearest) {
                best = s;
                at = share;
                nearest = d2;
            }
        }
    }
    if (best < 0) return {-1, 0, 0, 0};
    const real* p = segments + COLUMNS * best;
    Seen seen = {best, 0, p[4], p[5]};
    const real* edge = at <= 0 ? p : segments + COLUMNS * ((best + 1) % count);
    if ((at > 0 && at < 1) || edge[6] == 0) {
        seen.distance = (x - p[0]) * p[4] + (y - p[1]) * p[5];
        return seen;
    }
    real away = sqrt(nearest), sign = edge[6] < 0 ? (real)-1 : (real)1;
    seen.distance = sign * away;
    if (away > 0) {
        seen.nx = sign * (x - edge[0]) / away;
        seen.ny = sign * (y - edge[1]) / away;
    }
    return seen;
}

#if defined(HAS_FOIL)
// Returns the segment in contact with a disc, or -1, and the force on the disc in `push`.
__device__ __forceinline__ int pushed(int count, const real* segments, const Foil& foil, const Vec& r, const Vec& v,
                                      Vec& push) {
    if (!(foil.left < r.x[0] && r.x[0] < foil.right && foil.down < r.x[1] && r.x[1] < foil.up)) return -1;
    Seen seen = from_outline(count, segments, foil.within2, r.x[0], r.x[1]);
    if (seen.segment < 0 || !(seen.distance >= -foil.depth && seen.distance < foil.radius)) return -1;
    real size = foil.spring * (foil.radius - seen.distance) - foil.damping * (v.x[0] * seen.nx + v.x[1] * seen.ny);
    push.x[0] = size * seen.nx;
    push.x[1] = size * seen.ny;
    return seen.segment;
}
#endif
