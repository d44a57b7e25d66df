"""Claims on the hits of a cache that a model predicts for an order: what order should buy."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain, highest, lowest, number

SQUARES, CUBES = "cache_hit/cpu_squares", "cache_hit/cpu_cubes"
SAME_CUBOIDS, SAME_CUBES = "cache_hit/cpu_cuboids_same_gas", "cache_hit/cpu_cubes_same_gas"
BLOCK = "model == 'block' and cache_particles == 320"
SETS = "model == 'set_associative' and cache_particles == 256"
HILBERT = f"{BLOCK} and ordering == 'hilbert'"
MISSES = "1 - hit_ratio"

IN_CUBES = gain(
    CUBES, f"{SETS} and filling_fraction >= 0.2 and size == 64 and ordering == '?'", "hilbert", "row", MISSES
)
TABULATED = (5, 20, 40)  # fillings of [thesis], in percent


def hits(run: Runs, where: str) -> Query:
    """Ask for the hits of Hilbert's curve."""
    return number(run, f"{HILBERT} and {where}", "hit_ratio")


def on_squares(order: str, percent: int, model: str = BLOCK) -> Query:
    """Ask for the hits of an order of squares."""
    where = f"{model} and ordering == '{order}' and filling_fraction == {percent / 100:g}"
    return number(SQUARES, where, "hit_ratio")


def loss(run: Runs) -> Query:
    """Compare the hits at 1 % filling with those at 50 %."""
    return gain(run, f"{HILBERT} and filling_fraction == ?", 0.01, 0.5, "hit_ratio", "share")


def misses(run: Runs, geometry: str, model: str = BLOCK) -> Query:
    """Ask for the misses of a particle at 20 %: boxes that are empty are read too."""
    where = f"geometry == '{geometry}' and {model} and ordering == 'hilbert' and filling_fraction == 0.2"
    return number(run, where, "(1 - hit_ratio) * reads_per_particle")


def on_map(order: str, cache: int) -> Query:
    """Ask for the hits of all particles of a map."""
    where = f"cache_particles == {cache} and ordering == '{order}'"
    return number("cache_map/h200", where, "hit_ratio", "weighted mean", along="reads")


