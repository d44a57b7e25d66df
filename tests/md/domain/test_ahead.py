"""Ranks on devices, which take the steps between two migrations without the host: on an emulated device."""

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.communicator.in_turn import InTurn
from md.domain.on_device import ahead, layout
from md.domain.on_device.peers import Peers
from md.domain.on_device.rank_arrays import LOST, RankArrays
from md.errors import HaloOutrun
from md.search.lists.list_search import ListSearch
from md.simulation.step_loop import StepLoop
from tests import tiers
from tests.md.domain.test_divided import course, farthest, gas, simulation
from tests.md.search.lists.device_of_lists import DeviceOfLists, PackedDevice

N = 2500
TRANSPORTS = "peer", "host"
DEVICES = ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)]
WAYS = [
    ("emulated", "peer", 2, None),
    ("unpacked", "host", 4, "hilbert"),
    *(tiers.full(where, transport, size, order) for where, transport, size, order in (
        ("emulated", "host", 2, None), ("emulated", "peer", 4, "hilbert"), ("unpacked", "peer", 2, None),
    )),
    *(pytest.param("cuda", transport, size, order, marks=pytest.mark.gpu)
      for transport in TRANSPORTS for size, order in ((2, None), (4, "hilbert"))),
]  # fmt: skip


def device(where: str) -> md.backend.Backend:
    if where == "cuda":
        return md.backend.Cuda(fmad=False)
    return PackedDevice() if where == "emulated" else DeviceOfLists()


def falling(n=N) -> md.State:
    state = gas(n)
    lengths = np.array(state.box.lengths)
    box = md.Box(state.box.lengths, (True, True, False))
    return md.State(np.clip(state.pos, 0.5, lengths - 0.5), 0.01 * state.vel, box)


FALL = {
    "gravity": (0, 0, -300.0),
    "walls": md.Walls(restitution=0.5, contact_time=0.02),
    "allow_overlap": True,
}


class Apart(PackedDevice):
    """A device of a process of its own, by what the others open its memory."""

    def handle_of(self, array):
        return self.address_of(array).to_bytes(8, "little"), 0

    def open_handle(self, handle):
        return int.from_bytes(handle, "little")


def waits_as_a_launch(peers):
    """Wait for the other ranks by the host, as one of the launches, which are made again."""
    peers._backend.launch(lambda: peers._communicator.gather(np.zeros(1, np.int64)))


def check(state, size, steps=200, tolerance=1e-9, where="emulated", division=None, every=40, **options):
    """Compare a divided run on devices with that of one rank on the CPU; return the domains of the ranks."""
    right = course(simulation(state, **options), steps, every)
    found = []

    def work(ranks):
        sim = simulation(state, ranks, backend=device(where), division=division, **options)
        found.append(sim.system.domain)
        return course(sim, steps, every)

    for one in in_turn(size, work):
        assert np.array_equal(one[1], right[1])
        for pairs, expected in zip(one[0], right[0], strict=True):
            assert np.array_equal(pairs, expected)
        assert farthest(state, one, right) < tolerance
        np.testing.assert_allclose(one[3], right[3], atol=tolerance)
    return found


@pytest.mark.parametrize(("where", "transport", "size", "order"), WAYS)
def test_a_gas_on_devices_has_the_contacts_and_positions_of_one_rank(where, transport, size, order):
    division = md.Division(order, transport=transport)
    domains = check(gas(N), size, where=where, division=division, every=200)
    assert all(domain.migrations > 2 for domain in domains)
    assert all((domain.launched > 2) == (transport == "peer") for domain in domains)


