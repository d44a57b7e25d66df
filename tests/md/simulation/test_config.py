"""Choices as plain data and made again: all of the registries, and objects of a user by name."""

import json

import numpy as np
import pytest

import md
import sfc
from md.boundaries import WALLS
from md.integrate import INTEGRATORS
from md.laws import LAWS
from md.laws.pair import kernel_law
from md.reorder import TRIGGERS
from md.search.grid.scattered import ScatteredSearch, force  # noqa: F401 - the kernel of `OwnSearch`
from md.simulation import config as choices

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT


def simulated(**options) -> md.Simulation:
    options = {"search": "scattered", "backend": "cpu", "dt": DT} | options
    return md.Simulation(md.scenes.benchmark_gas(125, 0.2), options.pop("law", LAW), **options)


class Soft:
    """A law of a user that computes as `SpringDashpot` does."""

    cutoff = 1.0

    def kernel_law(self, precision):
        return kernel_law(LAW, precision)


class OwnSearch(ScatteredSearch):
    """A search of a user, whose kernel stands here."""


class Own(md.search.Scattered):
    """The choice of a user's search."""

    name = "own"

    def build(self, system):
        return OwnSearch(self, system)


class OftenTrigger(md.reorder.ActiveTrigger):
    """The trigger `Often` of a system."""

    def is_due(self, step):
        return step >= self._last + 4


class Often(md.reorder.RunTrigger):
    """A trigger of a user that reads the run."""

    def build(self, system):
        return OftenTrigger(system)


def test_every_class_of_the_registries_becomes_plain_data_and_is_made_again():
    rubs = {"frictional_spring_dashpot": {"friction": 0.3, "tangential_damping": 2.0}}
    things = [("law", kind(1e3, 0.5, **rubs.get(name, {}))) for name, kind in LAWS.items()]
    shakes = {"shaken_walls": {"amplitude": 1.5, "frequency": 50.0, "wall_damping": "absolute"}}
    things += [("walls", kind(restitution=0.9, **shakes.get(name, {}))) for name, kind in WALLS.items()]
    things += [("search", kind()) for kind in md.search.SEARCHES.values()]
    things += [("integrator", kind()) for kind in INTEGRATORS.values()]
    needed = {"every": (7,), "moved": (0.25, 3)}
    things += [("schedule", kind(*needed.get(name, ()))) for name, kind in TRIGGERS.items()]
    for slot, thing in things:
        plain = json.loads(json.dumps(choices.to_plain(slot, thing)))
        again = choices.from_plain(slot, plain)
        assert type(again) is type(thing)
        assert choices.to_plain(slot, again) == plain
        assert "name" in plain


def test_parameters_are_kept_exactly():
    own = sfc.parse_curve(
        'name = "own"\ndim = 2\naxiom = "A"\n[rules]\nA = ">BF<AFA<FB>"\nB = "<AF>BFB>FA<"\n'
    )
    for slot, thing in (
        ("law", md.laws.SpringDashpot(np.float32(0.1), 1 / 3, np.float64(1.1))),
        ("search", md.search.Verlet(own, skin=0.1)),
        ("search", md.search.Tiles("zigzag", width=np.int64(3))),
        ("reorder", md.Reorder(own, md.Decayed(loss=0.25), mode="shadow", via="host")),
    ):
        again = choices.from_plain(slot, json.loads(json.dumps(choices.to_plain(slot, thing))))
        for name, value in vars(thing).items():
            kept = getattr(again, name)
            if isinstance(value, sfc.Curve):
                cells = own.traversal(4)
                assert np.array_equal(kept.encode(cells, 4), np.arange(256))
            elif name != "schedule":
                assert (kept, type(kept)) == (value, type(value))
        assert repr(getattr(again, "schedule", None)) == repr(getattr(thing, "schedule", None))


def test_a_curve_of_ones_own_goes_with_the_file(tmp_path):
    own = sfc.Curve("own", 3, 2, [[0, 1, 3, 2, 7, 6, 4, 5]], [[0] * 8])
    simulation = simulated(search=md.search.Coherent(own))
    simulation.run(3)
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    for run in (simulation, loaded):
        run.run(3)
    assert np.array_equal(simulation.state.id, loaded.state.id)
    assert np.array_equal(simulation.state.pos, loaded.state.pos)


