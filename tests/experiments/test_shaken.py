"""The shaken box: its balance holds, its profiles are of all particles, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from experiments import shaken
from experiments.core.settings import cases
from experiments.drawing.charts import draw


def test_a_small_box_has_a_balance_and_profiles_of_all_its_particles(tmp_path):
    config = shaken.Config(
        length=6.0,
        height=5.0,
        amplitude=(0.9,),
        contact_time=1e-3,
        steps_per_contact=20,
        shakes_before=0,
        shakes=1,
        bins=5,
        pictures=3,
        search="linked",
        backend="cpu",
    )
    case = cases(config)[0].config
    table = pd.DataFrame(list(shaken.measure(case)))
    shake, slices = table[table["what"] == "shake"].iloc[0], table[table["what"] == "slice"]
    assert abs(shake["energy_missing"]) < 0.01 * shake["energy_in"]
    assert shake["energy_in"] > shake["energy_lost_in_pairs"] > shake["energy_lost_at_walls"] > 0
    assert slices["centre_d"].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    filling = shake["n"] * np.pi / 6 / (6 * 6 * 5)
    assert slices["local_filling_fraction"].mean() == pytest.approx(filling)
    assert (slices["temperature"] > 0).all()
    discs = table[table["what"] == "disc"]
    assert discs["time"].nunique() == 4  # with that of the start
    assert discs["lift_d"].iloc[0] == discs["lift_d"].min() == -0.9
    assert discs["radius_d"].between(0, 0.5).all()
    draw(shaken.VIEWS, table.assign(amplitude=0.9, filling_fraction=0.2, repeat=0), tmp_path)
    assert {"profiles.png", "balance.png", "summary.csv", "section_0.9.png", "section_0.9.mp4"} <= {
        path.name for path in tmp_path.iterdir()
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("length", 0.0),
        ("amplitude", (-1.0,)),
        ("frequency", np.inf),
        ("steps_per_contact", 10),
        ("shakes", 0),
        ("search", "grid"),
        ("contact_time", 2e-3),
    ],
)
def test_what_cannot_be_measured_is_refused(field, value):
    with pytest.raises(ValueError, match=field.replace("_", ".")):
        shaken.Config(**{field: value})
