"""Haff's law over a decade of energy; what the experiment refuses."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import cooling
from experiments.core.settings import cases
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.results.kept.queries import REFERENCE, Query, evaluate


def test_a_gas_cools_by_haffs_law_as_fast_as_enskog_says():
    config = cooling.Config(
        n=(800,),
        filling_fraction=(0.1,),
        restitution=(0.6,),
        decades=1.1,
        observations=25,
        softness=0.018,
        steps_per_contact=20,
        backend="cpu",
    )
    case = cases(config)[0].config
    rows = pd.DataFrame(list(cooling.measure(case)))
    hard = rows[rows["rate_times_contact_time"] < cooling.SOFTEST]
    assert hard["temperature"].min() < 0.1 * rows["temperature_start"].iloc[0]
    assert cooling.fit(rows) == pytest.approx(rows["cooling_time_theory"].iloc[0], rel=0.1)
    line = np.polyfit(hard["time"], hard["temperature"] ** -0.5, 1)
    bent = np.abs(np.polyval(line, hard["time"]) * hard["temperature"] ** 0.5 - 1)
    assert bent.max() < 0.03  # the line is straight
    assert (rows["restitution_stepped"] != 0.6).all()  # 20 steps a contact miss it
    np.testing.assert_allclose(rows["restitution_stepped"], 0.6, atol=0.03)


def test_the_time_is_found_from_a_perfect_law_and_not_from_too_few_rows():
    time = np.linspace(0, 9, 10)
    rows = pd.DataFrame(
        {"time": time, "temperature": 4 / (1 + time / 3) ** 2, "temperature_start": 4.0}
    ).assign(rate_times_contact_time=0.01)
    assert cooling.fit(rows) == pytest.approx(3)
    soft = rows.assign(rate_times_contact_time=[0.05] * 4 + [0.01] * 6)
    soft.loc[:3, "temperature"] = 1.0  # what is too soft does not count
    assert cooling.fit(soft) == pytest.approx(3)
    assert np.isnan(cooling.fit(rows[:2]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", (5,)),
        ("filling_fraction", (0.6,)),
        ("restitution", (1.0,)),
        ("restitution", (0.0,)),
        ("softness", 0.03),
        ("decades", 0.0),
        ("steps_per_contact", 5),
        ("repeats", 0),
        ("observations", 2),
    ],
)
def test_what_cannot_be_measured_is_refused(field, value):
    with pytest.raises(ValueError, match=f"--{field.replace('_', '-')}"):
        cooling.Config(**{field: value})


class TestHomogeneity:
    def test_an_ideal_gas_is_homogeneous(self):
        generator = np.random.default_rng(3)
        n, box = 20_000, md.Box((10.0, 12.0, 8.0))
        state = md.State(generator.random((n, 3)) * box.lengths, generator.normal(size=(n, 3)), box)
        found = cooling.homogeneity(state)
        assert found["count_variance"] == pytest.approx(1, abs=0.2)
        assert found["flow_energy"] == pytest.approx(1, abs=0.1)
        assert found["flow_over_thermal"] == pytest.approx(1 / cooling.IN_A_CELL, rel=0.3)

    def test_clusters_and_common_velocities_are_seen(self):
        generator = np.random.default_rng(3)
        n, box = 20_000, md.Box((10.0, 10.0, 10.0))
        pos, vel = generator.random((n, 3)) * box.lengths, generator.normal(size=(n, 3))
        dense = np.where(np.arange(n)[:, None] % 2, pos, pos / 2)
        assert cooling.homogeneity(md.State(dense, vel, box))["count_variance"] > 10
        sheared = vel + np.column_stack([2 * np.sin(2 * np.pi * pos[:, 1] / 10), np.zeros(n), np.zeros(n)])
        assert cooling.homogeneity(md.State(pos, sheared, box))["flow_energy"] > 5
        still = vel + np.array([3.0, 0, 0])  # the motion of the whole gas is no flow
        assert cooling.homogeneity(md.State(pos, still, box))["flow_energy"] == pytest.approx(1, abs=0.1)

    def test_it_is_known_to_the_last_digit_for_a_gas_in_two_halves(self):
        pos = np.array([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5]])
        state = md.State(pos, np.array([[1.0, 0, 0], [-1.0, 0, 0]]), md.Box((2.0, 2.0, 2.0)))
        found = cooling.homogeneity(state)  # 8 cells, 2 of them with a particle
        assert found["count_variance"] == pytest.approx((2 / 8 - (2 / 8) ** 2) / (2 / 8 * 7 / 8))
        assert found["flow_energy"] == pytest.approx(1)
        assert found["flow_over_thermal"] == np.inf


def perfect(tau: float, rate: float) -> pd.DataFrame:
    """Rows of a gas that cools by Haff's law over two decades, with `rate` times the collisions of theory."""
    time = tau * (np.geomspace(1, 10, 41) - 1)
    temperature = 4 / (1 + time / tau) ** 2
    rows = pd.DataFrame({"time": time, "temperature": temperature, "temperature_start": 4.0})
    rows = rows.assign(n=100, filling_fraction=0.1, restitution=0.8, repeat=0, cooling_time_theory=2.0)
    theory = np.sqrt(temperature)
    return rows.assign(
        collision_rate_theory=theory, collision_rate=rate * theory, rate_times_contact_time=0.001 * theory,
        count_variance=0.6, flow_energy=1.2,
    )  # fmt: skip


