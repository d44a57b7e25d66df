"""Origin of the numbers of a claim: commit, device, sizes and command of each kept run that it reads."""

import functools
import importlib
import shlex
from dataclasses import MISSING, dataclass, fields
from typing import Any

from experiments.core.old_names import settings_now
from experiments.core.provenance import read_provenance
from experiments.core.rerun import experiment_of
from experiments.core.settings import Scene, UsageError, flag_of, values
from experiments.results.claims.claim import Claim
from experiments.results.kept.listing import COLUMNS, commit_of_kept, is_same_anywhere, read_about, row
from experiments.results.kept.queries import REFERENCE

COMMAND = "python -m experiments."
CPU = "cpu"


@dataclass(frozen=True)
class Origin:
    """Kept run that a claim reads.

    Args:
        run: its folder below `results/reference`.
        commit: of the code that measured, in seven digits.
        device: where it was measured.
        n: sizes.
        command: what measures it again, see `command_of`.
    """

    run: str
    commit: str
    device: str
    n: str
    command: str


def origins(claim: Claim) -> list[Origin]:
    """Return the origins of a claim's numbers, a kept run each, in the order of its queries.

    Args:
        claim: which.

    Raises:
        UsageError: a kept run that is damaged.
    """
    return [origin(run) for run in claim.runs]


@functools.cache
def origin(run: str) -> Origin:
    """Return the facts of a kept run.

    Args:
        run: its folder below `results/reference`.

    Raises:
        UsageError: a folder that is no kept run, or is damaged.
    """
    folder = REFERENCE / run
    cells = dict(zip(COLUMNS, row(folder, read_about(folder)), strict=True))
    return Origin(run, commit_of_kept(folder), cells["where"], cells["n"], command_of(run))


def command_of(run: str) -> str:
    """Return the command line that measures a kept run again, in the present names of experiment and flags.

    It has the backend and each setting that is not the default of today, so that a default that is changed
    later does not change what is measured. Of a run that any machine repeats the backend is the CPU.

    Args:
        run: its folder below `results/reference`.

    Raises:
        UsageError: a provenance that is damaged, or has a setting that its experiment no longer has.
    """
    folder = REFERENCE / run
    recorded = read_provenance(folder)
    experiment = experiment_of(folder, recorded)
    config_type: Any = importlib.import_module(f"experiments.{experiment}").Config
    settings = settings_now(recorded["config"], recorded["experiment"], timed=config_type.CHANCE == "run")
    if unknown := sorted(set(settings) - {field.name for field in fields(config_type)}):
        raise UsageError(
            f"{run} has settings that {experiment} has no longer: {', '.join(unknown)}; allowed: those of "
            "today; add their present names to NAMES in core/old_names.py"
        )
    words = ["--backend", CPU if is_same_anywhere(folder) else recorded["backend"]["name"]]
    scene = settings.get(config_type.SCENE, "")  # of some experiments an axis, which changes nothing
    of_scene = config_type.SCENES.get(scene, Scene()).defaults if isinstance(scene, str) else {}
    for field in fields(config_type):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        value = settings.get(field.name, default)
        is_default = [*values(value)] == [*values(of_scene.get(field.name, default))]
        if (field.name == config_type.SCENE and of_scene) or (field.name != "backend" and not is_default):
            words += [flag_of(field.name), *map(str, values(value))]
    return f"{COMMAND}{experiment} {shlex.join(words)}"
