"""Calls side by side on the threads of kernels."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numba
import pytest

from sfc.compile import first_in_parts, in_parts, in_threads
from sfc.compile.threads import MANY


@pytest.fixture(autouse=True)
def two_threads():
    """They are set to one after each test."""
    numba.set_num_threads(2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 101])
def test_parts_are_a_range_in_order(n, threads):
    numba.set_num_threads(threads)
    parts = in_parts(lambda part: part, n, 8)
    assert [i for part in parts for i in range(n)[part]] == list(range(n))
    assert len(parts) == (threads if n >= 8 else 1)


def test_calls_are_on_threads_of_their_own_whose_kernels_have_one():
    both = threading.Barrier(2, timeout=60)

    def seen(_):
        both.wait()
        return threading.get_ident(), numba.get_num_threads()

    assert len({thread for thread, _ in in_threads(seen, [0, 1])} - {threading.get_ident()}) == 2
    assert {count for _, count in in_threads(seen, [0, 1])} == {1}


def test_few_items_stay_on_the_thread_of_the_caller():
    assert in_parts(lambda _: threading.get_ident(), MANY - 1) == [threading.get_ident()]


@pytest.mark.parametrize("rows", [(), (0,), (5, 9), (MANY // 2 + 1, MANY - 1), (MANY - 1,)])
def test_the_first_row_of_all_parts_is_found(rows):
    def find(part):
        return min((row for row in rows if part.start <= row < part.stop), default=part.stop) - part.start

    assert first_in_parts(find, MANY) == min(rows, default=MANY)


def test_no_call_runs_on_after_an_exception():
    ended = []

    def work(item):
        if item == 0:
            raise ValueError("the first")
        time.sleep(0.05)
        ended.append(item)

    with pytest.raises(ValueError, match="the first"):
        in_threads(work, range(4))
    count = len(ended)
    time.sleep(0.1)
    assert len(ended) == count


def test_a_call_that_changes_the_number_of_threads_changes_none_of_the_next():
    in_threads(lambda _: numba.set_num_threads(2), [0, 1])
    assert in_threads(lambda _: numba.get_num_threads(), [0, 1]) == [1, 1]


def test_the_threads_are_as_many_for_any_number_of_items():
    in_threads(abs, range(2))
    before = threading.active_count()
    for count in (3, 5, 9):
        assert in_threads(abs, range(count)) == list(range(count))
    assert threading.active_count() == before


def test_calls_end_where_python_does():
    """There no pool takes calls any more: the thread that makes them takes them."""
    code = (
        "import threading, numba; numba.set_num_threads(2)\n"
        "from sfc.compile import in_threads\n"
        "def last():\n"
        "    threading.main_thread().join()\n"
        "    print(in_threads(abs, [-1, -2, -3]))\n"
        "threading.Thread(target=last).start()"
    )
    environment = os.environ | {"NUMBA_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 2, 3]\n", "")


def test_a_child_of_a_fork_has_none_of_the_threads_and_calls_by_itself():
    in_threads(abs, [1, 2])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_on_threads).get(60)


def _on_threads():
    return in_threads(lambda _: threading.get_ident(), [1, 2]) == [threading.get_ident()] * 2
