"""experiments.pictures: slots, keys and contacts of a gas, against its places and the reads of a search."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import md
import sfc
from experiments import pictures
from experiments.drawing.charts import draw
from tests.experiments.runs import one, run

pytestmark = pytest.mark.quick
STEPS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(pictures, tmp_path_factory.mktemp("pictures"), "--steps", str(STEPS))


@pytest.fixture(scope="module")
def rows(folder):
    return pd.read_parquet(folder / "table.parquet")


def test_slots_are_permutations_of_the_particles(rows):
    every = list(range(len(rows)))
    for column in ("particle", "slot_before", "slot_after"):
        assert sorted(rows[column]) == every
    assert rows["slot_before"].tolist() == rows["particle"].tolist()  # of the lattice, as none was reordered
    assert rows["slot_after"].tolist() != every


def test_keys_are_those_of_the_cells_and_grow_with_the_slot_after_the_reorder(rows):
    place, cells = (rows[names].to_numpy() for names in (["x_d", "y_d"], ["cell_x", "cell_y"]))
    assert ((cells <= place) & (place < cells + 1)).all()
    assert rows["key"].tolist() == sfc.covering("hilbert", (8, 8)).rank(cells).tolist()
    assert rows.sort_values("slot_after")["key"].is_monotonic_increasing
    assert not rows.sort_values("slot_before")["key"].is_monotonic_increasing


def test_contacts_are_the_pairs_that_are_nearer_than_a_diameter(rows):
    pos = rows.set_index("particle")[["x_d", "y_d"]].sort_index().to_numpy()
    near = np.argwhere(np.triu(np.linalg.norm(pos[:, None] - pos, axis=2) < 1, k=1))
    found = pictures.contacts_of(rows)
    assert len(found) > 10
    assert sorted(map(tuple, found[["particle", "other"]].to_numpy())) == sorted(map(tuple, near))


def test_contacts_are_nearer_in_memory_after_the_reorder(rows):
    found = pictures.contacts_of(rows)
    assert found["distance_before"].median() > 2 * found["distance_after"].median()
    assert (found[["distance_before", "distance_after"]] >= 1).all(axis=None)


@pytest.mark.parametrize("when", pictures.WHEN)
def test_reads_and_hits_are_those_of_the_search_and_of_the_block_model(rows, when):
    inside = rows.sort_values(f"slot_{when}")
    pos, block = inside[["x_d", "y_d"]].to_numpy(), 8
    state = md.State(pos, np.zeros_like(pos), md.Box((8.0, 8.0), periodic=(False, False)))
    sim = md.Simulation(state, md.scenes.BENCHMARK_LAW, search="linked", walls=md.Walls(), backend="cpu",
                        precision="float64")  # fmt: skip
    stream = sim.accesses()
    readers = stream.readers if stream.readers is not None else np.arange(len(pos))
    pairs = {(i, j) for i, j in zip(np.repeat(readers, np.diff(stream.offsets)), stream.reads, strict=True)}
    found = pictures.reads_of(rows, when)
    assert set(map(tuple, found)) == {(i, j) for i, j in pairs if i != j}
    hits = pictures.hits_of(found, block)
    assert hits.tolist() == [i // block == j // block for i, j in found]
    assert 0 < hits.sum() < len(hits)


def test_the_tables_beside_the_pictures_hold_what_these_say(folder, rows):
    contacts, summary = (pd.read_csv(folder / f"{name}.csv") for name in ("contacts", "summary"))
    assert len(summary) == 1
    row = summary.iloc[0]
    assert (row["particles"], row["contacts"], row["steps"]) == (len(rows), len(contacts), STEPS)
    for when in pictures.WHEN:
        assert row[f"median_distance_{when}"] == contacts[f"distance_{when}"].median()
        hits = pictures.hits_of(pictures.reads_of(rows, when), 8)
        assert row[f"hit_ratio_{when}"] == pytest.approx(hits.mean())
    assert row["hit_ratio_after"] > row["hit_ratio_before"]
    assert {path.stem for path in folder.glob("*.png")} == {"memory", "reads"}


def test_a_seed_gives_the_same_table_again():
    first, second, other = (
        pd.DataFrame(pictures.measure(one(pictures, steps=3, seed=seed))) for seed in (1, 1, 2)
    )
    assert first.equals(second)
    assert not first.equals(other)


def test_a_gas_without_contacts_is_drawn(tmp_path):
    rows = pd.DataFrame(pictures.measure(one(pictures, steps=0))).assign(ordering="hilbert", repeat=0)
    assert pictures.contacts_of(rows).empty
    draw(pictures.VIEWS, rows, tmp_path)
    assert (tmp_path / "memory.png").exists()


def test_arcs_stand_on_the_middles_of_their_slots_and_rise_with_the_distance():
    panel = pictures.plt.figure().add_subplot()
    pictures._arcs(panel, np.array([[2, 6], [5, 4]]), base=1.0, rise=0.5, colour="black")
    far, near = panel.collections[0].get_segments()
    assert far[[0, -1]] == pytest.approx(np.array([[2.5, 1], [6.5, 1]]))
    assert near[:, 0].min() == pytest.approx(4.5)
    assert near[:, 0].max() == pytest.approx(5.5)
    assert far[:, 1].max() - 1 == pytest.approx(0.5 * 4, rel=0.01)
    assert near[:, 1].max() - 1 == pytest.approx(0.5 * 1, rel=0.01)
    pictures.plt.close(panel.figure)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ordering": ("spiral",)}, "unknown ordering 'spiral'"),
        ({"side": 33}, "--side = 33; allowed: .*4.*32"),
        ({"block": 0}, "--block = 0; allowed: an integer of at least 1"),
        ({"filling_fraction": 0.8}, "--filling-fraction = 0.8"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        pictures.Config(**fields)


def test_the_pages_say_what_the_kept_run_shows():
    root = Path(__file__).parents[2]
    (row,) = pd.read_csv(root / "results/reference/pictures/cpu/summary.csv").to_dict("records")
    page, readme = (
        " ".join((root / name).read_text(encoding="utf-8").split())
        for name in ("results/details/thesis.md", "README.md")
    )
    slots = {when: f"{row[f'median_distance_{when}']:g} slots" for when in pictures.WHEN}
    assert f"falls from {slots['before']} to {slots['after'].split()[0]}" in page
    shares = [f"{100 * row[f'hit_ratio_{when}']:.0f} %" for when in pictures.WHEN]
    assert f"rises from {' to '.join(shares)}" in page
    assert f"run of {row['particles']} discs" in page
    before, after = (slots[when].split()[0] for when in pictures.WHEN)
    assert f"a median of {before} memory slots apart, after a reorder {after}." in readme
