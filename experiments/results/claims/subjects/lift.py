"""Claims on the tree that finds contacts of discs, on the flow round a wing, and on the grid."""

from experiments.results.claims.claim import Claim
from experiments.results.claims.queries import Query, Runs, both, gain, highest, lowest, number

H100, H200, CPU = "ladder/h100", "ladder/h200", "ladder/cpu_room_16"
LADDER = "ladder/h100/gains.png"
LISTS = "rung == 'contacts in lists' and crowded_share >= 0"
WING, GRID, TORUS = "lift/h200_three_gases", "grid_limits/cpu", "contacts/cpu_torus"
BOIDS = "flocking/h200_100000"
BOXES = "wrong_boxes"
WALK, SORTED = ("shared stack", "contacts in lists"), ("data moved", "data moved, in lists")


def rung(run: Runs, this: str, over: str, n: str = "n == 2**21") -> Query:
    """Compare two steps of the ladder of optimisations."""
    return gain(run, f"{n} and rung == '?'", this, over)


def overflow(run: Runs) -> Query:
    """Ask for the lists that overflow, in percent."""
    return number(run, LISTS, "100 * crowded_share", "max")


def counted(where: str) -> Query:
    """Ask for the lists that overflow by count, in percent."""
    return number("contacts/cpu", where, "100 * overflow_share", "max")


def trees(
    start: str, fence: str, value: str = f"{BOXES} > 0", statistic: str = "mean", unit: str = "scene"
) -> Query:
    """Ask for the share of trees with a wrong box."""
    where = f"start == '{start}' and fence == '{fence}'"
    return number("fence/h100", where, value, statistic, unit=unit)


def nodes(structure: str, run: Runs = "contacts/h100_pools") -> Query:
    """Ask for the share of trials in which a structure loses a node, or gives it to two threads."""
    where = f"structure == '{structure}'"
    return number(run, where, "(wrong_nodes > 0) | (taken_twice > 0)", "mean", unit="scene")


# Cells beside the axis, 15 d ahead of the nose, which is at 400 d. Without collisions a nose of radius R,
# 6.35 d, reflects like a mirror of focal length R / 2: the density at s ahead is 1 + (R / 2) / (s + R / 2) of
# the stream's, 1.17 there.
AHEAD = "what == 'cell' and angle == 0 and x_d == 385 and 490 < y_d < 510"


def pressure(side: str) -> Query:
    """Ask for the pressure on a side of the wing."""
    where = f"what == 'segment' and angle == 10 and side == '{side}'"
    return number(WING, where, "surface_pressure_coefficient", "weighted mean", along="length_d")


def lift(angle: int) -> Query:
    """Ask for the lift coefficient."""
    return number(WING, f"what == 'block' and angle == {angle}", "lift_coefficient")


def of_grid(filling: float, value: str, order: str = "row") -> Query:
    """Ask for a number of a grid."""
    return number(GRID, f"filling_fraction == {filling} and order == '{order}'", value)


def clusters(room: int) -> Query:
    """Compare a tree with the grid, in clusters."""
    return gain("mixture/h100_clusters", f"room == {room} and search == '?'", "lbvh", "coherent")


def boids(start: str) -> Query:
    """Compare a tree with the grid, of boids."""
    return gain(BOIDS, f"start == '{start}' and age == 0 and name == '?'", "lbvh", "coherent")


def rows(search: str) -> Query:
    """Compare linked cells or lists along Hilbert's curve with rows."""
    where = f"search == '{search}' and phase == 'step with reorder' and ordering == '?'"
    return gain("timing/h100", where, "hilbert", "row")


COUNTED = "what == 'counted' and level == 'chip' and dram_bytes_per_particle > 0 and ordering == '?'"
COHERENT = "search == 'coherent' and n == 2**21 and cell_order == '?'"

