"""Image answerers: files and pixels, in batches, to the model's own numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.image_classifier import ImageClassifier
from descend.inference.images import ImageModel
from descend.inference.inputs import list_images
from descend.inference.segmenter import Segmenter
from descend.inference.single_object_detector import SingleObjectDetector
from descend.inference.trained import BATCH, load_trained
from descend.models import load
from descend.models.lenet import LeNet, LeNetConfig
from descend.models.localiser import Localiser, LocaliserConfig
from descend.models.unet import UNet, UNetConfig
from descend.weights.pretrained import Pretrained
from tests.close import close

MEAN, STD = torch.tensor([0.4, 0.5, 0.6])[:, None, None], torch.tensor([0.2, 0.25, 0.3])[:, None, None]


def saved(model: Pretrained, folder: Path) -> Path:
    model.save_pretrained(folder)
    Preprocessing((3, 16, 16), (0.4, 0.5, 0.6), (0.2, 0.25, 0.3), ("cat", "dog", "horse")).save(folder)
    return folder


def pixels(n: int) -> Tensor:
    return torch.randint(256, (n, 3, 16, 16), generator=torch.Generator().manual_seed(0)) / 255


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    return saved(LeNet(LeNetConfig(image=(3, 16, 16), classes=3, kernel=3)), tmp_path / "lenet")


def test_more_images_than_a_batch_are_classified_as_one_by_one(classifier: Path) -> None:
    answerer, x = open_run(classifier), pixels(BATCH + 3)
    assert isinstance(answerer, ImageClassifier)
    found = answerer.classify(x)
    assert [answer.input for answer in found] == [str(i) for i in range(BATCH + 3)]
    p = load(classifier)((x - MEAN) / STD).softmax(dim=1).detach()
    ours = torch.tensor([[dict(answer.classes)[label] for label in answerer.labels] for answer in found])
    close(ours, p)
    for answer in found:
        assert [share for _, share in answer.classes] == sorted((share for _, share in answer.classes), reverse=True)


def test_files_and_their_pixels_have_the_same_answers(classifier: Path, tmp_path: Path) -> None:
    x = pixels(2)
    for i, image in enumerate(x):
        Image.fromarray((image * 255).round().byte().movedim(0, -1).numpy()).save(tmp_path / f"{i}.png")
    answerer = open_run(classifier)
    assert isinstance(answerer, ImageClassifier)
    files, tensors = answerer.predict([str(tmp_path / "*.png")]), answerer.classify(x)
    for a, b in zip(files, tensors, strict=True):
        assert Path(a.input).suffix == ".png"
        assert dict(a.classes) == pytest.approx(dict(b.classes), abs=1e-6)


def test_standardized_images_come_back_as_pixels(classifier: Path) -> None:
    images = ImageModel.read(load_trained(classifier))
    close(images.prepare.restore(images.read_images(pixels(2))), pixels(2))


def test_masks_and_the_shares_of_their_classes(tmp_path: Path) -> None:
    torch.manual_seed(1)
    folder = saved(UNet(UNetConfig(channels=3, classes=3, width=4, depth=2, padding=1)), tmp_path / "unet")
    answerer, x = open_run(folder), pixels(3)
    assert isinstance(answerer, Segmenter)
    masks = answerer.segment(x)
    assert torch.equal(masks, load(folder)((x - MEAN) / STD).argmax(dim=1))
    for answer, mask in zip(answerer.measure_shares(x), masks, strict=True):
        expected = {label: float((mask == k).float().mean()) for k, label in enumerate(answerer.labels)}
        assert dict(answer.classes) == pytest.approx(expected)


def test_a_detector_gives_class_and_box(tmp_path: Path) -> None:
    torch.manual_seed(2)
    folder = saved(Localiser(LocaliserConfig(image=(3, 16, 16), classes=3, widths=(4, 6))), tmp_path / "where")
    answerer, x = open_run(folder), pixels(2)
    assert isinstance(answerer, SingleObjectDetector)
    located = load(folder)((x - MEAN) / STD)
    for i, answer in enumerate(answerer.detect(x)):
        close(torch.tensor(answer.box), located.box[i].detach())
        assert answer.as_json(1)["box"] == list(answer.box)
        assert answer.classes[0][0] == answerer.labels[int(located.logits[i].argmax())]


def test_images_are_listed_in_the_order_given(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/1.png", "a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / name)
    found = list_images([str(tmp_path / "b"), str(tmp_path / "a.png"), str(tmp_path / "b" / "2*")])
    assert [path.name for path in found] == ["1.png", "2.png", "a.png", "2.png"]
    (tmp_path / "empty").mkdir()
    for given, message in (("empty", "holds no images"), ("none.png", "does not exist; give image files")):
        with pytest.raises(Mistake, match=message):
            list_images([str(tmp_path / given)])


def test_a_model_without_preprocessing_takes_no_images(classifier: Path) -> None:
    (classifier / "preprocessor_config.json").unlink()
    with pytest.raises(Mistake, match=r"LeNet without preprocessor_config.json"):
        ImageModel.read(load_trained(classifier))
