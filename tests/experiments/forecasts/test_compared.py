"""Forecasts beside measurements: the order of their commits, and marks computed by hand."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.forecasts import compared
from experiments.forecasts.compared import (
    CASE,
    beside,
    by_chance,
    errors,
    gains_over,
    marks,
    noise_floor,
    ranks,
    require_earlier,
    right_signs,
)

PREDICTED = "results/foreseen/predicted"
TABLE = f"{PREDICTED}/table.parquet"
NOON = "2026-11-27T12:00:00+00:00"


class Repository:
    """A git repository with a folder of predictions, and a measured run beside it."""

    def __init__(self, root: Path):
        self.root, self.predicted, self.measured = root, root / PREDICTED, root / "measured"
        self.predicted.mkdir(parents=True)
        self.measured.mkdir()
        self.git("init", "-q")
        self.began(NOON)

    def git(self, *arguments: str, date: str = NOON, written: str = "") -> None:
        author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        dates = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": written or date}
        command = ["git", "-C", str(self.root), *author, *arguments]
        subprocess.run(command, capture_output=True, check=True, env=os.environ | dates)

    def commit(self, text: str, date: str, written: str = "", file: str = TABLE) -> None:
        (self.root / file).write_text(text)
        self.git("add", file)
        self.git("commit", "-qm", text, date=date, written=written)

    def began(self, date: str) -> None:
        (self.measured / "provenance.json").write_text(json.dumps({"started": date}))

    def require(self) -> None:
        require_earlier(self.predicted, self.measured)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "checkout")


class TestOrderOfCommits:
    @pytest.mark.parametrize("date", ["2026-11-27T11:59:59+00:00", "2026-11-27T20:59:59+09:00"])
    def test_predictions_that_were_committed_before_are_taken(self, repository, date):
        repository.commit("one", date)
        repository.commit("other", "2026-11-27T13:00:00+00:00", file=f"{PREDICTED}/note.txt")
        repository.require()

    @pytest.mark.parametrize("date", [NOON, "2026-11-27T12:00:01+00:00", "2026-11-27T11:59:59-01:00"])
    def test_later_ones_are_refused(self, repository, date):
        repository.commit("one", date)
        with pytest.raises(ValueError, match=r"measured: began 2026-11-27 12:00:00.*; allowed: later"):
            repository.require()

    def test_an_earlier_date_of_the_author_does_not_help(self, repository):
        repository.commit("one", "2026-11-27T12:30:00+00:00", written="2026-11-27T11:00:00+00:00")
        with pytest.raises(ValueError, match="began"):
            repository.require()

    def test_none_that_was_committed_is_refused(self, repository):
        repository.commit("other", "2026-11-27T11:00:00+00:00", file="README.md")
        (repository.root / TABLE).write_text("one")
        with pytest.raises(ValueError, match=rf"{TABLE}: 0 commits and a change; allowed: one"):
            repository.require()

    def test_a_change_that_is_not_committed_is_refused(self, repository):
        repository.commit("one", "2026-11-27T11:00:00+00:00")
        (repository.root / TABLE).write_text("two")
        with pytest.raises(ValueError, match="1 commits and a change; allowed: one, and none later"):
            repository.require()

    @pytest.mark.parametrize("date", ["2026-11-27T11:30:00+00:00", "2026-11-27T12:30:00+00:00"])
    def test_a_change_that_is_committed_is_refused(self, repository, date):
        repository.commit("one", "2026-11-27T11:00:00+00:00")
        repository.commit("two", date)
        with pytest.raises(ValueError, match="2 commits; allowed: one"):
            repository.require()


def predictions(**columns) -> pd.DataFrame:
    """Two gases on two chips: linked in four orders, wide_bvh in two."""
    names = ["shuffled", "lattice", "hilbert", "row", "hilbert", "morton"]
    table = pd.DataFrame({
        "gas": [0, 0, 0, 0, 1, 1], "kernel": ["linked"] * 4 + ["wide_bvh"] * 2,
        "particles": [100] * 4 + [200] * 2, "filling_fraction": 0.2, "precision": "float32",
        "ordering": names, "time_us": [40.0, 20.0, 10.0, 16.0, 5.0, 6.0],
        "sectors": [8.0, 4.0, 2.0, 3.0, 1.0, 1.0], "missed": [4.0, 2.0, 1.0, 1.5, 0.5, 0.5],
        "bytes": [64.0, 32.0, 30.0, 31.0, 16.0, 16.0], "written": [10.0, 10.0, 10.0, 10.0, 6.0, 6.0],
    } | columns)  # fmt: skip
    other = table.assign(machine="h200", time_us=1.0)
    return pd.concat([other, table.assign(machine="h100")], ignore_index=True)


def times(*of_cases: tuple[float, ...]) -> pd.DataFrame:
    """A row for each round of each case."""
    cases = predictions()[CASE].iloc[:6].to_dict("records")
    pairs = zip(cases, of_cases, strict=True)
    rows = [case | {"round": k, "time_us": t} for case, all_ in pairs for k, t in enumerate(all_)]
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


TIMED = times((50.0, 60.0, 40.0), (20.0, 20.0, 30.0), (12.5,) * 3, (20.0,) * 3, (5.0,) * 3, (8.0, 4.0, 6.0))


def counts() -> pd.DataFrame:
    """Counters of the orders of the first gas: of all its 100 particles together."""
    cases = predictions()[CASE].iloc[:4]
    return cases.assign(
        time_us=[55.0, 22.0, 13.0, 21.0], l1_loads=[1000.0, 400.0, 200.0, 300.0],
        l1_hits=[500.0, 200.0, 100.0, 100.0], dram_read=[5400.0, 2000.0, 2000.0, 2100.0],
        dram_written=[1000.0, 1200.0, 1000.0, 1000.0],
    )  # fmt: skip


def row_of(table: pd.DataFrame, gas: int, ordering: str) -> pd.Series:
    ((_, row),) = table[(table["gas"] == gas) & (table["ordering"] == ordering)].iterrows()
    return row


class TestBeside:
    def test_a_case_has_the_median_of_its_rounds_and_their_spread(self):
        found = beside(predictions(), TIMED, pd.DataFrame(), "h100")
        assert len(found) == 6
        row = row_of(found, 0, "shuffled")
        assert (row["time_us"], row["measured_us"], row["spread"]) == (40.0, 50.0, 1.5)
        assert row_of(found, 1, "morton")["spread"] == 2.0
        assert set(found["machine"]) == {"h100"}
        assert "counted_us" not in found

    def test_counters_are_for_each_item(self):
        found = beside(predictions(), TIMED, counts(), "h100")
        row = row_of(found, 0, "shuffled")
        names = ["sectors", "missed", "read", "written", "us"]
        assert [row[f"counted_{name}"] for name in names] == [10.0, 5.0, 54.0, 10.0, 55.0]
        assert np.isnan(row_of(found, 1, "hilbert")["counted_sectors"])

    def test_a_case_that_was_not_predicted_is_refused(self):
        few = predictions()[lambda table: (table["ordering"] != "row") | (table["machine"] == "h200")]
        with pytest.raises(
            ValueError, match=r"1 measured cases were not predicted, as .*'row'\); allowed: none"
        ):
            beside(few, TIMED, pd.DataFrame(), "h100")
        with pytest.raises(ValueError, match="6 measured cases"):
            beside(predictions(), TIMED, pd.DataFrame(), "a100")

    def test_a_case_that_was_predicted_alone_is_left_out(self):
        some = TIMED[TIMED["gas"] == 0]
        assert len(beside(predictions(), some, counts(), "h100")) == 4


@pytest.fixture
def table():
    return beside(predictions(), TIMED, counts(), "h100")


def test_gains_are_over_the_baseline_of_the_same_gas(table):
    found = gains_over(table, "shuffled")
    assert sorted(found["ordering"]) == ["hilbert", "lattice", "row"]  # the second gas has no baseline
    row = row_of(found, 0, "hilbert")
    assert (row["foreseen_gain"], row["measured_gain"]) == (4.0, 4.0)
    row = row_of(found, 0, "row")
    assert (row["foreseen_gain"], row["measured_gain"]) == (2.5, 2.5)
    row = row_of(gains_over(table, "lattice"), 0, "shuffled")
    assert (row["foreseen_gain"], row["measured_gain"]) == (0.5, 0.4)


def test_cells_in_no_order_are_the_baseline_of_searches_that_sort(table):
    found = gains_over(table.replace({"ordering": {"shuffled": "random"}}), "shuffled")
    assert sorted(found["ordering"]) == ["hilbert", "lattice", "row"]
    with pytest.raises(KeyError):
        gains_over(table, "random")


def test_the_first_baseline_counts_and_the_other_is_an_order(table):
    found = gains_over(table.replace({"ordering": {"lattice": "random"}}), "shuffled")
    assert sorted(found["ordering"]) == ["hilbert", "random", "row"]
    assert row_of(found, 0, "random")["foreseen_gain"] == 2.0


def test_ranks_are_those_of_gases_with_four_orders_or_more(table):
    # foreseen 4, 3, 1, 2 of shuffled, lattice, hilbert, row; measured 4, 2.5, 1, 2.5, then 4, 1, 3, 2
    assert ranks(table).to_dict() == {0: pytest.approx(np.sqrt(0.9))}
    swapped = table[table["gas"] == 0].set_index("ordering")
    swapped.loc[["shuffled", "lattice", "hilbert", "row"], "measured_us"] = [50.0, 12.0, 20.0, 15.0]
    swapped = swapped.reset_index()
    assert ranks(swapped).to_dict() == {0: pytest.approx(0.2)}
    assert ranks(swapped, ("shuffled", "lattice", "hilbert")).empty


def test_chance_is_what_times_in_no_order_exceed_in_one_of_twenty():
    generator = np.random.default_rng(0)
    gases = pd.DataFrame({"gas": np.repeat(np.arange(9), 6), "ordering": [*"abcdef"] * 9})
    gases = gases.assign(time_us=generator.random(54), measured_us=generator.random(54))
    found = by_chance(gases)
    assert found == by_chance(gases.assign(time_us=np.exp(gases["time_us"])))  # ranks alone
    medians = [
        ranks(gases.assign(time_us=np.random.default_rng(k).random(54))).median() for k in range(1, 200)
    ]
    assert 0.01 < np.mean(np.array(medians) > found) < 0.1
    assert found > by_chance(pd.concat([gases.assign(gas=gases["gas"] + 9 * k) for k in range(4)]))
    assert np.isnan(by_chance(gases, ("a", "b")))


def test_errors_are_shares_of_what_was_measured():
    found = errors(pd.Series([11.0, 9.0, 10.0, 14.0, 5.0]), pd.Series([10.0, 10.0, 10.0, 10.0, np.nan]))
    assert found["cases"] == 4  # 0.1, 0.1, 0, 0.4
    assert found["median"] == pytest.approx(0.1)
    assert found["rms"] == pytest.approx(np.sqrt(0.18 / 4))
    assert found["95 %"] == pytest.approx(0.1 + 0.85 * 0.3)
    assert found["worst"] == pytest.approx(0.4)
    none = errors(pd.Series([1.0]), pd.Series([np.nan]))
    assert none["cases"] == 0
    assert np.isnan(none["worst"])


def test_marks_are_errors_of_each_quantity(table):
    found = marks(table)
    assert found.loc["sectors", "worst"] == pytest.approx(0.2)  # 8 for 10
    assert found.loc["missed", "worst"] == pytest.approx(0.25)  # 1.5 for 2
    # read: 54, 22, 20, 21 for 54, 20, 20, 21; moved: 64, 32, 30, 31 for 64, 32, 30, 31
    assert found.loc["bytes read", "worst"] == pytest.approx(0.1)
    assert found.loc["bytes", "worst"] == pytest.approx(0)
    assert found.loc["bytes read, a sector or more", "cases"] == 1
    assert found.loc["bytes read, a sector or more", "worst"] == pytest.approx(0)
    assert found.loc["time", "cases"] == 6
    # 40 for 50, 20 for 20, 10 for 12.5, 16 for 20, 5 for 5, 6 for 6
    assert found.loc["time", "worst"] == pytest.approx(0.2)
    assert found.loc["time", "median"] == pytest.approx(0.1)
    assert found.loc["gain over shuffled", "cases"] == 3
    assert found.loc["gain over shuffled", "worst"] == pytest.approx(0.2)  # of lattice: 2 for 2.5
    assert found.loc["gain over lattice", "worst"] == pytest.approx(0.25)  # 0.5 for 0.4; 2 for 1.6


def test_launches_that_do_not_fit_have_a_mark_of_their_own_and_without_counters_there_are_fewer(table):
    more = table.assign(bytes=table["bytes"] + 10)  # 64, 32, 30 and 31 are read
    assert marks(more).loc["bytes read, a sector or more", "cases"] == 2
    assert marks(more).loc["bytes read, a sector or more", "worst"] == pytest.approx(0.6)  # 32 for 20
    bare = marks(beside(predictions(), TIMED, pd.DataFrame(), "h100"))
    assert list(bare.index) == ["time", "gain over shuffled", "gain over lattice"]


@pytest.fixture
def kept(monkeypatch, repository):
    """Kept runs of a chip, beside their predictions."""
    monkeypatch.setattr(compared, "ROOT", repository.predicted.parent)
    tables = {"predicted": predictions(), "h100_timed": TIMED, "h100_counted": counts()}
    monkeypatch.setattr(compared, "read_table_now", lambda run: tables[run.name])
    for name in ("h100_timed", "h100_counted"):
        (repository.predicted.parent / name).mkdir()
        origin = {"started": NOON if name == "h100_timed" else "2026-11-27T14:00:00+00:00"}
        (repository.predicted.parent / name / "provenance.json").write_text(json.dumps(origin))
    return repository


def test_the_program_prints_marks_of_each_chip(kept, capsys):
    kept.commit("one", "2026-11-27T11:00:00+00:00")
    compared.main()
    text = capsys.readouterr().out
    assert text.startswith("drawn, h100: 6 cases\n")
    assert "bytes read, a sector or more" in text
    assert "rank correlation of all orders: median 0.95, 1 gases; by chance above" in text
    for name in ("drawn, h200", "second, h100", "second, h200"):
        assert f"{name}: not run" in text


def test_runs_of_a_draw_have_its_name_but_for_those_of_the_first(monkeypatch, tmp_path):
    monkeypatch.setattr(compared, "ROOT", tmp_path)
    names = (
        "h100_timed",
        "h100_timed_first",
        "h100_counted",
        "h100_seen_timed",
        "second_h100_timed",
        "h200_timed",
    )
    for name in names:
        (tmp_path / name).mkdir()
    found = {
        (of, chip): compared.kept(of, chip, "timed")
        for of in ("drawn", "second")
        for chip in ("h100", "h200")
    }
    assert {key: [one.name for one in runs] for key, runs in found.items()} == {
        ("drawn", "h100"): ["h100_timed", "h100_timed_first"], ("drawn", "h200"): ["h200_timed"],
        ("second", "h100"): ["second_h100_timed"], ("second", "h200"): [],
    }  # fmt: skip


@pytest.mark.parametrize("date", ["2026-11-27T13:00:00+00:00", "2026-11-27T15:00:00+00:00"])
def test_the_program_refuses_a_run_that_is_not_later(kept, date):
    kept.commit("one", date)
    with pytest.raises(ValueError, match="began 2026-11-27 12:00:00"):
        compared.main()


def test_a_gas_is_of_the_first_run_that_has_it(monkeypatch):
    tables = {Path("a"): pd.DataFrame({"gas": [1, 1, 2], "x": [0, 1, 2]}),
              Path("b"): pd.DataFrame({"gas": [2, 3], "x": [9, 3]})}  # fmt: skip
    monkeypatch.setattr(compared, "read_table_now", tables.get)
    assert compared.of_runs([*tables])["x"].tolist() == [0, 1, 2, 3]
    assert compared.of_runs([]).empty


def test_models_rank_orders_as_their_times_do_or_not(tmp_path):
    names = ["a", "b", "shuffled", "d"]
    table = pd.DataFrame({
        "gas": 4, "machine": "h100", "kernel": "linked", "ordering": names, "time_us": [1.0, 2.0, 3.0, 4.0],
        "measured_us": [1.0, 2.0, 4.0, 3.0], "sectors": [4.0, 3.0, 1.0, 2.0], "missed": 5.0, "bytes": 0.0,
    })  # fmt: skip
    rows = pd.DataFrame({"gas": 4, "ordering": names, "block": [1, 2, 4, 3], "lru_l1": 0.5, "lru_l2": 0.5,
                         "reader_sectors": [1, 2, 3, 4]})  # fmt: skip
    found = compared.rank_ladder(table, rows).set_index("model")["rank_correlation"]
    assert found["ratio of [thesis]"] == pytest.approx(1)
    assert found["sectors of warps"] == pytest.approx(-1)
    assert found["+ first cache"] == 0
    assert found["+ time"] == found["sectors of one reader"] == pytest.approx(0.8)
    compared.draw(table, rows, tmp_path)
    assert {one.name for one in tmp_path.glob("*.png")} == {"foreseen_gains.png", "foreseen_ladder.png"}


def test_the_noise_floor_is_the_ratio_of_copies_in_one_of_twenty_cases():
    case = dict(zip(CASE, (0, "linked", 64, 0.2, "float32"), strict=False))
    rows = [
        case | {"ordering": f"window {k}", "copy": copy, "round": turn, "time_us": time}
        for k in range(21)
        for copy, times in enumerate(((1.0, 2.0, 9.0), (2.0 * (1 + k / 100), 0.1, 50.0)))
        for turn, time in enumerate(times)
    ]
    assert noise_floor(pd.DataFrame(rows)) == pytest.approx(1.19)  # of 1.00, 1.01, ... 1.20


def test_signs_are_right_of_gains_beyond_the_floor():
    gains = pd.DataFrame(
        {"measured_gain": [1.3, 0.7, 1.05, 2.0, 0.5, 1.2], "foreseen_gain": [1.01, 1.1, 0.9, 4.0, 0.99, 0.8]}
    )
    assert right_signs(gains, 1.1) == (5, 3)
    assert right_signs(gains, 1.01) == (6, 3)
    assert right_signs(gains, 3.0) == (0, 0)
