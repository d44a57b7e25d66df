"""Running ahead of a device: what the guard adds up, when it halts, and how the host plans by it."""

import numpy as np
import pytest

import md
from md.search import verlet


@pytest.fixture
def device():
    try:
        return md.backend.get("cuda")
    except md.backend.BackendUnavailableError as reason:
        pytest.skip(str(reason))


class Told:
    """The guard's arrays, and one step of the device after another by the kernel itself."""

    def __init__(self, reach=0.15, room=100, needed=50):
        self.fastest, self.gone = np.zeros(1, np.float32), np.zeros(2, np.float32)
        self.needed, self.room, self.reach = np.array([needed]), room, np.float32(reach)
        self.halt, self.missed = np.zeros(1, np.int32), np.zeros(1, np.int32)

    def step(self, speed: float, fresh: bool = False) -> bool:
        """Whether a step is halted; it would raise the speed."""
        verlet.tally(
            1, int(fresh), self.fastest, self.gone, self.needed, self.room, np.float32(0.01), self.reach,
            self.halt, self.missed,
        )  # fmt: skip
        self.fastest[0] = max(self.fastest[0], speed**2)
        return bool(self.halt[0])


def test_steps_are_halted_once_the_fastest_can_have_gone_too_far_and_stay_so():
    told = Told(reach=0.15)
    assert [told.step(4.0, fresh=k == 0) for k in range(6)] == [False, False, False, False, True, True]
    assert told.gone[0] >= 0.15
    assert told.missed[0] == 2
    assert told.gone[1] == pytest.approx(0.04)


def test_lists_made_anew_start_from_nothing_gone():
    told = Told()
    for k in range(12):
        assert not told.step(4.0, fresh=k % 3 == 0)
    assert told.missed[0] == 0


def test_a_gas_faster_than_the_skin_allows_can_still_take_one_step_of_fresh_lists():
    told = Told()
    assert not any(told.step(1000.0, fresh=True) for _ in range(5))
    assert told.step(1000.0)


def test_lists_without_room_halt():
    told = Told(room=100, needed=101)
    assert told.step(0.0, fresh=True)


def test_a_speed_that_is_no_number_halts():
    told = Told()
    told.step(np.nan, fresh=True)
    told.fastest[0] = np.nan
    assert told.step(1.0)


def test_the_cpu_needs_no_guard():
    simulation = md.Simulation(
        md.scenes.shared_gas(125, 0.2),
        md.scenes.SHARED_LAW,
        search="verlet",
        dt=1e-3,
        backend="cpu",
        fused=True,
    )
    assert [len(array) for array in simulation._search.guard] == [0, 0]
    assert simulation._search.missed() == 0


@pytest.mark.gpu
@pytest.mark.parametrize("skin", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_fused_run_ahead_is_the_run_that_asks_at_every_step(device, skin, precision):
    ends = []
    for fused in (False, True):
        simulation = md.Simulation(
            md.scenes.shared_gas(1000, 0.3),
            md.scenes.SHARED_LAW,
            search=md.search.Verlet(skin=skin),
            dt=md.scenes.SHARED_DT,
            backend=device,
            precision=precision,
            fused=fused,
        )
        simulation.run(230)
        assert simulation.step == 230
        ends.append(simulation.state.by_id())
    tolerance = 1e-3 if precision == "float32" else 1e-9
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=tolerance)


@pytest.mark.gpu
def test_a_plan_that_was_too_bold_halts_and_loses_no_step(device):
    simulation = md.Simulation(
        md.scenes.shared_gas(1000, 0.3),
        md.scenes.SHARED_LAW,
        search=md.search.Verlet(skin=0.05),
        dt=md.scenes.SHARED_DT,
        backend=device,
        fused=True,
    )
    plain = md.Simulation(
        md.scenes.shared_gas(1000, 0.3), md.scenes.SHARED_LAW, dt=md.scenes.SHARED_DT, backend="cpu"
    )
    simulation.run(1)
    simulation._search._window = 1000
    simulation.run(119)
    assert simulation._search._window < 1000
    plain.run(120)
    assert simulation.step == 120
    np.testing.assert_allclose(simulation.state.by_id().pos, plain.state.by_id().pos, atol=1e-6)
