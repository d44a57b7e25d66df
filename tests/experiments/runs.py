"""Run an experiment small, and build one case of it, for the tests of the experiments."""

from pathlib import Path

from experiments.core import main
from experiments.core.settings import cases


def views(module):
    """What a module gives to `main`: its views, or its function that draws."""
    return module.VIEWS if hasattr(module, "VIEWS") else module.draw


def run(module, tmp_path, *arguments) -> Path:
    main(
        module.Config,
        module.measure,
        views(module),
        quick=module.QUICK,
        answer=module.answer,
        arguments=["--backend", "cpu", "--results", str(tmp_path), *arguments],
    )
    (folder,) = (tmp_path / module.__name__.split(".")[-1]).iterdir()
    return folder


def one(module, **fields):
    return cases(module.Config(backend="cpu", **fields))[0].config


def counting(function, calls):
    """The function, which notes that it was called."""

    def counted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return counted
