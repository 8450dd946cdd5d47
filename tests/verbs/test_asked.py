"""What is asked for: recipes of files, values by name, models of one's own, schedules in shares of the run."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import descend
from descend import recipes
from descend.cli import VERBS, main
from descend.errors import Mistake
from descend.verbs.asked import find_recipe, read_asked, shorten_run, take_word
from descend.verbs.train import TrainFlags
from tests.test_own_code import here as here  # the fixture

NET = """
from dataclasses import dataclass

from torch import nn

from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class NetConfig:
    inputs: int = 4
    outputs: int = 2
    widths: tuple[int, ...] = (8,)


class Net(Pretrained):
    Config = NetConfig

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.net = nn.Sequential(
            nn.Linear(config.inputs, config.widths[0]), nn.Tanh(), nn.Linear(config.widths[0], config.outputs)
        )

    def forward(self, x):
        return self.net(x)
"""
RECIPE = """
from dataclasses import replace

from descend import recipes
from own_net import NetConfig

RECIPE = replace(recipes.get("mlp-wine"), model=NetConfig())
"""


def ask(name: str, *args: str) -> Any:
    return read_asked(TrainFlags, recipes.get(name), list(args), f"descend train {name}").recipe


def test_a_recipe_and_a_model_of_ones_own_train_resume_and_load(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "own_net.py").write_text(NET)
    (here / "own_recipe.py").write_text(RECIPE)
    flags = ["--steps", "4", "--eval-every", "2", "--save-every", "2", "--model.widths", "5", "--quiet"]
    assert main(["train", "own_recipe.py", *flags, "--out", "run"]) == 0
    assert main(["resume", "run", "--quiet"]) == 0
    assert main(["evaluate", "run", "--code", "own_net.py"]) == 0
    assert "checkpoint step-" in capsys.readouterr().out
    model = descend.load("run")
    assert (type(model).__name__, model.config.widths) == ("Net", (5,))
    saved = descend.engine.run.Run.open("run").recipe
    assert saved["name"] == "own-recipe"
    assert saved["values"]["model"]["class"] == "own_net:NetConfig"


def test_a_model_takes_the_place_of_a_recipes_own(here: Path) -> None:
    (here / "own_net.py").write_text(NET)
    found = ask("mlp-wine", "--model.widths", "7", "--model", "own_net:NetConfig")
    assert (type(found.model).__name__, found.model.widths) == ("NetConfig", (7,))
    assert type(find_recipe("mlp-wine", {"model": "own_net.py:NetConfig"}).model) is type(found.model)
    assert type(ask("lenet-digits", "--model=vit").model).__name__ == "ViTConfig"
    assert take_word(["--model.width", "3"], "model") == ("", ["--model.width", "3"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class C: pass", "C is not a dataclass"),
        ("@dataclass\nclass C:\n    a: int = 1", "C is not frozen"),
        ("@dataclass(frozen=True)\nclass C:\n    a: int", "its field a needs a default"),
        ("@dataclass(frozen=True)\nclass C:\n    a: int = 1", "no class there is the model of C; write class MyModel"),
        ("@dataclass(frozen=True)\nclass C:\n    a: int = 1\nclass M:\n    Config = C", "M must be saved and loaded"),
        ("D = 1", "own_part.py has no C"),
    ],
)
def test_a_module_that_lacks_something_is_told_so(here: Path, text: str, message: str) -> None:
    (here / "own_part.py").write_text(f"from dataclasses import dataclass\n{text}\n")
    with pytest.raises(Mistake, match=f"--model .*{message}"):
        ask("mlp-wine", "--model", "own_part.py:C")


def test_a_config_without_a_size_that_the_data_give_is_told_so(here: Path) -> None:
    (here / "own_net.py").write_text(NET)
    with pytest.raises(Mistake, match="NetConfig needs a field context"):
        descend.plan("gpt2-pydoc", {"model": "own_net:NetConfig"})


@pytest.mark.parametrize(("text", "message"), [("", "has no RECIPE"), ("RECIPE = 3", "RECIPE is a int, not a recipe")])
def test_a_file_without_a_recipe_is_told_so(here: Path, text: str, message: str) -> None:
    (here / "own_empty.py").write_text(text)
    with pytest.raises(Mistake, match=message):
        recipes.get("own_empty.py")


def test_the_schedule_keeps_its_share_of_the_run_unless_it_is_given() -> None:
    whole: Any = recipes.get("gpt2-pydoc")
    steps, warmup = whole.loop.steps, whole.schedule.warmup
    assert warmup > 10
    tenth = str(steps // 10)
    assert ask("gpt2-pydoc", "--steps", tenth).schedule.warmup == round(warmup / 10)
    assert ask("gpt2-pydoc", "--steps", tenth, "--schedule.warmup", "33").schedule.warmup == 33
    assert ask("gpt2-pydoc", "--steps", tenth, f"--schedule.warmup={warmup}").schedule.warmup == warmup
    assert find_recipe("gpt2-pydoc", {"steps": steps // 10}).schedule.warmup == round(warmup / 10)
    given: Any = find_recipe("gpt2-pydoc", {"steps": steps // 10, "schedule.warmup": 7})
    assert given.schedule.warmup == 7
    assert shorten_run(whole, steps // 10, []).schedule.warmup == round(warmup / 10)
    assert shorten_run(whole, steps // 10, ["schedule.warmup"]).schedule.warmup == warmup


def test_values_have_the_names_and_the_errors_of_the_flags() -> None:
    found: Any = find_recipe("mlp-csv", {"optim.lr": 0.1, "--data.path": "homes.csv"})
    assert (found.optim.lr, found.data.path) == (0.1, "homes.csv")
    with pytest.raises(Mistake, match=r"unknown value 'optim.rate'"):
        descend.train("mlp-csv", {"optim.rate": 0.1})
    with pytest.raises(Mistake, match="give a dict by the names of the flags"):
        descend.train("mlp-csv", Path("runs/out"))  # type: ignore[arg-type]
    with pytest.raises(Mistake, match=r"--optim.lr fast: must be"):
        descend.plan("mlp-csv", {"optim.lr": "fast"})


def test_every_verb_that_opens_a_checkpoint_takes_code() -> None:
    for verb in [verb.name.replace("-", "_") for group in VERBS.values() for verb in group]:
        command = getattr(import_module(f"descend.verbs.{verb}"), "command", None)
        flags = inspect.signature(command).parameters if command else {}
        assert "checkpoint" not in flags or "code" in flags or verb == "inspect", verb  # which builds no model
