"""Transfer as flags of a recipe: what is taken over, what is frozen, what it costs when the run resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.images import few_images
from descend.data.images.few_images import FewImages
from descend.errors import Mistake
from descend.kinds.start_from import Start
from descend.models import load
from descend.models.resnet_cifar import ResNetCifarConfig
from descend.optim.by_part import learning_rates
from descend.optim.schedules import Constant
from tests.engine.small import train, training, weights

SHORT = {"steps": 4, "batch": 24, "eval_every": 2, "save_every": 2, "threads": 1}


@pytest.fixture(autouse=True)
def _few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_images, "SCENES", 480)


def recipe(start: Start | None = None, half: str = "second", **changes: Any) -> Any:
    whole: Any = recipes.get("transfer-scenes")
    return replace(
        whole,
        model=ResNetCifarConfig(layers=8, width=4),
        data=FewImages(size=12, each=2, half=half),
        schedule=Constant(),
        start=start or Start(),
        loop=replace(whole.loop, **(SHORT | changes)),
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_images, "SCENES", 480)
        return str(train(recipe(half="first"), tmp_path_factory.mktemp("runs") / "first").folder)


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "frozen")
def test_frozen_weights_are_unchanged_bit_for_bit(source: str) -> None:
    run = training(recipe(Start(source, freeze="all"), ema=0.9))
    model = run.parts.model
    old = load(Path(source) / "checkpoints" / "best").state_dict()
    fresh = {k: v.clone() for k, v in model.state_dict().items() if k.startswith("head")}
    assert not torch.equal(fresh["head.weight"], old["head.weight"]), "other classes: a new head"
    for _ in range(3):
        run.advance()
    run.evaluate()
    run.advance()
    for name, value in (model.state_dict() | run.weights()).items():
        if not name.startswith("head"):
            assert torch.equal(value, old[name]), name
    assert not torch.equal(model.state_dict()["head.weight"], fresh["head.weight"])
    assert run.parts.facts["parameters that learn"] == 16 * 24 + 24


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "rates")
def test_fine_tuning_has_lower_rates_for_what_was_taken_over(source: str) -> None:
    run = training(recipe(Start(source, rate=0.2, decay=0.5)))
    model, lr = run.parts.model, recipe().optim.lr
    rates = {k: v / lr for k, v in learning_rates(run.optims["model"], model).items()}
    assert rates["head.weight"] == 1.0
    below = [rate for name, rate in rates.items() if not name.startswith("head")]
    assert below == sorted(below), "lower and lower towards the input"
    assert (min(below), max(below)) == (pytest.approx(0.2 * 0.5**3), pytest.approx(0.2))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    run.advance()
    assert all(not torch.equal(before[k], v) for k, v in model.named_parameters() if v.dim() > 1)
    assert run.parts.facts["started from"] == source


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "thaw")
def test_parts_thaw_one_after_the_other_and_a_resume_knows_it(source: str, tmp_path: Path) -> None:
    start = Start(source, freeze="all", thaw=1)
    whole = train(recipe(start, steps=6), tmp_path / "whole")
    train(recipe(start, steps=2), tmp_path / "parts")
    parts = train(recipe(start, steps=6), tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)
    run = training(recipe(start))
    model, moved = run.parts.model, []
    for _ in range(3):
        before = {k: v.clone() for k, v in model.state_dict().items()}
        run.advance()
        moved.append({k.partition(".")[0] for k, v in model.state_dict().items() if not torch.equal(before[k], v)})
    assert moved[0] == {"head"}
    assert moved[1] == {"head", "stages"}


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "head")
def test_the_head_is_new_where_the_model_does_not_know_the_names_of_its_classes(source: str) -> None:
    model = training(recipe(Start(source), half="first")).parts.model
    old = load(Path(source) / "checkpoints" / "best").state_dict()
    below = [name for name in old if not name.startswith("head")]
    assert all(torch.equal(model.state_dict()[name], old[name]) for name in below)
    assert not torch.equal(model.head.weight, old["head.weight"])


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (Start(freeze="all"), "give --start.path too"),
        (Start("nowhere"), "nowhere is not a folder"),
        (Start("SOURCE", freeze="stemm"), "no part 'stemm'. Did you mean 'stem"),
        (Start("SOURCE", thaw=3), "give --start.freeze all too"),
        (Start("SOURCE", rate=-1), "--start.rate -1"),
    ],
)
def test_mistakes(start: Start, said: str, source: str) -> None:
    start = replace(start, path=source) if start.path == "SOURCE" else start
    with pytest.raises(Mistake, match=said):
        recipe(start).build()
