"""experiments.decay: half-lives of memory orders."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import decay
from tests.experiments.runs import one, run


class TestDecay:
    @given(half=st.floats(5, 500), b=st.floats(0.5, 2.0))
    def test_the_fit_finds_the_law_it_fits(self, half, b):
        steps = np.geomspace(1, 2000, 40)
        found = decay.fit(steps, np.exp2(-((steps / half) ** b)))
        assert found == pytest.approx((half, b), rel=1e-6)

    def test_too_few_looks_have_no_half_life(self):
        assert np.isnan(decay.fit(np.array([1.0, 2.0]), np.array([0.9, 0.8]))).all()

    def test_particles_that_fly_at_a_speed_lose_their_order_in_time(self, tmp_path):
        folder = run(
            decay, tmp_path, "--quick", "--interaction", "ideal", "--speed", "0.02", "0.04", "--steps", "600",
            "--looks", "20", "--cache", "64",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet")
        assert table["speed_d_per_step"].to_numpy() == pytest.approx(table["speed"].to_numpy())
        first = table[table["step"] == 0]
        assert (first["hit_ratio"] > 2 * first["hit_ratio_shuffled"]).all()
        lives = pd.read_csv(folder / "half_lives.csv")
        lives = lives[lives["model"] == "block"].set_index("speed")["half_life_steps"]
        assert lives[0.02] / lives[0.04] == pytest.approx(2, rel=0.15)
        assert {"by_speed.png", "by_speed.pdf"} <= {path.name for path in folder.iterdir()}

    def test_interactions_hold_particles_and_losses_hold_them_more(self, tmp_path):
        folder = run(
            decay, tmp_path, "--quick", "--size", "8", "--cache", "64", "--steps", "800", "--model", "block"
        )
        table = pd.read_parquet(folder / "table.parquet")
        last = table[table["step"] == 800].set_index("interaction")
        assert (
            last.loc["ideal", "hit_ratio"]
            < last.loc["elastic", "hit_ratio"]
            < last.loc["inelastic", "hit_ratio"]
        )
        assert last.loc["elastic", "speed_d_per_step"] == pytest.approx(0.01, rel=0.05)
        assert last.loc["inelastic", "speed_d_per_step"] < 0.006

    def test_spheres_are_nearly_hard_however_dense(self):
        for geometry, phi, free in (("cubes", 0.25, 24.7), ("cubes", 0.5, 4.27), ("squares", 0.25, 39.05)):
            case = one(decay, geometry=(geometry,), size=(6,), filling_fraction=(phi,), speed=(0.01,),
                       interaction=("elastic",), model=("block",), cache=(20,), steps=1, looks=3)  # fmt: skip
            row = next(decay.measure(case))
            assert row["free_steps"] == pytest.approx(free, rel=0.01)
            assert row["contact_steps"] == pytest.approx(row["free_steps"] / 10)
            assert row["integrator_steps_per_step"] * row["contact_steps"] >= 20

    def test_what_is_left_is_seen_beside_the_same_particles_unordered(self):
        case = one(decay, size=(8,), filling_fraction=(0.2,), speed=(0.5,), interaction=("ideal",),
                   model=("block",), cache=(32,), steps=400, looks=8)  # fmt: skip
        rows = pd.DataFrame(decay.measure(case))
        assert rows["hit_ratio"].iloc[0] > 3 * rows["hit_ratio_shuffled"].iloc[0]
        assert rows["hit_ratio"].iloc[-1] == pytest.approx(rows["hit_ratio_shuffled"].iloc[-1], abs=0.03)
        assert rows["hit_ratio_shuffled"].nunique() > 2

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"speed": (1.5,)}, "--speed = 1.5; allowed: .* above 0, up to 1 .d per step"),
            ({"geometry": ("cuboids",)}, "unknown geometry 'cuboids'"),
            ({"looks": 2}, "--looks = 2; allowed: an integer of at least 3"),
            ({"restitution": 1.0}, "--restitution = 1.0; allowed: .* below 1"),
            ({"filling_fraction": (0.7,)}, "--filling-fraction = 0.7; .*; these are cubes"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            decay.Config(**fields)
