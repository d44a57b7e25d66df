"""experiments.contacts: additions, lists, races and cells against counts by hand and the search itself."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import md
from experiments import contacts
from experiments.core.command_line import parsed
from experiments.core.old_names import arguments_now
from experiments.core.settings import cases
from experiments.drawing import style
from experiments.drawing.charts import draw
from md.search import Reflexive
from md.search.bvh.reflexive import ReflexiveSearch
from sfc.cache import AccessStream
from tests.experiments.runs import one, run


def additions_by_hand(partners: list[list[int]]) -> dict[str, int]:
    found = dict.fromkeys([*contacts.KINDS, "requests"], 0)
    for begin in range(0, len(partners), contacts.WARP):
        lanes = partners[begin : begin + contacts.WARP]
        found["plain"] += sum(map(len, lanes))
        found["least"] += len({j for lane in lanes for j in lane})
        for k in range(max(map(len, lanes))):
            together = [lane[k] for lane in lanes if len(lane) > k]
            found["aggregated"] += len(set(together))
            found["requests"] += 1
    return found


@pytest.mark.parametrize("seed", range(3))
def test_additions_are_those_of_a_count_by_hand(seed):
    generator = np.random.default_rng(seed)
    partners = [generator.integers(0, 30, generator.integers(0, 6)).tolist() for _ in range(100)]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in partners])])
    stream = AccessStream(offsets, np.array([j for own in partners for j in own]))
    assert contacts.additions(stream) == additions_by_hand(partners)


def test_the_summary_counts_additions_per_disc():
    counts = dict.fromkeys([*contacts.KINDS, "requests", "contacts", "own"], 40) | {"aggregated": 10}
    row = {"n": 20, "curve": "hilbert", "step": 1, "room": 8, "overflow_share": 0.25, "most_partners": 6}
    found = contacts.summary(pd.DataFrame([row | counts])).iloc[0]
    assert (found["plain_per_disc"], found["aggregated_per_disc"]) == (2, 0.5)
    assert (found["aggregated_over_plain"], found["most_partners"]) == (0.25, 6)


def test_lanes_that_share_a_partner_make_one_addition():
    stream = AccessStream(np.arange(65), [7] * 32 + list(range(32)))
    assert contacts.additions(stream) == {"plain": 64, "aggregated": 33, "least": 33, "requests": 2}


@pytest.mark.full
def test_additions_of_a_device_are_counted_if_there_is_one(monkeypatch):
    case = one(contacts, n=(200,), curve=("morton",), step=(1,), room=(4,))
    (row,) = contacts.measure(case)
    assert not [name for name in row if name.startswith("made")]
    found = []
    monkeypatch.setattr(ReflexiveSearch, "additions", lambda search, law: found.append(search) or 250)
    monkeypatch.setattr(contacts, "is_device", lambda backend: True)
    (row,) = contacts.measure(case)
    assert (row["made_plain"], row["made_aggregated"]) == (50, 50)
    assert [(one.config.atomics, one.config.data) for one in found] == [
        ("plain", "shadow"),
        ("aggregated", "shadow"),
    ]
    summary = contacts.summary(pd.DataFrame([row]).assign(n=200))
    assert summary["made_aggregated_per_disc"].tolist() == [0.25]


@pytest.mark.gpu
def test_a_device_makes_the_additions_that_are_counted_from_contacts(device):
    config = contacts.Config(n=(2**14,), curve=("morton",), step=(10,), room=(32,), backend="cuda")
    (row,) = contacts.measure(cases(config)[0].config)
    assert row["made_plain"] == pytest.approx(row["plain"], rel=1e-3)
    assert row["least"] < row["made_aggregated"] < row["made_plain"]


def test_no_contact_makes_no_addition():
    stream = AccessStream([0, 0, 0], np.empty(0, int))
    assert set(contacts.additions(stream).values()) == {0}


def test_each_pair_that_touches_is_visited_once():
    case = one(contacts, n=(1000,), curve=("morton",), step=(5,), room=(4, 64))
    rows = pd.DataFrame(contacts.measure(case)).set_index("room")
    lift = md.preparation.newtonian_lift(1000, seed=0)
    sim = md.Simulation(lift.state, lift.law, search="coherent", **lift.options | {"backend": "cpu"})
    sim.run(5)
    assert rows.loc[4, "overflow_share"] > 0 == rows.loc[64, "overflow_share"]
    assert (rows["least"] <= rows["aggregated"]).all()
    assert (rows["aggregated"] < rows["plain"]).all()
    assert (rows["plain"] == rows["contacts"]).all()
    assert rows["contacts"].iloc[0] == len(sim.pairs())


def test_a_list_overflows_if_it_has_more_partners_than_room(monkeypatch):
    stream = AccessStream([0, 4, 12, 13, 13], list(range(13)))
    monkeypatch.setattr(contacts, "contacts_of", lambda sim: stream)
    rows = pd.DataFrame(
        contacts.measure(one(contacts, n=(100,), curve=("morton",), step=(0,), room=(3, 4, 8)))
    )
    assert rows["overflow_share"].tolist() == [0.5, 0.25, 0]
    assert rows[["contacts", "own", "most_partners"]].drop_duplicates().to_numpy().tolist() == [[13, 100, 8]]


@pytest.mark.full
def test_the_lists_that_overflow_are_those_that_the_search_counts():
    case = one(contacts, n=(1000,), curve=("morton",), step=(5,), room=(4, 8))
    rows = pd.DataFrame(contacts.measure(case)).set_index("room")
    lift = md.preparation.newtonian_lift(1000, seed=0)
    options = lift.options | {"backend": "cpu"}
    sim = md.Simulation(lift.state, lift.law, search="coherent", **options)
    sim.run(5)
    for room in (4, 8):
        search = Reflexive("morton", data="sorted", contacts="listed", room=room)
        listed = md.Simulation(sim.state, lift.law, search=search, **options)
        listed.forces()
        assert rows.loc[room, "overflow_share"] == listed.search.crowded / 1000 > 0


def test_without_a_device_the_build_without_the_fence_is_refused():
    case = one(contacts, array="boxes", fence=("without",), n=(10,))
    with pytest.raises(ValueError, match="--fence without on cpu; allowed: with"):
        next(contacts.measure(case))


def test_no_wrong_tree_leaves_a_largest_share():
    rows = pd.DataFrame(
        {"n": 8, "dim": 3, "start": "leaves", "boxes": 7, "wrong_boxes": [0] * 1000, "races": 0}
    )
    some = rows.assign(wrong_boxes=[0, 4] * 500, races=[0, 2] * 500)
    found = contacts.summary(pd.concat([rows.assign(fence="with"), some.assign(fence="without")]))
    none, half = found.to_dict("records")
    assert (none["wrong_trees"], none["share_low"]) == (0, 0)
    assert none["share_high"] == pytest.approx(1 - 0.025 ** (1 / 1000))
    assert (half["wrong_trees"], half["wrong_boxes"], half["races"]) == (500, 2000, 1000)
    assert half["share_low"] < 0.5 < half["share_high"]


def row_of(**fields) -> dict:
    (row,) = contacts.measure(one(contacts, array="cells", n=(1000,), **fields))
    return row


def test_the_table_grows_as_the_density_falls_and_a_tree_does_not():
    dilute, dense = (row_of(filling_fraction=(phi,), order=("row",)) for phi in (0.01, 0.4))
    assert dilute["grid_bytes"] > 10 * dense["grid_bytes"]
    assert dilute["tree_bytes"] == dense["tree_bytes"] > 4 * 16
    assert dilute["empty_share"] > 0.95 > 0.5 > dense["empty_share"] > 0
    assert dense["reads_per_particle"] > dilute["reads_per_particle"]


def test_cells_and_reads_are_those_of_a_count_by_hand():
    row = row_of(filling_fraction=(0.3,), order=("row",))
    state = md.preparation.granular_gas(0.3, md.scenes.box_for(1000, 0.3), seed=0, backend="cpu")
    side = state.box.lengths[0]
    cells = int(side)  # along an axis, at least a diameter wide
    assert row["cells_per_particle"] == cells**3 / 1000
    number = np.floor(state.pos / side * cells).astype(int)
    held = np.unique(number, axis=0, return_counts=True)[1]
    assert row["most_in_a_cell"] == held.max()
    assert row["empty_share"] == pytest.approx(1 - len(held) / cells**3)
    assert row["grid_bytes"] == pytest.approx(4 * (cells**3 + 1) / 1000)


def nodes_of(structure: str, **fields) -> pd.DataFrame:
    fields = {"n": (100,), "scenes": 2, "builds": 3} | fields
    return pd.DataFrame(contacts.measure(one(contacts, array="nodes", structure=(structure,), **fields)))


@pytest.mark.parametrize("structure", contacts.STRUCTURES)
def test_structures_without_locks_keep_their_nodes_on_a_cpu(structure):
    rows = nodes_of(structure)
    assert rows[["scene", "trial"]].to_numpy().tolist() == [[s, t] for s in range(2) for t in range(3)]
    assert not rows[["wrong_nodes", "taken_twice"]].any(axis=None)


def test_a_particle_that_is_in_no_list_is_counted(monkeypatch):
    structure = md.search.grid.linked.LinkedSearch.structure

    def broken(search):
        head, following = structure(search)
        head = head.copy()
        head[int(np.argmax(head >= 0))] = -1
        return head, following

    monkeypatch.setattr(md.search.grid.linked.LinkedSearch, "structure", broken)
    assert (nodes_of("lists")["wrong_nodes"] > 0).all()


@pytest.mark.parametrize("counted", [False, True])
def test_a_pool_is_used_as_its_name_says(counted, monkeypatch):
    used = []
    monkeypatch.setattr(contacts.FreeList, "use", lambda pool, counted: used.append(counted) or 2)
    assert nodes_of("counted pool" if counted else "pool")["taken_twice"].eq(2).all()
    assert used == 6 * [counted]


def test_a_trial_is_wrong_if_a_node_is_lost_or_taken_twice():
    rows = pd.DataFrame({"n": 8, "structure": "pool", "wrong_nodes": [0, 3, 0], "taken_twice": [0, 0, 2]})
    (found,) = contacts.summary(rows).to_dict("records")
    assert (found["trials"], found["wrong_trials"]) == (3, 2)
    assert (found["wrong_nodes"], found["taken_twice"]) == (3, 2)
    assert 0 < found["share_low"] < 2 / 3 < found["share_high"] < 1
    assert "2 of 3 trials of the pool lost a node" in contacts.answer(rows.assign(repeat=0)).sentence


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("n", [5, 150, 151])
def test_a_grid_on_a_torus_has_all_partners_wherever_they_are(dim, n):
    generator = np.random.default_rng(n)
    pos = generator.random((n, dim)) * 6 + generator.integers(-1, 2, (n, 1)) * 1e6
    apart = np.abs(pos[:, None] - pos)
    touching = (apart**2).sum(axis=2) < 1
    side = max(3, int(np.ceil(n ** (1 / dim))))
    number = contacts.cells_on_torus(pos, 1.0, side)
    assert 0 <= number.min() <= number.max() < side
    steps = (number[:, None] - number) % side
    near = np.isin(steps, (0, 1, side - 1)).all(axis=2)
    assert near[touching].all()
    found = contacts.on_torus(pos, 1.0)
    assert found["torus_reads_per_particle"] == pytest.approx(near.sum() / n - 1)
    assert found["torus_bytes"] == pytest.approx(4 * (side**dim + 1) / n)


def test_a_table_on_a_torus_has_the_size_of_the_particles_not_of_the_box():
    dilute, dense = (row_of(filling_fraction=(phi,), order=("row",)) for phi in (0.01, 0.4))
    assert dilute["torus_bytes"] == dense["torus_bytes"] < 5
    assert dilute["torus_reads_per_particle"] > 10 * dilute["reads_per_particle"]
    assert dense["torus_reads_per_particle"] == pytest.approx(dense["reads_per_particle"], rel=0.2)


@pytest.mark.parametrize(
    ("arguments", "figures", "columns"),
    [
        ("--n 100 --curve morton --step 1 3", {"contacts", "lists"}, ["repeat", "n"]),
        ("--array nodes --n 100", set(), ["repeat", "n", "structure"]),
        ("--array boxes --n 100", {"fence"}, ["repeat", "n", "dim", "start", "fence"]),
        (
            "--array cells --n 300 --order row hilbert",
            {"grid_limits", "grid_distances"},
            ["repeat", "n", "filling_fraction", "order"],
        ),
    ],
)
def test_each_array_has_its_own_axes_and_figures(arguments, figures, columns, tmp_path):
    folder = run(contacts, tmp_path, "--quick", *arguments.split())
    assert {path.stem for path in folder.glob("*.png")} == figures
    assert list(pd.read_parquet(folder / "table.parquet"))[1 : 1 + len(columns)] == columns
    assert (folder / "summary.csv").exists()


def test_nodes_have_fewer_trials_than_boxes():
    nodes, boxes = (parsed(contacts, ["--array", array]) for array in ("nodes", "boxes"))
    assert (nodes.n, nodes.scenes, nodes.builds) == ((2**14,), 5, 12)
    assert (boxes.n, boxes.scenes, boxes.builds) == ((2**14, 2**17), 10, 1000)
    given = parsed(contacts, "--array=nodes --n 4096 --scenes 3 --builds 1000".split())
    assert (given.n, given.scenes, given.builds) == ((4096,), 3, 1000)


def test_a_former_command_has_its_former_sizes():
    for name, size in (("fence", 2**20), ("grid_limits", 2**17)):
        assert parsed(contacts, arguments_now([], name)).n == (size,)
        assert parsed(contacts, arguments_now(["--n", "300", "400"], name)).n == (300, 400)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"array": "lists"}, "unknown array 'lists'; allowed: one of contacts, boxes, nodes, cells"),
        ({"curve": ("peano",)}, "unknown curve 'peano'"),
        ({"room": (0,)}, "--room = 0"),
        ({"step": (-1,)}, "--step = -1"),
        ({"n": 0}, "--n = 0"),
        ({"array": "cells", "order": ("spiral",)}, "unknown order 'spiral'"),
        ({"array": "cells", "filling_fraction": (0.6,)}, "--filling-fraction = 0.6"),
        (
            {"array": "cells", "filling_fraction": (1e-12,)},
            "at the least --filling-fraction: .* cells, at least 12 bytes each",
        ),
    ],
)
def test_what_cannot_be_counted_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        contacts.Config(**fields)


def test_races_are_counted_over_scenes(tmp_path, monkeypatch):
    titles = []

    def keep(figure, out, name, rows):
        titles.append(figure.get_suptitle())
        plt.close(figure)

    monkeypatch.setattr(style, "save", keep)
    kept = Path(__file__).parents[2] / "results" / "reference" / "fence" / "cpu" / "table.parquet"
    draw(contacts.VIEWS, pd.read_parquet(kept), tmp_path)
    (title,) = titles
    assert title.endswith("median and range over 2 scenes")
    assert (tmp_path / "summary.csv").is_file()
