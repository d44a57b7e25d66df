"""experiments.scaling: rows, predictions, checks, answer, forecast and pictures."""

import math

import numpy as np
import pandas as pd
import pytest

import sfc
from experiments import scaling
from experiments.core.record import TABLE
from experiments.measurement import ranks as measured
from experiments.measurement.correctness import WrongResultError
from experiments.prediction.divided import divisions
from experiments.prediction.divided.divisions import METIS
from experiments.processes.separate_run import all_rows
from tests.experiments.forecasts import test_ranks
from tests.experiments.runs import one, run

SMALL = ("--n", "900", "--density", "uniform", "--steps", "3", "--warmup", "1", "--runs", "1")


def test_every_division_is_measured_once_a_round_and_the_first_twice(tmp_path):
    folder = run(scaling, tmp_path, *SMALL, "--ranks", "1", "2", "4", "--rounds", "2",
                 "--division", "row", "hilbert", "bricks", "--drawn-ranks", "4")  # fmt: skip
    table = pd.read_parquet(folder / TABLE)
    several = table[table["ranks"] > 1]
    counts = several.groupby(["ranks", "round", "division"]).size()
    assert len(counts) == 2 * 2 * 4
    assert (counts == 1).all()
    assert set(table.loc[table["ranks"] == 1, "division"]) == {"row", "row again"}
    assert (several["owned_mean"] == 900 / several["ranks"]).all()
    np.testing.assert_allclose(several["halo_share"] * 900, several["ghosts_mean"] * several["ranks"])
    assert (several["imbalance"] >= 1).all()
    assert (several["time_ms"] >= several["work_mean_ms"]).all()
    phases = sum(several[f"{phase}_ms"] for phase in scaling.PHASES)
    np.testing.assert_allclose(phases, several["work_mean_ms"])
    assert set(table.loc[table["layer"] != "", "ranks"]) == {4}
    files = {path.name for path in folder.iterdir()}
    assert {"strong.png", "halo.png", "phases.png", "domains.png", "summary.csv"} <= files


def test_predictions_are_those_of_the_measure_of_an_order():
    case = one(scaling, n=(2000,), ranks=(4,), density=("uniform",))
    cells = scaling._grid(case)
    found = scaling._predicted(case, "morton", cells)
    cut = sfc.locality.partition_cut(sfc.covering("morton", cells.shape), 4).cut
    assert found["predicted_cut_faces"] == cut
    assert found["predicted_halo_share"] == 2 * cut / math.prod(cells.shape)
    assert found["cell_d"] == pytest.approx(case_side(case) / cells.shape[0])
    assert found["cut_ms"] > 0
    even = scaling._predicted(case, "bricks", cells)
    owner = divisions.bricks(cells.shape, cells.box, np.ones(cells.size), 4)
    assert even["predicted_cut_faces"] == even["cut_faces"] == divisions.cut_faces(owner, cells.shape)


def case_side(case) -> float:
    return scaling._scene(case).state.box.lengths[0]


@pytest.mark.parametrize("density", ["clusters", "gravity"])
def test_other_densities_are_measured(density):
    case = one(scaling, n=(900,), ranks=(3,), density=(density,), division=("hilbert", "bisection"), steps=3)
    rows = pd.DataFrame(all_rows(scaling.measure(case)))
    assert set(rows["division"]) == {"hilbert", "hilbert again", "bisection"}
    assert (rows["ghosts_mean"] > 0).all()


def test_a_wrong_gas_is_not_recorded(monkeypatch):
    case = one(scaling, n=(900,), ranks=(2,), density=("uniform",), division=("row",), steps=3, seed=5)
    real = measured.work_of_ranks

    def wrong(ranks, *given):
        found = real(ranks, *given)
        return [each._replace(motion=1.001 * each.motion) for each in found] if ranks > 1 else found

    monkeypatch.setattr(scaling, "work_of_ranks", wrong)
    with pytest.raises(WrongResultError, match="velocities of row on 2 ranks differ from those of one rank"):
        next(scaling.measure(case))


