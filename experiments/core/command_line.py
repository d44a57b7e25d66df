"""The command line of an experiment: options and settings, in layers.

Contract. Settings are the defaults of the Config, or of the scene that is given; those of `--from`,
`--resume` or `--quick` replace them, and flags replace these. One rule more makes any command small:
`--quick` replaces the numbers of flags in front of it that it sets itself. tyro reads the options first,
because they choose the layers and register curves, and then the other flags, whose defaults in the help are
those of the layers.
"""

import contextlib
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple, cast

import tyro

import sfc
from experiments.core import flags
from experiments.core.executor import SERIAL
from experiments.core.record import read_provenance
from experiments.core.rerun import config_of, remains_quick
from experiments.core.settings import Scene, Settings, UsageError, cases, flag_of, values
from experiments.results.baselines import BASELINES
from sfc.registry import CURVES, ORDERINGS

_QUICK = "--quick"
_CURVE = "of TOML with name, dim, axiom and a table [rules], as in the README"
_FOLDER = tyro.conf.arg(metavar="FOLDER", help_behavior_hint="(optional)")
_FROM = tyro.conf.arg(name="from", metavar="FOLDER", help_behavior_hint="(optional)")
_FILES = tyro.conf.arg(metavar="FILE ...", help_behavior_hint="(optional)")


@dataclass(frozen=True)
class Options:
    """Options of every experiment."""

    quick: bool = False
    """Small sweep that ends within a minute on two cores. At the end of a command it replaces those numbers
    in front of it that it sets itself, such as sizes; flags after it replace its settings."""
    results: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("results")
    """Folder for results. The run creates <experiment>/<utc>-<hash> in it."""
    replot: Annotated[Path | None, _FOLDER] = None
    """Folder of an earlier run, whose figures are drawn and whose answer is given again. Nothing is
    measured."""
    out: Annotated[Path | None, _FOLDER] = None
    """Folder for the figures of --replot, instead of that of the run. A run below results/reference needs
    it."""
    pdf: bool = False
    """Write every figure as PDF too, beside its PNG; also with --replot."""
    resume: Annotated[Path | None, _FOLDER] = None
    """Folder of a run that was interrupted, killed or failed, and is resumed. Only missing cases and rounds
    are measured, with the settings of the run."""
    from_run: Annotated[Path | None, _FROM] = None
    """Folder of a run whose settings are those of this one, in a new folder. Other flags replace them."""
    executor: Annotated[str, tyro.conf.arg(metavar="{serial,processes,tcp://...}")] = SERIAL
    """Place where cases are measured: this process, several, or the address of a Dask scheduler
    (tcp://host:8786; needs the extra `cluster`). Experiments that measure times take serial only."""
    workers: int = 0
    """Number of processes of `--executor processes`; 0 for one per core."""
    curve_file: Annotated[tyro.conf.UseAppendAction[tuple[tuple[Path, ...], ...]], _FILES] = ()
    """Files with the grammar of a curve (TOML, see the README). Every flag that takes an ordering or a curve
    accepts the names of these curves."""


class CommandLine(NamedTuple):
    """Command line, read and checked.

    Attributes:
        config: settings.
        options: those of every experiment.
        grammars: name -> text of the curves that it registered.
        is_quick: whether the settings have sizes of `--quick`.
        notes: lines for the reader of the terminal.
    """

    config: Settings
    options: Options
    grammars: dict[str, str]
    is_quick: bool
    notes: list[str]


def read(
    config_type: type[Settings],
    quick: Mapping[str, Any],
    arguments: Sequence[str],
    experiment: str,
    docstring: str | None = None,
) -> CommandLine:
    """Read and check a command line; its curves are registered.

    Args:
        config_type: class of the settings.
        quick: fields that `--quick` sets.
        arguments: the words after the name of the module.
        experiment: its name.
        docstring: of the experiment, for the help.

    Raises:
        SystemExit: help was asked for, or a flag is unknown or has not the form of its value.
        ValueError: settings that are not allowed.
        UsageError: options that exclude each other, a folder that is no run of the experiment, or a file that
            describes no curve.
    """
    options, rest = _tyro(Options, arguments, Options(), experiment, return_unknown_args=True, add_help=False)
    runs = {flag: run for flag, run in (("--from", options.from_run), ("--resume", options.resume)) if run}
    if len(layers := [*runs, *[_QUICK] * options.quick]) > 1:
        raise UsageError(f"{' and '.join(layers)}; allowed: one of them, because each sets what is measured")
    grammars = _register_curves(options)
    scene = config_type.SCENES.get(_word(rest, flag_of(config_type.SCENE)), Scene())
    quick = scene.quick or quick
    default = config_type(**{**scene.defaults, **(quick if options.quick else {})})
    for flag, run in runs.items():
        default = config_of(run, flag, config_type, experiment)
    command_type = _command_type(cast(Hashable, config_type))
    command = _tyro(command_type, rest, command_type(default, options), experiment, docstring)
    settings: dict[str, Any] = command.experiment
    replaced = _numbers_in_front(arguments, settings, default, quick) if options.quick else {}
    config = config_type(**(settings | {name: getattr(default, name) for name in replaced}))
    if options.resume and (config != default or options.replot or options.results != Options().results):
        raise UsageError(
            f"--resume {options.resume} beside other settings or folders; allowed: alone, because it "
            "continues in its folder with its own settings; --from takes others"
        )
    taken = " ".join(f"{flag_of(name)} {' '.join(map(str, values(of)))}" for name, of in replaced.items())
    note = f"--quick takes its own sizes in place of {taken}; flags after --quick are kept"
    from_run = options.from_run
    is_quick = options.quick or bool(
        from_run and remains_quick(from_run, default, config, config.of_scene.quick or quick)
    )
    return CommandLine(config, options, grammars, is_quick, [note] * bool(taken))