@pytest.mark.parametrize("falls", [False, tiers.full(True)])
def test_steps_of_processes_are_prepared_once_a_period(falls, monkeypatch):
    """Also where the box is cut again, so that peers are others."""
    monkeypatch.setattr(InTurn, "is_one_process", False)
    monkeypatch.setattr(Peers, "synchronise", waits_as_a_launch)
    monkeypatch.setattr(Peers, "waits_in_steps", False)
    monkeypatch.setattr(PackedDevice, "bus", property(id))  # each a device of its own
    state, options = (falling(), FALL) if falls else (gas(N), {})
    right = course(simulation(state, **options), 400, 200)

    def work(ranks):
        sim = simulation(state, ranks, backend=Apart(), **options)
        assert sim.system.domain.is_prepared
        found = course(sim, 400, 200)
        assert sim.system.domain.launched > 2
        assert falls or sim.backend.noted < 100
        assert len(sim._loop.captured)
        return found

    for one in in_turn(3 if falls else 2, work):
        assert all(np.array_equal(*pairs) for pairs in zip(one[0], right[0], strict=True))
        assert farthest(state, one, right) < 1e-9


class Channelled(PackedDevice):
    """A device of a process of its own, between which ranks send by a channel."""

    has_nccl = True

    def __init__(self, ranks):
        super().__init__()
        self._ranks, self.exchanges, self.channels = ranks, 0, 0

    def channel(self, size, rank, of_first):
        assert (size, rank) == (self._ranks.size, self._ranks.rank)
        self.channels += 1
        return of_first("channel" if rank == 0 else None)

    def exchange(self, channel, outgoing, incoming):
        assert channel == "channel"
        self.exchanges += 1
        self.launch(lambda: self._ranks.exchange(outgoing, incoming))


@pytest.mark.parametrize("size", [2, tiers.full(4)])
def test_ghosts_that_nccl_sends_are_launches(size, monkeypatch):
    monkeypatch.setattr(InTurn, "is_one_process", False)
    monkeypatch.setattr(PackedDevice, "bus", property(id))
    right = course(simulation(gas(N)), 200, 100)

    def work(ranks):
        backend = Channelled(ranks)
        sim = simulation(gas(N), ranks, backend=backend, division=md.Division(transport="nccl"))
        found = course(sim, 200, 100)
        assert sim.system.domain.migrations > 2
        assert 0 < backend.exchanges < 100  # the others were made again
        assert backend.channels == 1
        simulation(gas(N), ranks, backend=backend, division=md.Division(transport="nccl"))
        assert backend.channels == 1  # a second one would free the first, on one rank before the others
        return found

    for one in in_turn(size, work):
        assert all(np.array_equal(*pairs) for pairs in zip(one[0], right[0], strict=True))
        assert farthest(gas(N), one, right) < 1e-9


def test_devices_of_two_hosts_use_nccl_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(InTurn, "is_one_process", False)
    monkeypatch.setattr(PackedDevice, "bus", property(id))
    hosts = iter(["first", "second"] * 4)
    monkeypatch.setattr(ahead.socket, "gethostname", lambda: next(hosts))

    def used(ranks, **more):
        backend = Channelled(ranks)
        sim = simulation(gas(N), ranks, backend=backend, **more)
        return sim.system.domain.is_prepared

    assert in_turn(2, used) == [True, True]
    monkeypatch.setattr(Channelled, "has_nccl", False)
    assert in_turn(2, used) == [False, False]
    with pytest.raises(ValueError, match="transport 'peer' of Division on the hosts first, second"):
        in_turn(2, lambda ranks: used(ranks, division=md.Division(transport="peer")))


@pytest.mark.parametrize("where", DEVICES)
def test_particles_of_unequal_radii_keep_them(where):
    state = gas(N)
    radius = np.where(np.arange(N) % 3, 0.5, 0.35)
    state = md.State(state.pos, state.vel, state.box, state.id, radius)
    assert check(state, 3, where=where, every=200)[0].launched > 1


@pytest.mark.full
def test_reads_at_any_step_change_nothing():
    """Also at the end of a period, after which particles migrate."""
    check(gas(N), 2, steps=120, every=1)


@pytest.mark.parametrize("where", DEVICES)
def test_particles_that_all_drift_go_from_rank_to_rank(where):
    assert check(gas(N, drift=(3.0, 2.0, 1.0)), 3, where=where, every=200)[0].launched > 1


