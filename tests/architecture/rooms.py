"""The rooms of the packages, lowest first, and the strategies that may import another."""

ROWS = [  # rooms, lowest first; those of one row do not import each other
    ("sfc.checks", "sfc.compile"),
    ("sfc.points", "sfc.integer_grid", "sfc.radix_sort"),
    ("sfc.any_curve",),
    ("sfc.automaton", "sfc.bitwise"),
    ("sfc.registry", "sfc.cache"),
    ("sfc.curves", "sfc.orderings"),
    ("sfc.device", "sfc.locality", "sfc.testing", "sfc.show_config"),
    ("sfc.point_keys",),
    ("sfc.point_orders",),
    ("sfc.files",),
    ("sfc.__main__",),
    ("=sfc",),  # the package itself, for what stands above it
    ("md.errors", "md.checks"),
    ("md.domain.communicator",),
    ("md.registry", "md.io.atomic_write", "md.io.archive", "md.io.interrupt"),
    ("md.backend",),
    ("md.particles", "md.laws", "md.cavity"),
    ("md.domain",),
    ("md.search.displacement_guard", "md.search.partners", "md.search.packed_lists"),
    ("md.search.policy",),
    ("md.search.base",),
    ("md.search.sorted_copy",),
    ("md.search.grid", "md.search.bvh", "md.search.lists"),
    ("md.search", "md.io", "md.scenes"),
    ("md.boundaries", "md.reorder"),
    ("md.integrate",),
    ("md.simulation",),
    ("md.observe", "md.preparation"),
    ("=md",),
    ("experiments.processes", "experiments.results"),
    ("experiments.drawing",),
    ("experiments.core",),
    ("experiments.measurement", "experiments.prediction", "experiments.peers", "experiments.files"),
    ("experiments.loads",),  # of kernels, some of which are in measurement
    ("experiments.results.kept",),
    ("experiments.forecasts",),
    ("experiments.advice.sets",),
    ("experiments.advice",),
    ("experiments.results.claims",),
    ("experiments.*",),  # each command is a room of its own
    ("experiments.results.page",),
]
REGISTRIES = (
    "md.search", "md.laws", "md.integrate", "md.reorder", "md.boundaries", "md.cavity.strategies",
    "sfc.curves",
)  # fmt: skip
FOUNDATION_OF = {  # strategies that extend another
    "md.laws.friction": {"md.laws.spring_dashpot"},
    "md.search.grid.coherent": {"md.search.grid.scattered"},
    "md.search.grid.tensor": {"md.search.grid.coherent"},
    "md.cavity.strategies.tiled": {"md.cavity.strategies.cuda"},
    "md.cavity.strategies.spectral": {"md.cavity.strategies.reference"},
}
