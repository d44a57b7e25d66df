"""What limits a kernel: floors by hand, and the rule."""

import math

import pytest

from experiments.results import limits


def test_floors_by_hand():
    assert limits.memory_us(3e9, 3000) == pytest.approx(1000)  # 3 GB at 3 TB/s
    # 528 million instructions on 132 multiprocessors: a million cycles, half of those of a kernel of 80 us
    assert limits.issue_us(528e6, 2e6, 80.0, 132) == pytest.approx(40)
    for call in (lambda: limits.memory_us(1, 0), lambda: limits.issue_us(1, 0, 1, 1),
                 lambda: limits.issue_us(1, 1, 1, 0)):  # fmt: skip
        with pytest.raises(ValueError, match="= 0"):
            call()


@pytest.mark.parametrize(
    ("dram_us", "issue_us", "name"),
    [
        (70, 0, "memory"),
        (69, 0, "latency"),
        (0, 70, "issue"),
        (69, 69, "latency"),  # neither alone
        (80, 90, "issue"),
        (90, 80, "memory"),
        (20, 75, "issue"),
    ],
)
def test_what_takes_most_of_the_time_limits_a_kernel_and_else_latency(dram_us, issue_us, name):
    assert limits.limit(100.0, dram_us, issue_us) == name


@pytest.mark.parametrize("unknown", range(3))
def test_nothing_limits_what_was_not_counted(unknown):
    times = [1.0, 1.0, 1.0]
    times[unknown] = math.nan
    assert limits.limit(*times) is None


def test_the_longest_waits_come_first_as_shares_of_a_warps_time():
    row = {"time_us": 99.0, "stall_wait": 2.0, "stall_long_scoreboard": 6.0, "stall_selected": 1.0}
    row |= {"stall_drain": math.nan, "stall_misc": 0.0, "stall_barrier": 1.0}
    assert limits.top_stalls(row) == {
        "reason_1": "long_scoreboard", "reason_1_share": 0.6, "reason_2": "wait", "reason_2_share": 0.2,
        "reason_3": "barrier", "reason_3_share": 0.1,
    }  # fmt: skip
    few = limits.top_stalls({"stall_wait": 3.0})
    assert (few["reason_1"], few["reason_2"], few["reason_2_share"]) == ("wait", None, None)
