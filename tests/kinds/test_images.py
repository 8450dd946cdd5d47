"""Image recipes: from data to a trained, saved and examined model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

import descend.models as models
from descend import recipes
from descend.cli import main
from descend.data.images.digits import Digits
from descend.data.images.idx import write_idx
from descend.data.images.labelled import Preprocessing
from descend.data.images.source import ImageSource
from descend.engine.evaluation import score_set
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.images import Attack, ClassifyImages, Mix
from descend.kinds.saved import from_json, to_json
from descend.models.lenet import LeNetConfig
from descend.models.mlp import MLPConfig
from descend.models.resnet import ResNetConfig
from descend.optim.schedules import Constant
from descend.report.exhibits import make_section
from tests.close import close
from tests.data.photos import CLASSES, folder
from tests.engine.small import train, training, weights

LENET, MLP = (recipes.get(name) for name in ("lenet-digits", "mlp-lbfgs-digits"))


def short(recipe: Any, **changes: object) -> ClassifyImages:
    return replace(recipe, loop=replace(recipe.loop, **changes))


def accuracy(recipe: Any, run: Training) -> float:
    with torch.no_grad():
        return score_set(run.task, recipe.test())["accuracy"]


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
@pytest.mark.system("lenet", "learns")
def test_lenet_learns_digits() -> None:
    """A tenth of the recipe; the whole of it reaches 99%."""
    recipe = short(LENET, steps=100, ema=0.0)
    run = training(recipe)
    for _ in range(100):
        run.advance()
    assert accuracy(recipe, run) > 0.9


@pytest.mark.system("lenet", "parameters")
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
        exhibits = parts.exhibits()  # type: ignore[misc]
        batch = next(iter(parts.valid))
        p = parts.model(batch["x"]).softmax(-1)
    theirs = confusion_matrix(batch["y"], p.argmax(-1), labels=range(10))
    confusion, calibration, scores, mistakes = exhibits[:4]
    assert [e.kind for e in (confusion, calibration, scores)] == ["confusion", "reliability", "table"]
    assert confusion.content == {"labels": list("0123456789"), "counts": theirs.tolist()}
    assert mistakes.kind == "images"
    assert mistakes.content["images"].shape == (12, 8, 8)
    assert 0 <= mistakes.content["images"].min() < mistakes.content["images"].max() <= 1
    wrong = p.argmax(-1) != batch["y"]  # an untrained model is wrong often enough to fill the page
    lead = torch.where(wrong, p.amax(-1) - p.gather(1, batch["y"][:, None]).squeeze(1), torch.tensor(-1.0))
    worst = int(lead.argmax())
    caption = f"record {int(batch['ids'][worst])}: {int(batch['y'][worst])}, predicted {int(p[worst].argmax())} "
    assert mistakes.content["captions"][0].startswith(caption)


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


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder(tmp_path / "photos", each=8)


def on(path: Path, **changes: Any) -> ClassifyImages:
    """A small network on the photographs of a folder."""
    loop = replace(LENET.loop, steps=4, batch=6, eval_every=2, save_every=2, ema=0.0, threads=1)
    data = ImageSource(path=str(path), size=16, valid=0.25, test=0.25, augment="photographs")
    recipe = ClassifyImages(model=LeNetConfig(kernel=3), data=data, schedule=Constant(), loop=loop)
    return replace(recipe, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"mix": Mix(mixup=0.4, cutmix=1.0)},
        {"attack": Attack(eps=0.05, steps=3)},
        {"data": {"augment": "randaugment", "memory": 0.0, "workers": 1}, "mix": Mix(mixup=1.0)},
    ],
    ids=["mixed", "attacked", "workers"],
)
def test_photographs_train_and_resume_to_the_bit(tmp_path: Path, photos: Path, changes: dict[str, Any]) -> None:
    recipe = on(photos)
    values = changes.pop("data", {})
    recipe = replace(recipe, data=replace(recipe.data, **values), **changes)
    assert from_json(to_json(recipe)) == recipe
    whole = train(recipe, tmp_path / "whole")
    train(short(recipe, steps=2), tmp_path / "parts")
    parts = train(recipe, tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)
    assert weights(whole) != weights(
        train(replace(recipe, mix=Mix(), attack=Attack(), data=on(photos).data), tmp_path / "plain")
    )


@pytest.mark.system("training-loop", "drop-last")
@pytest.mark.parametrize("case", ["arrays", "augmented", "workers"])
def test_the_rest_of_an_epoch_can_be_dropped(photos: Path, case: str) -> None:
    """Of arrays in memory, of images that are augmented, and of those that a process of its own prepares."""
    recipe, batch = (MLP, 100) if case == "arrays" else (on(photos), 7)
    data = replace(recipe.data, drop_last=True, workers=1 if case == "workers" else -1)
    parts = short(replace(recipe, data=data), batch=batch).build()
    n = parts.facts["training images"]
    assert n % batch
    for _ in range(2):
        seen = torch.cat([next(parts.stream)["ids"] for _ in range(n // batch)]).tolist()
        assert len(set(seen)) == len(seen) == n - n % batch


def test_an_attack_is_one_of_pixels(photos: Path) -> None:
    """ε bounds the change in 0..1, whatever the images were standardized with."""
    parts = on(photos, attack=Attack(eps=0.05, steps=3)).build()
    batch = next(parts.stream)
    std = torch.tensor(Preprocessing.fit(on(photos).data.read()).std)[:, None, None]
    change = ((parts.task.attack(batch) - batch["x"]) * std).abs()
    assert 0.02 < float(change.max()) <= 0.05 + 1e-5


def test_what_plan_and_report_tell_of_photographs(photos: Path) -> None:
    parts = on(photos).build()
    assert parts.facts["images per class"] == "cat 8, dog 8, owl 8"
    assert parts.facts["leaks between parts"] == 0
    with torch.no_grad():
        exhibits = parts.exhibits()  # type: ignore[misc]
    (mistakes,) = (e for e in exhibits if e.kind == "images" and "mistake" in e.title.lower())
    assert mistakes.content["captions"][0].split(":")[0] in {f"{c}/{k}.png" for c in CLASSES for k in range(8)}
    sheet = exhibits[-1]
    assert sheet.kind == "sheet"
    assert sheet.content["rows"].shape == (5, 8, 16, 16, 3)
    assert not (sheet.content["rows"][:, 0] == sheet.content["rows"][:, 1]).all()
    assert make_section(sheet).count("<img") == 40


def test_labels_are_in_the_models_own_file(tmp_path: Path, photos: Path) -> None:
    model = ResNetConfig(stem=4, widths=(4, 8), depths=(1, 1), block="basic")
    run = train(replace(short(on(photos), steps=1, save_every=1), model=model), tmp_path / "run")
    values = json.loads((run.checkpoints / "last" / "config.json").read_text())
    assert values["id2label"] == {"0": "cat", "1": "dog", "2": "owl"}
    assert Preprocessing.read(run.checkpoints / "last").labels == CLASSES


def test_any_recipe_reads_photographs(photos: Path) -> None:
    parts = replace(LENET, data=replace(LENET.data, path=str(photos)), loop=replace(LENET.loop, batch=8)).build()
    assert parts.model.config.image == (3, 32, 32)


def test_a_broken_photograph_ends_with_2(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "dog" / "3.png").write_bytes(b"")
    assert main(["plan", "cnn-images", "--data.path", str(photos)]) == 2
    assert "dog/3.png cannot be read as an image (the file is empty)" in capsys.readouterr().err


def test_mixing_and_attacking_exclude_each_other(photos: Path) -> None:
    with pytest.raises(Mistake, match=r"--mix and --attack cannot be combined"):
        on(photos, mix=Mix(mixup=0.2), attack=Attack(eps=0.1)).build()
    with pytest.raises(Mistake, match=r"--attack.eps 2"):
        Attack(eps=2)