def parsed(experiment: ModuleType, arguments: Sequence[str]) -> Settings:
    """Parse and check a command line of an experiment, without measuring or writing anything.

    Args:
        experiment: its module, with `Config` and `QUICK`.
        arguments: the command line after the name of the module.

    Returns:
        Its settings.

    Raises:
        UsageError: an unknown flag, or a value that has not the form of its flag.
        ValueError: settings that are not allowed.
    """
    name = experiment.__name__.rpartition(".")[2]
    try:
        config = read(experiment.Config, experiment.QUICK, arguments, name).config
    except SystemExit as error:
        raise UsageError(
            f"{name} {' '.join(arguments)} is not understood; allowed: flags of "
            f"python -m experiments.{name} --help"
        ) from error
    cases(config)
    return config


def _tyro(
    kind: type, arguments: Sequence[str], default: Any, name: str, docstring: str | None = None, **more: bool
) -> Any:
    cli: Callable[..., Any] = tyro.cli
    return cli(
        kind,
        args=list(arguments),
        default=default,
        prog=f"python -m experiments.{name}",
        description=flags.description(docstring or ""),
        registry=flags.registry(),
        **more,
    )


@cache
def _command_type(config_type: Any) -> Any:
    """Return the class of a command line, one for each Config: tyro searches the source of a new one."""
    flat = tyro.conf.OmitArgPrefixes
    parts = [("experiment", flat[config_type]), ("common", flat[Options])]  # names in the help's headings
    return make_dataclass("Command", parts)


def _word(arguments: Sequence[str], of: str) -> str:
    """Return the last word given by a flag; empty for none."""
    pairs = itertools.pairwise([*(part for word in arguments for part in word.split("=", 1)), ""])
    return next((word for flag, word in [*pairs][::-1] if flag == of), "")


def _numbers_in_front(
    arguments: Sequence[str], settings: dict[str, Any], default: Settings, quick: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the numbers given in front of the last `--quick`, of fields that it sets; field -> values.

    Names in front of it, such as those of orderings, remain, and so does an axis without a value, which is
    refused.
    """
    end = len(arguments) - 1 - arguments[::-1].index(_QUICK)
    behind = {word.partition("=")[0].replace("_", "-") for word in arguments[end:]}
    return {
        name: settings[name]
        for name in quick
        if all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values(quick[name]))
        if settings[name] not in ((), getattr(default, name)) and flag_of(name) not in behind
    }


def _register_curves(options: Options) -> dict[str, str]:
    """Register the curves of `--curve-file` and of a given run, before the Config is checked.

    Returns:
        Name -> text of each file; name-<dim>d for a second dimension of the same name.

    Raises:
        UsageError: a file that cannot be read, a grammar that exhausts its reader, or the name of another
            ordering.
        ValueError: a grammar that describes no curve.
    """
    found = []
    for path in (path for paths in options.curve_file for path in paths):
        with _naming(where := f"curve file {path}"):
            found.append((sfc.read_curve(path), path.read_text(encoding="utf-8-sig"), where))
    for run in filter(None, (options.replot, options.resume, options.from_run)):
        for name, text in read_provenance(run).get("grammars", {}).items():
            with _naming(where := f"grammar {name!r} of {run}"):
                found.append((sfc.parse_curve(text, where), text, where))
    grammars: dict[str, str] = {}
    for curve, text, where in found:
        if curve.name in (*BASELINES, *CURVES, *ORDERINGS):
            taken = ", ".join((*BASELINES, *sorted({*CURVES, *ORDERINGS})))
            raise UsageError(
                f"{where}: curve {curve.name!r} has the name of an ordering that exists in some "
                f"dimension; allowed: any name but {taken}; choose another name in the file"
            )
        sfc.register(curve)
        is_known = grammars.get(curve.name, text) != text
        grammars[f"{curve.name}-{curve.dim}d" if is_known else curve.name] = text
    return grammars


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Name the grammar in the error if it exhausts or breaks its reader."""
    try:
        yield
    except (RecursionError, MemoryError, KeyError, OSError, UnicodeDecodeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{where} cannot be read: {reason:.200}; allowed: a file {_CURVE}") from error
