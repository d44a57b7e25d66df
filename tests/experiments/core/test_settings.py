"""What a Config takes: the classes of its annotations, ranges, and no more than there is room for."""

import importlib
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import psutil
import pytest

import sfc
from experiments import encode, reorder_cost, timing
from experiments.__main__ import listing
from experiments.core import Settings, main
from experiments.core.command_line import read
from experiments.core.settings import MOST_CASES, Scene, UsageError, cases
from tests.experiments import toy
from tests.experiments.core.test_survival import run
from tests.experiments.runs import views

pytestmark = pytest.mark.quick


@dataclass(frozen=True)
class Config(Settings):
    """A toy sweep."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache",)

    size: tuple[int, ...] = (1, 2)
    """Sizes."""
    cache: tuple[int, ...] = (1, 2)
    """Taken whole."""
    weight: float = 0.5
    """Weight."""
    fused: tuple[bool, ...] = (False,)
    """Flags."""
    name: str = ""
    """Name."""
    others: list[str] = ()
    """Names."""


def test_numpy_values_become_plain_ones():
    config = Config(
        size=(np.uint8(200), np.int64(3)),
        weight=np.float32(0.5),
        fused=np.True_,
        seed=np.int16(4),
        others=["a"],
    )
    assert config.size == (200, 3)
    found = [*config.size, config.weight, config.fused, config.seed, config.others]
    assert [type(value) for value in found] == [int, int, float, bool, int, list]
    assert type(Config(weight=1).weight) is float


@pytest.mark.parametrize(
    ("change", "expected_message"),
    [
        ({"size": ("1",)}, r"--size = '1' of class str; allowed: an integer"),
        ({"size": 1.5}, r"--size = 1.5 of class float"),
        ({"size": (True,)}, r"--size = True of class bool"),
        ({"cache": 3}, r"--cache = 3 of class int; allowed: a sequence"),
        ({"weight": None}, r"--weight = None of class NoneType; allowed: a finite number"),
        ({"weight": "1"}, r"--weight = '1' of class str"),
        ({"fused": 1}, r"--fused = 1 of class int; allowed: True or False"),
        ({"name": 3}, r"--name = 3 of class int; allowed: text"),
        ({"others": "lammps"}, r"--others = 'lammps' of class str; allowed: a sequence"),
        ({"seed": 1.0}, r"--seed = 1.0 of class float"),
        ({"backend": None}, r"--backend = None of class NoneType"),
    ],
)
def test_a_value_of_a_wrong_class_is_refused_by_its_flag(change, expected_message):
    with pytest.raises(TypeError, match=expected_message):
        Config(**change)


@pytest.mark.parametrize(
    ("change", "expected_message"),
    [
        ({"weight": float("nan")}, r"--weight = nan; allowed: a finite number"),
        ({"seed": -1}, r"--seed = -1; allowed: an integer of at least 0"),
        ({"repeats": 0}, r"--repeats = 0; allowed: an integer of at least 1"),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_flag(change, expected_message):
    with pytest.raises(ValueError, match=expected_message):
        Config(**change)


def test_ranges_name_flag_value_and_what_is_allowed():
    config = Config(size=(5, 2), weight=2.5)
    config.check_least({"size": 2, "weight": 1})
    config.check_above_zero({"weight": 2.5})
    with pytest.raises(ValueError, match="--size = 2; allowed: an integer of at least 3"):
        config.check_least({"size": 3})
    with pytest.raises(ValueError, match=r"--weight = 2.5; allowed: a finite number above 0, up to 2"):
        config.check_above_zero({"weight": 2.0})
    with pytest.raises(ValueError, match=r"--weight = 2.5; allowed: a finite number below 2.5; less"):
        config.check("weight", below=2.5, remedy="less")
    with pytest.raises(ValueError, match="unknown name ''; allowed: one of a, b"):
        config.check_known({"name": ("a", "b")})


@pytest.mark.parametrize("name", sfc.point_orders())
def test_an_order_of_points_is_refused_where_cells_are_ordered(name):
    remedy = f"{name} ranks points and not cells: sfc.argsort, sfc.sort and experiments.foresee take it$"
    for config, words in ((encode.Config, {"curve": (name,)}), (timing.Config, {"ordering": (name,)})):
        with pytest.raises(
            ValueError, match=f"unknown [a-z]+ '{name}'; allowed: one of .*hilbert.*; {remedy}"
        ):
            config(**words)
    with pytest.raises(ValueError, match=f"unknown name '{name}'; allowed: one of a, b$"):
        Config(name=name).check_known({"name": ("a", "b")})


def test_too_many_cases_are_refused_before_one_is_made():
    for config in (Config(repeats=10**30), Config(size=tuple(range(400)), cache=(1,), repeats=400)):
        with pytest.raises(
            UsageError, match=rf"of --repeats .* cases; allowed: up to {MOST_CASES:,}; take fewer"
        ):
            cases(config)
    with pytest.raises(UsageError, match="400 of --repeats x 400 of --size: 160,000 cases"):
        cases(Config(size=tuple(range(400)), repeats=400))
    assert len(cases(Config(repeats=3))) == 6


TOO_MUCH = {
    "cache_hit": "--size 9000000",
    "cards": "--n 9999999999999",
    "cavity": "--n 9999999",
    "cavity_flow": "--n 99999999",
    "cooling": "--n 9999999999999",
    "contacts": "--n 9999999999999",
    "counters": "--n 9999999999999",
    "decay": "--size 9000000",
    "encode": "--n 9999999999999",
    "flock_order": "--n 9999999999999",
    "flocking": "--n 9999999999999",
    "foresee": "--n 9999999999999",
    "interval": "--n 1024 9999999999999",
    "ladder": "--n 9999999999999",
    "lift": "--chord 1e200",
    "mixture": "--n " + 400 * "9",
    "reorder_cost": "--n 9999999999999",
    "roofline": "--n 9999999999999",
    "scaling": "--n 9999999999999",
    "searches": "--n 9999999999999",
    "shaken": "--length 1e300",
    "surface": "--n 9999999999999",
    "timing": "--n 9999999999999",
    "writes": "--n 9999999999999",
}
WITHOUT_PARTICLES = (
    "advise",
    "advised",
    "curves",
    "foreseen",
    "machine",
    "pictures",
)  # cases of the others are small or given
TOO_MUCH_ELSE = [
    ("timing", "--height 1e300 --scene box"),
    ("decay", "--n 9999999999999 --scene flock"),
    ("contacts", "--builds 9999999999999 --array boxes"),
    ("contacts", "--filling-fraction 1e-12 --array cells"),
    ("cavity_flow", "--pictures 99999999999"),
    ("cooling", "--observations 9999999999999"),
    ("decay", "--observations 9999999999999"),
    ("lift", "--cells 99999999"),
    ("lift", "--frames 99999999999"),
    ("cache_hit", f"--size {400 * '9'}"),
]


@pytest.mark.parametrize(
    ("name", "flags"),
    [*((n, TOO_MUCH.get(n)) for n in listing() if n not in WITHOUT_PARTICLES), *TOO_MUCH_ELSE],
)
def test_no_experiment_begins_what_the_machine_has_no_memory_for(name, flags, tmp_path, capsys):
    module = importlib.import_module(f"experiments.{name}")
    arguments = ["--backend", "cpu", "--results", str(tmp_path), *flags.split()]
    with pytest.raises(SystemExit) as ended:
        main(module.Config, module.measure, views(module), module.QUICK, arguments)
    assert ended.value.code == 2
    message = re.sub(r"\W+", " ", capsys.readouterr().err)  # the words, as they stand in a frame
    assert re.sub(r"\W+", " ", flags.split()[0]).strip() in message
    assert "bytes allowed up to" in message
    assert "the memory of this machine" in message
    assert not list(tmp_path.iterdir())


def test_all_that_is_in_memory_at_once_is_counted(monkeypatch):
    room = 100 * 1000  # bytes, of a thousand particles
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=room))
    box = {
        **timing.Config.SCENES["box"].defaults,
        "length": 10.0,
        "height": 5.0,
        "filling_fraction": (0.3,),
    }  # 287 spheres
    timing.Config(**box | {"ordering": ("shuffled", "row")})
    with pytest.raises(UsageError, match="--height 5, 4 times at once,: 1,146 spheres"):
        timing.Config(**box | {"ordering": ("shuffled", "row", "hilbert")})
    small = {"n": (100,), "memory": ("fresh",)}
    reorder_cost.Config(**small)  # two places that are here, a twin, and a copy of each
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=room - 1))
    with pytest.raises(UsageError, match="--n 100, 10 times at once,"):
        reorder_cost.Config(**small, backend="cuda")
    with pytest.raises(UsageError, match="--n 100, 12 times at once,"):
        reorder_cost.Config(n=(100,), memory=("fresh", "aged"), backend="cpu")


def test_the_seed_of_a_run_is_told_by_runs(capsys):
    with pytest.raises(SystemExit):
        main(timing.Config, timing.measure, timing.VIEWS, timing.QUICK, ["--help"])
    expected_message = " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
    assert "Each further run uses the next seed" in expected_message
    assert "repeat" not in expected_message


def test_spheres_larger_than_half_the_box_are_refused(capsys, tmp_path):
    module = importlib.import_module("experiments.mixture")
    with pytest.raises(ValueError, match=r"--widest = 1e\+30; allowed: .* half the box\); take more spheres"):
        module.Config(widest=(1e30,))


def test_too_many_repeats_end_with_status_2(tmp_path, capsys):
    assert run("--results", tmp_path, "--repeats", "9" * 30) == 2
    assert "cases; allowed: up to 100,000" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_seed_may_be_as_large_as_numpy_takes_it():
    assert cases(Config(seed=10**30, repeats=2))[-1].config.seed == 10**30 + 1
    np.random.default_rng(10**30)


@pytest.mark.quick
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_an_integer_of_more_than_64_bits_is_refused_but_for_a_seed(value):
    for wrong in ({"size": (1, value)}, {"cache": (value,)}):
        with pytest.raises(
            ValueError, match=rf"--(size|cache) = {value}; allowed: an integer from -2\*\*63 to"
        ):
            cases(Config(**wrong))


@pytest.mark.parametrize("count", [2**50, 10**400, 1e300, float("inf"), float("nan")])
def test_more_than_the_machine_holds_is_refused_with_the_bytes(count):
    total = psutil.virtual_memory().total
    with pytest.raises(
        UsageError, match=rf"--n 1: .* bytes; allowed: up to {total:,} bytes, the memory of this"
    ):
        Config().check_memory("--n 1", count, "particles")
    Config().check_memory("--n 1", total // 100, "particles")


@pytest.mark.parametrize("name", ["shuffled", "lattice"])
def test_no_config_takes_a_curve_with_the_name_of_a_baseline(name, monkeypatch):
    monkeypatch.setattr("sfc.registry._registered", {})
    rules = {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"}
    sfc.register(sfc.curve_from_grammar(name, 2, "A", rules))
    with pytest.raises(UsageError, match=rf"a curve named '{name}'.*allowed: any name but shuffled, lattice"):
        Config()


@pytest.mark.parametrize("text", ["wing_\udcc3\udca4.dat", "\udcff"])
def test_a_text_that_no_table_holds_is_refused_before_measuring(tmp_path, text, capsys):
    assert run("--results", tmp_path, "--colour", "red", text) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert f"--colour = {text!r}; allowed: letters that this locale can read and write" in message
    assert "set PYTHONUTF8=1" in message
    assert not list(tmp_path.iterdir())


def test_a_text_that_cannot_be_in_the_name_of_a_file_is_refused(monkeypatch):
    monkeypatch.setattr("os.fsencode", lambda text: text.encode("ascii"))  # as in the locale C
    assert toy.Config(colour="red").colour == "red"
    with pytest.raises(ValueError, match="--colour = 'ä'; allowed: letters that this locale"):
        toy.Config(colour="ä")


@dataclass(frozen=True)
class WithScenes(Settings):
    """A sweep of two scenes."""

    SCENES: ClassVar[dict[str, Scene]] = {
        "wide": Scene(("depth",)), "deep": Scene(("size",), {"scene": "deep", "count": 7}, {"count": 2})
    }  # fmt: skip

    scene: str = "wide"
    """Scene."""
    size: tuple[int, ...] = (1, 2)
    """Size."""
    depth: tuple[int, ...] = (3,)
    """Depth."""
    count: int = 4
    """Count."""


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ("", 4),
        ("--scene deep", 7),
        ("--count 5 --scene=deep", 5),
        ("--scene deep --quick", 2),
        ("--quick", 3),
    ],
)
def test_a_scene_has_defaults_and_sizes_of_its_own(flags, count):
    assert read(WithScenes, {"count": 3}, flags.split(), "toy").config.count == count


def test_a_setting_that_a_scene_lacks_is_no_axis_and_is_refused():
    assert set(cases(WithScenes())[0].place) == {"case", "repeat", "size"}
    assert set(cases(WithScenes(scene="deep"))[0].place) == {"case", "repeat", "depth"}
    with pytest.raises(UsageError, match=r"--size 1 9 beside --scene deep.*allowed: --size with other"):
        WithScenes(scene="deep", size=(1, 9))
