"""A grammar becomes the curve its turtle walks, or is refused with the rule and the reason."""

import re

import numpy as np
import pytest

import sfc
from sfc.automaton.lsystem import curve_from_grammar, expand, walk
from sfc.curves import grammars

GRAMMARS = [
    (name.lower(), dim, rules)
    for name, by_dim in vars(grammars).items()
    if name.isupper()
    for dim, rules in by_dim.items()
]
every_grammar = pytest.mark.parametrize(("name", "dim", "rules"), GRAMMARS)


def test_the_issue_s_grammars_are_all_tested():
    assert {("hilbert", 2), ("hilbert", 3), ("peano", 2)} <= {(name, dim) for name, dim, _ in GRAMMARS}


@pytest.mark.quick
def test_the_thesis_s_3d_grammar_is_transcribed_without_error():
    rules = next(rules for name, dim, rules in GRAMMARS if (name, dim) == ("hilbert", 3))
    assert rules == {
        "A": "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<",
        "B": "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<",
        "C": "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<",
        "D": "|C#B-#+B|#A&#^A&&#B-#+B|#C<<",
    }


@every_grammar
def test_any_one_deleted_character_is_refused_with_rule_and_reason(name, dim, rules):
    refused = 0
    for symbol, pattern in rules.items():
        for k in range(len(pattern)):
            broken = rules | {symbol: pattern[:k] + pattern[k + 1 :]}
            with pytest.raises(sfc.GrammarError) as refusal:
                curve_from_grammar(name, dim, "A", broken)
            message = str(refusal.value)
            assert f"rule {symbol!r}" in message, (symbol, k, message)
            reason = message.partition(":")[2]
            assert re.search(r"symbols|turns|step|cover|visit|forward|cube", reason), message
            refused += 1
    assert refused == sum(map(len, rules.values()))


@pytest.mark.parametrize(
    ("name", "dim", "rules", "order"),
    [(*grammar, order) for grammar in GRAMMARS for order in (1, 2, 3, 4)],
)
def test_the_tables_agree_with_the_turtle_up_to_mirroring(name, dim, rules, order):
    curve = sfc.curve(name, dim)
    path = walk(expand("A", rules, order), dim)
    path = path - path.min(axis=0)
    side = curve.base**order
    assert path.max() == side - 1
    mirrored = np.where(path[0] > 0, side - 1 - path, path)
    assert np.array_equal(curve.traversal(order), mirrored)


@every_grammar
def test_no_two_states_of_the_automaton_say_the_same(name, dim, rules):
    curve = curve_from_grammar(name, dim, "A", rules)
    classes = [tuple(row) for row in curve.rank]
    for _ in range(len(classes)):
        classes = [
            hash((own, *(classes[j] for j in row))) for own, row in zip(classes, curve.next, strict=True)
        ]
    assert len(set(classes)) == len(classes)


@pytest.mark.quick
def test_the_plane_curves_have_four_states_and_the_thesis_s_grammar_sixteen():
    assert len(sfc.curve("hilbert", 2).rank) == 4
    assert len(sfc.curve("peano", 2).rank) == 4
    assert len(sfc.curve("hilbert", 3).rank) == 16


@pytest.mark.quick
def test_moore_s_curve_is_hilbert_with_a_closed_first_level():
    rules = next(rules for name, dim, rules in GRAMMARS if (name, dim) == ("hilbert", 2))
    moore = curve_from_grammar("moore", 2, "AFA<F<AFA", rules)
    assert moore.is_continuous
    assert moore.is_closed
    sfc.testing.check_curve(moore, cells=4096)
    for order in (1, 2, 3):
        path = moore.traversal(order)
        assert np.abs(path[0] - path[-1]).sum() == 1


