"""Image recipes: from data to a trained, saved and examined model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

import descend.models as models
from descend import recipes
from descend.data.digits import Digits
from descend.data.idx import write_idx
from descend.data.images import Preprocessing
from descend.errors import Mistake
from descend.models.lenet import LeNetConfig
from descend.models.mlp import MLPConfig
from descend.optim.schedules import Constant
from descend.recipes.kinds.images import ClassifyImages
from descend.recipes.kinds.saved import from_json, to_json
from descend.train.training import Training, mean_scores
from tests.close import close
from tests.train.small import train, training, weights

LENET, MLP = (recipes.get(name) for name in ("lenet-digits", "mlp-lbfgs-digits"))


def short(recipe: Any, **changes: object) -> ClassifyImages:
    return replace(recipe, loop=replace(recipe.loop, **changes))


def accuracy(recipe: Any, run: Training) -> float:
    with torch.no_grad():
        return mean_scores(run.task, recipe.test())["accuracy"]


@pytest.mark.system("mlp")
def test_second_order_learning_reaches_its_figure() -> None:
    """L-BFGS on all the images: the closure is called several times a step, and six steps are enough for 96%."""
    run = training(MLP)
    calls, model = [0], run.parts.model
    model.register_forward_hook(lambda *_: calls.__setitem__(0, calls[0] + 1))
    for _ in range(6):
        loss = run.advance()["loss"]
    assert calls[0] > 3 * 6
    assert loss < 0.1
    assert accuracy(MLP, run) >= 0.96


@pytest.mark.system("lenet")
def test_lenet_learns_digits() -> None:
    """A tenth of the recipe; the whole of it reaches 99%."""
    recipe = short(LENET, steps=100, ema=0.0)
    run = training(recipe)
    for _ in range(100):
        run.advance()
    assert accuracy(recipe, run) > 0.9


def test_lenet_recipe_is_lenet_5() -> None:
    model = LENET.build().model
    assert model.config == LeNetConfig()
    assert sum(p.numel() for p in model.parameters()) == 61_706


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Shuffling, warping and averaging are all taken up where they stopped."""
    recipe = replace(LENET, schedule=Constant())  # the cosine depends on the length, which differs here
    changes = {"batch": 32, "eval_every": 4, "save_every": 4, "threads": 1}
    whole = train(short(recipe, steps=8, **changes), tmp_path / "whole")
    train(short(recipe, steps=4, **changes), tmp_path / "parts")
    parts = train(short(recipe, steps=8, **changes), tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)


def test_a_saved_run_answers_as_the_trained_model(tmp_path: Path) -> None:
    recipe = short(LENET, steps=3, batch=32, eval_every=3, save_every=3, ema=0.0)
    folder = train(recipe, tmp_path / "run").checkpoints / "last"
    model, prepare = models.load(folder), Preprocessing.read(folder)
    assert prepare.labels == tuple("0123456789")
    raw = Digits().read().test
    batch = next(iter(recipe.test()))
    with torch.no_grad():
        ours = model(prepare(raw.x))
        theirs = model(batch["x"])
    assert torch.equal(raw.ids, batch["ids"])
    close(ours, theirs)


def test_parts_of_the_data_do_not_meet() -> None:
    parts = MLP.build()
    train_ids = set(next(parts.stream)["ids"].tolist())
    valid_ids = {i for batch in parts.valid for i in batch["ids"].tolist()}
    test_ids = {i for batch in MLP.test() for i in batch["ids"].tolist()}
    assert len(train_ids | valid_ids | test_ids) == len(train_ids) + len(valid_ids) + len(test_ids) == 1797
    assert parts.facts["training images"] == len(train_ids) == parts.units_per_batch


def test_exhibits() -> None:
    parts = MLP.build()
    with torch.no_grad():
        confusion, pictures = parts.exhibits()  # type: ignore[misc]
        batch = next(iter(parts.valid))
        p = parts.model(batch["x"]).softmax(-1)
    theirs = confusion_matrix(batch["y"], p.argmax(-1), labels=range(10))
    assert confusion.kind == "confusion"
    assert confusion.content == {"labels": list("0123456789"), "counts": theirs.tolist()}
    assert pictures.kind == "images"
    assert pictures.content["images"].shape == (12, 8, 8)
    assert 0 <= pictures.content["images"].min() < pictures.content["images"].max() <= 1
    wrong = p.argmax(-1) != batch["y"]  # an untrained model is wrong often enough to fill the page
    lead = torch.where(wrong, p.amax(-1) - p.gather(1, batch["y"][:, None]).squeeze(1), torch.tensor(-1.0))
    worst = int(lead.argmax())
    caption = f"record {int(batch['ids'][worst])}: {int(batch['y'][worst])}, called {int(p[worst].argmax())} "
    assert pictures.content["captions"][0].startswith(caption)


def test_the_model_takes_its_sizes_from_the_data(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    write_idx(tmp_path / "train-images-idx3-ubyte", random.integers(0, 256, (60, 12, 10), np.uint8))
    write_idx(tmp_path / "train-labels-idx1-ubyte", (np.arange(60) % 3).astype(np.uint8))
    data = Digits(path=str(tmp_path))
    lenet = ClassifyImages(model=LeNetConfig(kernel=3), data=data, loop=replace(LENET.loop, batch=8)).build()
    assert lenet.model.config == LeNetConfig((1, 12, 10), classes=3, kernel=3)
    mlp = ClassifyImages(model=MLPConfig(hidden=(5,)), data=data, loop=MLP.loop).build()
    assert mlp.model.config == MLPConfig(120, (5,), 3)
    assert mlp.units_per_batch == 42  # --batch 0: all that is not held out
    assert mlp.model(next(mlp.stream)["x"]).shape == (42, 3)


def test_two_processes_share_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(LENET.build().stream)
    monkeypatch.setenv("WORLD_SIZE", "2")
    halves = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        halves.append(next(LENET.build().stream))
    for name in whole:
        assert torch.equal(whole[name], torch.cat([half[name] for half in halves]))


@pytest.mark.parametrize("recipe", [LENET, MLP], ids=["lenet", "mlp"])
def test_recipes_survive_json(recipe: Any) -> None:
    assert from_json(to_json(recipe)) == recipe


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (short(LENET, batch=2000), "--batch 2000 is more than the 1258 examples"),
        (short(LENET, batch=30, accumulate=4), "--batch 30 does not divide into --accumulate 4"),
        (
            replace(LENET, data=Digits()),
            "images of 8×8 are too small for LeNet with kernel 5; give a larger --data.size",
        ),
        (replace(LENET, model=LeNetConfig(classes=5)), "--model.classes: the data gives 10; leave this flag out"),
    ],
)
def test_mistakes(recipe: Any, told: str) -> None:
    with pytest.raises(Mistake, match=told):
        recipe.build()
