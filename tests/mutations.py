"""Ten ways to break the code, and the quick test that must fail by an assertion; see test_mutations.py."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One edit of a source file.

    Attributes:
        name: what is broken.
        file: path from the root.
        old: text that stands in the file exactly once.
        new: what takes its place.
        test: id of a test of the tier `quick`.
    """

    name: str
    file: str
    old: str
    new: str
    test: str


MUTATIONS = [
    Mutation(
        "the damping's sign",
        "md/laws/spring_dashpot.py",
        "- p.damping * approach / r2",
        "+ p.damping * approach / r2",
        "tests/md/integrate/test_physics.py::TestRestitution::test_is_met_to_1e_3_at_500_steps_a_contact",
    ),
    Mutation(
        "one of the 27 cells around a particle is left out",
        "md/search/grid/linked.py",
        "                if x < 0:\n",
        "                if x < 0 or (x < home[0] and row == neighbour_rows(g, home)[0]):\n",
        "tests/md/search/test_contract.py::TestEverySearchInItsDimsAndPrecisions::test_pairs_and_forces_are_those_of_the_definition",
    ),
    Mutation(
        "neighbour lists are kept until a particle has moved by the whole skin",
        "md/search/lists/skin.py",
        "return (self.width - self.rounding) / 2",
        "return self.width - self.rounding",
        "tests/md/search/test_verlet.py::test_no_pair_is_missed_at_any_step",
    ),
    Mutation(
        "two entries of Hilbert's table are swapped",
        "sfc/curves/hilbert.py",
        "    return curve_from_grammar(name, dim, axiom, HILBERT[dim])",
        "    curve = curve_from_grammar(name, dim, axiom, HILBERT[dim])\n"
        "    rank = curve.rank.copy()\n"
        "    rank[0, :2] = rank[0, 1::-1]\n"
        "    return Curve(name, dim, 2, rank, curve.next, start=curve.start)",
        "tests/sfc/curves/test_families.py::test_a_curve_is_what_it_was_found_to_be",
    ),
    Mutation(
        "stack distances are one too large",
        "sfc/cache/lru.py",
        "histogram[distinct - not_later] += 1",
        "histogram[min(distinct - not_later + 1, distinct - 1)] += 1",
        "tests/sfc/cache/test_models.py::test_lru_equals_a_brute_force_cache_of_every_capacity",
    ),
    Mutation(
        "shaken walls are a quarter of a cycle late",
        "md/boundaries/external_field.py",
        "now[0] = -acceleration * math.cos(angle)",
        "now[0] = -acceleration * math.sin(angle)",
        "tests/md/boundaries/test_walls.py::test_what_flies_free_stays_behind_in_a_container_that_is_shaken",
    ),
    Mutation(
        "the stream's random numbers are not restored from a checkpoint",
        "md/boundaries/inflow.py",
        "        self._counts[:1] = self._backend.upload(found)\n",
        "",
        "tests/md/boundaries/test_inflow.py::test_a_run_with_an_inflow_goes_on_as_it_did",
    ),
    Mutation(
        "ids stay where they are when particles move",
        "md/particles/arrays.py",
        "new_id[i] = id[j]",
        "new_id[i] = id[i]",
        "tests/md/reorder/test_reorder.py::test_every_particle_keeps_its_place_speed_and_id",
    ),
    Mutation(
        "no fault is raised where a particle leaves the box",
        "md/integrate/fused.py",
        "            out.fault[0] = min(out.fault[0], word << np.uint64(32) | np.uint64(out.id[i]))\n",
        "",
        "tests/md/simulation/test_simulation.py::TestFaults::test_a_run_ends_soon_after_a_fault",
    ),
    Mutation(
        "particles drift with the velocity before the kick",
        "md/integrate/leapfrog.py",
        "        v = add_scaled(load(vel, i, g), kick, load(force, i, g))\n        store(vel, i, v)\n",
        "        v = load(vel, i, g)\n        store(vel, i, add_scaled(v, kick, load(force, i, g)))\n",
        "tests/md/boundaries/test_walls.py::test_free_fall_is_exact",
    ),
]
