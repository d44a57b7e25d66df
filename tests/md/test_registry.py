"""`register()`: a class of a user is found by its name, and a checkpoint holds it."""

from dataclasses import dataclass

import numpy as np
import pytest

import md
from md.boundaries.external_field import ExternalField
from md.integrate import INTEGRATORS, VelocityVerlet
from md.integrate import register as register_integrator
from md.integrate.verlet import VelocityVerletStepper
from md.laws import LAWS
from md.laws import register as register_law
from md.laws.pair import kernel_law
from md.reorder import TRIGGERS
from md.reorder import register as register_trigger
from md.search import SEARCHES
from md.search import register as register_search
from md.search.grid.scattered import ScatteredSearch, force  # noqa: F401 - the kernel of `OwnSearch`

GAS, DT = md.scenes.benchmark_gas(125, 0.2), md.scenes.BENCHMARK_DT


@dataclass(frozen=True)
class OwnLaw:
    """A law that computes as `SpringDashpot` does."""

    strength: float
    cutoff = 1.0

    def kernel_law(self, precision):
        return kernel_law(md.laws.SpringDashpot(self.strength, 5.0), precision)


class OwnSearch(ScatteredSearch):
    """A search of a user, whose kernel stands here."""


@dataclass(frozen=True)
class OwnSearchConfig(md.search.Scattered):
    """The choice of a user's search."""

    name = "own_search"
    cell_order: str = "zigzag"

    def build(self, system):
        return OwnSearch(self, system)


@dataclass(frozen=True)
class OwnIntegrator(VelocityVerlet):
    """An integrator of a user."""

    name = "own_integrator"
    label: str = "plain"

    def build(self, system, field: ExternalField):
        return VelocityVerletStepper(self, system, field)


class OwnActiveTrigger(md.reorder.ActiveTrigger):
    """The trigger `OwnTrigger` of a system."""

    def __init__(self, steps, system):
        super().__init__(system)
        self.steps = steps

    def is_due(self, step):
        return step >= self._last + self.steps


@dataclass(frozen=True)
class OwnTrigger(md.reorder.RunTrigger):
    """A trigger of a user."""

    steps: int

    def build(self, system):
        return OwnActiveTrigger(self.steps, system)


OWN = [  # registry, its `register`, name, class
    (LAWS, register_law, "own_law", OwnLaw),
    (SEARCHES, register_search, "own_search", OwnSearchConfig),
    (INTEGRATORS, register_integrator, "own_integrator", OwnIntegrator),
    (TRIGGERS, register_trigger, "own_trigger", OwnTrigger),
]
every_registry = pytest.mark.parametrize(
    ("registry", "register", "name", "kind"), OWN, ids=[name for _, _, name, _ in OWN]
)


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """The registries are after a test what they were before."""
    for registry in (*(registry for registry, *_ in OWN), md.boundaries.BOUNDARIES):
        monkeypatch.setattr(registry, "_classes", dict(registry))


@pytest.mark.quick
def test_registered_classes_are_found_by_name_and_in_a_checkpoint(tmp_path):
    for _, register, name, kind in OWN:
        register(name, kind)
    reorder = md.Reorder("row", OwnTrigger(4))
    run = md.Simulation(
        GAS,
        OwnLaw(1e4),
        search="own_search",
        integrator="own_integrator",
        dt=DT,
        reorder=reorder,
        backend="cpu",
    )
    assert (type(run.search), run.search.name) == (OwnSearch, "own_search")
    assert "search=own_search" in repr(run)
    run.run(6)
    run.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    for name in ("law", "search", "integrator", "reorder"):
        assert getattr(loaded.config, name) == getattr(run.config, name)
    for one in (run, loaded):
        one.run(6)
    assert run.reordering.steps == [0, 4, 8]
    assert loaded.reordering.steps == [8]
    assert np.array_equal(run.state.pos, loaded.state.pos)
    assert np.array_equal(run.state.id, loaded.state.id)
    plain = md.Simulation(GAS, md.scenes.BENCHMARK_LAW, search="linked", dt=DT, backend="cpu")
    plain.run(12)
    np.testing.assert_allclose(run.state.by_id().pos, plain.state.by_id().pos, atol=1e-12)


