"""What ranks say to each other; ranks in turn are threads of which one works at a time."""

import contextlib
import sys
import threading

import numpy as np
import pytest

import md
from md.domain.communicator import Communicator, in_turn
from md.domain.communicator.base import LAUNCHED
from md.simulation import reporter
from tests.md.domain.mpi_program import gas


def test_each_rank_gets_what_the_others_send():
    def work(ranks):
        others = [rank for rank in range(3) if rank != ranks.rank]
        incoming = {rank: np.empty(2) for rank in others}
        ranks.exchange({rank: np.array([ranks.rank, rank], float) for rank in others}, incoming)
        return {rank: one.tolist() for rank, one in incoming.items()}

    assert in_turn(3, work) == [{b: [b, a] for b in range(3) if b != a} for a in range(3)]


def test_values_of_all_ranks_are_reduced_in_order():
    def work(ranks):
        given = np.array([ranks.rank, -ranks.rank], float)
        return [ranks.reduce(given, how).tolist() for how in ("sum", "max", "min")], ranks.all_of(ranks.rank)

    assert in_turn(3, work) == 3 * [([[3, -3], [2, 0], [0, -2]], [0, 1, 2])]
    with pytest.raises(ValueError, match="unknown how 'mean'; allowed: one of sum, max, min"):
        in_turn(2, lambda ranks: ranks.reduce(np.ones(1), "mean"))


def test_rows_go_to_any_rank_and_empty_ones_are_not_sent():
    def work(ranks):
        rows = {rank: np.full((rank * ranks.rank, 2), ranks.rank) for rank in range(3)}
        return {rank: one.shape for rank, one in ranks.send_rows(rows).items()}

    found = in_turn(3, work)
    assert found[0] == {}
    assert found[2] == {1: (2, 2), 2: (4, 2)}


def test_one_rank_works_at_a_time():
    working, most = [], []

    def work(ranks):
        for _ in range(20):
            working.append(ranks.rank)
            most.append(len(working))
            working.remove(ranks.rank)
            ranks.all_of(None)
        return threading.current_thread() is not threading.main_thread()

    assert in_turn(4, work) == 4 * [True]
    assert max(most) == 1