@pytest.fixture
def returns(monkeypatch) -> list[int]:
    """Ranks that have returned to their copies."""
    found, before = [], ahead.DomainAhead.return_to_copy

    def noted(domain, *given, **named):
        found.append(domain.communicator.rank)
        return before(domain, *given, **named)

    monkeypatch.setattr(ahead.DomainAhead, "return_to_copy", noted)
    return found


@pytest.mark.parametrize("every", [40, 200])
@pytest.mark.parametrize("where", DEVICES)
def test_ranks_return_to_their_copies_together_where_one_is_faster_than_planned(
    where, every, returns, monkeypatch
):
    """Of 40 steps ranks look at all at once; of 200, at those of a period after those of the next one."""
    restored, before = [], RankArrays.restore
    monkeypatch.setattr(ahead, "PERIODS", 1)
    monkeypatch.setattr(RankArrays, "restore", lambda p, *given: restored.append(1) or before(p, *given))
    check(falling(), 3, where=where, every=every, **FALL)
    assert returns
    assert all(returns.count(rank) == returns.count(0) for rank in range(3))
    assert restored  # in the same rows


def test_a_run_that_is_interrupted_between_a_step_and_the_look_at_it_goes_on(returns, monkeypatch):
    """Also if these steps have to be taken again."""
    right = course(simulation(falling(), **FALL), 200, 200)
    looks, before = [0] * 3, StepLoop.is_ended

    def pressed(loop, keys):
        rank = loop._system.domain.communicator.rank
        looks[rank] += 1
        if looks[rank] % 2 == 0:
            raise KeyboardInterrupt
        return before(loop, keys)

    monkeypatch.setattr(StepLoop, "is_ended", pressed)

    def work(ranks):
        sim = simulation(falling(), ranks, backend=PackedDevice(), **FALL)
        while sim.step < 200:
            try:
                sim.run(200 - sim.step, phases=False)
            except KeyboardInterrupt:
                continue
        return course(sim, 0)

    for one in in_turn(3, work):
        assert np.array_equal(one[0][-1], right[0][-1])
        assert farthest(falling(), one, right) < 1e-9
    assert returns


@pytest.mark.parametrize("is_seen", [True, False])
def test_ranks_return_where_particles_that_come_have_too_little_room(is_seen, returns, monkeypatch):
    """Those that all drift come to a rank faster than others leave it; unseen, some would be lost."""
    monkeypatch.setattr(layout, "LEAST", 1)
    monkeypatch.setattr(layout, "GHOSTS_MORE", 1)
    monkeypatch.setattr(ahead, "MORE", 0.001 if is_seen else 1e-9)
    state = gas(N, drift=(3.0, 2.0, 1.0))
    if is_seen:
        check(state, 3, every=200)
        assert sorted(returns) == sorted([*range(3)] * returns.count(0)) != []
        return
    monkeypatch.setattr(ahead.DomainAhead, "had_room", lambda domain, look, step: True)
    with pytest.raises((AssertionError, md.SimulationFault)):
        check(state, 3, every=200)