# Data: several fields a line.
# fmt: off
CLAIMS = (
    Claim(
        "T2", "depends", "Squares, cache of 320: hits above 0.9; Hilbert beats Peano and Z.",
        short="Squares: hits above 0.9, Hilbert best", there="above 0.9, Hilbert first",
        quote="""For the entirely two-dimensional system the cache-hit ratios are quite excellent, ranging
        above 90% for the regime we are interested in. ... the Hilbert curve showed the best cache-hit ratios
        in the two dimensions""",
        sentence="The filling: hits stay above 0.9, but Hilbert leads at 40 % alone.",
        here="hits {hilbert_5.value}, {hilbert_20.value}, {hilbert_40.value} at 5, 20, 40 %",
        figure="cache_hit/cpu_squares/filling_squares.png",
        confirmed_if=both("hilbert_?.low > 0.9", "5", "20", "40") + " and "
        + both("hilbert_?.low > peano_?.high and hilbert_?.low > morton_?.high", "5", "20", "40"),
        refuted_if=both("hilbert_?.high < 0.9", "5", "20", "40") + " or "
        + both("hilbert_?.high < peano_?.low", "5", "20", "40") + " or "
        + both("hilbert_?.high < morton_?.low", "5", "20", "40"),
        sentence_if="""hilbert_5.low > 0.9 and hilbert_20.low > 0.9 and hilbert_40.low > 0.9 and
        hilbert_40.low > peano_40.high and hilbert_40.low > morton_40.high and hilbert_20.low <= peano_20.high
        and hilbert_5.low <= peano_5.high and sets_40.high < sets_peano_40.low""",
        queries={
            **{f"{order}_{phi}": on_squares(order, phi) for order in ("hilbert", "peano", "morton")
                for phi in TABULATED},
            "sets_40": on_squares("hilbert", 40, SETS), "sets_peano_40": on_squares("peano", 40, SETS),
        },
    ),
    Claim(
        "T3", "depends", "A plane's curve on cuboids loses hits steeply; 3D needs its own.",
        short="Cuboids lose hits steeply, need 3D curve", there='"much more precipitously"',
        quote="""In the second case, where a 2D curve was used in a 3D system, the cache-hit ratios drop off
        much more precipitously - so a three-dimensional space-filling-curve has to be investigated.""",
        sentence="The geometry: in cuboids reading boxes is enough, in cubes the 3D curve wins.",
        here="misses in cuboids: columns {columns.value}, boxes {boxes.value}, 3D curve {space.value}",
        figure="cache_hit/cpu_cuboids_same_gas/misses_cuboids.png",
        confirmed_if="""loss_cuboids.low > loss_squares.high and boxes.low > space.high and cube_boxes.low >
        cube_space.high""",
        refuted_if="""loss_cuboids.high < loss_squares.low or boxes.high < space.low and cube_boxes.high <
        cube_space.low""",
        sentence_if="""columns.low > 2 and columns.low > boxes.high and cube_columns.low > cube_boxes.high and
        boxes.high < space.low and cube_boxes.low > cube_space.high and sets_boxes.high < sets_space.low""",
        queries={
            "loss_cuboids": loss("cache_hit/cpu_cuboids"), "loss_squares": loss(SQUARES),
            "columns": misses(SAME_CUBOIDS, "cuboids"), "boxes": misses(SAME_CUBOIDS, "cuboids_boxes"),
            "space": misses(SAME_CUBOIDS, "cuboids_space"),
            "cube_columns": misses(SAME_CUBES, "cubes_columns"),
            "cube_boxes": misses(SAME_CUBES, "cubes_boxes"), "cube_space": misses(SAME_CUBES, "cubes"),
            "sets_boxes": misses(SAME_CUBES, "cubes_boxes", SETS),
            "sets_space": misses(SAME_CUBES, "cubes", SETS),
        },
    ),
    Claim(
        "T6", "confirmed", "3D Hilbert, fixed cache: hits inflated in small systems, then constant.",
        short="Small systems' hits inflated, then constant", there="figure 5.9",
        quote="""For small system sizes the cache size becomes large in comparison with the particle number
        and the cache-hit ratio becomes artificially inflated ... for larger system sizes the cache-hit ratio
        stays constant over a large range""",
        sentence="Inflated up to 16 boxes a side, constant from 32 on.",
        here="{small.value} at 16, {large.value} at 64, {largest.value} at 256",
        figure="cache_hit/cpu_cubes/size_cubes.png",
        confirmed_if="small.low > large.high and spread.high < 1.02 and spread_ideal.high < 1.02",
        refuted_if="small.high < large.low or spread.low > 1.1 or spread_ideal.low > 1.1",
        queries={
            "small": hits(CUBES, "filling_fraction == 0.2 and size == 16"),
            "large": hits(CUBES, "filling_fraction == 0.2 and size == 64"),
            "largest": hits("cache_hit/cpu_cubes_large", "filling_fraction == 0.2 and size == 256"),
            "spread": highest(number(CUBES, f"{HILBERT} and filling_fraction >= 0.1 and size >= 32",
                "hit_ratio", "spread", "size"), "filling_fraction"),
            "spread_ideal": highest(number("cache_hit/cpu_cubes_large", HILBERT, "hit_ratio", "spread",
                "size"), "filling_fraction"),
        },
    ),
    Claim(
        "T9", "confirmed", "A small cache (256) needs a curve; stripes serve large ones (33,125).",
        short="Small caches need curves, large ones stripes", there="figure 5.13",
        quote="""for a typical GPU cache a naive reordering scheme without space-filling curves that exhibit
        the clustering property is not sufficient. ... The small cache of the GPU requires a more
        sophisticated reordering algorithm to be effective.""",
        sentence="In the source's model; with lines and sets the filling decides.",
        here="""hits at 256: Hilbert {hilbert_256.value}, rows {rows_256.value}; 33,125: rows
        {rows_33125.value}""",
        figure="cache_map/h200/map.png",
        confirmed_if="hilbert_256.low > rows_256.high and rows_33125.low > 0.9",
        refuted_if="hilbert_256.high < rows_256.low or rows_33125.high < 0.5",
        sentence_if="lines.high < 1",
        queries={
            **{f"{name}_{cache}": on_map(order, cache) for name, order in (("rows", "row"), ("hilbert",
                "hilbert")) for cache in (256, 33125)},
            "lines": lowest(IN_CUBES, "filling_fraction"),
        },
    ),
)
