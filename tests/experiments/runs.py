"""Run an experiment small, and build one case of it, for the tests of the experiments."""

from pathlib import Path

from experiments.core import main
from experiments.core.settings import cases


def run(module, tmp_path, *arguments) -> Path:
    main(
        module.Config,
        module.measure,
        module.draw,
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
