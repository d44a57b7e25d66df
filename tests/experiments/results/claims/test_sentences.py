"""Sentences of the pages that no command writes: their numbers are those of the kept tables."""

import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from experiments.results.baselines import is_again, original
from experiments.results.claims.claim import CONFIRMED, REFUTED, WORDS
from experiments.results.claims.numbers import CPU, NUMBERS, STEP
from experiments.results.claims.queries import gain, lowest, number
from experiments.results.claims.subjects.physics import DECADES, DENSE, cooling_time
from experiments.results.kept.queries import REFERENCE, evaluate
from experiments.results.page.numbers import of_claims, of_page
from experiments.results.page.sections import SECTIONS
from experiments.results.reliability import SMALL
from tests.experiments.results.claims.judged import IDS, judged

RESULTS = REFERENCE.parent
ROOT = RESULTS.parent
TEMPLATES = ROOT / "experiments" / "results" / "page" / "templates" / "sections"
TRIED = (
    "one of the three models tried, each of one reader at a time, "
    "ranked the orders by hit ratio as the chip does"
)
SAYS = {
    "README.md": (
        "a step is {n.lists} times as fast as with linked cells, both in rows",
        "gain {n.hilbert_lattice} over the order of the start, {n.youngest.value} to {n.oldest.value} steps",
        "{n.hilbert} over shuffled memory",
        "[28 claims](results/README.md) ({confirmed} confirmed, {refuted} refuted)",
        "rows are {n.rows_over_hilbert.value} times as fast as Hilbert's",
        "over shuffled memory {n.small} at 2^17, {n.large} at 2^23",
        TRIED,
    ),
    "results/README.md": (
        "Neighbour lists are {n.lists} times as fast as linked cells",
        "order of the start ({n.youngest.value} to {n.oldest.value}; CPU {cpu_ages}) | {n.hilbert_lattice} | "
        "{n.rows_lattice} | {n.h100_lattice} | {n.cpu_lattice} |",
        "shaken box (up to {T12.age.value}), 1.0 million | {T12.lattice_20_h200} | | {T12.lattice_20} |",
        "| shuffled | {n.hilbert} | {n.rows} | {n.h100_shuffled} | {n.cpu} |",
        "gains {n.small} at 2^17, {n.large} at 2^23",
        "differed by up to {n.cpu_step.noise} in a step, {n.copy.noise} in a copy",
        TRIED,
    ),
    "results/GUIDE.md": (
        "|{box_lattice} (up to {T12.age.value})|{box_shuffled}|",
        "over the order of the start, {n.youngest.value} to {n.oldest.value} steps old or as given",
        "{F3.serial.value} ({F3.serial.low} to {F3.serial.high}, three runs)",
    ),
    "results/details/gas.md": (
        "{T12.lattice_5} | {T12.lattice_20} | {T12.lattice_40} | {T12.lattice_50} |",
        "{T12.shuffled_5} | {T12.shuffled_20} | {T12.shuffled_40} | {T12.shuffled_50} |",
        "gain over lattice memory of {T12.short_contacts}, {n.box_three_windows} and {T12.long_contacts}",
        "{T12.lattice_5_h200} | {T12.lattice_20_h200} | {T12.lattice_40_h200} | {T12.lattice_50_h200} |",
        "{T12.shuffled_5_h200} | {T12.shuffled_20_h200} | {T12.shuffled_40_h200} | {T12.shuffled_50_h200} |",
        "at 20 % on an H100 the first three windows gave {n.box_three_windows} over the lattice",
        "in the cubic gas {n.cpu_force} of all phases in shuffled memory and {n.cpu_force_lattice} in",
        "{n.kernel}; timed steps: {n.kernel_steps}",
        "Peano is {T16.kernel} times as fast as Hilbert",
        "a step in shuffled memory measured twice differs by {n.cpu_step.noise}",
        "takes {n.verlet_timing} ms in `timing` and {n.verlet_searches} in `searches`",
        "were 6 % apart ({n.verlet_ms.value} and 0.0612 ms; H100 {n.verlet_h100.value} and "
        "{n.verlet_searches_h100.value})",
        "in the shaken box {n.box_youngest.value} to {T12.age.value} steps (fused) or "
        "{n.phases_youngest.value} to {T11.age.value} (in phases)",
        "{n.phases_youngest.value} to {T11.age.value} steps old: | over | part",
        "| lattice, {n.box_youngest.value} to {T12.age.value} steps old |",
        "in the cubic gas {n.youngest.value} to {n.oldest.value} steps, on the CPU {cpu_ages}",
    ),
    "results/details/predictions.md": (
        "half is lost after {T8.half_32.value}, {T8.half_64.value} and {T8.half_128.value} steps at 32, 64",
        "a second measurement of a case differs by up to {n.reorder.noise}",
    ),
    "results/details/tree.md": (
        "a step gains {L1.h100} at 2^21 on the H100 and {L1.h200} on the H200",
        "does not gain 43 %: {L2.h100} on the H100, {L2.h200} on the H200",
        "(ropes) gains {L2.ropes} and {L2.ropes_h200}",
        "| as in [lift], H100 | 2.14 | 2.22 | {L3.walk} | {L3.walk_small} |",
        "| as in [lift], H200 | 1.99 | 2.01 | {L3.walk_h200} | {L3.walk_small_h200} |",
        "In time it is a loss: {L4.h100} on the H100, {L4.h200} on the H200",
        "| 2^17 | 0.229 | 0.249 | {L6.h100} | 0.218 | 0.238 | {L6.h200} |",
        "15 d ahead of the nose the density is {L7.ahead} times that of the stream",
        "rows read {L8.far_in_memory[bytes]} times the bytes of Hilbert's order",
    ),
}  # page -> templates of what it says