def test_metis_is_left_out_with_a_note_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(scaling, "has_metis", lambda: False)
    config = scaling.Config(division=("row", METIS))
    assert config.measured == ("row",)
    assert config.notes == ("metis is left out: pymetis is not installed; pip install '.[peers]'",)
    with pytest.raises(ValueError, match="--division metis needs pymetis; allowed: others; pip install"):
        scaling.Config(division=(METIS,))
    monkeypatch.setattr(scaling, "has_metis", lambda: True)
    assert scaling.Config(division=("row", METIS)).notes == ()


def test_a_device_is_refused():
    with pytest.raises(ValueError, match="--backend cuda; allowed: cpu"):
        scaling.Config(backend="cuda")


TIMES = {2: {"hilbert": 1.3, "row": 1.0, "bricks": 1.2}, 8: {"hilbert": 1.0, "row": 1.5, "bricks": 0.8}}


def made(runs: int = 3, density: str = "uniform") -> pd.DataFrame:
    return pd.DataFrame(
        {"density": density, "filling_fraction": 0.2, "n": 4096, "ranks": count, "division": name,
         "run": number, "round": 0, "time_ms": ms * (1 + 0.01 * number)}
        for count, times in TIMES.items()
        for name, ms in {**times, "hilbert again": 1.01 * times["hilbert"]}.items()
        for number in range(runs)
    )  # fmt: skip


def test_the_answer_names_the_best_division_and_where_curves_beat_slabs(monkeypatch):
    monkeypatch.setattr(scaling, "_laws", lambda table: None)
    found = scaling.answer(pd.concat([made(), made(density="gravity")]))
    assert found.sentence == (
        "uniform, 4,096 particles on 8 ranks in turn, without network: bricks takes 0.81 (0.79 to 0.83) ms, "
        "the largest work of a rank, 1.25 times as fast as hilbert, 1.88 times as fast as slabs. hilbert "
        "beats slabs on 8 ranks of 2 and 8."
    )
    assert list(found.table["uniform"].items()) == [("bricks", "1.25"), ("row", "0.67 (slower)")]


def test_slabs_may_be_better_on_any_number_of_ranks(monkeypatch):
    monkeypatch.setattr(scaling, "_laws", lambda table: None)
    found = scaling.answer(made()[lambda rows: rows["ranks"] == 2])
    assert "row takes 1.01 (0.99 to 1.04) ms" in found.sentence
    assert found.sentence.endswith("hilbert beats slabs on no number of ranks of 2.")


def test_one_rank_is_no_answer():
    assert scaling.answer(made().assign(ranks=1)).sentence == "Only one rank was measured; give --ranks."


def lawful() -> pd.DataFrame:
    settings = {"forecast_n": 2**20, "latency_us": 2.0, "bandwidth_gb_per_s": 20.0}
    return test_ranks.table().assign(density="uniform", filling_fraction=0.2, run=0, round=0, **settings)


def test_the_forecast_is_in_the_answer_and_called_one():
    table = lawful()
    rows = scaling._forecast(table)
    assert list(rows["ranks"].unique()) == list(scaling.FORECAST_RANKS)
    best = rows[rows["ranks"] == 4096].sort_values("time_ms").iloc[0]
    (says,) = scaling.answer(table).lines
    assert "Forecast, not measured: 1,048,576 particles on 4,096 ranks take" in says
    assert f"by {best['division']}. Cases left out of the fit differ from the law of work by" in says
    numbers = best[["ns_per_particle", "ns_per_ghost", "ns_per_peer", "ns_per_step"]].tolist()
    assert numbers == pytest.approx([30, 20, 1e4, 3e5])


def test_the_forecast_is_drawn_only_where_laws_can_be_fitted(tmp_path, capsys):
    scaling._draw_forecast(lawful(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["forecast.png"]
    scaling._draw_forecast(lawful().assign(density="gravity"), tmp_path / "none")
    assert "no forecast: it needs a uniform gas" in capsys.readouterr().err


def test_weak_scaling_compares_as_many_particles_a_rank():
    table = made().assign(n=lambda rows: 512 * rows["ranks"])
    rows = scaling._weak(pd.concat([table, table[table["ranks"] == 2].assign(ranks=4)]))
    assert set(rows["per_rank"]) == {512}
    one_rank = table[table["ranks"] == 2].assign(ranks=1, time_ms=3.0)
    beside = scaling._with_ideal(pd.concat([table, one_rank]))
    assert set(beside.loc[beside["n"] == 1024, "ideal_ms"]) == {1.5}
