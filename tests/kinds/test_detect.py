"""Detection recipes: from scenes to a trained, saved, answering detector, and on to other classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import descend.models as models
from descend import recipes
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.detection.source import DetectionSource
from descend.data.toys.scenes import SHAPES
from descend.engine.evaluation import score_set
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.detector import Detector
from descend.kinds.detect import DetectObjects
from descend.kinds.start_detector import DetectorStart, find_class_tensors
from descend.models.yolo_v8 import YoloV8Config
from descend.optim.rules import SGD
from descend.optim.schedules import Constant, Plateau
from descend.report.exhibits import make_section
from tests.close import close
from tests.engine.small import train, training

MODEL = YoloV8Config(widths=(4, 6, 8, 8, 8), depths=(1, 1, 1, 1), neck=1, bins=4)


def small(**changes: object) -> DetectObjects:
    """The recipe at a size for a test."""
    recipe: Any = recipes.get("yolo-scenes")
    loop = replace(recipe.loop, steps=4, batch=4, eval_every=4, save_every=4, threads=1)
    made = replace(recipe, model=MODEL, data=DetectionSource(scenes=24, size=64), loop=loop)
    return replace(made, **changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(small(), tmp_path_factory.mktemp("runs") / "run").folder


def test_a_run_is_trained_saved_and_read_back(run: Path) -> None:
    folder = run / "checkpoints" / "last"
    model, prepare = models.load(folder), DetectionPreprocessing.read(folder)
    assert prepare.labels == SHAPES
    assert len(model.config.labels) == len(SHAPES)
    batch = next(iter(small().test()))
    first = small().data.read().test
    framed = prepare([first.pixels.load(i) for i in range(3)])
    close(framed.x, batch["x"][:3])
    close(framed.back, batch["back"][:3])


def test_the_answerer_gives_boxes_in_pixels_of_the_image(run: Path) -> None:
    detector = open_run(run)
    assert isinstance(detector, Detector)
    random = np.random.default_rng(0)
    wide = random.integers(0, 256, (40, 100, 3), dtype=np.uint8)
    for answer, (height, width) in zip(
        detector.detect([wide, wide.transpose(1, 0, 2)], least=0), [(40, 100), (100, 40)], strict=True
    ):
        assert answer.size == (height, width)
        boxes = torch.tensor([o.box for o in answer.objects])
        assert len(boxes)
        assert (boxes >= 0).all()
        assert (boxes[:, [0, 2]] <= width).all()
        assert (boxes[:, [1, 3]] <= height).all()
        assert [o.score for o in answer.objects] == sorted((o.score for o in answer.objects), reverse=True)
    together, alone = detector.detect([wide, wide[:, :50]], least=0), detector.detect([wide[:, :50]], least=0)
    close(
        torch.tensor([o.box for o in together[1].objects]), torch.tensor([o.box for o in alone[0].objects]), loosen=50
    )
    with pytest.raises(Mistake, match="--threshold 2"):
        detector.above(2)


def test_exhibits_tell_the_scores_of_the_set() -> None:
    parts = small().build()
    exhibits = parts.exhibits()  # type: ignore[misc]
    scores = score_set(parts.task, parts.valid)
    told = [row[1] for row in exhibits[0].content["rows"]]
    assert sum(told) / len(told) == pytest.approx(scores["map"], abs=1e-9)
    assert all("could not be drawn" not in str(make_section(exhibit)) for exhibit in exhibits)


def test_a_side_that_no_cell_divides_is_refused() -> None:
    with pytest.raises(Mistake, match=r"--data.size 70: .* give 64 or 96"):
        small(data=DetectionSource(scenes=24, size=70)).build()


@pytest.mark.parametrize("freeze", ["none", "all", "stem,stages"])
def test_a_trained_detector_is_started_from(run: Path, freeze: str) -> None:
    """The backbone is that of the trained one and moves unless it is frozen; the class heads are new, or not where the
    classes have the same names."""
    source = models.load(run)
    recipe = small(start=DetectorStart(str(run), freeze), model=YoloV8Config())
    same = recipe.build().model
    for name, tensor in source.state_dict().items():
        assert torch.equal(same.state_dict()[name], tensor), name
    steps = training(recipe)
    before = {name: p.detach().clone() for name, p in steps.parts.model.named_parameters()}
    steps.advance()
    moved = {name for name, p in steps.parts.model.named_parameters() if not torch.equal(p, before[name])}
    assert any(name.startswith("stem") for name in moved) == (freeze == "none")
    assert any(name.startswith("neck") for name in moved) == (freeze != "all")
    assert any(name.startswith("head") for name in moved)


def test_other_classes_get_new_heads(run: Path) -> None:
    from descend.kinds.start_detector import copy_detector
    from descend.models import make_model
    from descend.weights.labels import Labels

    source = models.load(run)
    config = replace(source.config, labels=Labels(tuple("abcdef")))
    heads = find_class_tensors(config)
    assert heads
    assert all(name.startswith("head") for name in heads)
    model = make_model(config)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    new = copy_detector(model, source)
    assert set(new) == heads
    for name, tensor in model.state_dict().items():
        kept = fresh if name in heads else source.state_dict()
        assert torch.equal(tensor, kept[name]), name


def test_a_detector_of_another_family_is_refused(run: Path) -> None:
    from descend.models import make_model
    from descend.models.lenet import TINY

    folder = run.parent / "lenet"
    make_model(TINY).save_pretrained(folder)
    with pytest.raises(Mistake, match="LeNet"):
        small(start=DetectorStart(str(folder))).build()
    with pytest.raises(Mistake, match=r"--start.path too"):
        small(start=DetectorStart(freeze="all")).build()


@pytest.mark.system("detection-training-loop", "plateau")
def test_the_rate_falls_when_map_stops_rising(tmp_path: Path) -> None:
    """At a rate of almost 0 nothing is learned, so every evaluation after the first is one without improvement."""
    recipe = small(schedule=Plateau(factor=0.5, patience=1, around=Constant()), optim=SGD(lr=1e-12))
    loop = replace(recipe.loop, steps=4, eval_every=1, save_every=4, watch="max map")
    lines = train(replace(recipe, loop=loop), tmp_path / "run").lines()
    assert [line["lr"] for line in lines if "lr" in line] == pytest.approx([1e-12, 1e-12, 5e-13, 2.5e-13])
