"""Gains, intervals and noise floors are computed in results/gains.py alone: rules on the sources."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "experiments"
ENGINE = tuple(f"results/{name}.py" for name in ("gains", "reductions", "pooling", "estimate"))
INTERVALS = {"stdtrit", "t", "sem", "gmean", "bootstrap", "norm", "ttest_ind", "ttest_rel"}  # of scipy
TIME = re.compile(r"(\b|_)(ms|us|ns|time|times)(_|$)|^(centre|gain|cost)$")  # names and columns of times
COUNTS = {
    "n",
    "steps",
    "spheres",
    "particles",
    "points",
    "rounds",
    "calls",
}  # a time of one is no gain
ALLOWED = {  # file -> how many places, and why they are no gains of the engine
    "advice/forecast.py": (1, "gains of forecasts, which have no rounds"),
    "advice/how_often.py": (3, "the wear of an order over a new one in the same memory, in one process"),
    "advice/report.py": (1, "a step of which the use is a part"),
    "advice/verdict.py": (2, "rounds of one process, each in memory of its own, where the engine has runs"),
    "advised.py": (1, "the error of a median of processes"),
    "cache_hit.py": (1, "a forecast for a machine, which has no rounds"),
    "cooling.py": (2, "times of the physics of a gas"),
    "counters.py": (1, "correlations of ranks, resampled"),
    "measurement/kernel_counters.py": (1, "the share of a kernel in all kernels"),
    "forecasts/compared.py": (
        4,
        "spreads of rounds and copies, and gains of forecasts, which have no rounds",
    ),
    "forecasts/ranks.py": (1, "the largest work of ranks over their mean, in one sample"),
    "foreseen.py": (1, "the slowest order of a forecast, which has no rounds"),
    "prediction/order_in_flock.py": (1, "the part of a gain that is left, beside that of a model of misses"),
    "prediction/wear.py": (1, "the best interval of a model"),
    "results/baselines.py": (1, "the name of a second measurement"),
    "roofline.py": (2, "shares of a step, and of the floor of a model"),
    "scaling.py": (2, "the largest work of ranks over their mean, and the parts of one rank's time"),
    "searches.py": (1, "the share of the floor of a model"),
    "writes.py": (1, "gains of forecasts, which have no rounds"),
}


def computed(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and reason of each place that computes a gain, an interval or a noise floor."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in INTERVALS:
            if {"stats", "scipy", "special"} & {part for part in ast.unparse(node.value).split(".")}:
                yield node.lineno, f"an interval by scipy's {node.attr}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if _times(node.left) and (_times(node.right) or _columns(node.right) - COUNTS):
                yield node.lineno, "a quotient of times"
        if isinstance(node, ast.Call) and _called(node) in ("div", "rdiv", "truediv", "divide"):
            if _times(node):
                yield node.lineno, "a quotient of times"
        if isinstance(node, ast.Call) and _called(node) in ("percentile", "quantile", "nanpercentile"):
            if {2.5, 97.5, 0.025, 0.975} & {part.value for part in ast.walk(node) if _is(part, float)}:
                yield node.lineno, "an interval of percentiles"
        if isinstance(node, ast.Call) and _called(node) == "sem":
            yield node.lineno, "an interval by standard errors"
        if _is(node, str) and node.value == " again":
            yield node.lineno, "second measurements, for a noise floor"


def _is(node: ast.AST, kind: type) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, kind)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _columns(node: ast.AST) -> set[str]:
    """Names of the columns that an expression reads."""
    parts = [part.slice for part in ast.walk(node) if isinstance(part, ast.Subscript)]
    return {part.value for one in parts for part in ast.walk(one) if _is(part, str)}


def _times(node: ast.AST) -> set[str]:
    """Names and columns of times in an expression."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return {name for name in names | _columns(node) if TIME.search(name)}


def test_only_the_engine_computes_gains_intervals_and_noise_floors():
    files = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}
    found = {name: [f"{line}: {why}" for line, why in computed(tree)] for name, tree in files.items()}
    assert any([found.pop(file, []) for file in ENGINE]), "the rules do not see the engine"
    counts = Counter({name: len(places) for name, places in found.items() if places})
    assert counts == {name: count for name, (count, _) in ALLOWED.items()}, (
        f"found {[(name, places) for name, places in found.items() if places]}; allowed: the places of "
        f"ALLOWED; take `estimates`, `over_runs` or `gains` of experiments/{ENGINE[0]}"
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("reach = stats.t.interval(0.95, n - 1)", "scipy's t"),
        ("reach = scipy.special.stdtrit(2, 0.975) * sem", "scipy's stdtrit"),
        ("gain = base['time_ms'] / own['time_ms']", "quotient"),
        ("gain = rows.groupby('run')['time_ms'].median() / base['median']", "quotient"),
        ("found['gain'] = base_ms / own_ms", "quotient"),
        ("gain = base['time_ms'].div(own)", "quotient"),
        ("low, high = np.percentile(ratios, [2.5, 97.5])", "percentiles"),
        ("error = 2 * blocks['lift'].sem()", "standard errors"),
        ("twins = names.str.endswith(' again')", "second measurements"),
    ],
)
def test_a_gain_elsewhere_is_seen(source, why):
    assert [why in reason for _, reason in computed(ast.parse(source))] == [True]


@pytest.mark.parametrize(
    "source",
    ["each = 1e6 * found['time_ms'] / found['n']", "ms = elapsed[0] / steps", "share = hits / reads"],
)
def test_other_quotients_are_none(source):
    assert not list(computed(ast.parse(source)))
