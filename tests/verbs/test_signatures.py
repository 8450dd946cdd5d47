"""Every verb is a plain function whose signature and docstring tell the truth."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import descend
from descend.cli import VERBS

OPENS_A_RUN = ("doctor", "evaluate", "generate", "layers", "load", "predict", "sample", "trace")


def documented(function: Callable[..., Any]) -> list[str]:
    """The names in the Args section of a docstring, in order."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return re.findall(r"^    (\w+): \S", section[1], re.MULTILINE) if section else []


@pytest.mark.parametrize("name", descend.__all__)
def test_the_docstring_documents_each_parameter(name: str) -> None:
    verb = getattr(descend, name)
    assert type(verb) is FunctionType
    parameters = list(inspect.signature(verb).parameters)
    assert parameters
    assert documented(verb) == parameters
    assert (inspect.getdoc(verb) or "").splitlines()[0].endswith((".", ")", "`")), "begins with one whole line"


@pytest.mark.parametrize("name", [verb.name for group in VERBS.values() for verb in group])
def test_the_command_documents_each_flag(name: str) -> None:
    module = import_module(f"descend.verbs.{name.replace('-', '_')}")
    command = getattr(module, "command", None)
    if command is None:  # train, tune, plan and lr-find: their flags are those of a recipe
        assert callable(module.main)
        assert module.HELP.startswith(f"usage: descend {name}")
        return
    assert documented(command) == list(inspect.signature(command).parameters)


@pytest.mark.parametrize("name", OPENS_A_RUN)
def test_a_verb_that_opens_a_run_says_which_checkpoint(name: str) -> None:
    parameter = inspect.signature(getattr(descend, name)).parameters["checkpoint"]
    assert parameter.default == ("last" if name == "doctor" else "best")
    if name != "load":
        command = import_module(f"descend.verbs.{name}").command
        assert inspect.signature(command).parameters["checkpoint"].default == parameter.default


def test_help_of_train_shows_its_parameters() -> None:
    code = "import descend; help(descend.train)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for part in ("train(recipe:", "budget:", "Args:", "Returns:"):
        assert part in said


def test_every_verb_of_the_command_line_is_a_function_of_the_package() -> None:
    names = {verb.name.replace("-", "_") for group in VERBS.values() for verb in group}
    assert names == set(descend.__all__) - {"load"}
