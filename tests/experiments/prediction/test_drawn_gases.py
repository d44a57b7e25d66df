"""Cases on which forecasts are judged: those that were drawn, their limits, and how much they cover."""

import hashlib
import json

import pytest

from experiments.core.rerun import read_table_now
from experiments.prediction import drawn_gases as module
from experiments.prediction.drawn_gases import (
    DRAWS,
    FEWER,
    GASES,
    LARGE,
    MOST,
    MOST_ORDERS,
    MOST_STEPS,
    ON_CPU,
    ORDERS,
    PROPERTIES,
    SEEN,
    SEEN_ON_CPU,
    Gas,
    cpu_gases,
    drawn_gases,
    reads_of,
    share_of_pairs,
)
from experiments.prediction.foreseen_systems import BOIDS, CELL_ORDERED
from experiments.prediction.index_cases import KINDS
from experiments.prediction.memory_orders import order_of
from experiments.results.kept.queries import REFERENCE
from md.search import SEARCHES
from sfc.cache.machine import KNOWN

# Predictions of these gases are kept, and were committed before anything was measured: they stay as they are.
DRAWN = "1f9386ef03ca927686da60e5d989b04d2d897e4c629131375b2fafb68bbb11b3"
SECOND = "03d56ab204dfba7f5b024b864e9c84d5ad27817ec861d9e9bb161046a9b4dd94"
FITTED = "eabffbc63b03b88c2c36bb0ebcfaf871e9e406cfb6f8ae5881f90a48e5d27433"
FOR_CPUS = "cb1c77e13f084ecd22e80f167178b6002b8b06835f6accdb24143c4ddc8758e3"
FITTED_FOR_CPUS = "487e54c9872c54d5067c1f96acc57838717bb5ce728eb9428f594205ee1b0d78"
KERNELS = PROPERTIES["kernel"]


def digest(gases) -> str:
    return hashlib.sha256(json.dumps(gases).encode()).hexdigest()


def test_the_gases_are_those_of_the_kept_predictions():
    assert digest(drawn_gases()) == DRAWN
    assert digest(drawn_gases(seed=DRAWS["second"])) == SECOND
    assert digest(SEEN) == FITTED
    assert digest(cpu_gases()) == FOR_CPUS
    assert digest(SEEN_ON_CPU) == FITTED_FOR_CPUS


def test_no_gas_for_cpus_was_seen_and_each_kernel_is_drawn():
    sizes = {gas.n for gas in cpu_gases()}
    assert not sizes & {gas.n for gas in SEEN_ON_CPU}
    assert {gas.kernel for gas in cpu_gases()} == {*ON_CPU}
    assert {gas.kernel for gas in SEEN_ON_CPU} == {*ON_CPU, "scatter"}
    assert sum(len(gas.orderings) for gas in cpu_gases()) >= 60


def test_the_kept_predictions_are_of_all_gases_and_orders():
    table = read_table_now(REFERENCE / "foreseen" / "predicted")
    columns = ["gas", "kernel", "particles", "filling_fraction", "precision", "ordering", "machine"]
    expected = [
        (k, *gas[:4], name, chip)
        for k, gas in enumerate(drawn_gases())
        for name in gas.orderings
        for chip in KNOWN
    ]
    assert sorted(table[columns].itertuples(index=False, name=None)) == sorted(expected)


def test_a_draw_depends_on_its_arguments_alone():
    first = drawn_gases(seed=3, count=8)
    drawn_gases.cache_clear()
    assert drawn_gases(seed=3, count=8) == first
    assert drawn_gases(seed=4, count=8) != first
    assert drawn_gases(seed=3, count=5) == first[:5]
    assert {gas.kernel for gas in drawn_gases(("linked", "spmv"), count=6)} == {"linked", "spmv"}


@pytest.mark.parametrize("seed", [*module.DRAWS.values(), 0, 1, 2])
def test_limits_hold(seed):
    gases = drawn_gases(seed=seed)
    assert len(gases) == GASES
    for gas in gases:
        assert gas.n <= MOST.get(gas.kernel, 2**24)
        assert all(getattr(gas, name) in values for name, values in PROPERTIES.items())
        for name in gas.orderings:
            kind, _, number = name.partition(" ")
            assert kind != "aged" or int(number) * gas.n <= MOST_STEPS
            assert kind != "window" or 4 * int(number) <= gas.n


def test_limits_of_orders_are_reached_by_large_gases_alone():
    assert not module.is_possible("aged 20000", 2**20)
    assert module.is_possible("aged 20000", 2**19)
    assert not module.is_possible("window 65536", 2**17)
    assert module.is_possible("window 65536", 2**18)
    assert module.is_possible("row", 2**24)


@pytest.mark.parametrize("seed", [*module.DRAWS.values(), 0, 1, 2])
def test_baselines_come_first_and_no_order_twice(seed):
    for gas in drawn_gases(seed=seed):
        baselines, others = ORDERS[gas.kernel]
        assert gas.orderings[: len(baselines)] == baselines
        assert set(gas.orderings[len(baselines) :]) <= set(others)
        assert len(set(gas.orderings)) == len(gas.orderings)
        assert len(gas.orderings) == min(
            FEWER if gas.n >= LARGE else MOST_ORDERS, len(baselines) + len(others)
        )


def test_every_gas_is_of_a_kernel_and_of_orders_that_are_known():
    for gas in (*drawn_gases(), *SEEN):
        assert gas.kernel in (*SEARCHES, BOIDS, *KINDS)
        reads_of(gas.filling_fraction)
        for name in gas.orderings:
            assert gas.kernel in CELL_ORDERED or order_of(name)
    assert {gas.kernel for gas in drawn_gases()} == {gas.kernel for gas in SEEN} == set(KERNELS)


def test_no_drawn_gas_was_seen():
    seen = {(gas.n, gas.filling_fraction) for gas in SEEN}
    for seed in DRAWS.values():
        assert not seen & {(gas.n, gas.filling_fraction) for gas in drawn_gases(seed=seed)}


def test_no_gas_is_drawn_twice():
    gases = [gas[:4] for seed in DRAWS.values() for gas in drawn_gases(seed=seed)]
    assert len(set(gases)) == len(gases) == 2 * GASES


def test_the_share_of_pairs_is_counted(monkeypatch):
    monkeypatch.setattr(module, "PROPERTIES", {"kernel": (), "n": (2**17, 2**20)})
    one, two = (Gas(kernel, 2**17, 0.2, "float32", ()) for kernel in ("linked", "boids"))
    both = ("linked", "boids")  # of the four pairs so many boids are not allowed
    assert MOST["boids"] < 2**20 <= MOST["linked"]
    assert share_of_pairs([one], both) == pytest.approx(1 / 3)
    assert share_of_pairs([one, one, two], both) == pytest.approx(2 / 3)
    assert share_of_pairs([one, two._replace(n=2**20)], both) == pytest.approx(1 / 3)


def test_few_gases_have_more_pairs_than_without_a_choice(monkeypatch):
    assert share_of_pairs(drawn_gases(), KERNELS) == pytest.approx(151 / 230)
    assert share_of_pairs(drawn_gases(count=100), KERNELS) == 1
    monkeypatch.setattr(module, "TRIED", 8)  # hardly a choice
    assert share_of_pairs(drawn_gases.__wrapped__(), KERNELS) < 0.62


def test_reads_of_a_filling_that_no_gas_has_are_not_known():
    assert [reads_of(filling) for filling in PROPERTIES["filling_fraction"]] == [2, 4, 6, 8, 12, 16]
    with pytest.raises(KeyError):
        reads_of(0.3)