def test_each_decade_has_its_own_time_and_collision_rate():
    found = cooling.by_decade(perfect(3.0, 0.5))
    assert found["decade"].tolist() == [1, 2]
    np.testing.assert_allclose(found["tau_over_theory"], 1.5)
    np.testing.assert_allclose(found["rate_over_theory"], 0.5)
    np.testing.assert_allclose(found["tau_over_theory_of_rate"], 0.75)
    np.testing.assert_allclose(found["count_variance"], 0.6)


@pytest.mark.parametrize("decade", [1, 2, 3])
def test_a_decade_has_one_time_in_the_figure_and_in_the_verdict(decade):
    run, case = "cooling/cpu_decades", "n == 16384 and restitution == 0.8"
    table = pd.read_parquet(REFERENCE / run / "table.parquet")
    found = cooling.by_decade(table.query(case)).query("decade == @decade")["tau_over_theory"]
    left = "temperature_start / temperature"
    lower = f"{10 ** (decade - 1)} <{'=' * (decade == 1)} {left}"
    verdict = Query(
        (run,), f"{case} and {lower} and {left} <= {10**decade}", "time / cooling_time_theory", "slope",
        along=f"({left}) ** 0.5",
    )  # fmt: skip
    assert found.median() == pytest.approx(evaluate(verdict).value, rel=1e-9)


def test_a_gas_cools_within_the_range_of_its_gases():
    gases = [perfect(tau, 0.5).assign(repeat=k) for k, tau in enumerate((2.0, 2.04, 2.1))]
    sentence = cooling.answer(pd.concat(gases)).sentence
    assert "100 particles cool with 1.02 (1.00 to 1.05) times the cooling time of theory" in sentence
    assert "decades of energy in 3 gases" in sentence


def test_titles_are_sentences_about_the_gases(tmp_path, monkeypatch):
    titles = {}
    monkeypatch.setattr(
        style, "save", lambda figure, out, name, rows: titles.update({name: figure.get_suptitle()})
    )
    gases = [perfect(tau, 0.5).assign(n=n) for n, tau in ((4096, 3.0), (16384, 4.0))]
    draw(cooling.VIEWS, pd.concat(gases), tmp_path)
    assert titles["cooling"].startswith("Gases cool with 1.50 to 2.00 times the cooling time of theory\n")
    slowest, filled, *_ = titles["decades"].splitlines()
    assert slowest == "In decade 2 the slowest gas, n 16384, takes 2.00 times the time of theory"
    assert filled == "free cooling, 10 % filled, by decades"


def test_of_many_gases_the_least_restitutions_come_first(tmp_path):
    gases = [perfect(3.0, 0.5).assign(n=n, restitution=e) for n in (1, 2, 3, 4) for e in (0.9, 0.8)]
    found = list(dict.fromkeys(cooling.VIEWS[0].prepare(pd.concat(gases))["gas"]))
    assert found[:4] == [f"n {n} and restitution 0.8" for n in (1, 2, 3, 4)]
    assert found[4] == "n 1 and restitution 0.9"
    assert cooling.VIEWS[-1].table(pd.concat(gases))["over_theory_median"].tolist() == pytest.approx(
        [1.5] * 8
    )


def test_a_gas_of_few_observations_has_no_decades(tmp_path):
    draw(cooling.VIEWS, perfect(3.0, 0.5)[:2], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"cooling.png", "summary.csv"}