def test_a_checkpoint_of_a_class_that_is_not_registered_here_is_refused_with_its_name(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SEARCHES, "_classes", dict(SEARCHES))
        register_search("own_search", OwnSearchConfig)
        md.Simulation(GAS, md.scenes.BENCHMARK_LAW, search="own_search", backend="cpu").save(
            tmp_path / "a.npz"
        )
    with pytest.raises(md.CheckpointError, match=r"search = .*'own_search'.*known: naive, linked"):
        md.Simulation.load(tmp_path / "a.npz")
    assert md.Simulation.load(tmp_path / "a.npz", search=OwnSearchConfig()).search.name == "own_search"


@every_registry
def test_a_registry_is_a_mapping_that_users_only_add_to(registry, register, name, kind):
    before = list(registry)
    register(name, kind)
    register(name, kind)  # again, which changes nothing
    assert list(registry) == [*before, name]
    assert registry[name] is kind
    assert name in repr(registry)
    assert len(registry) == len(before) + 1
    with pytest.raises(TypeError):
        registry[name] = kind


@every_registry
def test_a_taken_name_is_refused(registry, register, name, kind):
    taken = next(iter(registry))
    with pytest.raises(ValueError, match=rf"\w+ '{taken}' is taken; allowed: a name other than {taken}"):
        register(taken, kind)


@every_registry
@pytest.mark.parametrize("thing", [3, None, "linked", GAS], ids=["int", "None", "str", "State"])
def test_an_object_that_is_no_class_is_refused(registry, register, name, kind, thing):
    with pytest.raises(TypeError, match=rf"\w+ '{name}' = .* of class \w+; allowed: a (sub)?class"):
        register(name, thing)
    assert name not in registry


@pytest.mark.parametrize(
    ("register", "base"), [(register_search, "SearchConfig"), (register_integrator, "Integrator")]
)
def test_a_class_of_another_base_is_refused(register, base):
    with pytest.raises(TypeError, match=rf"'own' = .*; allowed: a subclass of {base}"):
        register("own", OwnLaw)


@every_registry
def test_a_name_that_is_no_identifier_is_refused(registry, register, name, kind):
    with pytest.raises(ValueError, match="name = ''; allowed: a str of at least one character"):
        register("", kind)
    for wrong in ("two words", "1st", "a-b"):
        with pytest.raises(ValueError, match=r"name of an? \w+ = .*; allowed: a Python identifier"):
            register(wrong, kind)
    for wrong in (None, 3, b"own"):
        with pytest.raises(TypeError, match=r"name = .* of class \w+; allowed: "):
            register(wrong, kind)


class Counting(md.integrate.VelocityVerlet):
    """An integrator with state of its own."""

    name = "counting"

    def build(self, system, field):
        return CountingStepper(self, system, field)


class CountingStepper(md.integrate.Stepper):
    """Velocity Verlet steps that are counted."""

    def __init__(self, integrator, system, field):
        super().__init__(integrator, system, field)
        self._inner = md.integrate.VelocityVerlet().build(system, field)
        self.count = 0

    def state_dict(self):
        return {"count": np.array(self.count)}

    def load_state(self, state):
        self.count = int(state["count"])

    def advance(self, forces, step, fault):
        self.count += 1
        self._inner.advance(forces, step, fault)

    def velocity_now(self, forces, step):
        return self._inner.velocity_now(forces, step)


@pytest.mark.quick
def test_a_registered_class_with_state_of_its_own_is_saved_and_loaded(tmp_path):
    md.integrate.register("counting", Counting)
    state = md.scenes.benchmark_gas(27, 0.2)
    options = {"integrator": "counting", "dt": md.scenes.BENCHMARK_DT, "backend": "cpu"}
    run = md.Simulation(state, md.scenes.BENCHMARK_LAW, **options)
    run.run(5)
    run.save(tmp_path / "run.npz")
    assert md.Simulation.load(tmp_path / "run.npz")._stepper.count == 5


@pytest.mark.quick
@pytest.mark.parametrize(
    ("register", "cls", "error", "message"),
    [
        (md.laws.register, int, TypeError, "class int has no pair function"),
        (md.reorder.register, int, TypeError, "allowed: a RunTrigger, or a class with `__call__"),
        (md.search.register, md.search.Naive, ValueError, "has name = 'naive'; allowed: 'mine'"),
        (md.integrate.register, md.integrate.Integrator, TypeError, "has no name; .*add name = 'mine'"),
        (md.boundaries.register, int, TypeError, "allowed: a subclass of Boundary"),
    ],
)
def test_a_class_that_cannot_work_under_the_name_is_refused(register, cls, error, message):
    with pytest.raises(error, match=message):
        register("mine", cls)
