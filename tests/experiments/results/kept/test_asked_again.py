"""The commands of a claim make rows of its kept runs again: they have the settings of these runs."""

from dataclasses import asdict
from importlib import import_module

import pytest

from experiments.core.old_names import experiment_now
from experiments.core.rerun import config_of
from experiments.core.settings import values
from experiments.results.claims.claim import collected, every
from experiments.results.claims.commands import parse
from experiments.results.kept.listing import read_about
from experiments.results.kept.queries import REFERENCE

MEASURED = {claim.id: claim for claim in every(collected()) if claim.queries}
# Commands with other settings than those of the kept run, to be mended in the file of claims.
OTHERS = {"T3", "T12", "T15", "T16", "L8 far_in_memory", "L8 long_lists", "B1", "F1", "F2", "F3"}


def differences(line: str, run: str) -> list[str]:
    """Settings by which a command makes no row of a kept run: axes without a common value, other settings."""
    name = experiment_now(run.split("/")[0])
    config_type = import_module(f"experiments.{name}").Config
    kept, asked = asdict(config_of(REFERENCE / run, "--from", config_type, name)), asdict(parse(line))
    if read_about(REFERENCE / run).get("where", "").startswith("any machine"):
        asked["backend"] = kept["backend"]
    found = []
    for name, value in kept.items():
        in_common = set(values(asked[name])) & set(values(value)) if isinstance(asked[name], tuple) else False
        if asked[name] != value and not in_common:
            found.append(f"{name} {asked[name]}, kept {value}")
    return found


@pytest.mark.parametrize("id", MEASURED)
def test_each_kept_run_of_a_claim_is_asked_for_by_one_of_its_commands(id, request):
    if id in OTHERS:
        request.applymarker(pytest.mark.xfail(strict=True))
    claim = MEASURED[id]
    for run in sorted({run for query in claim.queries.values() for run in query.run}):
        name = experiment_now(run.split("/")[0])
        found = {
            line: differences(line, run) for line in claim.measured.command if f"experiments.{name} " in line
        }
        assert [] in found.values(), f"{id}, {run}: {found or 'no command'}"


@pytest.mark.parametrize("id", MEASURED)
def test_a_command_names_its_backend(id):
    for line in MEASURED[id].measured.command:
        assert "--backend " in line, line
