"""experiments.decay: half-lives of memory orders, and kept runs of interval and decay read together."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments import decay, interval
from experiments.core import main
from experiments.core.command_line import parsed
from experiments.core.old_names import arguments_now
from experiments.core.record import read_provenance
from experiments.core.rerun import config_of
from experiments.core.settings import UsageError, cases
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.prediction import order_in_gas
from tests.experiments.runs import one, run

KEPT = Path(__file__).parents[2] / "results" / "reference" / "decay"
CASE = {"geometry": "cubes", "size": 9, "filling_fraction": 0.2, "interaction": "elastic", "speed": 0.5,
        "ordering": "hilbert", "model": "block", "cache_particles": 320}  # fmt: skip
STEPS = (0, 1, 4, 16, 64)


def gases(*lefts: tuple, **changes) -> pd.DataFrame:
    """Rows of gases: hits of 0.1 when shuffled, and of 0.5 more at first, of which a part is left."""
    case = CASE | {"hit_ratio_shuffled": 0.1, "speed_d_per_step": 0.5} | changes
    rows = [
        case | {"repeat": gas, "step": step, "hit_ratio": 0.1 + 0.5 * part}
        for gas, left in enumerate(lefts)
        for step, part in zip(STEPS, left, strict=True)
    ]
    return pd.DataFrame(rows)


def lives_of(table: pd.DataFrame) -> pd.DataFrame:
    return order_in_gas.half_lives(table)


class TestHalfLives:
    def test_a_half_life_is_read_off_each_gas(self):
        found = lives_of(gases((1, 1, 0.75, 0.25, 0), (1, 1, 0.5001, 0.3, 0), (1, 1, 1, 0.9, 0.1))).loc[0]
        assert (found["gases"], found["gases_at_half"], found["last_step"]) == (3, 3, 64)
        assert found["half_life_crossing_steps"] == pytest.approx(8)
        assert found["half_life_crossing_steps_low"] == pytest.approx(4, rel=1e-2)
        assert found["half_life_crossing_steps_high"] == pytest.approx(32)
        assert found["half_life_crossing_flown_d"] == pytest.approx(4)

    def test_a_gas_that_keeps_more_than_half_has_none(self):
        found = lives_of(gases((1, 1, 0.75, 0.25, 0), (1, 1, 0.75, 0.25, 0), (1, 1, 1, 0.9, 0.6))).loc[0]
        assert found["gases_at_half"] == 2
        assert found["half_life_crossing_steps"] == pytest.approx(8)
        assert np.isnan(found["half_life_crossing_steps_high"])
        found = lives_of(gases((1, 1, 1, 0.9, 0.6))).loc[0]
        assert (found["gases_at_half"], found["left_last"]) == (0, pytest.approx(0.6))
        assert np.isnan(found["half_life_crossing_steps"])

    def test_a_gas_that_cools_flies_less_far(self):
        table = gases((1, 1, 0.75, 0.25, 0))
        table["speed_d_per_step"] = [1.0, 1.0, 0.5, 0.25, 0.0]
        flown = lives_of(table).loc[0, "half_life_crossing_flown_d"]
        assert flown == pytest.approx(1 + 3 * 0.75 + 12 * 0.375 * 4 / 12)

    def test_a_fit_that_is_far_from_the_curve_is_no_number(self):
        law = tuple(np.exp2(-((np.array(STEPS) / 8) ** 0.7)))
        near, far = (lives_of(gases(left)).loc[0] for left in (law, (*law[:3], 0.7 * law[3], law[4])))
        assert near["fit"] == "within 0.02"
        assert (near["fit_scale_steps"], near["fit_exponent"]) == pytest.approx((8, 0.7))
        assert far["fit"] == "none"
        assert far["fit_residual_largest"] > 0.02
        assert np.isnan(far["fit_scale_steps"])
        assert np.isnan(far["fit_exponent"])

    def test_the_figure_draws_no_fit_that_is_far(self, tmp_path, monkeypatch):
        law = np.exp2(-((np.array(STEPS) / 8) ** 0.7))
        far = tuple(law * [1, 1, 1, 0.7, 1])
        table = pd.concat([gases(tuple(law), interaction="ideal"), gases(far)])
        table = pd.concat([table, gases((1, 1, 1, 0.9, 0.6), interaction="inelastic")])
        shown = {}

        def keep(figure, out, name, rows):
            shown[name] = (figure.get_suptitle(), figure.axes)
            plt.close(figure)

        monkeypatch.setattr(style, "save", keep)
        draw(decay.VIEWS, table, tmp_path)
        assert list(shown) == ["by_interaction", "linear_by_interaction", "half_lives"]
        title, (hits, left) = shown["by_interaction"]
        assert [sum(line.get_linestyle() == ":" for line in panel.lines) for panel in (hits, left)] == [0, 1]
        assert "after the reorder in the inelastic gas" in title
        assert title.endswith("one gas")
        _, (early, whole) = shown["linear_by_interaction"]
        assert [max(line.get_xdata().max() for line in panel.lines) for panel in (early, whole)] == [4, 64]
        title, (steps, _) = shown["half_lives"]
        assert "half not reached: inelastic at 20 % (60 % left)" in title
        marks = {float(x) for line in steps.lines for x in line.get_xdata() if np.isfinite(x)}
        assert marks == set(lives_of(table)["half_life_crossing_steps"].dropna())

    @pytest.fixture(scope="class")
    @classmethod
    def lives(cls):
        return lives_of(pd.read_parquet(KEPT / "h200_interaction" / "table.parquet"))

    @pytest.mark.parametrize(
        ("filling", "interaction", "steps"),
        [
            (0.1, "elastic", 592), (0.1, "inelastic", 644), (0.25, "ideal", 301), (0.25, "elastic", 1124),
            (0.25, "inelastic", 2493), (0.5, "ideal", 252), (0.5, "elastic", 10160),
        ],
    )  # fmt: skip
    def test_the_kept_run_has_the_half_lives_that_were_read_off_its_table(
        self, lives, filling, interaction, steps
    ):
        kept = pd.read_csv(KEPT / "h200_interaction" / "half_lives.csv")
        for found in (lives, kept):
            rows = found[(found["filling_fraction"] == filling) & (found["interaction"] == interaction)]
            (row,) = rows[(rows["model"] == "block") & (rows["cache_particles"] == 320)].to_dict("records")
            assert row["half_life_crossing_steps"] == pytest.approx(steps, abs=0.6)
            assert row["half_life_crossing_steps_low"] < steps < row["half_life_crossing_steps_high"]


class TestDecay:
    def test_particles_that_fly_at_a_speed_lose_their_order_in_time(self, tmp_path):
        folder = run(
            decay, tmp_path, "--quick", "--interaction", "ideal", "--speed", "0.02", "0.04", "--steps", "600",
            "--observations", "20", "--cache", "64", "--model", "block",
        )  # fmt: skip
        table = pd.read_parquet(folder / "table.parquet")
        assert table["speed_d_per_step"].to_numpy() == pytest.approx(table["speed"].to_numpy())
        first = table[table["step"] == 0]
        assert (first["hit_ratio"] > 2 * first["hit_ratio_shuffled"]).all()
        lives = pd.read_csv(folder / "half_lives.csv")
        lives = lives.set_index("speed")
        steps = lives["half_life_crossing_steps"]
        assert steps[0.02] / steps[0.04] == pytest.approx(2, rel=0.15)
        assert lives["half_life_crossing_flown_d"].to_numpy() == pytest.approx(steps * steps.index)
        assert (folder / "by_speed.png").is_file()

    def test_interactions_hold_particles_and_losses_hold_them_more(self, tmp_path):
        folder = run(
            decay, tmp_path, "--quick", "--size", "8", "--cache", "64", "--steps", "800", "--model", "block",
            "--observations", "4",
        )  # fmt: skip
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
                       interaction=("elastic",), model=("block",), cache=(20,), steps=1,
                       observations=3)  # fmt: skip
            row = next(decay.measure(case))
            assert row["free_steps"] == pytest.approx(free, rel=0.01)
            assert row["contact_steps"] == pytest.approx(row["free_steps"] / 10)
            assert row["integrator_steps_per_step"] * row["contact_steps"] >= 20

    def test_the_same_spheres_may_be_observed_over_the_same_path_at_any_speed(self):
        fields = {"geometry": ("cubes",), "size": (6,), "filling_fraction": (0.1,), "model": ("block",)}
        fields |= {"interaction": ("elastic",), "cache": (20,), "observations": 3, "path": 0.2}
        found = []
        for speed in (0.01, 0.04):
            case = one(decay, speed=(speed,), contact_steps=5.0, **fields)
            rows = pd.DataFrame(decay.measure(case))
            found.append((rows["step"].max(), *rows.loc[0, ["contact_steps", "integrator_steps_per_step"]]))
        assert found == [(20, 5.0, 4), (5, 5.0, 4)]
        row = next(decay.measure(one(decay, speed=(0.04,), **fields)))
        assert row["contact_steps"] == pytest.approx(row["free_steps"] / 10)

    def test_what_is_left_is_seen_beside_the_same_particles_unordered(self):
        case = one(decay, size=(8,), filling_fraction=(0.2,), speed=(0.5,), interaction=("ideal",),
                   model=("block",), cache=(32,), steps=400, observations=8)  # fmt: skip
        rows = pd.DataFrame(decay.measure(case))
        assert rows["hit_ratio"].iloc[0] > 3 * rows["hit_ratio_shuffled"].iloc[0]
        assert rows["hit_ratio"].iloc[-1] == pytest.approx(rows["hit_ratio_shuffled"].iloc[-1], abs=0.03)
        assert rows["hit_ratio_shuffled"].nunique() > 2

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"speed": (1.5,)}, "--speed = 1.5; allowed: .* above 0, up to 1 .d per step"),
            ({"geometry": ("cuboids",)}, "unknown geometry 'cuboids'"),
            ({"observations": 2}, "--observations = 2; allowed: an integer of at least 3"),
            ({"path": -1.0}, "--path = -1.0; allowed: .* at least 0 .d"),
            ({"contact_steps": -1.0}, "--contact-steps = -1.0; allowed: .* at least 0"),
            ({"restitution": 1.0}, "--restitution = 1.0; allowed: .* below 1"),
            ({"filling_fraction": (0.7,)}, "--filling-fraction = 0.7; .*; these are cubes"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            decay.Config(**fields)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    flags = "--quick --n 1000 --interval 3 30 --rounds 2 --least-steps 9 --precision float64"
    timed = run(interval, tmp_path_factory.mktemp("interval"), *flags.split())
    flags = "--quick --size 8 --filling-fraction 0.2 --interaction elastic --speed 0.008 --model block"
    flags += " --steps 40 --observations 6 --cache 64 --contact-steps 25"
    return timed, run(decay, tmp_path_factory.mktemp("decay"), *flags.split())


def test_the_curves_of_both_runs_are_in_one_table_and_compared(runs, tmp_path):
    timed, guessed = map(str, runs)
    folder = run(decay, tmp_path, "--measured", timed, "--predicted", guessed)
    table = pd.read_parquet(folder / "table.parquet")
    assert set(table["source"]) == {timed, guessed}
    measured = table[table["what"] == "measured"]
    assert set(measured["sample"]) == {"round 0", "round 1"}
    assert measured["cost_shuffled"].notna().all()
    (row,) = pd.read_csv(folder / "half_lives.csv").to_dict("records")
    assert (row["full_loss"], row["repeats"], row["cache_particles"]) == ("to shuffled memory", 2, 64)
    assert (row["predicted_at_speed"], row["speed"]) == (0.008, 0.008)
    assert row["contact_over_free"] > 0.1
    assert not row["are_spheres_hard"]
    assert (folder / "wear.png").is_file()


def test_a_run_of_another_experiment_is_refused(runs):
    guessed = str(runs[1])
    case = one(decay, measured=[guessed], predicted=[guessed])
    message = f"{re.escape(guessed)} is a run of decay; allowed: the folder of a run of interval"
    with pytest.raises(UsageError, match=message):
        next(decay.measure(case))
    with pytest.raises(UsageError, match="allowed: the folder of a run"):
        next(decay.measure(one(decay, measured=["no/such/run"])))


def test_settings_of_a_gas_beside_runs_are_refused():
    with pytest.raises(UsageError, match=r"--speed 0.5 beside --measured, which makes no gas; allowed"):
        decay.Config(measured=["a/run"], speed=(0.5,))
    assert len(cases(decay.Config(measured=["a/run"], **decay.QUICK))) == 1
    with pytest.raises(UsageError, match="--scene flock beside --measured"):
        decay.Config(measured=["a/run"], scene="flock")


def test_gases_are_of_one_precision_and_flocks_are_timed():
    with pytest.raises(UsageError, match="--precision float32 float64 beside --scene gas; allowed: one"):
        decay.Config(precision=("float32", "float64"))
    first, *_ = cases(decay.Config(repeats=2))
    assert first.place.keys() == {"case", "repeat", *order_in_gas.CASE}
    first, *more = cases(decay.Config(**decay.Config.SCENES["flock"].defaults))
    assert first.place.keys() == {"case", "run", "n", "rules", "ordering", "precision"}
    assert len(more) == 2


def test_a_flock_is_timed_by_one_process_alone(tmp_path, capsys):
    flags = f"--scene flock --executor processes --backend cpu --results {tmp_path}"
    with pytest.raises(SystemExit):
        main(decay.Config, decay.measure, decay.VIEWS, decay.QUICK, flags.split())
    assert "measures times" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_time_of_a_scene_is_that_of_its_own_defaults():
    assert decay.plan(decay.Config(backend="cpu")).startswith("18 cases: about 3.5 minutes")
    flock = decay.Config.SCENES["flock"].defaults | {"backend": "cpu"}
    assert decay.plan(decay.Config(**flock)).startswith("3 cases: about 75 minutes")
    assert "the defaults are 3 cases: about 75 minutes" in decay.plan(decay.Config(**flock, runs=1))


@pytest.mark.parametrize("name", ["h100_flock", "h100_gas", "h200"])
def test_a_run_of_the_former_flock_decay_has_its_settings_under_their_present_names(name):
    kept = KEPT.parent / "flock_decay" / name
    config, recorded = config_of(kept, "--from", decay.Config, "decay"), read_provenance(kept)["config"]
    assert (config.scene, config.observations) == ("flock", recorded["looks"])
    assert (config.steps, config.sample, config.runs) == tuple(recorded[n] for n in ("last", "steps", "runs"))
    assert len(cases(config)) == config.runs


def test_the_command_of_the_former_flock_decay_means_the_same():
    old = "--n 1000 --last 30 --ages 3 --steps 2 --search tree".split()
    config = parsed(decay, arguments_now(old, "flock_decay"))
    assert (config.scene, config.steps, config.observations, config.sample) == ("flock", 30, 3, 2)
    assert (config.precision, config.cache, config.search) == (("float32",), (320, 1024, 4096), ("tree",))


FLAGS = "--scene flock --quick --n 1000 --predicted-n 1250 --precision float64 --age 4 --steps 30".split()
FLAGS += "--observations 3 --sample 2 --rounds 2 --cache 64 256 --model block --search scattered".split()


def test_ages_are_in_growing_distances_of_at_least_a_sample():
    ages = decay._ages(decay.Config(scene="flock", cache=(320,), sample=5, steps=640, observations=9))
    assert ages[:2] == [0, 5]
    assert ages[-1] == 640
    assert (np.diff(ages) >= 5).all()
    assert (np.diff(ages, 2) >= 0).all()
    assert len(ages) > 6


@pytest.fixture(scope="module", params=["flock", pytest.param("flock gas", marks=pytest.mark.nightly)])
def systems(request):
    return request.param.split()


@pytest.fixture(scope="module")
def folder(systems, tmp_path_factory):
    return run(decay, tmp_path_factory.mktemp("flock"), *FLAGS, "--system", *systems)


def test_every_round_has_each_age_in_both_memories(folder, systems):
    table = pd.read_parquet(folder / "table.parquet")
    timed = table[table["what"] != "predicted"]
    ages = [1, 3, 9, 31]  # the first of two timed steps, after one that is not timed
    for _, rows in timed.groupby(["system", "round", "what"]):
        assert rows["age"].tolist() == ages
    assert timed.groupby(["system", "round"])["what"].unique().map(set).eq({"sorted", "shuffled"}).all()
    assert set(timed["system"]) == set(systems)
    guess = table[table["what"] == "predicted"]
    for _, rows in guess.groupby(["system", "cache_particles"]):
        assert rows["age"].tolist() == ages
    assert len(guess) == len(systems) * 4 * 2  # ages, capacities


def test_an_order_loses_predicted_hits_as_particles_move(folder):
    table = pd.read_parquet(folder / "table.parquet")
    guess = table[(table["what"] == "predicted") & (table["cache_particles"] == 256)]
    first, last = (guess[guess["age"] == age].set_index("system") for age in (1, guess["age"].max()))
    assert (first["hit_ratio"] > 1.5 * first["hit_ratio_shuffled"]).all()
    assert (last["hit_ratio"] < first["hit_ratio"] - 0.01).all()
    assert (first["displacement_cutoffs"] < 0.1).all()
    assert (last["displacement_cutoffs"] > 0.1).all()
    halves = pd.read_csv(folder / "half_ages.csv")
    assert set(halves["kind"]) == {"measured", "block, 64 particles", "block, 256 particles"}
    assert (halves["age_first"] == 1).all()
    assert (folder / "left.png").stat().st_size > 0


@pytest.mark.full
def test_an_order_wears_out_for_a_tree_too(tmp_path):
    flags = "--search tree --system flock gas --predicted-n 3000 --cache 64 512 --steps 60".split()
    kept = run(decay, tmp_path, *FLAGS, *flags)
    table = pd.read_parquet(kept / "table.parquet")
    assert set(table["search"]) == {"tree"}
    guess = table[(table["what"] == "predicted") & (table["cache_particles"] == 64)]
    more = guess.assign(more=guess["hit_ratio"] - guess["hit_ratio_shuffled"])
    assert (more["more"] > 0.1).all()
    gas = more[more["system"] == "gas"]
    assert gas["more"].iloc[-1] < gas["more"].iloc[0] - 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": ("coherent",)}, "unknown search 'coherent'; allowed: one of linked, scattered, tree"),
        ({"system": ("swarm",)}, "unknown system 'swarm'; allowed: one of flock, gas"),
        ({"cache": (0,)}, "--cache = 0; allowed"),
        ({"observations": 0}, "--observations = 0; allowed: .*at least 1"),
        ({"speed": (0.5,)}, "--speed 0.5 beside --scene flock"),
        ({"predicted_n": 4000}, "--cache 4096 beside --predicted-n 4000.*allowed: capacities below"),
    ],
)
def test_what_cannot_be_measured_in_a_flock_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        decay.Config(backend="cpu", **decay.Config.SCENES["flock"].defaults | change)
