"""experiments.mixture: searches in the same rounds on the same mixture; gains over a grid."""

import pandas as pd
import pytest

import md
from experiments import mixture
from experiments.core.old_names import table_now
from experiments.drawing import style
from experiments.drawing.charts import draw
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again


def case(**options) -> mixture.Config:
    options = {"search": ("lbvh", "linked"), "precision": "float64", "rounds": 2} | options
    gas = {"n": 1000, "filling_fraction": 0.4, "share": 0.02, "widest": 2.0, "room": 8.0}
    return mixture.Config(backend="cpu", **gas, steps=2, warmup=80, **options)


def test_searches_see_the_same_mixture_and_a_grid_is_measured_twice():
    found = pd.DataFrame(all_rows(mixture.measure(case())))
    for _, same in found.groupby("round"):
        assert sorted(same["search"]) == ["lbvh", "linked", "linked again"]
    for column in ("spheres", "large", "touching_pairs"):
        assert found[column].nunique() == 1
    assert found[["large", "touching_pairs"]].gt(10).all(axis=None)
    assert found["temperature_start"].max() - found["temperature_start"].min() < 1e-9
    ends = found.loc[found["round"] == 1, "temperature_end"]
    assert ends.max() - ends.min() < 1e-9
    assert (found["sample_ms"] == 2 * found["time_ms"]).all()


def test_a_search_that_misses_a_pair_is_not_recorded(monkeypatch):
    right = md.Simulation.pairs
    monkeypatch.setattr(
        md.Simulation, "pairs", lambda sim: right(sim)[1:] if sim.search.name == "lbvh" else right(sim)
    )
    with pytest.raises(ValueError, match="lbvh finds other pairs than reflexive; not recorded"):
        next(mixture.measure(case(search=("lbvh",))))


@pytest.mark.parametrize(
    ("searches", "baseline"),
    [(("lbvh", "tiles", "coherent"), "tiles"), (("naive", "linked"), "linked"), (("lbvh",), "lbvh")],
)
def test_the_baseline_is_the_first_search_on_a_grid(searches, baseline):
    assert mixture._baseline(searches) == baseline


def rows(times: dict[str, list[float]]) -> pd.DataFrame:
    common = {"widest": 2.0, "room": 1.0, "spheres": 400, "large": 8, "partners_read": 10.0, "round": 0}
    return pd.DataFrame(
        common | {"search": name, "run": run, "time_ms": ms}
        for name, runs in times.items()
        for run, ms in enumerate(runs)
    )


def test_gains_are_over_the_grid_that_was_measured_twice(tmp_path):
    table = rows({"tiles": [4.0, 4.0], "coherent": [2.0, 2.0], again("tiles"): [4.0, 4.4], "lbvh": [3.9] * 2})
    found = mixture.VIEWS[-1].table(table).set_index("search")
    assert list(found.index) == ["tiles", "coherent", "lbvh"]
    assert found.loc["coherent", "gain_over_tiles"] == 2
    assert found["difference_from_tiles"].dropna().to_dict() == {
        "coherent": "faster",
        "lbvh": "no difference",
    }
    assert found.loc["lbvh", "noise_floor_tiles"] == pytest.approx(1.1)
    draw(mixture.VIEWS, table, tmp_path)
    assert (tmp_path / "mixture.png").exists()


def test_a_search_compared_with_itself_alone_is_drawn(tmp_path):
    draw(mixture.VIEWS, rows({"coherent": [2.0, 2.0], again("coherent"): [2.0, 2.1]}), tmp_path)
    assert (tmp_path / "mixture.png").exists()
    assert pd.read_csv(tmp_path / "summary.csv")["search"].tolist() == ["coherent"]


def test_at_a_single_diameter_searches_are_rows_of_dots(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(style, "save", lambda figure, *_: drawn.append(figure))
    draw(mixture.VIEWS, rows({"coherent": [2.0, 2.0], "lbvh": [1.0, 1.0]}), tmp_path)
    (figure,) = drawn
    title = "With large spheres of 2 d, a sphere and step takes 2,500 ns by lbvh, 5,000 ns by coherent"
    assert figure.get_suptitle().startswith(title)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["coherent", "lbvh"]
    time, gain, reads = (panel.containers[0][0].get_xdata() for panel in figure.axes)
    assert (time / 5000).tolist() == [1.0, 0.5]  # ns of one of 400 spheres
    assert gain.tolist() == [2.0]
    assert reads.tolist() == [10.0, 10.0]


def test_tables_of_before_are_drawn(tmp_path):
    table = rows({"coherent": [2.0], "lbvh": [1.0]}).drop(columns=["run", "round", "room"])
    draw(mixture.VIEWS, table_now(table, "mixture"), tmp_path)
    found = pd.read_csv(tmp_path / "summary.csv").set_index("search")
    assert found.loc["lbvh", "gain_over_coherent_median_of_rounds"] == 2


@pytest.mark.parametrize(
    ("widest", "room", "names"),
    [
        ((2.0,), (1.0, 8.0), {"mixture"}),
        ((1.0, 2.0), (1.0, 8.0), {"mixture_room_1", "mixture_room_8"}),
    ],
)
def test_there_is_a_figure_over_the_room_or_one_for_each_room(tmp_path, widest, room, names):
    table = rows({"coherent": [2.0], "lbvh": [1.0]})
    table = pd.concat(table.assign(widest=size, room=ratio) for size in widest for ratio in room)
    draw(mixture.VIEWS, table, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == names
    assert len(pd.read_csv(tmp_path / "summary.csv")) == 2 * len(widest) * len(room)
