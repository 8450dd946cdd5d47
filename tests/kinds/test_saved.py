"""Recipes as JSON: names that outlive the files, recipes of the last release, classes of the user's own."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from descend import models, recipes
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.kinds.control import Play
from descend.kinds.saved import HOMES, RENAMED, class_name, find_class, from_json, source_index, to_json
from descend.models.clip_resnet import ClipResNetConfig
from descend.models.clip_text_model import ClipTextConfig
from descend.models.mlp import MLPConfig
from descend.ops.teacher_forcing import LinearDecay
from descend.optim.proximal import ProximalGradient
from descend.optim.rules import SGD, Adam, AdamW
from tests.contracts.source import LEVEL

LAST_RELEASE = Path(__file__).parents[1] / "verbs" / "data" / "last_release"
OLD: dict[str, dict[str, Any]] = json.loads((LAST_RELEASE / "recipes.json").read_text())
CHANGED: dict[str, dict[str, Any]] = {
    "clip-scenes": {
        "model": ClipResNetConfig(text=ClipTextConfig(width=64, depth=1, heads=2, hidden=256), layers=8),
        "loop": Loop(steps=1500, batch=128, clip=1.0, eval_every=150, save_every=500, watch="min loss"),
    },
    "gpt2-shakespeare": {"loop": Loop(steps=6000, batch=16, clip=1.0, eval_every=500, save_every=500)},
    "mlp-csv": {
        "model": MLPConfig(hidden=(256, 256)),
        "loop": Loop(steps=2000, batch=256, ema=0.99, eval_every=50, save_every=250, watch="min loss"),
    },
    "ppo-pendulum": {
        "data": Play(env="Pendulum-v1", length=64, valid=60),
        "optim": Adam(lr=1e-3, eps=1e-5),
        "loop": Loop(
            steps=400,
            batch=16,
            eval_every=20,
            save_every=50,
            watch="max return",
            threads=1,
            precision="float32",
            compile="off",
        ),
    },
    "unet-scenes": {"loop": Loop(steps=3600, batch=16, clip=1.0, eval_every=200, save_every=600, watch="max mean_iou")},
}
"""Recipe -> values that are meant to differ from the last release, as they are now."""


@dataclass(frozen=True)
class Own:
    """A rule of the user's."""

    lr: float = 0.5


def class_names(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for v in value for name in class_names(v)}
    if not isinstance(value, dict):
        return set()
    return {name for v in value.values() for name in class_names(v)} | ({value["class"]} if "class" in value else set())


def test_a_class_that_a_recipe_may_hold_has_a_name_of_its_own() -> None:
    assert len(source_index()) > 100
    shared = {name: modules for name, modules in source_index().items() if len(modules) > 1}
    assert not shared, "give one of them another name, and RENAMED the old one"
    assert not set(source_index()) & set(models.names())


def test_the_index_looks_where_recipes_may_look() -> None:
    assert set(HOMES) <= set(LEVEL)


@pytest.mark.parametrize("name", recipes.names())
def test_no_module_path_is_stored(name: str) -> None:
    found = class_names(to_json(recipes.get(name)))
    assert found
    assert not [stored for stored in found if "." in stored or ":" in stored]


def test_a_config_is_stored_by_its_models_file_and_the_rest_by_class() -> None:
    values = to_json(recipes.get("gpt2-pydoc"))
    assert values["class"] == "LanguageRecipe"
    assert values["model"]["class"] == "gpt2"
    assert values["loop"]["class"] == "Loop"


@pytest.mark.parametrize("file", models.names())
def test_every_models_config_is_found_again(file: str) -> None:
    kind = find_class(file, "recipe.json")
    assert find_class(class_name(kind), "recipe.json") is kind
    assert find_class(f"{kind.__module__}:{kind.__name__}", "recipe.json") is kind  # as the last release stored it


@pytest.mark.parametrize("name", list(OLD))
def test_every_recipe_of_the_last_release_opens(name: str) -> None:
    assert any(":" in stored for stored in class_names(OLD[name]))
    opened, now = from_json(OLD[name]), recipes.get(name)
    spoken = {field: getattr(now, field) for field in ("about", "takes", "parameters")}  # its description may change
    assert dataclasses.replace(opened, **spoken, **CHANGED.get(name, {})) == now


@pytest.mark.parametrize("stored", list(RENAMED))
def test_a_renamed_class_opens_under_its_old_name(stored: str) -> None:
    assert find_class(stored, "recipe.json").__name__ == RENAMED[stored]


def test_two_classes_that_once_shared_a_name_are_told_apart_by_their_paths() -> None:
    assert from_json({"class": "descend.ops.teacher_forcing:Linear", "steps": 7}) == LinearDecay(7)
    assert from_json({"class": "descend.optim.proximal:Proximal", "lam": 0.5}) == ProximalGradient(lam=0.5)
    assert type(from_json({"class": "descend.tasks.ppo:Proximal"})).__module__ == "descend.tasks.ppo"


def test_a_class_that_moved_opens_wherever_it_is() -> None:
    assert from_json({"class": "descend.some.older.place:SGD", "lr": 0.25}) == SGD(lr=0.25)


def test_a_class_of_the_users_is_stored_with_its_module() -> None:
    values = to_json(dataclasses.replace(recipes.get("gpt2-pydoc"), optim=Own(0.25)))
    assert values["optim"] == {"class": f"{__name__}:Own", "lr": 0.25}
    assert from_json(values).optim == Own(0.25)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"class": "os:system"}, "'os:system' is not a recipe's class"),
        ({"class": "subprocess_x:Popen"}, "not part of descend, and no module subprocess_x"),
        ({"class": "descend.__main__:main"}, "class 'main' does not exist"),
        ({"class": "descend.models.gpt2:GPT2"}, "not a recipe's class"),
        ({"class": "Loop", "stepz": 3}, "Loop has no field 'stepz'"),
        ({"class": "Loup"}, "class 'Loup' does not exist in this version. Did you mean 'Loop'"),
    ],
)
def test_foreign_classes_and_fields_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        from_json({"class": "AdamW", "lr": values}, "run/recipe.json")


def test_a_new_field_takes_its_default() -> None:
    values = to_json(AdamW(lr=0.5))
    del values["eps"]
    assert from_json(values) == AdamW(lr=0.5)


def test_opening_a_recipe_imports_only_its_own_classes() -> None:
    code = (
        "import json, sys; from descend.kinds.saved import from_json;"
        f"from_json(json.load(open({str(LAST_RELEASE / 'mlp-wine' / 'recipe.json')!r}))['values']);"
        "print([m for m in sys.modules if m.startswith('descend.models.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['descend.models.mlp']"