COUNTERS, PHASED, BOX = "counters/h200_three_runs", "speed_up/h100", "timing/h100_box"
H100 = f"search == 'linked' and {STEP}"
PHASES = "phase in ('force', 'build', 'integrate')"
IN_BOX = "fused and contact_time == 2e-4 and filling_fraction == 0.2 and part == 'total' and ordering == '?'"
VERLET = "search == 'verlet' and n == 2**21 and filling_fraction == 0.2"


def cpu_force(ordering):
    """The force's part of a step on a CPU."""
    where = f"phase ? and filling_fraction == 0.2 and ordering == '{ordering}'"
    return gain(CPU, where, "== 'force'", PHASES.removeprefix("phase "), statistic="part of sums")


OF_NO_CLAIM = {
    "reorder": number("reorder_cost/h200", "n > 0", "time_ms"),
    "copy": number("encode/cpu_vbmi", "encoder == 'copy'", "time_ms"),
    "kernel": gain(
        COUNTERS, "what == 'kernel' and ordering == '?'", "hilbert", "shuffled", statistic="gain of medians"
    ),
    "kernel_steps": gain(COUNTERS, "what == 'time' and ordering == '?'", "hilbert", "shuffled"),
    "cpu_force": cpu_force("shuffled"),
    "cpu_force_lattice": cpu_force("lattice"),
    "verlet_searches": number("searches/h200_verlet", VERLET, "time_ms"),
    "verlet_timing": number("timing/h200_verlet", f"{VERLET} and {STEP}".replace("?", "row"), "time_ms"),
    "h100_lattice": gain("timing/h100", H100, "hilbert", "lattice"),
    "h100_shuffled": gain("timing/h100", H100, "hilbert", "shuffled"),
    "verlet_h100": number("timing/h100", f"search == 'verlet' and {STEP}".replace("?", "row"), "time_ms"),
    "verlet_searches_h100": number("searches/h100", VERLET, "time_ms"),
    "box_three_windows": gain(PHASED, IN_BOX, "pancake", "aged", statistic="gain of sums"),
    "box_youngest": lowest(
        number(BOX, "fused and ordering == 'aged'", "age_steps - sample_ms / time_ms + 1", "min"), "round"
    ),
    "phases_youngest": lowest(
        number(
            PHASED,
            "not fused and ordering == 'aged' and part == 'force'",
            "age_steps - 2 * sample_ms / time_ms",
            "min",
        ),
        "round",
    ),
}  # numbers of sentences that neither a claim nor the page of the results has


@cache
def numbers() -> dict:
    """Name of a claim, or n for numbers of no claim -> its numbers; ages on a CPU, small integers."""
    found: dict = {name: SimpleNamespace(**of) for name, of in of_claims(map(judged, IDS)).items()}
    n = of_page() | of_page(OF_NO_CLAIM, ())
    ages = (float(n[f"cpu_{name}"].value) for name in ("youngest", "oldest"))
    box = judged("T12").answers
    stars = {
        f"box_{over}": ", ".join(
            f"{box[f'{over}_{phi}'].value:.2f}{'*' * (SMALL in box[f'{over}_{phi}'].warnings)}"
            for phi in (5, 20, 40)
        )
        for over in ("lattice", "shuffled")
    }
    ages_on_cpu = " to ".join(f"{age:.0f}" for age in ages)
    counts = {word: sum(judged(id).word == word for id in IDS) for word in (CONFIRMED, REFUTED)}
    return found | stars | counts | {"n": SimpleNamespace(**n), "cpu_ages": ages_on_cpu}


def text_of(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("page", "template"), [(page, one) for page, said in SAYS.items() for one in said])
def test_a_page_says_what_the_tables_do(page, template):
    assert template.format(**numbers()) in text_of(page)