def of_unequal_layers(shape, box, weights, ranks):
    layer = np.arange(len(weights)) // (shape[0] * shape[1])
    return np.minimum((layer > shape[2] // 4).astype(int), ranks - 1)


@pytest.mark.full
def test_ranks_that_no_cut_makes_even_return_to_a_state_that_was_looked_at(returns):
    division = md.Division(owners=of_unequal_layers)
    domains = check(falling(), 2, steps=400, every=400, tolerance=1e-7, division=division, **FALL)
    assert returns.count(0) == returns.count(1) > 1
    assert domains[0].launched > 0


@pytest.mark.full
def test_a_front_that_comes_to_an_empty_border_ends_no_run(returns):
    """More ghosts than any share of those of the copy."""
    division = md.Division("row")
    domains = check(
        gas(16000, drift=(0, 0, 40.0)), 3, steps=200, every=200, division=division, tolerance=1e-6
    )
    assert 0 < returns.count(0) < 6
    assert domains[0].launched > 0


@pytest.mark.parametrize("every", [50, tiers.full(10)])
def test_short_runs_return_no_farther_than_to_their_begin(every):
    def work(ranks):
        sim = simulation(gas(N), ranks, backend=PackedDevice())
        for _ in range(200 // every):
            begin = sim.step
            sim.run(every, phases=False)
            assert sim.system.domain.copy.step >= begin
        return sim.system.domain.launched

    assert min(in_turn(2, work)) > 0


@pytest.mark.full
def test_a_list_without_room_on_one_rank_is_made_again_by_all(returns, monkeypatch):
    """The pool of one rank is taken away after the first build, so that a later list has no room."""
    right = course(simulation(gas(N)), 200, 40)
    before = ListSearch._list_partners

    def cut(search):
        is_first = search.policy.builds == 1 and search.system.domain.communicator.rank == 1
        room, search._room = search._room, 0 if is_first else search._room
        before(search)
        if is_first:
            assert int(search._needed[0]) > 0  # of a pool
        search._room = room

    monkeypatch.setattr(ListSearch, "_list_partners", cut)
    monkeypatch.setattr(ListSearch, "_usual_rows", lambda search, reach: 1)

    def work(ranks):
        return course(simulation(gas(N), ranks, backend=PackedDevice()), 200, 40)

    for one in in_turn(2, work):
        assert farthest(gas(N), one, right) < 1e-9
    assert sorted(set(returns)) == [0, 1]


def test_a_look_at_the_pairs_before_the_first_step_begins_the_first_lists():
    """Two particles at the ends of the ghosts, which meet in the middle while these lists are used."""
    base = [[2, 2, 2], [6, 2, 7], [2, 6, 14], [2, 9, 20], [9, 2, 22], [12, 3, 9]]
    options = {"search": md.search.Verlet(skin=0.79, inner_skin=0.79)}
    division = md.Division("row", travel=0.4)

    def made(pos, ranks=None, **more):
        vel = np.zeros((8, 3))
        vel[6:, 2] = 20, -20
        return simulation(md.State(np.array(pos, float), vel, md.Box((24.0,) * 3)), ranks, **options, **more)

    def partition(ranks):
        sim = made([*base, [15, 15, 5], [15, 15, 19]], ranks, backend=PackedDevice(), division=division)
        return sim.system.domain.partition

    found = in_turn(2, partition)[0]
    layers = found.owner.reshape(found.grid.shape[::-1])[:, 0, 0]
    width = 24 / found.grid.shape[2]
    edge = int(np.argmax(layers != layers[0])) * width
    pos = [*base, [15, 15, edge - 0.02], [15, 15, edge + width + 0.02]]

    def after(sim):
        sim.pairs()
        sim.run(60, phases=False)
        state = sim.state
        return state.vel[np.argsort(state.id)]

    right = after(made(pos))
    assert abs(right[6, 2]) < 19  # they have met
    for one in in_turn(2, lambda ranks: after(made(pos, ranks, backend=PackedDevice(), division=division))):
        np.testing.assert_allclose(one, right, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("has_radii", [False, True])
def test_ranks_without_particles_keep_time_and_speeds(has_radii):
    """Few particles fall between shaken walls, and go from rank to rank."""
    pos = np.array([[3, 3, 0.6], [5, 5, 2.0], [8, 8, 1.3], [12, 12, 0.9]])
    radius = np.array([0.5, 0.4, 0.5, 0.4]) if has_radii else None
    box = md.Box((30.0,) * 3, (True, True, False))
    state = md.State(pos, np.tile([25.0, 20.0, -3.0], (4, 1)), box, None, radius)
    walls = md.ShakenWalls(amplitude=0.3, frequency=8.0)
    options = {"walls": walls, "gravity": (0, 0, -300.0), "allow_overlap": True}
    check(state, 6, steps=1000, every=200, tolerance=1e-7, **options)


def test_a_speed_that_is_not_finite_ends_all_ranks_soon(returns):
    state = gas(500, speed=1e-3)
    state.vel[123] = np.nan

    def work(ranks):
        with pytest.raises(md.NonFiniteState, match="particle 123"):
            simulation(state, ranks, backend=PackedDevice()).run(400, phases=False)

    in_turn(3, work)
    assert returns.count(0) < 8


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("fault", tiers.first(["stale", "thin", "unmarked"]))
def test_a_planted_fault_is_caught(fault, where, monkeypatch):
    division = None
    if fault == "stale":  # ghosts of a step before: they go to the arrays that are read now
        before = Peers.rows_for

        def other(peers, pos):
            right = before(peers, pos)
            return peers._targets[1 - [one is right for one in peers._targets].index(True)]

        monkeypatch.setattr(Peers, "rows_for", other)
    elif fault == "thin":  # ghosts end closer than particles travel
        division = md.Division(travel=0.05)
        monkeypatch.setattr(ahead.DomainAhead, "is_over", lambda domain, policy: False)
    else:
        monkeypatch.setattr(Peers, "store_marks", lambda peers: peers.synchronise() or peers._marks.fill(0))
    with pytest.raises((AssertionError, md.SimulationFault, HaloOutrun)):
        check(gas(N), 2, steps=400, where=where, division=division, every=400)


def test_a_run_on_devices_goes_on_from_its_file(tmp_path):
    state = gas(N)

    def work(ranks):
        sim = simulation(state, ranks, backend=PackedDevice())
        sim.run(90, phases=False)
        sim.save(tmp_path / "run.npz")
        sim.run(60, phases=False)
        return sim.state

    def again(ranks):
        sim = md.Simulation.load(tmp_path / "run.npz", backend=PackedDevice(), communicator=ranks)
        sim.run(60, phases=False)
        return sim.state

    first, second = in_turn(2, work)[0], in_turn(2, again)[0]
    one, other = np.argsort(first.id), np.argsort(second.id)
    np.testing.assert_array_equal(first.pos[one], second.pos[other])


def test_a_device_that_has_waited_in_vain_is_not_forgotten(monkeypatch):
    """Also if it waited for particles that the hosts let migrate, while rows are compact."""
    before = Peers.exchange

    def work(ranks):
        sim = simulation(gas(800), ranks, backend=PackedDevice())
        sim.run(40, phases=False)
        words = sim.system.particles.words

        def lost(peers, *given):
            words[LOST] = 1  # as `wait_for_flag` does
            return before(peers, *given)

        with monkeypatch.context() as patched:
            patched.setattr(Peers, "exchange", lost)
            sim.pairs()
        with pytest.raises(md.RankFailedError, match="a device waited 20 s for ghosts of another rank"):
            sim.run(100, phases=False)

    in_turn(2, work)


def test_what_a_device_cannot_divide_is_refused_by_name():
    def refused(match, **options):
        def work(ranks):
            with pytest.raises(ValueError, match=match):
                simulation(gas(N), ranks, backend=PackedDevice(), **options)

        in_turn(2, work)

    refused("not fused; allowed: fused=True", fused=False)
    refused("search 'linked'; allowed: 'verlet'", search="linked")
    refused('weights = "time" of Division on a device', division=md.Division(weights="time"))


def test_a_travel_shorter_than_lists_allow_is_an_error():
    search, division = md.search.Verlet(skin=0.8), md.Division(travel=0.2)

    def work(ranks):
        with pytest.raises(ValueError, match=r"ghosts allow 0\.\d+ d, lists 0\.4 d between two builds"):
            simulation(gas(N), ranks, backend=PackedDevice(), search=search, division=division)

    in_turn(2, work)


@pytest.mark.parametrize("wrong", ["mail", 3])
def test_an_unknown_transport_is_an_error(wrong):
    with pytest.raises((ValueError, TypeError), match="transport of Division"):
        md.Division(transport=wrong)
