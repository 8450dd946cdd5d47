"""The form of a recipe offers what the shell offers, and stands for the same command."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO

import pytest

from descend.errors import Mistake
from descend.kinds.changes import change
from descend.recipes import get
from descend.verbs.asked import read_asked
from descend.verbs.train import TrainFlags
from descend.verbs.train import main as train
from descend.workbench.fields import list_fields, read_values, write_flags


@pytest.mark.parametrize("name", ["mlp-moons", "gpt2-pydoc", "yolo-scenes"])
def test_every_flag_of_the_form_is_one_of_the_shell(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    page = StringIO()
    with redirect_stdout(page), pytest.raises(SystemExit):
        train([name, "--help"])
    known = set(re.findall(r"(?<![\w-])--[a-z][\w.-]*\w", page.getvalue()))
    fields = list_fields(get(name))
    assert len(fields) > 20
    assert {field.flag for field in fields} <= known
    assert sum(bool(field.about) for field in fields) > len(fields) / 2


def test_the_command_means_what_the_form_says() -> None:
    recipe = get("lenet-digits")
    sent = {"optim.lr": "3e-4", "raw": "True", "data.drop_last": "True", "optim.betas": "0.8 0.99", "steps": "1000"}
    values = read_values(recipe, sent)
    assert values == {"optim.lr": 3e-4, "raw": True, "data.drop_last": True, "optim.betas": (0.8, 0.99)}
    words = write_flags(recipe, values)
    asked = read_asked(TrainFlags, recipe, words, "descend train")
    assert asked.recipe == change(recipe, values)


def test_a_switch_is_turned_off() -> None:
    recipe = change(get("lenet-digits"), {"raw": True})
    assert write_flags(recipe, read_values(recipe, {"raw": "False"})) == ["--no-raw"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"optim.lr": "fast"}, "--optim.lr takes a number, not 'fast'"),
        ({"steps": "1.5"}, "--steps takes a whole number"),
        ({"optim.ls": "1"}, "optim.lr"),
        ({"batch": "-1"}, "at least 0"),
        ({"data.warp.outside": "wrap"}, "not one of zeros, reflection"),
    ],
)
def test_mistakes_are_told_as_in_the_shell(sent: dict[str, str], said: str) -> None:
    with pytest.raises(Mistake, match=re.escape(said)):
        read_values(get("lenet-digits"), sent)