# Data: several fields a line.
# fmt: off
RESTRICTIONS = (
    Claim(
        "L8 bounded_coordinates", "confirmed", "The grid's own size limits the coordinates.",
        short="A grid bounds the coordinates", there="no number",
        quote="""The set of coordinate values is limited by the size of the grid itself. The restriction may
        be relaxed though by applying the modulo-like operation to the coordinate, i.e., by wrapping the flat
        space into a torus.""",
        sentence="""The table grows with the volume. On a torus, the source's remedy, it does not: then a
        sphere at 0.3 % reads {wound.value} partners instead of {bounded.value}.""",
        here="memory of the grid from 30 to 0.3 % filling {growth}",
        figure="grid_limits/cpu/grid_limits.png",
        confirmed_if="growth.low > 50 and torus_growth.high < 1.1",
        refuted_if="growth.high < 2",
        sentence_if="wound.low > 10 * bounded.high",
        queries={
            "growth": gain(GRID, "filling_fraction == ? and order == 'row'", 0.003, 0.3,
                "grid_bytes", "share"),
            "torus_growth": gain(TORUS, "filling_fraction == ?", 0.003, 0.5, "torus_bytes", "share"),
            "wound": number(TORUS, "filling_fraction == 0.003", "torus_reads_per_particle"),
            "bounded": number(TORUS, "filling_fraction == 0.003", "reads_per_particle"),
            "wound_dense": number(TORUS, "filling_fraction == 0.5", "torus_reads_per_particle"),
            "bounded_dense": number(TORUS, "filling_fraction == 0.5", "reads_per_particle"),
        },
    ),
    Claim(
        "L8 far_in_memory", "refuted", "Near cells are far apart in memory, which loads the bus.",
        short="Near cells are far apart in memory", there="no number",
        quote="""Close cells in Euclidean space are usually located far away in the RAM / VRAM address space,
        without sharing a single cache line, which creates an additional load on the memory bus.""",
        sentence="""Rows are far apart, but read fewer bytes: a tenth of the partners is farther along
        Hilbert.""",
        here="slots apart: rows {rows.value}, Hilbert {hilbert.value}; bytes of rows over Hilbert's {bytes}",
        figure="timing/h100/gain_n2097152_linked_float32_fused.png",
        confirmed_if="rows.low > 8 and bytes.above(1)",
        refuted_if="rows.high <= 8 or bytes.below(1, of=2)",
        sentence_if="""rows.low > hilbert.high and rows_90.high < hilbert_90.low and bytes.high < 1 and
        time.high < 1 and lists.low > 1""",
        queries={
            "rows": of_grid(0.2, "slots_apart_median"), "rows_90": of_grid(0.2, "slots_apart_90"),
            "hilbert": of_grid(0.2, "slots_apart_median", "hilbert"),
            "hilbert_90": of_grid(0.2, "slots_apart_90", "hilbert"),
            "bytes": gain("counters/h200_three_runs", COUNTED, "hilbert", "row",
                "dram_bytes_per_particle", "gain of medians"),
            "time": highest(rows("linked"), "filling_fraction"),
            "lists": lowest(rows("verlet"), "filling_fraction"),
            "coherent": gain("searches/h200_orders", COHERENT, "hilbert", "row"),
        },
    ),
    Claim(
        "L8 memory_at_low_density", "confirmed",
        "At low density the grid takes more memory than the data.",
        short="At low density a grid wastes memory", there="no number",
        quote="""If there's a low density of objects or a small number of them, the data structure consumes
        more memory than the data itself.""",
        sentence="""At 1 % cells take more bytes than positions and velocities (24) and than a tree, at 20 %
        less.""",
        here="bytes a particle at 1, 20 %: {grid_1}, {grid_20}, a tree {tree}",
        figure="grid_limits/cpu/grid_limits.png",
        confirmed_if="grid_1.low > 48 and grid_1.low > tree.high",
        refuted_if="grid_1.high < 24",
        sentence_if="grid_1.low > tree.high and grid_20.high < 24",
        queries={
            **{f"grid_{phi}": of_grid(phi / 100, "grid_bytes") for phi in (1, 5, 20)},
            "tree": of_grid(0.01, "tree_bytes"), "room_8": clusters(8), "room_64": clusters(64),
        },
    ),
    Claim(
        "L8 long_lists", "depends", "At high density the grid's lists get excessively long.",
        short="At high density lists are long", there="no number",
        quote="Excessively long lists may appear with a high density of objects.",
        sentence="""Over two runs of boids neither tree nor grid is certainly faster. Equal hard spheres
        cannot be so dense.""",
        here="tree over grid {tree}; uniform boids {tree_uniform}; neighbours {neighbours.value}",
        figure="flocking/h200_100000/times_float32.png",
        confirmed_if="tree.above(1)",
        refuted_if="tree.below(1)",
        sentence_if="tree.low < 1 and tree.high > 1 and neighbours.low > 100",
        queries={
            "tree": boids("clusters"), "tree_uniform": boids("uniform"),
            "neighbours": number(BOIDS, "start == 'clusters' and age == 0 and name == 'coherent'",
                "neighbours_mean"),
        },
    ),
    Claim(
        "L8 lock_free", "depends", "Some lock-free structures fail under the scheduling of GPU threads.",
        short="Lock-free structures fail on a GPU", there="no number",
        quote="""Due to the hardware features of GPU thread scheduling, some lock-free structures don't work
        correctly""",
        sentence="""The structure: a free list by compare-and-swap fails where its head comes back (ABA), with
        its changes counted never; lists linked by an exchange never.""",
        here="share of wrong trials: free list {pool.value}, counted {counted.value}, lists {lists.value}",
        confirmed_if="pool.low > 0 and counted.low > 0",
        refuted_if=both("?.high <= 0", "pool", "counted", "lists"),
        sentence_if="pool.low > 0 and counted.high <= 0 and lists.high <= 0",
        queries={
            "pool": nodes("pool"), "counted": nodes("counted pool"),
            "lists": nodes("lists", "contacts/h100_lists"),
        },
    ),
)
CLAIMS = (
    Claim(
        "L1", "depends", "Z-order reordering gives 50 % more frames at 2 million discs.",
        short="Z-order reordering gives 50 %", there="1.5 (8 to 12 frames/s)",
        quote="""This optimization gives a 50% performance increase: from 8 FPS to 12 FPS for two million
        particles.""",
        sentence="The chip. The source's frames hold 16 steps and drawing.",
        here="{h100} H100, {h200} H200",
        figure=LADDER,
        confirmed_if="h100.high >= 1.5 and h200.high >= 1.5",
        refuted_if="h100.below(1.25) and h200.below(1.25)",
        sentence_if="h100.low > 1.5 and h200.high < 1.5 and h200.low > 1",
        queries={
            "h100": rung(H100, "reorder", "no reorder"), "h200": rung(H200, "reorder", "no reorder"),
        },
    ),
    Claim(
        "L2", "refuted", "A traversal stack in shared instead of local memory gives 43 %.",
        short="A stack in shared memory gives 43 %", there="1.43 (14 to 20 frames/s)",
        quote="Using shared memory has allowed me to achieve a 43% increase: from 14 FPS to 20 FPS.",
        sentence="Not on Hopper: less than a quarter of it.",
        here="{h100} H100, {h200} H200",
        figure=LADDER,
        confirmed_if="h100.high >= 1.43 and h200.high >= 1.43",
        refuted_if="h100.below(1.215) and h200.below(1.215)",
        sentence_if="h100.high < 1.1075 and h200.high < 1.1075 and ropes.low > 1 and ropes_h200.low > 1",
        queries={
            "h100": rung(H100, "shared stack", "reorder"), "h200": rung(H200, "shared stack", "reorder"),
            "ropes": rung(H100, "ropes", "shared stack"), "ropes_h200": rung(H200, "ropes", "shared stack"),
        },
    ),
    Claim(
        "L3", "confirmed", "Resolving contacts during traversal beats lists, and lists overflow.",
        short="Contacts in traversal beat lists, which overflow", there='"a little faster"',
        quote="""in certain scenarios, space was quickly running out of the lists. ... So I decided to try the
        no-list approach described above. To my surprise, the method turned out to be a little faster and
        provided no artifacts.""",
        sentence="By little, at the source's size; lists of 16 overflow, of 32 never.",
        here="{walk} H100, {walk_h200} H200; percent that overflow: {overflow_16.value}",
        figure="ladder/h100/gains.png",
        confirmed_if=both("?.above(1)", "walk", "sorted", "walk_h200", "sorted_h200")
        + " and overflow_16.low > 0",
        refuted_if=both("?.below(1)", "walk", "sorted", "walk_h200", "sorted_h200")
        + " and overflow_16.high <= 0",
        sentence_if="""not walk_small.above(1) and not walk_small.below(1) and not walk_small_h200.above(1)
        and not walk_small_h200.below(1) and overflow_32.high <= 0 and overflow_32_h200.high <= 0 and
        counted_32.high <= 0""",
        queries={
            "walk": rung(H100, *WALK), "sorted": rung(H100, *SORTED),
            "walk_small": rung(H100, *WALK, "n == 2**17"), "walk_h200": rung(H200, *WALK),
            "sorted_h200": rung(H200, *SORTED), "walk_small_h200": rung(H200, *WALK, "n == 2**17"),
            "walk_cpu": rung(CPU, *WALK, "n > 0"), "overflow_32": overflow(H100),
            "overflow_32_h200": overflow(H200), "overflow_16": overflow(CPU),
            "counted_16": counted("room == 16 and curve == 'hilbert'"), "counted_32": counted("room == 32"),
        },
    ),
    Claim(
        "L4", "depends", "Aggregating atomics inside a warp lowers traffic; emulated, it gained nothing.",
        short="Atomics summed in the warp lower traffic", there="no difference, emulated",
        quote="""Alas, the emulation has not given any increase, as well as any slowdown. Profiling has shown
        that although the workload of the atomic pipeline has dropped significantly, the arithmetic workload
        has increased as well as the registers count per thread.""",
        sentence="Additions fall, but with match_any a step is slower. Emulation was not tried.",
        here="additions {additions.value} times fewer; time {h100.value} H100, {h200.value} H200",
        figure="contacts/cpu/contacts.png",
        confirmed_if="additions.low > 1 and " + both("not ?.above(1) and not ?.below(1)", "h100", "h200"),
        refuted_if="additions.high <= 1",
        sentence_if="additions.low > 1 and h100.below(1) and h200.below(1)",
        queries={
            "additions": lowest(
                number("contacts/h100", "room == 32", "made_plain / made_aggregated"), "curve", "step"),
            "in_warps": lowest(number("contacts/cpu", "room == 32", "plain / aggregated"), "curve", "step"),
            "h100": rung(H100, "aggregated atomics", "shared stack"),
            "h200": rung(H200, "aggregated atomics", "shared stack"),
        },
    ),
    Claim(
        "L5", "confirmed", "Without a barrier after the visit flag boxes race (tried: Hopper).",
        short="Without a barrier boxes race (Hopper)", there="artefacts from Turing on",
        quote="""My mistake was that I did not use any memory barriers in the code that builds the BVH-tree
        ... As a consequence, writes that should have been performed before atomicExch(), i.e., at the
        previous iteration of the loop, occurs after on "Turing". ... The result is a data race.""",
        sentence="Merged through global memory; in blocks never.",
        here="share of wrong trees without fence {without}, with it {fenced}",
        figure="fence/h100/fence.png",
        confirmed_if="without.low > 0 and fenced.high <= 0",
        refuted_if="without.high <= 0",
        sentence_if="trees.low >= 1500 and trees_in_blocks.low >= 1500 and blocks.high <= 0",
        queries={
            "without": trees("leaves", "without"), "fenced": trees("leaves", "with"),
            "blocks": trees("blocks", "without"), "scene_trees": trees("leaves", "without", BOXES, "count"),
            "trees": trees("leaves", "without", BOXES, "count", ""),
            "trees_in_blocks": trees("blocks", "without", BOXES, "count", ""),
        },
    ),
    Claim(
        "L6", "confirmed", "Reflexive traversal, each pair once by rightmost leaves, pays.",
        short="Visiting each pair once pays", there="no number",
        quote="""The idea is that the procedure must recognize A-B and B-A collisions as the same collision,
        so it is detected only once.""",
        sentence="At both sizes, on both chips.",
        here="at least {h100} H100, {h200} H200",
        figure="ladder/h100/gains.png",
        confirmed_if="h100.above(1) and h200.above(1)",
        refuted_if="h100.below(1, of=2) or h200.below(1, of=2)",
        queries={
            "h100": lowest(rung(H100, "data moved", "each pair twice", "n > 0"), "n"),
            "h200": lowest(rung(H200, "data moved", "each pair twice", "n > 0"), "n"),
        },
    ),
    Claim(
        "L7", "confirmed", "A shock before the nose; high pressure below, low above give lift.",
        short="A shock, and pressures that give lift", there="a picture",
        quote="""The reflected layer of particles creates a shockwave that reflects the following layer. ...
        Probably, this cannonball effect of the interaction of the air layers along with the angle of attack
        gives the lift. The pressure heatmap below shows clearly the high (red and orange) and low (green and
        blue) pressure areas.""",
        sentence="Ahead of the nose, where free flight gives at most 1.2.",
        here="density {ahead}; lift coefficient {lift_up.value}, {lift_down.value} at 10, -10 degrees",
        figure="lift/h200_three_gases/map_0012_5_0p1_10.png",
        confirmed_if="ahead.low > 1.2 and below.low > above.high and lift_up.low > 0 and lift_down.high < 0",
        refuted_if="ahead.high < 1.2 or below.high < above.low or lift_up.high < 0",
        queries={
            "ahead": number(WING, AHEAD, "density_over_stream", "mean"),
            "shock": lowest(gain(WING, "what == 'cell' and x_d < ?", 405, 200, "density_over_stream",
                "peak over mean"), "angle"),
            "below": pressure("lower"), "above": pressure("upper"), "lift_up": lift(10),
            "lift_down": lift(-10),
        },
    ),
    Claim(
        "L8", "depends", "A uniform grid is the alternative, with five named restrictions.",
        short="A grid has five restrictions", there="no number",
        quote="This structure however may run into the following restrictions:",
        sentence="Restriction by restriction.",
        parts=RESTRICTIONS,
    ),
)
