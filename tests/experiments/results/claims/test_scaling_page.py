"""The page on divided gases: its numbers are those of the kept run."""

import pandas as pd
import pytest

from experiments import scaling
from experiments.results import gains
from experiments.results.answers import estimate, gain_in_words, percent, ranked, rounded
from tests.experiments.results.claims.test_details import cells, rows_of
from tests.experiments.results.claims.test_sentences import text_of

PAGE, RUN = "results/details/scaling.md", "scaling/cpu"
DIVISIONS = ("hilbert", "row", "morton", "gilbert", "bricks", "bisection", "metis")
DENSITIES = ("uniform", "clusters", "gravity")
RANKS = (2, 4, 8, 16)
LARGEST = "n == 262144"
PROCESSES = "cards/cpu_16"
CARDS, CARD_SIZES = "cards/h200_2", (2**21, 2**23, 2**25)


def of_case(density: str, ranks: int) -> pd.DataFrame:
    return rows_of(RUN, f"{LARGEST} and ranks == {ranks} and density == '{density}'")


def gains_over(rows: pd.DataFrame, baseline: str) -> dict[str, str]:
    found = gains.gains(rows, [], "division", baseline).to_dict("records")
    return {row["division"]: gain_in_words(row) for row in found}


def forecast() -> pd.DataFrame:
    return scaling._forecast(rows_of(RUN, "round >= 0"))


def work_row(division: str) -> list[str]:
    rows = of_case("uniform", 16)
    own = rows[rows["division"] == division]
    one = own.median(numeric_only=True)
    return [
        estimate(ranked(rows, "division")[division], "time_ms"),
        gains_over(rows, "hilbert").get(division, "1"),
        f"{one['halo_share']:.2f}", f"{one['predicted_halo_share']:.2f}", f"{one['peers_mean']:.1f}",
        f"{one['imbalance_of_particles']:.2f}", rounded(one["cut_ms"]),
    ]  # fmt: skip


def density_row(division: str) -> list[str]:
    found = []
    for density in DENSITIES[1:]:
        rows = of_case(density, 16)
        own = rows[rows["division"] == division].median(numeric_only=True)
        found += [gains_over(rows, "hilbert").get(division, "1"), f"{own['halo_share']:.2f}"]
        found.append(f"{own['imbalance_of_particles']:.2f}")
    return found


def ranks_row(density: str) -> list[str]:
    return [gains_over(of_case(density, ranks), "row")["hilbert"] for ranks in RANKS]


def forecast_row(division: str) -> list[str]:
    rows = forecast().query(f"division == '{division}'").set_index("ranks")
    few, many = rows.loc[64], rows.loc[4096]
    return [rounded(few["time_ms"]), rounded(many["time_ms"]), f"{many['ghosts'] / many['owned']:.2f}",
            f"{few['halo_factor']:.2f}", percent(few["halo_law_error"])]  # fmt: skip


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_row_of_the_uniform_gas_is_that_of_the_run(division):
    assert cells(PAGE, division) == work_row(division)


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_row_of_other_densities_is_that_of_the_run(division):
    assert cells(PAGE, f"{division}, denser") == density_row(division)


@pytest.mark.parametrize("density", DENSITIES)
def test_a_row_of_hilbert_over_slabs_is_that_of_the_run(density):
    assert cells(PAGE, f"{density}, Hilbert over slabs") == ranks_row(density)


def gain_of_two_cards(n: int, mode: str) -> str:
    found = gains.gains(rows_of(CARDS, "round >= 0"), ["mode", "n"], "cards", "1 card")
    return gain_in_words(found.set_index(["cards", "mode", "n"]).loc[("2 cards", mode, n)].to_dict())


@pytest.mark.parametrize("n", CARD_SIZES)
def test_a_row_of_two_cards_is_that_of_the_run(n):
    two = rows_of(CARDS, f"n == {n} and mode == 'weak' and cards == '2 cards'").median(numeric_only=True)
    assert cells(PAGE, f"{n:,}, two cards") == [
        gain_of_two_cards(n, "strong"), gain_of_two_cards(n, "weak"),
        percent(two["halo_share"]), rounded(two["particle_steps_per_ns"]),
    ]  # fmt: skip


def test_what_a_second_card_brings_is_that_of_the_run():
    least, most = (gain_of_two_cards(n, "strong") for n in (CARD_SIZES[0], CARD_SIZES[-1]))
    assert f"spheres is {least} to {most} times as fast on two cards" in text_of(PAGE)
    assert f"A second H200 makes 34 million spheres {most} times as fast" in text_of("README.md")


def test_what_one_more_process_brings_is_that_of_the_run():
    rows = rows_of(PROCESSES, "round >= 0")
    found = gains.gains(rows, ["mode", "n"], "cards", "1 card").set_index("cards").to_dict("index")
    two, four = (gain_in_words(found[name]) for name in ("2 cards", "4 cards"))
    floors = gains.noise_floors(rows, ["mode", "n"], "cards")
    page = text_of(PAGE)
    assert f"on 16 cores take a step {four} times as fast as one, two {two}" in page
    assert f"one process measured twice differed by up to {max(floors.values()):.2f}" in page


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_row_of_the_forecast_is_that_of_the_laws(division):
    assert cells(PAGE, f"{division}, forecast") == forecast_row(division)


def test_the_laws_are_those_of_the_run():
    one = forecast().iloc[0]
    assert (
        f"{rounded(one['ns_per_particle'])} ns a particle, {rounded(one['ns_per_ghost'])} a ghost, "
        f"{rounded(one['ns_per_peer'] / 1e3)} us a peer and {rounded(one['ns_per_step'] / 1e3)} us a step; "
        f"cases left out of the fit differ by {percent(one['work_law_error'])}"
    ) in text_of(PAGE)


def test_the_noise_is_that_of_the_run():
    floors = gains.noise_floors(rows_of(RUN, LARGEST + " and ranks > 1"), ["density", "ranks"], "division")
    assert f"Hilbert's division measured twice differed by up to {max(floors.values()):.2f}" in text_of(PAGE)


def resolved(density: str, baseline: str) -> tuple[set[str], set[str]]:
    """Divisions that are slower and faster than one on 16 ranks."""
    rows = gains.gains(of_case(density, 16), [], "division", baseline).set_index("division")
    slower, faster = (rows.index[rows["difference"] == one] for one in (gains.SLOWER, gains.FASTER))
    return set(slower), set(faster)


def test_the_divisions_that_are_resolved_on_16_ranks_are_those_of_the_run():
    for baseline in ("hilbert", "row"):
        assert resolved("uniform", baseline) == (set(), {"metis", "gilbert"})
    for density in DENSITIES[1:]:
        assert resolved(density, "hilbert") == ({"row", "bricks", "bisection"}, set())
        assert {"hilbert", "morton", "gilbert", "metis"} <= resolved(density, "row")[1]
    clusters, gravity = (gains_over(of_case(density, 16), "row")["hilbert"] for density in DENSITIES[1:])
    assert (
        f"Hilbert's chunks are {clusters} times as fast as slabs for clusters, {gravity} under gravity"
    ) in text_of(PAGE)


def test_halos_rank_divisions():
    halo = of_case("uniform", 16).groupby("division")["halo_share"].mean().drop("hilbert again")
    assert set(halo.nsmallest(2).index) == {"bisection", "bricks"}
    curves = halo[["hilbert", "morton", "gilbert"]]
    assert (curves.idxmin(), halo.idxmax()) == ("gilbert", "row")
