"""Haff's law over a decade of energy; what the experiment refuses."""

import numpy as np
import pandas as pd
import pytest

from experiments import cooling
from experiments.core.settings import cases


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