@pytest.mark.quick
def test_expand_rewrites_and_leaves_symbols_out():
    rules = {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"}
    assert expand("A", rules, 0) == ""
    assert expand("A", rules, 1) == ">F<F<F>"
    assert expand("A", rules, 2).count("F") == 15


@pytest.mark.parametrize(
    ("commands", "dim", "cell"),
    [
        ("F", 2, [1, 0]),
        (">F", 2, [0, 1]),
        ("+F", 2, [0, 1]),
        ("<F", 2, [0, -1]),
        ("-#", 2, [0, -1]),
        ("|F", 2, [-1, 0]),
        ("#", 3, [1, 0, 0]),
        ("+#", 3, [0, 1, 0]),
        ("-#", 3, [0, -1, 0]),
        ("^#", 3, [0, 0, 1]),
        ("&#", 3, [0, 0, -1]),
        ("|#", 3, [-1, 0, 0]),
        (">#", 3, [1, 0, 0]),
        ("<+#", 3, [0, 0, -1]),
        (">+#", 3, [0, 0, 1]),
        ("|+#", 3, [0, -1, 0]),
    ],
)
def test_the_turtle_turns_as_documented(commands, dim, cell):
    path = walk(commands, dim)
    if commands in ("<+#", ">+#"):
        assert path[1].tolist() in ([0, 0, 1], [0, 0, -1])
        opposite = walk(commands.translate(str.maketrans("<>", "><")), dim)
        assert np.array_equal(opposite[1], -path[1])
    else:
        assert path.tolist() == [[0] * dim, cell]


@pytest.mark.parametrize("dim", [2, 3])
def test_an_unknown_command_is_refused_with_its_name(dim):
    with pytest.raises(sfc.GrammarError, match="'!'"):
        walk("F!F", dim)
    rules = next(rules for name, d, rules in GRAMMARS if (name, d) == ("hilbert", dim))
    with pytest.raises(sfc.GrammarError, match=r"rule 'A'.*'!'"):
        curve_from_grammar("broken", dim, "A", rules | {"A": rules["A"] + "!"})


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"A": "AFA"}, r"rule 'A'.*2 symbols; allowed: base\*\*2"),
        ({"A": "AFAFAFA"}, r"rule 'A'.*(cover|visit|cube)"),
        ({"A": "AF>AF>AF>A"}, r"rule 'A'.*turns"),
        ({"A": ">AFF<AFA<FA>"}, r"rule 'A'.*(step|forward)"),
        ({"A": ">AF<AFA<FA>F"}, r"rule 'A'.*(step|forward)"),
        ({"A": ">AF<AFA<FA>"}, r"rule 'A'.*step"),
    ],
    ids=["too few", "a line", "turned", "two steps", "a step after the last", "sub-curves do not join"],
)
def test_a_grammar_that_is_no_curve_is_refused_with_its_reason(rules, reason):
    with pytest.raises(sfc.GrammarError, match=reason):
        curve_from_grammar("broken", 2, "A", rules)


@pytest.mark.parametrize("dim", [1, 4])
def test_a_dimension_without_a_turtle_is_refused(dim):
    with pytest.raises(sfc.GrammarError, match=rf"dim = {dim}; allowed: 2 or 3"):
        curve_from_grammar("broken", dim, "A", {"A": "A"})


@pytest.mark.parametrize("axiom", ["C", "", "FF"])
def test_an_axiom_without_a_symbol_is_refused_with_those_there_are(axiom):
    rules = {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"}
    message = rf"axiom {axiom!r}; allowed: one of A, B or a pattern of them"
    with pytest.raises(sfc.GrammarError, match=message):
        curve_from_grammar("broken", 2, axiom, rules)


COIL = {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 2, "A", COIL), "name = 3 of class int; allowed: a str"),
        (("own", 2.0, "A", COIL), r"grammar of 'own': dim = 2\.0 of class float; allowed: an integer"),
        (("own", True, "A", COIL), "grammar of 'own': dim = True of class bool; allowed: an integer"),
        (("own", 2, None, COIL), "axiom = None of class NoneType; allowed: a str"),
        (("own", 2, "A", [("A", "B")]), r"grammar of 'own': rules = .* of class list; allowed: a mapping"),
        (("own", 2, "A", {"A": 3}), "grammar of 'own': rule 'A' = 3 of class int; allowed: a str"),
        (("own", 2, "A", {3: "A"}), "grammar of 'own': symbol = 3 of class int; allowed: a str of one"),
    ],
)
def test_a_grammar_of_a_wrong_class_is_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        curve_from_grammar(*arguments)


@pytest.mark.parametrize("rules", [{}, {"AB": "A"}, {"": "A"}])
def test_rules_of_no_character_are_refused(rules):
    with pytest.raises(sfc.GrammarError, match="allowed: one character = its pattern"):
        curve_from_grammar("own", 2, "A", rules)


def serpentine(base: int) -> dict[str, str]:
    """Rows to and fro over base x base sub-cubes: one symbol each, all turns undone at the end."""
    row = "F".join("A" * base)
    rows = [row + (">F>", "<F<")[k % 2] for k in range(base - 1)] + [row]
    return {"A": "".join(rows) + ("" if base % 2 else "|")}


@pytest.mark.parametrize("base", [65, 67])
def test_a_base_over_64_is_a_grammar_error(base):
    with pytest.raises(sfc.GrammarError, match=rf"rule 'A': base = {base}; allowed: an integer .* up to 64"):
        curve_from_grammar("wide", 2, "A", serpentine(base))


@pytest.mark.parametrize(
    ("order", "error"), [(-1, ValueError), (65, ValueError), (2.0, TypeError), ("2", TypeError)]
)
def test_an_order_of_rewritings_that_is_none_is_refused(order, error):
    with pytest.raises(error, match=r"order = .*; allowed: an integer of at least 0, up to 64"):
        expand("A", COIL, order)


def test_commands_that_no_memory_holds_are_refused_before_they_are_written():
    with pytest.raises(
        ValueError, match=r"\d+ commands of order 40: [\d,]+ bytes .*; allowed: up to .*lower order"
    ):
        expand("A", COIL, 40)


@pytest.mark.parametrize(
    ("commands", "dim", "error"), [(3, 2, TypeError), ("F", 2.0, TypeError), ("F", 5, ValueError)]
)
def test_a_walk_of_no_commands_or_in_no_dimension_is_refused(commands, dim, error):
    with pytest.raises(error, match="allowed: "):
        walk(commands, dim)