@pytest.mark.parametrize(
    ("run", "n", "shown"),
    [
        *((run, n, shown) for run in ("h200_10_percent", "cpu_decades")
          for n, shown in ((16384, "16,384"), (4096, "4096"))),
        ("cpu_decades", 1024, "1024"),
    ],
)  # fmt: skip
def test_a_page_has_the_cooling_times_of_the_verdict(run, n, shown):
    asked = (cooling_time(f"cooling/{run}", f"n == {n} and {DENSE}", decade) for decade in DECADES)
    times = " | ".join(f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})" for one in map(evaluate, asked))
    assert f"| `{run}` | {shown} | {times} |" in text_of("results/details/physics.md")


def test_a_verdict_that_a_page_names_is_that_of_the_rules():
    said = []
    for page in [ROOT / "README.md", *RESULTS.glob("**/*.md")]:
        said += re.findall(rf"\b([TLBF]\d+) is ({'|'.join(WORDS)})", " ".join(page.read_text().split()))
    assert len(said) > 4
    assert [(name, word) for name, word in said if judged(name).word != word] == []


KEYS = ("n", "filling_fraction", "contact_time", "search", "precision", "fused", "part", "phase", "what",
        "start", "age", "widest", "room", "reorder_every", "speed", "schedule", "place", "direction", "dim",
        "bits", "layout", "interval", "steps", "run", "round")  # fmt: skip
MEASURED = ("run", "time_ms")


def differences(path) -> pd.DataFrame:
    """The factor between the two measurements of each case that was measured twice, by run."""
    table = pd.read_parquet(path)
    labels = [name for name in table if table[name].map(is_again).any()]
    keys = [name for name in KEYS if name in table and name not in labels]
    found = []
    for label in labels:
        second = table[table[label].map(is_again)]
        second = second.assign(**{label: second[label].map(original)})
        both = second.merge(table, on=[*keys, label], suffixes=("", "_first"))
        both = both.assign(apart=np.log(both["time_ms"] / both["time_ms_first"]))
        of_runs = [key for key in keys if key not in ("round", "steps")]
        found.append(both.groupby([*of_runs, label], dropna=False)["apart"].median().abs().reset_index())
    return pd.concat(found) if found else pd.DataFrame()


def test_equal_code_differed_by_no_more_than_the_page_says():
    steps, every = {}, {}
    for path in REFERENCE.glob("*/*/table.parquet"):
        if set(MEASURED) <= set(pq.read_schema(path).names) and len(found := differences(path)):
            every[path] = np.exp(found["apart"].max())
            for name, whole in (("phase", "step with reorder"), ("part", "total")):
                found = found[found[name] == whole] if name in found else found
            if "encode" not in path.parts:
                steps[path] = np.exp(found["apart"].max())
    assert len(every) > 30
    assert max(every.values()) == pytest.approx(evaluate(OF_NO_CLAIM["copy"]).noise_floor)
    assert max(steps.values()) == pytest.approx(evaluate(NUMBERS["cpu_step"]).noise_floor)


@pytest.mark.parametrize("page", ["README.md", "results/README.md", "results/GUIDE.md"])
def test_a_gain_over_the_order_of_the_start_has_its_age(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [part for block in text.split("\n\n") for part in re.split(r"\n(?=\|[TLBF]\d)", block)]
    said = [one for one in blocks if re.search("order of the start|over (the )?lattice", one)]
    said = [one for one in said if re.search(r"\d\.\d\d", one)]
    assert said
    assert [one for one in said if not re.search(r"[\d,]+ steps|age in steps", one)] == []


def test_sections_of_the_page_and_of_the_gas_tell_the_age_too():
    parts = [(TEMPLATES / f"{one.id}.html").read_text(encoding="utf-8") for one in SECTIONS]
    parts += re.split(r"\n## ", (RESULTS / "details" / "gas.md").read_text(encoding="utf-8"))
    said = [
        one for one in parts if re.search(r"order\s+of\s+the\s+start|\| lattice \||over (the )?lattice", one)
    ]
    assert len(said) > 4
    assert [one[:60] for one in said if not re.search(r"[\d,}]\s+steps", one)] == []


def test_no_page_denies_that_programs_have_shuffled_memory_or_that_models_rank():
    pages = [ROOT / "README.md", *RESULTS.glob("**/*.md"), *TEMPLATES.glob("*.html")]
    pages += (ROOT / "experiments").glob("**/*.py")
    for page in pages:
        text = " ".join(page.read_text(encoding="utf-8").split()).lower()
        for false in ("no running program", "no program starts", "no model of a cache", "no model rank"):
            assert false not in text, page