def test_one_process_needs_no_mpi(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    for name in LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    ranks = Communicator.mpi()
    assert (ranks.rank, ranks.size) == (0, 1)
    assert ranks.all_of(5) == [5]
    assert ranks.reduce(np.arange(3), "sum").tolist() == [0, 1, 2]
    assert ranks.send_rows({0: np.ones((2, 3))})[0].shape == (2, 3)
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(ImportError, match=r"several ranks need mpi4py.*pip install '\.\[mpi\]'"):
        Communicator.mpi()


def test_an_error_of_one_rank_ends_all():
    def work(ranks):
        if ranks.rank == 1:
            raise KeyError("rank 1")
        ranks.all_of(None)

    with pytest.raises(KeyError, match="rank 1"):
        in_turn(3, work)


def test_an_error_that_one_rank_catches_ends_those_that_wait_for_it():
    def work(ranks):
        try:
            with ranks.together():
                if ranks.rank == 1:
                    raise MemoryError("full")
                ranks.all_of(None)
        except (MemoryError, md.RankFailedError) as error:
            first = str(error)
        with pytest.raises(md.RankFailedError):
            ranks.all_of(None)
        return first

    ends = "rank 1 has ended: MemoryError: full; to go on, ranks need another communicator"
    assert in_turn(3, work) == [ends, "full", ends]


def caught(ranks, work) -> str:
    """The error that a block has raised on this rank, and its message."""
    try:
        with ranks.together():
            work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_errors_one_after_the_other_before_ranks_meet_leave_the_communicator_as_it_is():
    def fail():
        raise ValueError("both")

    def work(ranks):
        found = [caught(ranks, fail) for _ in range(3)]
        return found, ranks.all_of(ranks.rank)

    assert in_turn(3, work) == 3 * [(3 * ["ValueError: both"], [0, 1, 2])]


def test_an_error_in_a_block_within_another_leaves_the_communicator_as_it_is():
    def work(ranks):
        def outer():
            with ranks.together():
                ranks.all_of(None)
                raise OSError("full disk")

        found = [caught(ranks, outer) for _ in range(2)]
        return found, [caught(ranks, lambda: ranks.all_of(None)) for _ in range(2)], ranks.all_of(ranks.rank)

    assert in_turn(2, work) == 2 * [(2 * ["OSError: full disk"], ["", ""], [0, 1])]


def test_ranks_with_errors_after_other_calls_do_not_go_on():
    """Rank 1 has sent more than rank 0 when both fail; rank 0 would receive it later."""

    def work(ranks):
        def fail():
            if ranks.rank == 1:
                ranks.exchange({0: np.ones(1)}, {})
            raise MemoryError(f"rank {ranks.rank}")

        first = caught(ranks, fail)
        found = np.zeros(1)
        other = 1 - ranks.rank
        return (
            first,
            caught(ranks, lambda: ranks.exchange({other: np.full(1, 2.0)}, {other: found})),
            found[0],
        )

    for rank, (first, then, found) in enumerate(in_turn(2, work)):
        assert first == f"MemoryError: rank {rank}"
        assert then.startswith("RankFailedError: rank ")
        assert "another rank was elsewhere" in then
        assert found == 0


def test_an_error_within_a_call_ends_all_for_good():
    def work(ranks):
        def torn():
            if ranks.rank == 0:
                with ranks._call():
                    raise KeyboardInterrupt
            ranks.all_of(None)

        with contextlib.suppress(KeyboardInterrupt):
            caught(ranks, torn)
        return caught(ranks, lambda: ranks.all_of(ranks.rank))

    for then in in_turn(2, work):
        assert then.startswith("RankFailedError: rank 0 has ended: KeyboardInterrupt")


def test_an_error_to_which_all_ranks_come_leaves_the_communicator_as_it_is():
    def fail(ranks, turn):
        with ranks.together():
            ranks.all_of(None)
            raise ValueError(f"turn {turn}")

    def work(ranks):
        for turn in range(3):
            with pytest.raises(ValueError, match=f"turn {turn}"):
                fail(ranks, turn)
        return ranks.all_of(ranks.rank)

    assert in_turn(3, work) == 3 * [[0, 1, 2]]


def test_ctrl_c_during_a_report_on_one_rank_ends_the_reports_of_all(monkeypatch):
    of_rank = threading.local()

    @contextlib.contextmanager
    def deferred(presses=1):
        of_rank.pressed = []
        yield of_rank.pressed
        if of_rank.pressed:
            raise KeyboardInterrupt

    monkeypatch.setattr(reporter, "defer_sigint", deferred)

    class Reporter:
        interval = 10

        def __init__(self, presses):
            self.presses, self.steps = presses, []

        def report(self, simulation):
            self.steps.append(simulation.step)
            if self.presses and simulation.step == 20:
                of_rank.pressed.append(None)

    def work(ranks):
        sim, every = gas(ranks), [Reporter(ranks.rank == 1), Reporter(False)]
        with pytest.raises(KeyboardInterrupt):
            sim.run(40, reporters=every)
        sim.run(10, reporters=every)
        return [one.steps for one in every], sim.step

    assert in_turn(2, work) == 2 * [([[0, 10, 20, 30], [0, 10, 20, 30]], 30)]


def test_a_rank_that_was_stopped_within_a_call_outside_a_block_does_not_go_on():
    def work(ranks):
        if ranks.rank == 0:
            with pytest.raises(KeyboardInterrupt), ranks._call():
                raise KeyboardInterrupt
        return caught(ranks, lambda: ranks.all_of(ranks.rank))

    for then in in_turn(2, work):
        assert then.startswith("RankFailedError: rank 0 was stopped within a call")


def test_a_rank_waits_for_others_though_one_has_left_after_its_part():
    """Rank 0 has done its part of all calls when it leaves; rank 1 still waits for rank 2."""

    def work(ranks):
        def same():
            peers = {0: (1,), 1: (0, 2), 2: (1,)}[ranks.rank]
            found = {peer: np.empty(1) for peer in peers}
            ranks.exchange({peer: np.full(1, ranks.rank) for peer in peers}, found)
            raise ValueError("same on all")

        return caught(ranks, same), ranks.all_of(ranks.rank)

    assert in_turn(3, work) == 3 * [("ValueError: same on all", [0, 1, 2])]


def test_an_error_of_a_file_that_cannot_be_sent_is_said_on_all_ranks(monkeypatch, tmp_path):
    class OwnError(Exception):  # of no module, so that it does not pickle
        pass

    def refuse(*_):
        raise OwnError("no room on the disk")

    monkeypatch.setattr("md.simulation.simulation.append_frame", refuse)

    def work(ranks):
        with pytest.raises(RuntimeError, match="OwnError: no room on the disk"):
            gas(ranks).write(tmp_path / "run.gsd")

    in_turn(2, work)
