"""Flags: integers in any notation, and a help in words that wraps to the terminal."""

import re
from dataclasses import dataclass, field

import pandas as pd
import pytest

from experiments import timing
from experiments.core import Settings, main
from experiments.core.command_line import read
from experiments.core.flags import MOST_DIGITS, integer
from experiments.core.settings import cases
from tests.experiments.core import test_cli

COLOURS = ("red", "blue")
MANY = tuple(f"name_{k}" for k in range(12))


@dataclass(frozen=True)
class Config(Settings):
    """A sweep with flags of every kind."""

    size: tuple[int, ...] = (1, 2)
    """Size of the toy, over
    2 lines."""
    colour: tuple[str, ...] = ("red",)
    """Colour of the toy."""
    kind: str = "name_1"
    """Kind of the toy."""
    weight: float = 0.5
    """Weight of the toy."""
    count: int = 3
    """Number of toys."""
    peers: list[str] = field(default_factory=list)
    """Other toys."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"colour": COLOURS, "kind": MANY})


def measure(case):
    yield {"area": case.size, "count": case.count}


def draw(table, out):
    (out / "toy.png").write_text("")


def ended(capsys, *arguments, config=Config) -> tuple[int, str]:
    """The status of a command line, and all it wrote, as words."""
    with pytest.raises(SystemExit) as end:
        main(config, measure, draw, {}, [*arguments])
    out, err = capsys.readouterr()
    return end.value.code, " ".join(re.sub(r"[│╭╮╰╯─]", " ", out + err).split())


@pytest.mark.quick
@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1e6", 10**6), ("1.5e3", 1500), ("2**20", 2**20), ("-3", -3), ("1_000", 1000),
     ("2.0", 2), (" 7 ", 7), ("9" * 400, int("9" * 400)), ("1e0", 1), ("-2**3", -8), ("10**30", 10**30)],
)  # fmt: skip
def test_an_integer_may_be_written_as_a_power_or_with_an_exponent(text, value):
    found = integer(text)
    assert found == value
    assert type(found) is int


@pytest.mark.quick
@pytest.mark.parametrize(
    "text",
    ["1.5", "1e-1", "2**-1", "2**0.5", "", "six", "inf", "nan", "2***3", "1e1000000", "2**99999999", "0x10"],
)
def test_what_is_no_integer_is_refused_with_value_allowed_and_remedy(text):
    allowed = f"allowed: an integer of up to {MOST_DIGITS} digits, as 1000000, 1e6 or 2\\*\\*20"
    with pytest.raises(ValueError, match=f"value = .*{re.escape(text)}.*; {allowed}; take a whole number"):
        integer(text)


@pytest.mark.quick
def test_lists_of_integers_take_every_notation(tmp_path, capsys):
    flags = ["--size", "2**3", "1e1", "12", "--count", "1e6", "--backend", "cpu", "--results", str(tmp_path)]
    main(Config, measure, draw, {}, flags)
    (folder,) = (tmp_path / "test_flags").iterdir()
    assert (folder / "table.csv").read_text().count("1000000") == 3
    assert re.findall(r"\d+ of 3: size (\d+)", capsys.readouterr().err) == ["8", "10", "12"]


@pytest.mark.quick
@pytest.mark.parametrize(("flag", "text"), [("--size", "1.5"), ("--count", "1e-3"), ("--seed", "two")])
def test_a_wrong_integer_on_the_command_line_ends_with_status_2_and_the_remedy(flag, text, capsys):
    status, words = ended(capsys, flag, text)
    assert status == 2
    assert f"Error parsing {flag}: value = '{text}'; allowed: an integer" in words


@pytest.mark.quick
def test_the_help_has_choices_and_words_in_place_of_types(capsys):
    status, words = ended(capsys, "--help")
    assert status == 0
    for part in (
        "--size INTEGER ... Size of the toy, over 2 lines. (default: 1 2)",
        "--colour {red,blue} ... Colour of the toy. (default: red)",
        f"Kind of the toy. Allowed: {', '.join(MANY)}. (default: name_1)",
        "--weight NUMBER Weight of the toy.",
        "--peers NAME ... Other toys. (optional)",
        "--backend {auto,cpu,cuda} Device on which simulations run",
        "--out FOLDER",
    ):
        assert part in words
    assert not re.search(r"\b(STR|INT|FLOAT|PATH)\b", words)


@pytest.mark.quick
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_help_wraps_to_the_terminal(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        main(Config, measure, draw, {}, ["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert max(map(len, lines)) > width - 20
    assert any("over 2 lines." in line for line in lines)
    assert any(line.startswith("  Flags: integers in any notation") for line in lines)


@pytest.mark.quick
def test_a_config_keeps_the_words_that_it_allows_without_being_another():
    assert Config().known_words == {"colour": COLOURS, "kind": MANY}
    assert Config() == Config()
    assert cases(Config(size=(1,)))[0].config.known_words["kind"] == MANY
    assert test_cli.Config().known_words == {}


QUICK = {"size": (1,), "weight": 0.25, "kind": "name_1", "colour": ("red",)}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "expected", "replaced"),
    [
        (
            "--size 7 9 --colour blue --quick",
            {"size": (1,), "weight": 0.25, "colour": ("blue",)},
            "--size 7 9",
        ),
        ("--quick --size 7 9", {"size": (7, 9), "weight": 0.25}, ""),
        ("--size 7 --quick --size 9", {"size": (9,)}, ""),
        ("--weight=3 --kind name_2 --quick", {"weight": 0.25, "kind": "name_2"}, "--weight 3.0"),
        ("--size 2**4 1e3 --quick --size 9 --quick", {"size": (1,)}, "--size 9"),
        ("--seed 3 --size 7", {"seed": 3, "size": (7,), "weight": 0.5}, ""),
        ("--seed 3 --count 4 --quick", {"seed": 3, "count": 4}, ""),
        ("--size 7 --quick --no-quick", {"size": (7,), "weight": 0.5}, ""),
    ],
)
def test_quick_replaces_the_numbers_in_front_of_it(words, expected, replaced):
    line = read(Config, QUICK, words.split(), "test_flags")
    assert {name: getattr(line.config, name) for name in expected} == expected
    assert line.notes == [
        f"--quick takes its own sizes in place of {taken}; flags after --quick are kept"
        for taken in filter(None, [replaced])
    ]


@pytest.mark.quick
def test_settings_are_checked_when_all_layers_are_known_and_the_help_shows_those_of_quick(capsys):
    line = read(timing.Config, timing.QUICK, ["--n", "2**60", "--quick"], "timing")
    assert line.config.n == timing.QUICK["n"]
    with pytest.raises(SystemExit):
        read(Config, QUICK, ["--quick", "--help"], "test_flags")
    assert "Weight of the toy. (default: 0.25)" in capsys.readouterr().out


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "message"),
    [("--size --quick", "--size has no value"), ("--size many --quick", "'many'; allowed: an integer")],
)
def test_what_is_no_number_in_front_of_quick_is_refused(words, message, capsys):
    status, text = ended(capsys, *words.split())
    assert status == 2
    assert message in text


def test_a_command_that_quick_makes_small_says_what_was_replaced(tmp_path, capsys):
    run = ["--backend", "cpu", "--results", str(tmp_path), "--size", "7", "--colour", "red", "--quick"]
    main(Config, measure, lambda table, folder: None, {"size": (1,)}, run)
    assert (
        "--quick takes its own sizes in place of --size 7; flags after --quick are kept"
        in capsys.readouterr().err
    )
    (table,) = tmp_path.glob("*/*/table.csv")
    assert set(pd.read_csv(table)["size"]) == {1}
