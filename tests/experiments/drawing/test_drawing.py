"""Pictures: meshes are closed and round, the nearer hides the farther, boxes stand where the turtle was."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from experiments.drawing import heat, layer, plane, solid, style, tubes, turtle


@pytest.fixture
def panel():
    figure, panel = plt.subplots()
    yield panel
    plt.close(figure)


def paths(dim=3):
    """Paths of unit steps that never turn back."""
    axes = st.tuples(st.integers(0, dim - 1), st.sampled_from([-1, 1]))

    def walked(steps):
        path = [np.zeros(dim)]
        for axis, sign in steps:
            step = np.eye(dim)[axis] * sign
            if len(path) > 1 and np.array_equal(path[-1] - path[-2], -step):
                step = -step
            path.append(path[-1] + step)
        return np.array(path)

    return st.lists(axes, max_size=12).map(walked)


def edges(triangles: np.ndarray) -> np.ndarray:
    return np.vstack([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])


@given(path=paths(), sides=st.integers(3, 9), pieces=st.integers(1, 5))
def test_a_tube_is_closed_round_and_turned_outwards(path, sides, pieces):
    mesh = tubes.path_mesh(path, 0.2, sides, pieces)
    directed = {tuple(edge) for edge in edges(mesh.triangles).tolist()}
    assert len(directed) == 3 * len(mesh.triangles)  # no edge twice in one direction
    assert all((b, a) in directed for a, b in directed)
    a, b, c = (mesh.vertices[mesh.triangles[:, i]] for i in range(3))
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
    assert volume > 0
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1)
    centres = mesh.vertices - 0.2 * mesh.normals
    _, line = tubes.rounded(path, pieces)
    distance = np.linalg.norm(centres[:, None] - line[None], axis=2).min(axis=1)
    assert distance.max() < 1e-9


@given(path=paths(), pieces=st.integers(1, 6))
def test_corners_are_quarter_circles_and_ends_stay(path, pieces):
    place, line = tubes.rounded(path, pieces)
    assert np.array_equal(line[0], path[0])
    assert np.array_equal(line[-1], path[-1])
    assert (np.diff(place) > 0).all()
    plain = np.column_stack([np.interp(place, np.arange(len(path)), axis) for axis in path.T])
    assert np.linalg.norm(line - plain, axis=1).max() <= (np.sqrt(2) - 1) * 0.42 + 1e-12


def test_a_jump_is_a_thin_tube_and_the_place_runs_on():
    path = np.array([[0, 0, 0], [1, 0, 0], [5, 0, 0], [6, 0, 0]], float)
    mesh = tubes.path_mesh(path, radius=0.3, jumps=0.05)
    between = (mesh.vertices[:, 0] > 1.5) & (mesh.vertices[:, 0] < 4.5)
    assert not between.any()  # a straight tube has vertices at its ends only
    assert mesh.position.min() == 0
    assert mesh.position.max() == 1
    without = tubes.path_mesh(path, radius=0.3, jumps=0)
    assert len(without.vertices) < len(mesh.vertices)
    radius = np.linalg.norm(mesh.vertices[:, 1:], axis=1)
    assert np.isclose(radius, 0.05).sum() >= 12


def picture_of(*lines):
    meshes = [tubes.tube(np.array(line, float), np.full(len(line), place), 0.3, 12) for place, line in lines]
    mesh = tubes.joined(meshes)
    view = solid.View(-90, 0)  # from the side of small y: x to the right, z up
    low, high = np.array([-1.0, -1.0]), np.array([3.0, 3.0])
    picture = solid.render(view.project(mesh.vertices), view.project(mesh.normals), mesh, low, high, 20)
    return picture, low


def colour_at(picture, low, x, z):
    rows = picture.shape[0]
    return picture[rows - 1 - int((z - low[1]) * 20), int((x - low[0]) * 20)].astype(float)


@pytest.mark.parametrize("first", [0, 1])
def test_the_nearer_tube_hides_the_farther_whichever_is_drawn_first(first):
    near, far = (0.0, [(0, 0, 1), (2, 0, 1)]), (1.0, [(1, 2, 0), (1, 2, 2)])  # small y is nearer
    picture, low = picture_of(*((near, far) if first == 0 else (far, near)))
    dark, light = (np.array(plt.get_cmap(plane.MAP)(place)[:3]) for place in (0.0, 1.0))

    def is_like(found, wanted):
        one, other = found[:3] / np.linalg.norm(found[:3]), wanted / np.linalg.norm(wanted)
        return one @ other > 0.97

    assert is_like(colour_at(picture, low, 1, 1), dark)
    assert is_like(colour_at(picture, low, 1, 0), light)
    assert colour_at(picture, low, -0.9, -0.9)[3] == 0  # nothing there


def test_a_view_has_x_to_the_right_z_up_and_the_eye_in_front():
    projected = solid.View(-90, 0).project(np.eye(3))
    assert projected == pytest.approx(np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]))


@given(azimuth=st.floats(-180, 180), elevation=st.floats(0, 89))
def test_a_view_keeps_lengths(azimuth, elevation):
    projected = solid.View(azimuth, elevation).project(np.eye(3))
    assert projected @ projected.T == pytest.approx(np.eye(3), abs=1e-12)


def test_a_box_in_space_names_its_axes_and_sides(panel):
    path = sfc.ordering("pancake", (4, 6, 2)).traversal() + 0.5
    solid.draw_mesh(panel, tubes.path_mesh(path), (4, 6, 2))
    texts = [text.get_text() for text in panel.texts]
    assert {"x (cells)", "y (cells)", "z (cells)", "4", "6", "2"} <= set(texts)


@pytest.mark.parametrize("name", ["hilbert", "peano", "moore"])
def test_the_turtle_s_boxes_are_the_cells_of_the_curve(name):
    curve = sfc.curve(name, 2)
    axiom, rules = curve.grammar
    text = rules.get(axiom, axiom)
    boxes, turns = turtle.read(text, rules)
    path = np.array([box.place for box in boxes])
    start = np.where(path[0] > 0, curve.base - 1 - path, path)  # axes that begin at the far side are mirrored
    assert np.array_equal(start, curve.traversal(1))
    assert [box.symbol for box in boxes] == [character for character in text if character in rules]
    assert len(turns) == sum(character in "<>|+-" for character in text)


def test_hilbert_s_boxes_point_where_the_turtle_heads():
    _, rules = sfc.curve("hilbert", 2).grammar
    assert turtle.replaced("A", rules) == rules["A"]
    boxes, turns = turtle.read(rules["A"], rules)
    assert [box.degrees for box in boxes] == [90, 0, 0, 270]
    assert [(*turn.before, *turn.after) for turn in turns][:2] == [(1, 0, 0, 1), (0, 1, 1, 0)]


def test_a_grammar_has_a_row_for_each_rule_and_for_an_axiom_of_its_own():
    for name, rows in (("hilbert", 2), ("moore", 3)):
        figure = turtle.draw_grammar(name, *sfc.curve(name, 2).grammar)
        assert len(figure.axes) == 3 * rows
        plt.close(figure)


def test_a_jump_in_the_plane_is_thinner_than_a_step(panel):
    path = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    plane.draw_path(panel, path, (2, 2))
    lines = panel.collections[1]
    widths = np.array(lines.get_linewidths()).reshape(3, -1)
    assert (widths[1] < widths[0]).all()
    assert (widths[2] == widths[0]).all()
    assert panel.get_xlabel() == "x (cells)"
    assert panel.get_xlim() == (0, 2)


def test_numbers_are_compared_with_the_best_of_their_column():
    table = pd.DataFrame({"a": [2.0, 4.0, np.nan], "b": [0.0, 3.0, 0.0]}, index=["x", "y", "z"])
    ratio = heat.against_best(table)
    assert ratio["a"].tolist()[:2] == [1, 2]
    assert ratio["b"].tolist()[0] == ratio["b"].tolist()[2] == 1
    assert ratio.isna().to_numpy().tolist() == [[False, False], [False, True], [True, False]]
    assert heat.from_best_to_worst(table.drop(columns="b").drop(index="z")) == ["x", "y"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.1234, "0.123"), (12.34, "12.3"), (999.6, "1,000"), (12345.0, "12,300"), (2.0, "2.00")],
)
def test_three_digits_are_shown(value, text):
    assert heat.short(value) == text


def test_the_best_of_a_heat_map_is_bold_and_a_sign_stands_before_its_number(panel):
    table = pd.DataFrame({"a": [2.0, 4.0]}, index=["x", "y"])
    heat.draw_heat(panel, table, ["a"], pd.DataFrame({"a": ["≈", ""]}, index=table.index))
    shown = {text.get_text(): text.get_weight() for text in panel.texts}
    assert shown == {"≈2.00": "bold", "4.00": "normal"}


def test_a_bound_is_never_called_the_best(panel):
    table = pd.DataFrame({"a": [2.0, 4.0]}, index=["x", "y"])
    heat.draw_heat(panel, table, ["a"], pd.DataFrame({"a": [heat.BOUND, ""]}, index=table.index))
    assert [text.get_weight() for text in panel.texts] == ["normal", "normal"]


def test_a_pancake_pulled_apart_keeps_its_cubes():
    path = sfc.ordering("pancake", (8, 12, 4)).traversal()
    apart = layer.pulled_apart(path, 4, 3.0)
    steps = np.abs(np.diff(apart, axis=0)).sum(axis=1)
    cubes = path[:, 0] // 4 + 2 * (path[:, 1] // 4)
    assert steps.tolist() == [4.0 if one != other else 1.0 for one, other in pairwise(cubes)]
    assert (steps == 4).sum() == 5
    assert apart.max(axis=0).tolist() == [7 + 3, 11 + 6, 3]


@pytest.mark.quick
def test_a_name_of_a_wrong_class_has_no_look():
    with pytest.raises(TypeError, match="name = 3 of class int"):
        style.look(3)