@pytest.mark.parametrize(
    ("slot", "choice", "named"),
    [
        ("law", Soft(), "test_config.Soft"),
        ("search", Own(), "test_config.Own"),
        ("reorder", md.Reorder("row", Often()), "test_config.Often"),
        ("reorder", md.Reorder("row", lambda step: step % 3 == 0), "<lambda>"),
    ],
)
def test_an_object_that_is_in_no_registry_is_named_and_taken_from_the_caller(slot, choice, named, tmp_path):
    path = tmp_path / "run.npz"
    simulation = simulated(**{slot: choice})
    simulation.run(3)
    simulation.save(path)
    with pytest.raises(md.CheckpointError) as caught:
        md.Simulation.load(path)
    for words in ("run.npz", named, f"in no registry of md; give another: load(..., {slot}=...)"):
        assert words in str(caught.value)
    loaded = md.Simulation.load(path, **{slot: choice})
    for run in (simulation, loaded):
        run.run(6)
    assert loaded.step == 9
    assert np.array_equal(simulation.system.particles.pos, loaded.system.particles.pos)
    assert np.array_equal(simulation.system.particles.id, loaded.system.particles.id)


class Timed(Soft):
    """A law of a user with its contact time as a number of numpy."""

    contact_time = np.float32(0.02)


def test_a_step_of_a_contact_time_of_numpys_is_kept_as_pythons(tmp_path):
    simulation = simulated(law=Timed(), dt=None)
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz", law=Timed())
    assert (type(simulation.dt), type(loaded.dt)) == (float, float)
    assert simulation.dt == loaded.dt


def test_a_schedule_of_ones_own_remembers_its_last_reorder(tmp_path):
    simulation = simulated(reorder=md.Reorder("row", Often()))
    simulation.run(6)
    simulation.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz", reorder=md.Reorder("row", Often()))
    loaded.run(6)
    assert loaded.timings.steps["reorder"] == [8]


def test_another_choice_takes_the_place_of_the_file(tmp_path):
    path = tmp_path / "run.npz"
    simulated(reorder=md.Reorder("hilbert", md.Every(3), mode="threads")).save(path)
    loaded = md.Simulation.load(
        path, reorder=None, search="linked", fused=True, backend=md.backend.Cpu("soa")
    )
    loaded.run(4)
    assert (loaded.reordering, loaded.search.name, loaded.backend.layout) == (None, "linked", "soa")
    another = md.Simulation.load(path, reorder=md.Reorder("row", md.Every(100), mode="shadow"))
    another.run(4)
    np.testing.assert_allclose(loaded.state.by_id().pos, another.state.by_id().pos, atol=1e-12)


WRONG = {
    "law": (5, None, "x", md.laws.SpringDashpot),
    "search": (5, None, md.search.Linked),
    "integrator": (5, None, object()),
    "walls": (5, "x", md.Walls),
    "gravity": (5, "down", (1, 2, "x")),
    "reorder": (5, "hilbert", md.Reorder),
    "fused": (1, None, "no"),
    "allow_overlap": (1, "no"),
    "backend": (5, b"cpu"),
    "post_mortem": (5, b"x"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_choice_of_a_wrong_class_is_a_type_error_and_not_blamed_on_the_file(name, tmp_path):
    simulated().save(tmp_path / "run.npz")
    for wrong in WRONG[name]:
        with pytest.raises(TypeError, match=rf"^{name}(\[2\])? = .* of .*; allowed: "):
            md.Simulation.load(tmp_path / "run.npz", **{name: wrong})
    if name in ("search", "backend"):
        with pytest.raises(ValueError, match=rf"^unknown {name} 'octree'; allowed: one of ") as caught:
            md.Simulation.load(tmp_path / "run.npz", **{name: "octree"})
        assert not isinstance(caught.value, md.CheckpointError)


@pytest.mark.parametrize(("name", "value"), [("dt", 1e-3), ("precision", "float32"), ("serach", "linked")])
def test_a_choice_that_cannot_be_another_is_refused(tmp_path, name, value):
    path = tmp_path / "run.npz"
    simulated().save(path)
    with pytest.raises(
        ValueError, match=rf"{name} = .* in place of that of .*run\.npz; allowed: law, search"
    ):
        md.Simulation.load(path, **{name: value})
